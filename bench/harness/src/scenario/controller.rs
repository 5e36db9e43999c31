//! Whole controllers at work. Each ConfigMap owns a Secret, which the controller creates and keeps in step with it. The
//! cluster's side changes ConfigMaps at an even pace, and measures how long the Secrets take to follow.

use serde_json::json;

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::run::{Run, number};
use crate::server::Server;

pub(crate) const NAME: &str = "controller";
pub(crate) const SETUP: &str = "8 workers";
pub(crate) const CPU: &str = "CPU per change";
pub(crate) const MEMORY: &str = "memory above base";
pub(crate) const MEAN: &str = "delay, mean";
pub(crate) const P99: &str = "delay, 99th percentile";

pub(super) const WORKERS: usize = 8;
const PER_SECOND: usize = 100;
const SECONDS: usize = 30;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    for client in Library::CONTROLLERS {
        measure(bench, client)?;
    }
    Ok(())
}

/// Runs a controller without Secrets, again with all of them, and ours also with a saved cache.
fn measure(bench: &mut Bench<'_>, client: Library) -> Result<(), Error> {
    let setup = client.controller("children", WORKERS);
    let kubeconfig = bench.owners_server()?.kubeconfig().to_owned();
    bench.owners_server()?.clear_children()?;
    let Some(mut run) = bench.start_at(&setup, Some(&kubeconfig))? else { return Ok(()) };
    begin(bench, &mut run, &setup.clone().named("no Secrets at the start", &[]))?;
    let before = run.steady()? - run.base();
    let count = (PER_SECOND * SECONDS).min(bench.options.objects);
    let cpu = run.meter().cpu()?;
    let changed = bench.owners_server()?.change_owners(count, PER_SECOND)?;
    let cpu = (run.meter().cpu()? - cpu).as_secs_f64();
    let memory = run.steady()? - run.base();
    check(bench.owners_server()?, &mut run)?;
    let seconds = |field: &str| number(&changed, field);
    bench.figures.record(
        NAME,
        &setup,
        &[
            (CPU, Unit::Seconds, cpu / count as f64),
            (MEMORY, Unit::Bytes, memory),
            ("memory above base, before the changes", Unit::Bytes, before),
            (MEAN, Unit::Seconds, seconds("delayMeanSeconds")),
            (P99, Unit::Seconds, seconds("delayP99Seconds")),
            ("delay, most", Unit::Seconds, seconds("delayMaxSeconds")),
        ],
    );
    let saved = bench.scratch.join("controller.cache");
    if client == Library::Informer {
        run.ask(&format!("save {}", json!({ "file": saved })))?;
    }
    drop(run);
    restart(bench, &setup.clone().named("all Secrets at the start", &[]))?;
    if client == Library::Informer {
        restart(bench, &setup.named("from a saved cache", &["--load"]).with(&[saved.display()]))?;
    }
    Ok(())
}

/// Starts a controller again. A hundredth of the objects has changed since.
fn restart(bench: &mut Bench<'_>, setup: &Setup) -> Result<(), Error> {
    let count = bench.options.objects / 100;
    bench.owners_server()?.storm_owners(count, 1)?;
    let kubeconfig = bench.owners_server()?.kubeconfig().to_owned();
    let Some(mut run) = bench.start_at(setup, Some(&kubeconfig))? else { return Ok(()) };
    begin(bench, &mut run, setup)?;
    check(bench.owners_server()?, &mut run)
}

/// Waits until the controller has reconciled each object once.
fn begin(bench: &mut Bench<'_>, run: &mut Run, setup: &Setup) -> Result<(), Error> {
    let cpu = run.meter().cpu()?;
    let synced = run.start_controller(bench.options.objects)?;
    bench.figures.record(
        NAME,
        setup,
        &[
            ("first reconcile after", Unit::Seconds, number(&synced, "firstSeconds")),
            ("all reconciled after", Unit::Seconds, number(&synced, "wallSeconds")),
            ("CPU until then", Unit::Seconds, (run.meter().cpu()? - cpu).as_secs_f64()),
        ],
    );
    Ok(())
}

/// Each object has one Secret, which is in step, and the controller has reconciled its last version.
pub(super) fn check(server: &mut Server, run: &mut Run) -> Result<(), Error> {
    let versions = server.owners()?.versions;
    run.until_all(&versions)?;
    let owners = server.owners()?;
    if owners.in_step != owners.objects || owners.children != owners.objects {
        return Err(Error::Found(format!("{}: {owners:?}", run.name())));
    }
    run.compare(&owners.digest)
}
