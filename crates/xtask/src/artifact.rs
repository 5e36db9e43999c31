//! What cargo says that it has built.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::error::Error;
use crate::process;

/// A line of cargo's JSON about a program that it built.
#[derive(Deserialize)]
pub(crate) struct Artifact {
    pub(crate) package_id: String,
    pub(crate) target: Target,
    pub(crate) profile: Profile,
    pub(crate) executable: PathBuf,
}

#[derive(Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
}

#[derive(Deserialize)]
pub(crate) struct Profile {
    /// Whether it is a program of tests; cargo builds those that such a program may call, too.
    pub(crate) test: bool,
}

/// Has cargo build something, without passing arguments to rustc, and returns the programs.
pub(crate) fn build(cargo: &mut Command) -> Result<Vec<Artifact>, Error> {
    parse(cargo.args(["--message-format", "json-render-diagnostics"]))
}

/// The same, with these arguments for rustc.
pub(crate) fn build_with(cargo: &mut Command, rustc: &[&str]) -> Result<Vec<Artifact>, Error> {
    parse(cargo.args(["--message-format", "json-render-diagnostics", "--"]).args(rustc))
}

fn parse(cargo: &mut Command) -> Result<Vec<Artifact>, Error> {
    let json = process::output(cargo)?;
    // Other messages lack an executable and do not parse.
    Ok(json.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
