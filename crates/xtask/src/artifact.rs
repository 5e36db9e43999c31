//! The programs that cargo has built.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use tooling::{Error, process};

/// A message of cargo about a program that it built.
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
    /// The kind of its source: `lib`, `bin`, `test` or `example`.
    pub(crate) kind: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct Profile {
    /// Whether it is a test program; cargo also builds the binaries that tests may call.
    pub(crate) test: bool,
}

/// Has cargo compile the packages of the workspace with Clippy, which is rustc with more lints. The compiler is a part of the names
/// of artifacts: what a command without this builds is built besides.
pub(crate) fn lint(cargo: &mut Command) -> &mut Command {
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CLIPPY_ARGS", "-Dwarnings")
}

/// Builds with cargo and returns the programs.
pub(crate) fn build(cargo: &mut Command) -> Result<Vec<Artifact>, Error> {
    parse(cargo.args(["--message-format", "json-render-diagnostics"]))
}

/// The same with arguments for rustc.
pub(crate) fn build_with(cargo: &mut Command, rustc: &[&str]) -> Result<Vec<Artifact>, Error> {
    parse(cargo.args(["--message-format", "json-render-diagnostics", "--"]).args(rustc))
}

fn parse(cargo: &mut Command) -> Result<Vec<Artifact>, Error> {
    let json = process::output(cargo)?;
    // Other messages do not parse, because they have no executable.
    Ok(json.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
