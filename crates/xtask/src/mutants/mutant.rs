//! A deliberate bug: a patch whose first line says what it does, and its second which clause of the contract it breaks.

use std::path::{Path, PathBuf};
use std::process::Command;

use tooling::{Error, process};

use crate::tree::Tree;

const FOLDER: &str = "crates/xtask/mutants";

pub(super) struct Mutant {
    pub(super) name: String,
    pub(super) what: String,
    /// The clause that it breaks, such as `W3`.
    pub(super) clause: String,
    patch: PathBuf,
}

impl Mutant {
    /// All mutants, sorted by name.
    pub(super) fn all(tree: &Tree) -> Result<Vec<Self>, Error> {
        let folder = format!("{FOLDER}/");
        let files = tree.files(&["patch"])?.into_iter().filter(|file| file.path.starts_with(&folder));
        let mutant = |file: &crate::tree::File| {
            let name = file.path.strip_prefix(&folder)?.strip_suffix(".patch")?.to_owned();
            let mut lines = file.text.lines();
            let what = lines.next()?.to_owned();
            let clause = lines.next()?.strip_prefix("Breaks ")?.strip_suffix('.')?.to_owned();
            Some(Self { name, what, clause, patch: tree.root().join(&file.path) })
        };
        let refuse = |file: crate::tree::File| {
            mutant(&file)
                .ok_or_else(|| Error::Found(format!("{} does not say what it does and breaks", file.path)))
        };
        files.map(refuse).collect()
    }

    /// Whether the patch applies to this directory; changes nothing.
    pub(super) fn check(&self, root: &Path) -> Result<(), Error> {
        self.git_apply(root, &["--check"])
    }

    pub(super) fn apply(&self, root: &Path) -> Result<(), Error> {
        self.git_apply(root, &[])
    }

    pub(super) fn revert(&self, root: &Path) -> Result<(), Error> {
        self.git_apply(root, &["--reverse"])
    }

    fn git_apply(&self, root: &Path, options: &[&str]) -> Result<(), Error> {
        let mut git = Command::new("git");
        // Inside a work tree, git would skip files that it does not track.
        git.current_dir(root).env("GIT_CEILING_DIRECTORIES", root.parent().unwrap_or(root));
        process::run(git.arg("apply").args(options).arg(&self.patch))
    }
}
