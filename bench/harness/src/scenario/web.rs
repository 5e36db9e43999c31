//! The page of kubediff on a long history, which is written once and kept: how long answers take. They are compared with a naive filter's.

use std::process::Command;

use serde_json::Value;
use tooling::{Error, process};

use crate::figures::Unit;
use crate::library::{self, Library, Setup};
use crate::{Bench, root};

const NAME: &str = "web";
/// Live objects for one of `--objects`: 100,000 by default.
const OBJECTS: usize = 10;
/// Changes for one of `--objects`: 10,000,000 by default. Without optimization, writing them would take too long.
const CHANGES: usize = 1_000;
const CHANGES_DEBUG: usize = 20;
const QUESTIONS: usize = 2_000;
const QUESTIONS_DEBUG: usize = 200;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let kubediff = bench.kubediff()?;
    let debug = bench.options.debug;
    let program = library::rust("bench-page", "bench-page", debug)?;
    let objects = bench.options.objects * OBJECTS;
    let (changes, questions) = if debug { (CHANGES_DEBUG, QUESTIONS_DEBUG) } else { (CHANGES, QUESTIONS) };
    let changes = bench.options.objects * changes;
    let history = root().join("target/bench").join(format!("page-{objects}-{changes}.db"));

    let mut command = Command::new(program);
    command.arg("--kubediff").arg(kubediff).arg("--history").arg(&history);
    for (name, value) in [("--objects", objects), ("--changes", changes), ("--questions", questions)] {
        command.args([name, &value.to_string()]);
    }
    let answer = process::output(&mut command)?;
    let answer: Value = serde_json::from_str(&answer).map_err(|error| Error::format("bench-page", error))?;
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let setup =
        |name: &str| Setup { client: Library::Informer, name: name.to_owned(), arguments: Vec::new() };
    for topic in answer["topics"].as_array().into_iter().flatten() {
        let figures = [
            ("p50", Unit::Seconds, number(&topic["p50"])),
            ("p95", Unit::Seconds, number(&topic["p95"])),
            ("p99", Unit::Seconds, number(&topic["p99"])),
            ("questions", Unit::Count, number(&topic["count"])),
            ("looked back in part", Unit::Count, number(&topic["partial"])),
        ];
        bench.figures.record(NAME, &setup(topic["topic"].as_str().unwrap_or_default()), &figures);
    }
    let cold: Vec<f64> = answer["cold"].as_array().into_iter().flatten().map(number).collect();
    let figures = [
        ("first page of a process, file not in memory", Unit::Seconds, crate::figures::median(&cold)),
        ("memory", Unit::Bytes, number(&answer["memory"])),
        ("memory of 50 open pages and 20 requests/s", Unit::Bytes, number(&answer["openPages"])),
        ("timelines/s meanwhile", Unit::Count, number(&answer["rate"])),
        ("file", Unit::Bytes, number(&answer["bytes"])),
    ];
    bench.figures.record(NAME, &setup(&format!("{changes} changes")), &figures);
    Ok(())
}
