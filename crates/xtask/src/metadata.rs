//! What cargo knows of the workspace and of its dependencies.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::Error;
use crate::process;

/// The part of `cargo metadata` that we use.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// Where it comes from; nothing for a path in this repository.
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line of a `[dependencies]`, `[dev-dependencies]` or `[build-dependencies]`.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
}

impl Metadata {
    /// The workspace's own packages; needs no network.
    pub(crate) fn workspace(root: &Path) -> Result<Self, Error> {
        Self::ask(root, &["--no-deps", "--offline"])
    }

    /// All packages that any target of the workspace is built from.
    pub(crate) fn all(root: &Path) -> Result<Self, Error> {
        Self::ask(root, &["--all-features"])
    }

    fn ask(root: &Path, options: &[&str]) -> Result<Self, Error> {
        let mut command = process::cargo(root);
        command.args(["metadata", "--format-version", "1"]).args(options);
        let json = process::output(&mut command)?;
        serde_json::from_str(&json).map_err(|error| Error::format("cargo metadata", error))
    }
}
