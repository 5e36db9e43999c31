//! Runs the tests of the workspace and records which tests ran.
//!
//! Cargo builds the tests and gives a machine-readable list of binaries. This command runs the binaries itself, some of
//! them at the same time, because many tests wait for processes and clocks; beside them it runs doctests, loom and the
//! check of the benchmarks. It shows the output of each at its end, parses it, and in the end shows the times of all.

mod job;
mod report;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tooling::{Error, process};

use crate::artifact::{self, Artifact};
use crate::metadata::{Metadata, Package};
use crate::tree::Tree;
use crate::{bench, interleavings};
use job::Job;

/// Set for the tests if there is no real server: tests that need one do nothing then.
pub(crate) const NO_CONTROL_PLANE: &str = "INFORMER_NO_CONTROL_PLANE";

/// The results of one `cargo test --workspace`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TestRun {
    pub(crate) started: SystemTime,
    /// Whether there was a real server. Without one, the tests of conformance's binary `real` passed without doing
    /// anything.
    pub(crate) real_server: bool,
    pub(crate) results: Vec<TestResult>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TestResult {
    pub(crate) binary: Binary,
    /// The name with its modules: `watch::w1_events_in_order`.
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
}

/// A test binary: the library's own tests, or one file of `tests/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Binary {
    pub(crate) package: String,
    pub(crate) target: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    Ignored,
}

impl TestRun {
    /// Builds and runs all tests, records the run, and returns whether all passed.
    pub(crate) fn execute(tree: &Tree, real_server: bool) -> Result<bool, Error> {
        let workspace = Metadata::workspace(tree.root())?;
        // First, because they compile: beside them there is time for tests that wait.
        let mut jobs = vec![Job::doctests(tree)];
        jobs.extend(bench::check(tree, real_server)?.map(Job::benchmarks));
        jobs.extend(interleavings::build(tree)?.into_iter().map(Job::loom));
        jobs.extend(binaries(build(tree)?, &workspace));
        let started = SystemTime::now();
        for job in &mut jobs {
            // Some build programs of this workspace, which are there already if the compiler is the same.
            artifact::lint(&mut job.command);
            if !real_server {
                job.command.env(NO_CONTROL_PLANE, "1");
            }
        }
        let ended = job::run(jobs)?;
        let passed = ended.iter().all(|ended| ended.passed);
        let results = ended.into_iter().flat_map(|ended| ended.results).collect();
        Self { started, real_server, results }.save(&workspace)?;
        Ok(passed)
    }

    /// The last recorded run.
    pub(crate) fn last(tree: &Tree) -> Result<Self, Error> {
        let path = record_path(&Metadata::workspace(tree.root())?);
        match fs::read(&path) {
            Ok(json) => {
                serde_json::from_slice(&json).map_err(|error| Error::format("the recorded test run", error))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(Error::missing("a record of a test run", "make one with `cargo xtask contract --run`"))
            }
            Err(error) => Err(Error::io(&path)(error)),
        }
    }

    fn save(&self, workspace: &Metadata) -> Result<(), Error> {
        let path = record_path(workspace);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(Error::io(directory))?;
        }
        let json = serde_json::to_vec(self).map_err(|error| Error::format("the recorded test run", error))?;
        fs::write(&path, json).map_err(Error::io(&path))
    }
}

/// Whether the tests have a real server. Prints a warning if not, and fails in CI.
pub(crate) fn real_server(fast: bool) -> Result<bool, Error> {
    if fast || std::env::var_os(NO_CONTROL_PLANE).is_some() {
        println!("Tests against a real server are left out, as asked.");
        return Ok(false);
    }
    if process::is_installed("go", "version") {
        return Ok(true);
    }
    if std::env::var("CI").is_ok_and(|value| value == "true") {
        return Err(Error::missing(
            "Go",
            "in CI nothing is left out: install it, https://go.dev/doc/install",
        ));
    }
    println!(
        "Tests against a real server are left out: there is no Go to build one with (https://go.dev/doc/install)."
    );
    Ok(false)
}

fn record_path(workspace: &Metadata) -> PathBuf {
    workspace.target_directory.join("contract").join("run.json")
}

/// Builds all tests and programs of the workspace. A finding of Clippy fails it.
pub(crate) fn build(tree: &Tree) -> Result<Vec<Artifact>, Error> {
    let mut cargo = process::cargo(tree.root());
    artifact::build(artifact::lint(&mut cargo).args(["build", "--workspace", "--all-targets"]))
}

fn binaries(artifacts: Vec<Artifact>, workspace: &Metadata) -> Vec<Job> {
    let packages: HashMap<&str, &Package> =
        workspace.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let tests = artifacts.into_iter().filter(|artifact| artifact.profile.test);
    tests.filter_map(|artifact| Job::binary(packages.get(artifact.package_id.as_str())?, artifact)).collect()
}
