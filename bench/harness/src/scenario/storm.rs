//! A storm of changes on a controller whose reconciliations take 20 ms, and of which one of twenty fails. Every object has
//! to end reconciled at its last version, and no two workers may have the same one.

use std::time::Instant;

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::Library;
use crate::run::number;

const NAME: &str = "storm";
const WORKERS: usize = 32;
/// How often each object is changed.
const ROUNDS: usize = 3;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let objects = bench.options.objects;
    for client in Library::CONTROLLERS {
        let setup = client.controller("storm", WORKERS);
        let kubeconfig = bench.owners_server()?.kubeconfig().to_owned();
        let Some(mut run) = bench.start_at(&setup, Some(&kubeconfig))? else { continue };
        let synced = run.start_controller(objects)?;
        let (cpu, begun) = (run.meter().cpu()?, Instant::now());
        let server = bench.owners_server()?;
        server.storm_owners(objects, ROUNDS)?;
        let changed = begun.elapsed();
        let owners = server.owners()?;
        let reached = run.until_all(&owners.versions)?;
        let total = begun.elapsed();
        let cpu = (run.meter().cpu()? - cpu).as_secs_f64();
        run.compare(&owners.digest)?;
        let answer = |field: &str| number(&reached, field);
        if answer("overlaps") > 0.0 || answer("failures") < 1.0 {
            let (name, overlaps) = (run.name(), answer("overlaps"));
            return Err(Error::Found(format!(
                "{name}: {overlaps} times two workers had one object: {reached}"
            )));
        }
        bench.figures.record(
            NAME,
            &setup,
            &[
                ("worst age", Unit::Seconds, answer("delayMaxSeconds")),
                ("age, mean", Unit::Seconds, answer("delayMeanSeconds")),
                ("total time", Unit::Seconds, total.as_secs_f64()),
                ("time of the changes", Unit::Seconds, changed.as_secs_f64()),
                ("CPU", Unit::Seconds, cpu),
                ("reconciled", Unit::Count, answer("updates")),
                ("failed", Unit::Count, answer("failures")),
                ("all reconciled at the start after", Unit::Seconds, number(&synced, "wallSeconds")),
            ],
        );
    }
    Ok(())
}
