//! All kinds of a cluster at once: many small collections, a few large objects, beside the pods.

use crate::bench::Bench;
use crate::bench::figures::Unit;
use crate::bench::library::Library;
use crate::bench::server::Server;
use crate::error::Error;

const NAME: &str = "kinds";
/// Of each kind that is filled.
const OBJECTS: usize = 100;
/// Beside the others a few; the scenario is not about them.
const PODS: usize = 500;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let mut server = Server::start(bench.options.server, &bench.cluster, &bench.scratch)?;
    let objects = bench.options.objects;
    server.load(objects.min(PODS))?;
    server.fill(objects.min(OBJECTS))?;
    let resources = server.resources()?;
    let arguments: Vec<&str> = resources.iter().flat_map(|resource| ["--resource", resource]).collect();
    for view in ["dynamic", "metadata"] {
        for client in Library::ALL {
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
                    ("steady memory above base", Unit::Bytes, steady - run.base()),
                ],
            );
        }
    }
    Ok(())
}
