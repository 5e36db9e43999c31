//! Changes as fast as the server accepts them. Measures CPU per update and the delay until the handler is notified.

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::run::number;

pub(crate) const NAME: &str = "updates";
pub(crate) const CPU: &str = "CPU per update";

const MOST: usize = 8_000;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    one(bench, &Library::Informer.view("declared").with(&["--subscriptions", "1"]))?;
    for view in ["typed", "dynamic"] {
        for client in Library::CACHES {
            one(bench, &client.view(view).with(&["--subscriptions", "1"]))?;
        }
    }
    Ok(())
}

fn one(bench: &mut Bench<'_>, setup: &Setup) -> Result<(), Error> {
    let Some(mut run) = bench.start(setup)? else { return Ok(()) };
    run.sync(bench.server()?)?;
    run.steady()?;
    let count = bench.options.objects.min(MOST);
    let updates = run.updates(bench.server()?, count, count)?;
    run.check(bench.server()?)?;
    bench.figures.record(
        NAME,
        setup,
        &[
            (CPU, Unit::Seconds, updates.cpu_each()),
            ("delay, mean", Unit::Seconds, number(&updates.reached, "delayMeanSeconds")),
            ("delay, most", Unit::Seconds, number(&updates.reached, "delayMaxSeconds")),
            ("updates handled", Unit::Count, number(&updates.reached, "updates")),
        ],
    );
    Ok(())
}
