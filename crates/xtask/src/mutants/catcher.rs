//! The catchers of deliberate bugs: each is a set of test programs, which run until one finds something.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::scratch::Scratch;
use tooling::{Error, process};

use crate::artifact;
use crate::tree::Tree;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Catcher {
    /// The tests of informer-core
    Core,
    /// The engine in the simulation
    Simulation,
    /// The tests of informer-shards
    Shards,
    /// The contract on the embedded API server
    Conformance,
}

/// Limits of a test program, memory in kilobytes: a bug may be an endless loop, or allocate without end.
const TIME_LIMIT: Duration = Duration::from_secs(900);
const MEMORY_LIMIT: &str = "ulimit -v 6000000; exec \"$@\"";

impl Catcher {
    pub(super) fn is_there(self, tree: &Tree) -> bool {
        tree.exists(match self {
            Self::Core => "crates/informer-core/tests",
            Self::Simulation => "crates/simulation/src/main.rs",
            Self::Shards => "crates/informer-shards/tests",
            Self::Conformance => "crates/conformance/tests/testapi/main.rs",
        })
    }

    /// The first finding, if any. Conformance runs only the tests of these clauses: all of them take minutes, and a
    /// test that fails on a busy machine would seem to catch every bug.
    pub(super) fn catch(
        self,
        scratch: &Scratch,
        seeds: &str,
        clauses: &[&str],
    ) -> Result<Option<String>, Error> {
        let mut cargo = scratch.cargo();
        let (folder, arguments) = match self {
            Self::Core => {
                cargo.args(["test", "--no-run", "--package", "informer-core"]);
                ("crates/informer-core", vec![])
            }
            Self::Shards => {
                cargo.args(["test", "--no-run", "--package", "informer-shards"]);
                ("crates/informer-shards", vec![])
            }
            Self::Simulation => {
                cargo.args(["build", "--release", "--package", "simulation"]);
                ("", vec!["--seeds".to_owned(), seeds.to_owned()])
            }
            Self::Conformance => {
                cargo.args(["test", "--no-run", "--package", "conformance", "--test", "testapi"]);
                ("crates/conformance", clauses.iter().map(|clause| in_test_names(clause)).collect())
            }
        };
        let is_test = self != Self::Simulation;
        for artifact in
            artifact::build(&mut cargo)?.iter().filter(|artifact| artifact.profile.test == is_test)
        {
            let mut program = limited(&artifact.executable);
            program.args(&arguments).current_dir(scratch.root().join(folder));
            if let Some(found) = first_finding(&mut program)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl fmt::Display for Catcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "informer-core's tests",
            Self::Simulation => "simulation",
            Self::Shards => "informer-shards' tests",
            Self::Conformance => "conformance",
        })
    }
}

/// The clause as a prefix of test names: `w3_`.
fn in_test_names(clause: &str) -> String {
    format!("{}_", clause.to_lowercase())
}

/// The program, with bounded memory if there is a shell that can bound it.
fn limited(program: &Path) -> Command {
    if !cfg!(unix) {
        return Command::new(program);
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", MEMORY_LIMIT, "sh"]).arg(program);
    shell
}

/// Runs the program until its first finding: a failed test, a failed seed, a bad exit, or a timeout.
fn first_finding(program: &mut Command) -> Result<Option<String>, Error> {
    let begin = Instant::now();
    let name = PathBuf::from(process::describe(program));
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = program.spawn().map_err(Error::io(&name))?;
    let (sender, lines) = mpsc::channel();
    let stdout = child.stdout.take();
    thread::spawn(move || {
        for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok)
        {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let found = loop {
        match lines.recv_timeout(TIME_LIMIT.saturating_sub(begin.elapsed())) {
            Ok(line) if is_finding(&line) => break Some(line),
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => break Some("it did not end in time".to_owned()),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    if found.is_some() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let status = child.wait().map_err(Error::io(&name))?;
    Ok(found.or_else(|| (!status.success()).then(|| format!("it ended with {status}"))))
}

fn is_finding(line: &str) -> bool {
    (line.starts_with("test ") && line.ends_with("... FAILED"))
        || (line.starts_with("seed ") && line.contains(" failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(script: &str) -> Option<String> {
        first_finding(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn the_first_finding_ends_the_program() {
        assert_eq!(found("echo test a ... ok; echo 7 passed, 0 failed"), None);
        let failed = found("echo test a ... FAILED; while true; do :; done");
        assert_eq!(failed.as_deref(), Some("test a ... FAILED"));
        let seed = found("echo seed 3 failed. nothing is told twice; exit 1");
        assert_eq!(seed.as_deref(), Some("seed 3 failed. nothing is told twice"));
        assert!(found("exit 3").is_some_and(|found| found.contains('3')));
    }

    #[test]
    fn memory_is_bounded() {
        let mut shell = limited(Path::new("sh"));
        let output = shell.args(["-c", "ulimit -v"]).output().unwrap();
        assert_eq!(output.stdout, b"6000000\n");
    }
}
