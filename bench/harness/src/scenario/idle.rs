//! An idle informer: nothing changes, now and then a bookmark arrives.

use std::time::Duration;

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::Library;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let seconds = bench.options.seconds;
    for client in Library::CACHES {
        let setup = client.view("typed").with(&["--subscriptions", "1"]);
        let Some(mut run) = bench.start(&setup)? else { continue };
        run.sync(bench.server()?)?;
        run.steady()?;
        let cpu = run.idle(Duration::from_secs_f64(seconds))?;
        run.check(bench.server()?)?;
        bench.figures.record("idle", &setup, &[("CPU per hour", Unit::Seconds, cpu / seconds * 3_600.0)]);
    }
    Ok(())
}
