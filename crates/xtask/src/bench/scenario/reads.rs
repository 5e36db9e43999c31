//! Reads of a cache of small pods, in the process and without a server.

use serde_json::json;

use crate::bench::Bench;
use crate::bench::figures::Unit;
use crate::bench::library::{Library, Setup};
use crate::error::Error;

pub(in crate::bench) const NAME: &str = "reads";
pub(in crate::bench) const SETUP: &str = "small pods, decoded";
pub(in crate::bench) const SLOWEST: &str = "slowest get beside others, not preempted";

const MOST: usize = 100_000;

/// How an operation of the protocol is called in figures.
const OPERATIONS: [(&str, &str); 8] = [
    ("get", "get by key"),
    ("indexOne", "by index, one hit"),
    ("indexHundred", "by index, 100 hits"),
    ("selector", "by label selector, 100 hits"),
    ("list", "list everything"),
    ("snapshot", "snapshot"),
    ("add", "add"),
    ("update", "update"),
];

/// Beside a writer, another reader and a lister.
const OTHERS: [(&str, &str, Unit); 3] = [
    ("slowestUnpreemptedGetNanoseconds", SLOWEST, Unit::Nanoseconds),
    ("slowestGetNanoseconds", "slowest get beside others, all", Unit::Nanoseconds),
    ("updatesMeanwhile", "updates beside others", Unit::Count),
];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let objects = (bench.options.objects * 10).min(MOST);
    let seconds = (bench.options.seconds / 5.0).min(1.0);
    let parameters = json!({ "seconds": seconds, "objects": objects });
    for client in Library::ALL {
        let setup = Setup { client, name: SETUP.to_owned(), arguments: Vec::new() };
        let Some(mut run) = bench.start_at(&setup, None)? else { continue };
        let answer = run.ask(&format!("reads {parameters}"))?;
        let times_of = |nanoseconds: &str| -> Vec<_> {
            let time = |operation: &str| answer[nanoseconds][operation].as_f64();
            let named = OPERATIONS.iter().filter_map(|(operation, figure)| Some((*figure, time(operation)?)));
            named.map(|(figure, time)| (figure, Unit::Nanoseconds, time)).collect()
        };
        let others = OTHERS
            .iter()
            .filter_map(|(field, figure, unit)| Some((*figure, *unit, answer[*field].as_f64()?)));
        let values: Vec<_> = times_of("nanoseconds").into_iter().chain(others).collect();
        bench.figures.record(NAME, &setup, &values);
        let beside_writer = times_of("nanosecondsBesideWriter");
        if !beside_writer.is_empty() {
            bench.figures.record(NAME, &setup.named("beside a writer", &[]), &beside_writer);
        }
    }
    Ok(())
}
