//! The server is away for a time in the middle of changes of a whole controller's objects. Measures how long the controller takes
//! to reconcile all of them, and how many requests the server gets in the first minute after.
//!
//! The server is away behind a relay, as in `outage`: the cluster's side goes on changing ConfigMaps meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::relay::Relay;
use crate::run::number;
use crate::server::Server;

use super::controller::{WORKERS, check};
use super::outage;

pub(crate) const NAME: &str = "storm-outage";
pub(crate) const REQUESTS: &str = "requests in the first minute";
pub(crate) const TIME: &str = "until all are reconciled";

const PER_SECOND: usize = 100;
/// How long objects change before the server is away.
const BEFORE: Duration = Duration::from_secs(5);
/// How often the requests are counted after it is back, once a second.
const SECONDS: usize = 60;
const SECONDS_DEBUG: usize = 2;

/// The name of the setup in figures.
pub(crate) fn setup_name(away: Duration) -> String {
    format!("away {} s", away.as_secs())
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    for away in outage::away(bench.options.debug) {
        for client in Library::CONTROLLERS {
            one(bench, client, *away)?;
        }
    }
    Ok(())
}

fn one(bench: &mut Bench<'_>, client: Library, away: Duration) -> Result<(), Error> {
    let setup = Setup { name: setup_name(away), ..client.controller("children", WORKERS) };
    let seconds = if bench.options.debug { SECONDS_DEBUG } else { SECONDS };
    let objects = bench.options.objects;
    let kubeconfig = bench.scratch.join("relayed.kubeconfig");
    let mut relay = Relay::start(bench.owners_server()?.kubeconfig())?;
    relay.write_kubeconfig(&kubeconfig)?;
    bench.owners_server()?.clear_children()?;
    let Some(mut run) = bench.start_at(&setup, Some(&kubeconfig))? else { return Ok(()) };
    run.start_controller(objects)?;

    let server = bench.owners_server()?;
    let cut = thread::scope(|scope| {
        let changes = scope.spawn(|| server.pace_owners(BEFORE + away, PER_SECOND));
        thread::sleep(BEFORE);
        let cut = Instant::now();
        relay.cut();
        join(changes).map(|()| cut)
    })?;
    let versions = server.owners()?.versions;
    let before = server.requests_of_controllers()?;
    relay.restore()?;
    let back = Instant::now();
    let (counts, reached, until) = thread::scope(|scope| {
        let counts = scope.spawn(|| counts(server, before, back, seconds));
        let reached = run.until_all(&versions)?;
        let until = back.elapsed();
        Ok::<_, Error>((join(counts)?, reached, until))
    })?;
    check(bench.owners_server()?, &mut run)?;
    let worst = number(&reached, "delayMaxSeconds") - back.duration_since(cut).as_secs_f64();
    bench.figures.record(
        NAME,
        &setup,
        &[
            (TIME, Unit::Seconds, until.as_secs_f64()),
            ("worst age beyond the outage", Unit::Seconds, worst.max(0.0)),
            (REQUESTS, Unit::Count, counts.iter().sum()),
            ("most requests in a second", Unit::Count, counts.iter().copied().fold(0.0, f64::max)),
            ("failed", Unit::Count, number(&reached, "failures")),
        ],
    );
    Ok(())
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    thread.join().unwrap_or_else(|_| Err(Error::Found("a thread has panicked".into())))
}

/// How many requests of controllers the server has got in each second.
fn counts(server: &mut Server, mut before: f64, back: Instant, seconds: usize) -> Result<Vec<f64>, Error> {
    (1..=seconds)
        .map(|second| {
            thread::sleep(
                (back + Duration::from_secs(second as u64)).saturating_duration_since(Instant::now()),
            );
            let all = server.requests_of_controllers()?;
            Ok(all - std::mem::replace(&mut before, all))
        })
        .collect()
}
