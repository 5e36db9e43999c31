//! `cargo xtask loom`: tests of what threads share, in the orders in which they may meet.
//!
//! Each crate's unit tests are built once more with `--cfg loom`, which goes to that crate alone: its dependencies stay as
//! they are, so the build is that of one crate, and libraries that give the flag a meaning of their own see nothing of it.

use std::process::Command;

use crate::error::Error;
use crate::tree::Tree;
use crate::{artifact, process};

/// Crates with primitives that threads share; their tests for loom are in modules of the name below.
const CRATES: &[&str] = &["informer-core"];
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
