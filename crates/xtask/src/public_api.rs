//! `cargo xtask api`: the public surface of each published library, as rustdoc sees it, beside the list in `docs/api`. So
//! a change of the surface is a change of a file, which a review sees.

use std::fs;
use std::process::Command;

use tooling::{Error, process};

use crate::metadata::{Metadata, Package};
use crate::tree::Tree;

/// Makes the lists, from the JSON of a nightly rustdoc.
const TOOL: &str = "cargo-public-api";
const TOOL_VERSION: &str = "0.52.0";
const TOOLCHAIN: &str = "nightly";

/// The packages of kubediff. They are published for `cargo install` only: nobody builds on their libraries.
const PROGRAMS: &str = "kubectl-changes";

/// Compares each surface with its list, or writes the lists.
pub(crate) fn run(tree: &Tree, write: bool) -> Result<(), Error> {
    install()?;
    let workspace = Metadata::workspace(tree.root())?;
    let libraries =
        workspace.packages.iter().filter(|it| it.is_published() && !it.name.starts_with(PROGRAMS));
    let mut changed = Vec::new();
    for package in libraries {
        let path = format!("docs/api/{}.txt", package.name);
        let surface = surface(tree, package)?;
        if write {
            let path = tree.root().join(path);
            fs::write(&path, surface).map_err(Error::io(&path))?;
            continue;
        }
        let kept = if tree.exists(&path) { tree.read(&path)? } else { String::new() };
        let differences = differences(&kept, &surface);
        differences.iter().for_each(|line| println!("{line}"));
        if !differences.is_empty() {
            changed.push(path);
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    let files = changed.join(", ");
    Err(Error::Found(format!("the public surface is not that of {files}: `cargo xtask api --write`")))
}

fn surface(tree: &Tree, package: &Package) -> Result<String, Error> {
    let mut command = Command::new("rustup");
    command.current_dir(tree.root()).args(["run", TOOLCHAIN, "cargo", "public-api", "-p", &package.name]);
    // Without what the compiler derives: implementations of auto traits, blanket and derived ones.
    command.args(["-sss", "--color", "never", "--features", &package.docs_rs_features().join(",")]);
    process::output(&mut command)
}

/// Lines that are in one of two sorted lists only.
fn differences(kept: &str, now: &str) -> Vec<String> {
    let lacks = |list: &str, line: &str| !list.lines().any(|it| it == line);
    let gone = kept.lines().filter(|line| lacks(now, line)).map(|line| format!("- {line}"));
    gone.chain(now.lines().filter(|line| lacks(kept, line)).map(|line| format!("+ {line}"))).collect()
}

fn install() -> Result<(), Error> {
    let rustup = |arguments: &[&str]| process::run(Command::new("rustup").args(arguments));
    if rustup(&["run", TOOLCHAIN, "rustc", "--version"]).is_err() {
        rustup(&["toolchain", "install", TOOLCHAIN, "--profile", "minimal"])?;
    }
    if process::is_installed(TOOL, "--version") {
        return Ok(());
    }
    println!("{TOOL} is missing; cargo installs it");
    process::run(Command::new("cargo").args(["install", "--locked", TOOL, "--version", TOOL_VERSION]))
}

#[cfg(test)]
mod tests {
    use super::differences;

    #[test]
    fn each_line_of_one_list_only_is_a_difference() {
        assert_eq!(differences("a\nb\n", "b\nc\n"), ["- a", "+ c"]);
        assert_eq!(differences("a\nb\n", "a\nb\n"), [""; 0]);
        assert_eq!(differences("", "a\n"), ["+ a"]);
    }
}
