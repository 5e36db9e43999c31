//! `cargo xtask loom`: tests data structures that threads share in all interleavings.
//!
//! The unit tests of each crate are built again with `--cfg loom`. Only this crate gets the flag, so that libraries that use it
//! too do not see it. Chosen alone, a crate has other features of some dependencies, which are therefore built again.

use std::process::Command;

use tooling::{Error, process};

use crate::artifact;
use crate::tree::Tree;

/// The crates with such data structures; their tests are in modules of the name below.
const CRATES: &[&str] = &["informer-core", "informer-controller"];
const MODULE: &str = "interleavings::";

/// Packages that only other tests of these crates use. They are not optimized here: that would take a minute of CPU.
const UNUSED: &[&str] = &["testapi", "testapi-serve", "kube-table", "informer-controller-test"];

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    build(tree)?.iter_mut().try_for_each(process::run)
}

/// Builds the tests of each crate.
pub(crate) fn build(tree: &Tree) -> Result<Vec<Command>, Error> {
    let mut programs = Vec::new();
    for name in CRATES {
        let mut cargo = process::cargo(tree.root());
        cargo.args(["rustc", "--package", name, "--lib", "--profile", "test"]);
        for unused in UNUSED {
            cargo.args(["--config", &format!("profile.dev.package.{unused}.opt-level=0")]);
        }
        let binaries = artifact::build_with(&mut cargo, &["--cfg", "loom"])?;
        let Some(binary) = binaries.last() else {
            return Err(Error::format("cargo's list of binaries", format!("it lacks the tests of {name}")));
        };
        let mut program = Command::new(&binary.executable);
        program.arg(MODULE);
        programs.push(program);
    }
    Ok(programs)
}
