//! A list of what the cache has already: the watch breaks and its version is gone, with nothing or a tenth changed meanwhile.
//!
//! The client is stopped (SIGSTOP), its connections are broken, objects change, and the server loses its history: so that nothing
//! of the changes is on its way to the client when it goes on. Two sentinels tell when it is done: the first may be in the middle
//! of the list, the second comes after it.

use crate::Bench;
use crate::error::Error;
use crate::figures::Unit;
use crate::library::{Library, Setup};

pub(crate) const UNCHANGED: &str = "relist, unchanged";
const CHANGED: &str = "relist, a tenth changed";
pub(crate) const PEAK: &str = "peak / steady";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    for client in Library::ALL {
        let setup = client.view("typed").with(&["--subscriptions", "1"]);
        one(bench, &setup)?;
    }
    Ok(())
}

/// Both, on one informer.
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
    // What the client has must be older than what the server remembers, even if nothing else changed.
    server.sentinel()?;
    server.expire()
}
