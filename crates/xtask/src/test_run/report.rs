//! Parses the output of a test binary.

use super::{Binary, Outcome, TestResult};

/// The results in the output of a test binary.
pub(super) fn results(binary: &Binary, output: &str) -> Vec<TestResult> {
    let mut results = Vec::new();
    // A test whose name was printed, but not yet its result: with one thread, output of the test's child processes comes
    // between the two.
    let mut pending: Option<String> = None;
    for line in output.lines() {
        let named = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
        let (name, result) = match named {
            // `a::b - should panic` is the test `a::b`.
            Some((name, rest)) => (name.split(" - ").next().map(str::to_owned), outcome(rest)),
            None => (pending.take(), outcome(line)),
        };
        match (name, result) {
            (Some(name), Some(outcome)) => results.push(TestResult { binary: binary.clone(), name, outcome }),
            (name, _) => pending = name,
        }
    }
    results
}

fn outcome(text: &str) -> Option<Outcome> {
    match text.trim_end() {
        "ok" => Some(Outcome::Passed),
        "FAILED" => Some(Outcome::Failed),
        text if text == "ignored" || text.starts_with("ignored, ") => Some(Outcome::Ignored),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line per result.
    fn read(output: &str) -> Vec<String> {
        let binary = Binary { package: "conformance".to_owned(), target: "real".to_owned() };
        results(&binary, output).iter().map(|it| format!("{} {:?}", it.name, it.outcome)).collect()
    }

    #[test]
    fn each_test_has_its_outcome() {
        let output = "

running 4 tests
test key::tests::orders ... ok
test key::tests::breaks ... FAILED
test key::tests::panics - should panic ... ok
test key::tests::later ... ignored, needs more
test result: FAILED. 2 passed; 1 failed; 1 ignored
";
        assert_eq!(
            read(output),
            [
                "key::tests::orders Passed",
                "key::tests::breaks Failed",
                "key::tests::panics Passed",
                "key::tests::later Ignored",
            ]
        );
    }

    #[test]
    fn an_outcome_may_come_later() {
        assert_eq!(read("test l1_a ... I0101 starting\nmore\nok\nok\n"), ["l1_a Passed"]);
    }
}
