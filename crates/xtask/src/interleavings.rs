//! `cargo xtask loom`: tests data structures that threads share in all interleavings.
//!
//! The unit tests of each crate are built again with `--cfg loom`. Only this crate gets the flag: its dependencies are
//! not built again, and libraries that use the flag too do not see it.

use std::process::Command;

use tooling::{Error, process};

use crate::artifact;
use crate::tree::Tree;

/// The crates with such data structures; their tests are in modules of the name below.
const CRATES: &[&str] = &["informer-core", "informer-controller"];
const MODULE: &str = "interleavings::";

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    for name in CRATES {
        let mut cargo = process::cargo(tree.root());
        cargo.args(["rustc", "--package", name, "--lib", "--profile", "test"]);
        let binaries = artifact::build_with(&mut cargo, &["--cfg", "loom"])?;
        let Some(binary) = binaries.last() else {
            return Err(Error::format("cargo's list of binaries", format!("it lacks the tests of {name}")));
        };
        println!("{name}, threads in all orders:");
        process::run(Command::new(&binary.executable).arg(MODULE))?;
    }
    Ok(())
}
