//! 1, 10 and 100 handlers on one informer: the cost of each further handler.

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::Library;
use crate::run::number;

pub(crate) const NAME: &str = "subscriptions";
pub(crate) const CPU: &str = "CPU per update";

const MOST: usize = 4_000;

/// The names of the setups in figures.
pub(crate) fn setup_name(handlers: usize) -> String {
    format!("typed, {handlers} subscriptions")
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let count = bench.options.objects.min(MOST);
    for handlers in [1, 10, 100] {
        for client in Library::CACHES {
            let mut setup = client.view("typed").with(&["--subscriptions", &handlers.to_string()]);
            setup.name = setup_name(handlers);
            let Some(mut run) = bench.start(&setup)? else { continue };
            run.sync(bench.server()?)?;
            run.steady()?;
            let updates = run.updates(bench.server()?, count, count)?;
            run.check(bench.server()?)?;
            let handled = number(&updates.reached, "updates");
            let figures =
                [(CPU, Unit::Seconds, updates.cpu_each()), ("updates handled", Unit::Count, handled)];
            bench.figures.record(NAME, &setup, &figures);
        }
    }
    Ok(())
}
