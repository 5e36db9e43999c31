//! One of two handlers never returns while objects keep changing. Measures the growth of memory. Uses an embedded
//! server, which is fast enough for a million changes.
//!
//! client-go queues all changes for the stuck handler, so it gets only a twentieth of the changes. kube-rs stops the
//! watch and is left out.

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::server::Server;

pub(crate) const NAME: &str = "stuck";
pub(crate) const MEMORY: &str = "memory / steady";

const KEYS: usize = 10_000;
/// For each change that a peer gets, ours gets this many.
const SHARE_OF_PEERS: usize = 20;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let keys = bench.options.objects.min(KEYS);
    let count = bench.options.stuck_updates.unwrap_or(keys * 100);
    let mut server = bench.embedded()?;
    server.load(keys)?;
    let typed = |client: Library| client.view("typed").with(&["--subscriptions", "2"]);
    one(bench, &mut server, &typed(Library::Informer), count)?;
    one(bench, &mut server, &typed(Library::ClientGo), count / SHARE_OF_PEERS)
}

fn one(bench: &mut Bench<'_>, server: &mut Server, setup: &Setup, count: usize) -> Result<(), Error> {
    let kubeconfig = server.kubeconfig().to_owned();
    let Some(mut run) = bench.start_at(setup, Some(&kubeconfig))? else { return Ok(()) };
    run.sync(server)?;
    let before = run.steady()?;
    run.ask("stuck")?;
    run.updates(server, count, 0)?;
    let after = run.steady()?;
    run.check(server)?;
    bench.figures.record(
        NAME,
        setup,
        &[
            ("updates", Unit::Count, count as f64),
            ("steady memory", Unit::Bytes, before),
            ("memory afterwards", Unit::Bytes, after),
            (MEMORY, Unit::Times, after / before),
        ],
    );
    Ok(())
}
