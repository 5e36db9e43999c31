//! Parses the output of `cargo test`.

use std::collections::HashMap;

use super::{Binary, Outcome, TestResult};

/// The parser, which gets one line after the other.
pub(super) struct Parser {
    binaries: HashMap<String, Binary>,
    /// `None` while doctests run, whose names have no clauses.
    current: Option<Binary>,
    /// A test whose name was printed, but not yet its result: with one thread, output of the test's child processes
    /// comes between the two.
    pending: Option<String>,
    results: Vec<TestResult>,
}

impl Parser {
    /// `binaries` by file name.
    pub(super) fn new(binaries: HashMap<String, Binary>) -> Self {
        Self { binaries, current: None, pending: None, results: Vec::new() }
    }

    pub(super) fn results(self) -> Vec<TestResult> {
        self.results
    }

    pub(super) fn see(&mut self, line: &str) {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix("Running ") {
            self.enter(running(rest).and_then(|file| self.binaries.get(file)).cloned());
        } else if trimmed.starts_with("Doc-tests ") {
            self.enter(None);
        } else if let Some((name, rest)) =
            line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
        {
            // `a::b - should panic` is the test `a::b`.
            let name = name.split(" - ").next().unwrap_or(name);
            match outcome(rest) {
                Some(outcome) => self.add(name.to_owned(), outcome),
                None => self.pending = Some(name.to_owned()),
            }
        } else if let (Some(name), Some(outcome)) = (&self.pending, outcome(line)) {
            let name = name.clone();
            self.add(name, outcome);
        }
    }

    fn enter(&mut self, binary: Option<Binary>) {
        self.current = binary;
        self.pending = None;
    }

    fn add(&mut self, name: String, outcome: Outcome) {
        self.pending = None;
        if let Some(binary) = &self.current {
            self.results.push(TestResult { binary: binary.clone(), name, outcome });
        }
    }
}

/// The file name in `unittests src/lib.rs (target/debug/deps/informer_core-0123456789abcdef)`.
fn running(text: &str) -> Option<&str> {
    let path = text.strip_suffix(')')?.rsplit_once('(')?.1;
    path.rsplit(['/', '\\']).next()
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

    fn binary(package: &str, target: &str) -> Binary {
        Binary { package: package.to_owned(), target: target.to_owned() }
    }

    /// One line per result.
    fn read(output: &str) -> Vec<String> {
        let mut parser = Parser::new(HashMap::from([
            ("informer_core-01".to_owned(), binary("informer-core", "informer_core")),
            ("real-02".to_owned(), binary("conformance", "real")),
        ]));
        output.lines().for_each(|line| parser.see(line));
        let line = |it: &TestResult| format!("{} {} {:?}", it.binary.target, it.name, it.outcome);
        parser.results().iter().map(line).collect()
    }

    #[test]
    fn results_belong_to_the_binary_that_runs() {
        let output = "\
     Running unittests src/lib.rs (target/debug/deps/informer_core-01)

running 4 tests
test key::tests::orders ... ok
test key::tests::breaks ... FAILED
test key::tests::panics - should panic ... ok
test key::tests::later ... ignored, needs more
test result: FAILED. 2 passed; 1 failed; 1 ignored
     Running tests/real.rs (/elsewhere/debug/deps/real-02)
test watch::w1_in_order ... ok
   Doc-tests informer_core
test crates/informer-core/src/key.rs - key::ObjectKey (line 15) ... ok
     Running tests/other.rs (target/debug/deps/other-03)
test unknown ... ok
";
        assert_eq!(
            read(output),
            [
                "informer_core key::tests::orders Passed",
                "informer_core key::tests::breaks Failed",
                "informer_core key::tests::panics Passed",
                "informer_core key::tests::later Ignored",
                "real watch::w1_in_order Passed",
            ]
        );
    }

    #[test]
    fn an_outcome_may_come_later() {
        let output = "     Running tests/real.rs (target/debug/deps/real-02)\ntest l1_a ... I0101 starting\nmore\nok\nok\n";
        assert_eq!(read(output), ["real l1_a Passed"]);
    }
}
