//! Adds an index to a running informer and measures how long it takes until the index answers.

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::Library;
use crate::run::number;

const NAME: &str = "late index";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    for client in [Library::Informer, Library::ClientGo] {
        let setup = client.view("typed");
        let Some(mut run) = bench.start(&setup)? else { continue };
        run.sync(bench.server()?)?;
        let cpu = run.meter().cpu()?;
        let indexed = run.ask("index-late")?;
        let cpu = (run.meter().cpu()? - cpu).as_secs_f64();
        let expected = bench.server()?.digest(&[])?;
        run.compare(&expected)?;
        let (keys, nodes) = (indexed["keys"].as_u64(), expected.nodes());
        if keys.is_none() || keys != nodes {
            let client = client.name();
            return Err(Error::Found(format!(
                "{client} has {keys:?} keys in its index, the pods {nodes:?} nodes"
            )));
        }
        bench.figures.record(
            NAME,
            &setup,
            &[
                ("wall", Unit::Seconds, number(&indexed, "seconds")),
                ("CPU", Unit::Seconds, cpu),
                ("keys", Unit::Count, number(&indexed, "keys")),
            ],
        );
    }
    Ok(())
}
