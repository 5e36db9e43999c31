//! `cargo xtask dist`: kubediff as people download it.
//!
//! Builds the program for one target, stripped and, where that is possible, without need of anything else on the disk.
//! The crate `packaging` makes the rest of it.

use std::path::Path;

use tooling::{Error, process};

use crate::metadata::Metadata;
use crate::tree::Tree;

/// More than it has, and less than what would be noticed too late.
const MOST_BYTES: &str = "15000000";

pub(crate) fn run(tree: &Tree, target: Option<&str>) -> Result<(), Error> {
    let host = host(tree.root())?;
    let target = target.unwrap_or(&host);
    let folder = Metadata::workspace(tree.root())?.target_directory;

    let mut build = process::cargo(tree.root());
    build.args(["build", "--locked", "--profile", "dist", "--package", "kubectl-changes"]);
    // With a target of its own, flags do not reach build scripts and macros.
    build.args(["--bin", "kubediff", "--target", target]);
    if !target.contains("darwin") {
        build.env("RUSTFLAGS", "-C target-feature=+crt-static");
    }
    process::run(&mut build)?;
    let extension = if target.contains("windows") { ".exe" } else { "" };
    let program = folder.join(target).join("dist").join(format!("kubediff{extension}"));

    let mut package = process::cargo(tree.root());
    package.args(["run", "--quiet", "--locked", "--package", "packaging", "--"]);
    package.args(["--target", target, "--at-most", MOST_BYTES, "--program"]).arg(program);
    process::run(package.arg("--output").arg(folder.join("dist")))
}

/// The target of this machine's compiler.
fn host(root: &Path) -> Result<String, Error> {
    let mut rustc = std::process::Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let text = process::output(rustc.arg("-vV").current_dir(root))?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or_else(|| Error::format("`rustc -vV`", "no line `host:`"))
}
