//! Informers of all kinds of a cluster at once: many small collections and a few large objects beside the pods.

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::Library;
use crate::server::Server;

pub(crate) const NAME: &str = "kinds";
pub(crate) const MEMORY: &str = "steady memory above base";
pub(super) const PODS_RESOURCE: &str = "core/v1/pods/Pod";
/// The number of objects of each filled kind.
const OBJECTS: usize = 100;
/// A few pods; the scenario is not about them.
const PODS: usize = 500;

/// A server with objects of many kinds.
pub(super) fn server(bench: &Bench<'_>) -> Result<Server, Error> {
    server_with(bench, bench.options.objects.min(PODS))
}

/// The same with this number of pods.
pub(super) fn server_with(bench: &Bench<'_>, pods: usize) -> Result<Server, Error> {
    let mut server = Server::start(bench.options.server, &bench.cluster, &bench.scratch)?;
    server.load(pods)?;
    server.fill(bench.options.objects.min(OBJECTS))?;
    Ok(server)
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let mut server = server(bench)?;
    let resources = server.resources()?;
    let arguments: Vec<&str> = resources.iter().flat_map(|resource| ["--resource", resource]).collect();
    for view in ["dynamic", "metadata"] {
        for client in Library::CACHES {
            let setup = client.view(view).with(&arguments);
            let kubeconfig = server.kubeconfig().to_owned();
            let Some(run) = bench.start_at(&setup, Some(&kubeconfig))? else { continue };
            let mut run = run.of(&resources);
            let sync = run.sync(&server)?;
            let steady = run.steady()?;
            run.check(&mut server)?;
            bench.figures.record(
                NAME,
                &setup,
                &[
                    ("kinds", Unit::Count, resources.len() as f64),
                    ("wall", Unit::Seconds, sync.wall),
                    ("CPU", Unit::Seconds, sync.cpu),
                    ("peak memory", Unit::Bytes, sync.peak),
                    (MEMORY, Unit::Bytes, steady - run.base()),
                ],
            );
        }
    }
    Ok(())
}
