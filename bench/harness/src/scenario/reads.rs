//! Reads of a cache of small pods, without a server.

use serde_json::{Value, json};

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};

pub(crate) const NAME: &str = "reads";
pub(crate) const SETUP: &str = "small pods, decoded";
pub(crate) const SLOWEST: &str = "slowest get beside others, own time";

pub(crate) const GET: &str = "get by key";
pub(crate) const SELECTOR: &str = "by label selector, 100 hits";
pub(crate) const INDEX_ONE: &str = "by index, one hit";

const MOST: usize = 100_000;

/// The name of an operation of the protocol in figures.
const OPERATIONS: [(&str, &str); 8] = [
    ("get", GET),
    ("indexOne", INDEX_ONE),
    ("indexHundred", "by index, 100 hits"),
    ("selector", SELECTOR),
    ("list", "list everything"),
    ("snapshot", "snapshot"),
    ("add", "add"),
    ("update", "update"),
];

/// Gets beside a writer, another reader and a lister.
const OTHERS: [(&str, &str, Unit); 3] = [
    ("slowestOwnGetNanoseconds", SLOWEST, Unit::Nanoseconds),
    ("slowestGetNanoseconds", "slowest get beside others, all", Unit::Nanoseconds),
    ("updatesMeanwhile", "updates beside others", Unit::Count),
];

/// The number of pods in the cache.
pub(super) fn objects(bench: &Bench<'_>) -> usize {
    (bench.options.objects * 10).min(MOST)
}

/// How long each operation is repeated.
pub(super) fn seconds(bench: &Bench<'_>) -> f64 {
    (bench.options.seconds / 5.0).min(1.0)
}

/// The operations of an answer, with their names in figures.
pub(super) fn times(answer: &Value, nanoseconds: &str) -> Vec<(&'static str, Unit, f64)> {
    let time = |operation: &str| answer[nanoseconds][operation].as_f64();
    let named = OPERATIONS.iter().filter_map(|(operation, figure)| Some((*figure, time(operation)?)));
    named.map(|(figure, time)| (figure, Unit::Nanoseconds, time)).collect()
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let parameters = json!({ "seconds": seconds(bench), "objects": objects(bench) });
    for client in Library::CACHES {
        let setup = Setup { client, name: SETUP.to_owned(), arguments: Vec::new() };
        let Some(mut run) = bench.start_at(&setup, None)? else { continue };
        let answer = run.ask(&format!("reads {parameters}"))?;
        let others = OTHERS
            .iter()
            .filter_map(|(field, figure, unit)| Some((*figure, *unit, answer[*field].as_f64()?)));
        let values: Vec<_> = times(&answer, "nanoseconds").into_iter().chain(others).collect();
        bench.figures.record(NAME, &setup, &values);
        let beside_writer = times(&answer, "nanosecondsBesideWriter");
        if !beside_writer.is_empty() {
            bench.figures.record(NAME, &setup.named("beside a writer", &[]), &beside_writer);
        }
    }
    Ok(())
}
