//! Changes at a pace that the server keeps up with. Measures the time from just before a change is sent until the
//! handler gets it.

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::Library;
use crate::run::number;
use crate::server::Pace;

pub(crate) const NAME: &str = "delay";
pub(crate) const MEAN: &str = "delay, mean";
pub(crate) const P99: &str = "delay, 99th percentile";

pub(crate) const PER_SECOND: usize = 100;
const SECONDS: usize = 30;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let count = (PER_SECOND * SECONDS).min(bench.options.objects);
    for client in [Library::Informer, Library::ClientGo] {
        let setup = client.view("typed").with(&["--subscriptions", "1"]);
        let Some(mut run) = bench.start(&setup)? else { continue };
        run.sync(bench.server()?)?;
        run.steady()?;
        let pace = Pace { count, per_second: PER_SECOND, among: 0 };
        let updates = run.paced_updates(bench.server()?, &pace)?;
        run.check(bench.server()?)?;
        let seconds = |field: &str| number(&updates.reached, field);
        bench.figures.record(
            NAME,
            &setup,
            &[
                (MEAN, Unit::Seconds, seconds("delayMeanSeconds")),
                (P99, Unit::Seconds, seconds("delayP99Seconds")),
                ("delay, most", Unit::Seconds, seconds("delayMaxSeconds")),
                ("CPU per update", Unit::Seconds, updates.cpu_each()),
                ("updates handled", Unit::Count, seconds("updates")),
            ],
        );
    }
    Ok(())
}
