//! The file of a recorded run: lines of tab-separated fields, which `grep` and `cut` can read too.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use super::{Binary, Outcome, TestResult, TestRun};
use tooling::Error;

pub(super) fn format(run: &TestRun) -> String {
    let started = run.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut text = format!("started\t{started}\nreal-server\t{}\n", run.real_server);
    for TestResult { binary, name, outcome } in &run.results {
        let outcome = match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Ignored => "ignored",
        };
        let _ = writeln!(text, "{outcome}\t{}\t{}\t{name}", binary.package, binary.target);
    }
    text
}

pub(super) fn parse(text: &str) -> Result<TestRun, Error> {
    let mut run = TestRun { started: SystemTime::UNIX_EPOCH, real_server: false, results: Vec::new() };
    for line in text.lines() {
        let invalid = || Error::format("the recorded test run", format!("`{line}`"));
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["started", millis] => {
                run.started += Duration::from_millis(millis.parse().map_err(|_| invalid())?);
            }
            ["real-server", yes] => run.real_server = yes.parse().map_err(|_| invalid())?,
            [outcome, package, target, name] => run.results.push(TestResult {
                binary: Binary { package: package.to_owned(), target: target.to_owned() },
                name: name.to_owned(),
                outcome: match outcome {
                    "passed" => Outcome::Passed,
                    "failed" => Outcome::Failed,
                    "ignored" => Outcome::Ignored,
                    _ => return Err(invalid()),
                },
            }),
            _ => return Err(invalid()),
        }
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_it_was_written() {
        let result = |name: &str, outcome| TestResult {
            binary: Binary { package: "conformance".to_owned(), target: "real".to_owned() },
            name: name.to_owned(),
            outcome,
        };
        let run = TestRun {
            started: SystemTime::UNIX_EPOCH + Duration::from_millis(1_234),
            real_server: true,
            results: vec![
                result("a::b", Outcome::Passed),
                result("c", Outcome::Failed),
                result("d", Outcome::Ignored),
            ],
        };
        assert_eq!(parse(&format(&run)).unwrap(), run);
        assert!(parse("passed\tx").is_err());
    }
}
