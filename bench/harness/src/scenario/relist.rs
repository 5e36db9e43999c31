//! A re-list: the watch breaks and its resourceVersion has expired. Either nothing has changed meanwhile, or a tenth of
//! the objects.
//!
//! The harness stops the client (SIGSTOP), breaks its connections, changes objects and lets the server discard its
//! history, so that no change is on its way when the client continues. Two changes of the sentinel show when the
//! re-list is complete: the first may be part of the list, the second comes after it.

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};

pub(crate) const UNCHANGED: &str = "relist, unchanged";
const CHANGED: &str = "relist, a tenth changed";
pub(crate) const PEAK: &str = "peak / steady";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    for client in Library::CACHES {
        let setup = client.view("typed").with(&["--subscriptions", "1"]);
        one(bench, &setup)?;
    }
    Ok(())
}

/// Both cases in sequence, on one informer.
fn one(bench: &mut Bench<'_>, setup: &Setup) -> Result<(), Error> {
    let Some(mut run) = bench.start(setup)? else { return Ok(()) };
    run.sync(bench.server()?)?;
    let objects = bench.options.objects;
    for (name, changed) in [(UNCHANGED, 0), (CHANGED, objects / 10)] {
        run.steady()?;
        let cpu = run.meter().cpu()?;
        run.meter().freeze()?;
        let lost = lose_history(bench, changed);
        run.meter().thaw()?;
        lost?;
        run.meter().forget_peak()?;
        for _ in 0..2 {
            let sentinel = bench.server()?.sentinel()?;
            run.until(&sentinel)?;
        }
        let cpu = (run.meter().cpu()? - cpu).as_secs_f64();
        let peak = run.meter().peak()? as f64;
        let steady = run.steady()?;
        run.check(bench.server()?)?;
        bench.figures.record(
            name,
            setup,
            &[
                ("CPU", Unit::Seconds, cpu),
                ("peak memory", Unit::Bytes, peak),
                ("steady memory", Unit::Bytes, steady),
                (PEAK, Unit::Times, peak / steady),
            ],
        );
    }
    Ok(())
}

fn lose_history(bench: &mut Bench<'_>, changed: usize) -> Result<(), Error> {
    let server = bench.server()?;
    server.expire()?;
    if changed > 0 {
        server.change(changed, changed)?;
    }
    // The client's version must be older than the server's history, even if nothing else has changed.
    server.sentinel()?;
    server.expire()
}
