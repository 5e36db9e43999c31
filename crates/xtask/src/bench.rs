//! `cargo xtask bench`: runs the harness of the benchmarks, a program of its own in `bench/harness`.

use std::ffi::OsString;
use std::process::Command;

use tooling::{Error, process};

use crate::artifact;
use crate::tree::Tree;

/// Runs the harness with these arguments.
pub(crate) fn run(tree: &Tree, arguments: &[OsString]) -> Result<(), Error> {
    process::run(harness(tree)?.args(arguments))
}

/// The command that runs each scenario with a few objects, to check that every client's cache agrees with the server in the end.
pub(crate) fn check(tree: &Tree, real_server: bool) -> Result<Option<Command>, Error> {
    if !cfg!(target_os = "linux") {
        println!("Benchmarks are left out: processes are measured by what Linux says of them.");
        return Ok(None);
    }
    let has_go = process::is_installed("go", "version");
    let peers = if has_go { "client-go,kube-rs,controller-runtime" } else { "kube-rs" };
    let server = if real_server { "real" } else { "testapi" };
    let mut command = harness(tree)?;
    let size = ["--objects", "200", "--runs", "1", "--stuck-updates", "2000", "--seconds", "0.5"];
    command.arg("--debug").args(size).args(["--peers", peers, "--server", server]);
    Ok(Some(command))
}

/// The harness, built as the tests of the workspace were: a package that is built alone has other features of the same
/// dependencies.
fn harness(tree: &Tree) -> Result<Command, Error> {
    let mut cargo = process::cargo(tree.root());
    artifact::lint(&mut cargo).args(["build", "--quiet", "--workspace", "--bin", "bench-harness"]);
    let built = artifact::build(&mut cargo)?;
    let built =
        built.last().ok_or_else(|| Error::format("cargo's list of programs", "it lacks the harness"))?;
    Ok(Command::new(&built.executable))
}
