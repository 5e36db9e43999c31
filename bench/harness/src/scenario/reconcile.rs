//! A controller at work. Pods are in ReplicaSets of ten, and nine of ten changes hit the pods of a few sets. For each
//! change the controller reads the pod, its node from another informer, and its siblings through an index.

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::Library;
use crate::run::number;
use crate::server::Pace;

pub(crate) const NAME: &str = "reconcile";
pub(crate) const CPU: &str = "CPU per change";
pub(crate) const MEMORY: &str = "memory above base, under changes";

pub(crate) const PER_SET: usize = 10;
const BUSY_SETS: usize = 50;
const PER_SECOND: usize = 100;
const SECONDS: usize = 30;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let objects = bench.options.objects;
    let count = (PER_SECOND * SECONDS).min(objects);
    let among = (BUSY_SETS * PER_SET).min(objects / 2);
    for setup in [Library::Informer, Library::ClientGo].map(|library| library.view("typed")) {
        let setup = setup.with(&["--reconcile"]);
        let client = setup.client;
        let kubeconfig = bench.sets_server()?.kubeconfig().to_owned();
        let Some(mut run) = bench.start_at(&setup, Some(&kubeconfig))? else { continue };
        let sync = run.sync(bench.sets_server()?)?;
        let steady = run.steady()?;
        let pace = Pace { count, per_second: PER_SECOND, among };
        let updates = run.paced_updates(bench.sets_server()?, &pace)?;
        let memory = run.steady()?;
        run.check(bench.sets_server()?)?;
        let answer = |field: &str| number(&updates.reached, field);
        let incomplete = answer("incomplete");
        if incomplete > 0.0 || answer("updates") < 1.0 {
            let client = client.name();
            return Err(Error::Found(format!("{client} found {incomplete} pods without node or siblings")));
        }
        if client == Library::Informer {
            bench.figures.record(
                NAME,
                &setup,
                &[
                    ("reads that found a value", Unit::Count, answer("hits")),
                    ("reads that decoded one", Unit::Count, answer("misses")),
                    ("bytes that are hot", Unit::Bytes, answer("hotBytes")),
                ],
            );
        }
        bench.figures.record(
            NAME,
            &setup,
            &[
                (CPU, Unit::Seconds, updates.cpu / count as f64),
                (MEMORY, Unit::Bytes, memory - run.base()),
                ("memory above base, before", Unit::Bytes, steady - run.base()),
                ("CPU of the start, each pod reconciled", Unit::Seconds, sync.cpu),
                ("wall of the start", Unit::Seconds, sync.wall),
                ("reconciled", Unit::Count, answer("updates")),
                ("delay, mean", Unit::Seconds, answer("delayMeanSeconds")),
                ("delay, 99th percentile", Unit::Seconds, answer("delayP99Seconds")),
            ],
        );
    }
    Ok(())
}
