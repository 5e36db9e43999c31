//! `cargo xtask fuzz`: runs cargo-fuzz on the targets of `fuzz/`. Its sanitizer needs a nightly compiler.

use std::path::Path;
use std::process::Command;

use tooling::{Error, process};

use crate::tree::Tree;

/// The bounds of a run: bytes of an input, seconds for an input, and megabytes of memory.
const LIMITS: [&str; 3] = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=2048"];

/// Runs each target, or the given one, for this number of seconds.
pub(crate) fn run(tree: &Tree, target: Option<&str>, seconds: u64) -> Result<(), Error> {
    let targets = targets(tree)?;
    let chosen: Vec<&String> =
        targets.iter().filter(|name| target.is_none_or(|target| target == *name)).collect();
    if chosen.is_empty() {
        return Err(Error::missing(
            format!("the target `{}`", target.unwrap_or_default()),
            format!("there are: {}", targets.join(", ")),
        ));
    }
    check_tools()?;
    let examples = ["run", "--quiet", "--package", "fuzzing", "--example", "corpus", "--", "fuzz/corpus"];
    process::run(process::cargo(tree.root()).args(examples))?;
    let failed: Vec<&String> =
        chosen.iter().filter(|name| !fuzz(tree.root(), name, seconds)).copied().collect();
    println!("\n{} passed, {} failed", chosen.len() - failed.len(), failed.len());
    match failed.first() {
        None => Ok(()),
        Some(name) => {
            Err(Error::Found(format!("the fuzzer found something; its inputs are in fuzz/artifacts/{name}")))
        }
    }
}

/// The names of the files in `fuzz/fuzz_targets`.
fn targets(tree: &Tree) -> Result<Vec<String>, Error> {
    let files = tree.files(&["rs"])?;
    let name = |path: &str| Some(path.strip_prefix("fuzz/fuzz_targets/")?.strip_suffix(".rs")?.to_owned());
    Ok(files.iter().filter_map(|file| name(&file.path)).collect())
}

fn check_tools() -> Result<(), Error> {
    if !process::is_installed("cargo-fuzz", "--version") {
        return Err(Error::missing("cargo-fuzz", "install it with `cargo install --locked cargo-fuzz`"));
    }
    let mut probe = nightly("rustc");
    probe.arg("--version");
    if process::output(&mut probe).is_err() {
        return Err(Error::missing(
            "a nightly compiler",
            "add it with `rustup toolchain install nightly --profile minimal`",
        ));
    }
    Ok(())
}

fn nightly(program: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", program]);
    command
}

fn fuzz(root: &Path, target: &str, seconds: u64) -> bool {
    println!("\n=== {target}, {seconds} s");
    let mut command = nightly("cargo");
    command.current_dir(root.join("fuzz")).args(["fuzz", "run", target, "--"]);
    command.arg(format!("-max_total_time={seconds}")).args(LIMITS);
    // `cargo run` sets variables for the toolchain of this program; the nightly one must not see them.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    process::run(&mut command).is_ok()
}
