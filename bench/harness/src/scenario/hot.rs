//! Reads a few of many objects again and again, as programs do with the objects that they work on. In the default
//! layout these objects stay decoded.

use serde_json::json;

use super::reads;
use tooling::Error;

use crate::Bench;
use crate::library::{Library, Setup};

pub(crate) const NAME: &str = "hot";
pub(crate) const SETUP: &str = "hot pods";
pub(crate) const BESIDE_WRITER: &str = "hot pods, beside a writer";

const HOT: usize = 1_000;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let objects = reads::objects(bench);
    let seconds = reads::seconds(bench);
    let parameters = json!({ "seconds": seconds, "objects": objects, "hot": HOT.min(objects / 10) });
    for client in [Library::Informer, Library::ClientGo] {
        let setup = Setup { client, name: SETUP.to_owned(), arguments: Vec::new() };
        let Some(mut run) = bench.start_at(&setup, None)? else { continue };
        let answer = run.ask(&format!("reads {parameters}"))?;
        bench.figures.record(NAME, &setup, &reads::times(&answer, "nanoseconds"));
        let setup = Setup { name: BESIDE_WRITER.to_owned(), ..setup };
        bench.figures.record(NAME, &setup, &reads::times(&answer, "nanosecondsBesideWriter"));
    }
    Ok(())
}
