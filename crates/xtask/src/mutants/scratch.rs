//! A copy of the work tree for deliberate bugs, and its target directory.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tooling::{Error, process};

use crate::metadata::Metadata;
use crate::tree::Tree;

pub(super) struct Scratch {
    root: PathBuf,
    target: PathBuf,
}

impl Scratch {
    /// Makes the copy, or updates an existing one. Unchanged files keep their times, so that cargo does not build them
    /// again.
    pub(super) fn of(tree: &Tree) -> Result<Self, Error> {
        let home = Metadata::workspace(tree.root())?.target_directory.join("mutants");
        let scratch = Self { root: home.join("tree"), target: home.join("build") };
        let mut wanted = HashSet::new();
        for path in tree.paths()? {
            let copy = scratch.root.join(path.strip_prefix(tree.root()).unwrap_or(&path));
            let content = fs::read(&path).map_err(Error::io(&path))?;
            if fs::read(&copy).ok().as_ref() != Some(&content) {
                let folder = copy.parent().unwrap_or(&copy);
                fs::create_dir_all(folder).map_err(Error::io(folder))?;
                fs::write(&copy, content).map_err(Error::io(&copy))?;
            }
            wanted.insert(copy);
        }
        for path in Tree::at(scratch.root.clone()).paths()? {
            if !wanted.contains(&path) {
                fs::remove_file(&path).map_err(Error::io(&path))?;
            }
        }
        Ok(scratch)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn cargo(&self) -> Command {
        let mut cargo = process::cargo(&self.root);
        // Incremental builds pay for a release build too, because little changes from bug to bug.
        cargo.env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "1");
        cargo
    }
}
