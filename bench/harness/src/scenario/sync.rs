//! The initial list: how long it takes, how much CPU the client and the server need, and how much memory stays in use.

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};

pub(crate) const NAME: &str = "sync";
pub(crate) const WALL: &str = "wall";
pub(crate) const CPU: &str = "CPU";
pub(crate) const SERVER_CPU: &str = "server CPU";
pub(crate) const STEADY: &str = "steady memory above base";
pub(crate) const PEAK: &str = "peak / steady";
pub(crate) const ONE_HANDLER: &str = "typed, one handler";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    for setup in setups() {
        one(bench, &setup)?;
    }
    Ok(())
}

/// Each client in each of the usual setups. Setups that are compared are adjacent.
fn setups() -> Vec<Setup> {
    let mut all = Vec::new();
    for view in ["typed", "dynamic", "metadata"] {
        all.extend(Library::CACHES.map(|client| client.view(view)));
    }
    all.extend(Library::CACHES.map(|client| client.view("typed").dropping_managed_fields()));
    all.push(Library::ClientGo.view("dynamic").dropping_managed_fields());
    all.push(Library::KubeRs.view("dynamic").dropping_managed_fields());
    all.extend(
        [Library::Informer, Library::KubeRs]
            .map(|client| client.view("typed").named("streaming list", &["--streaming"])),
    );
    all.push(Library::Informer.view("typed").named("bytes", &["--layout", "bytes"]));
    all.extend([Library::Informer, Library::ClientGo].map(|client| {
        let name = ONE_HANDLER.to_owned();
        Setup { name, ..client.view("typed").with(&["--subscriptions", "1"]) }
    }));
    all
}

fn one(bench: &mut Bench<'_>, setup: &Setup) -> Result<(), Error> {
    let Some(mut run) = bench.start(setup)? else { return Ok(()) };
    let sync = run.sync(bench.server()?)?;
    let steady = run.steady()?;
    let base = run.base();
    run.check(bench.server()?)?;
    bench.figures.record(
        NAME,
        setup,
        &[
            (WALL, Unit::Seconds, sync.wall),
            (CPU, Unit::Seconds, sync.cpu),
            (SERVER_CPU, Unit::Seconds, sync.server_cpu),
            ("base memory", Unit::Bytes, base),
            ("peak memory", Unit::Bytes, sync.peak),
            ("steady memory", Unit::Bytes, steady),
            (STEADY, Unit::Bytes, steady - base),
            (PEAK, Unit::Times, sync.peak / steady),
        ],
    );
    Ok(())
}
