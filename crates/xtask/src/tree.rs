//! The files of the work tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tooling::Error;

/// The root of the repository.
pub(crate) struct Tree {
    root: PathBuf,
}

/// A text file and its path below the root, with `/` on every system.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Directories to skip: build output and files of tools.
const SKIPPED: &[&str] = &["target", "node_modules", "vendor", "corpus", "artifacts"];

impl Tree {
    /// The work tree that this program was built from.
    pub(crate) fn here() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Self { root: root.canonicalize().unwrap_or(root) }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    pub(crate) fn read(&self, path: &str) -> Result<String, Error> {
        let path = self.root.join(path);
        fs::read_to_string(&path).map_err(Error::io(&path))
    }

    /// Another work tree.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// All files, including those in the folders of cargo's settings.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>, Error> {
        let mut paths = Vec::new();
        self.walk(&self.root, &mut paths)?;
        let settings = self.root.join(".cargo");
        if settings.exists() {
            self.walk(&settings, &mut paths)?;
        }
        Ok(paths)
    }

    /// All text files with one of these extensions, in order of their paths.
    ///
    /// This walks the directories and does not call git, so that it works in an unpacked archive and finds files that
    /// were not added yet.
    pub(crate) fn files(&self, extensions: &[&str]) -> Result<Vec<File>, Error> {
        let mut paths = Vec::new();
        self.walk(&self.root, &mut paths)?;
        paths.sort();
        paths.iter().filter(|path| has_extension(path, extensions)).map(|path| self.file(path)).collect()
    }

    /// A source file of the tests that has changed after `time`, if there is one.
    pub(crate) fn changed_since(&self, time: SystemTime) -> Result<Option<String>, Error> {
        let mut paths = Vec::new();
        self.walk(&self.root, &mut paths)?;
        let automation = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap_or_default();
        let is_tested =
            |path: &&PathBuf| has_extension(path, &["rs", "go"]) && !path.starts_with(&automation);
        for path in paths.iter().filter(is_tested) {
            let written = fs::metadata(path).and_then(|metadata| metadata.modified());
            if written.map_err(Error::io(path))? > time {
                return Ok(Some(self.below_root(path)));
            }
        }
        Ok(None)
    }

    fn file(&self, path: &Path) -> Result<File, Error> {
        let text = fs::read_to_string(path).map_err(Error::io(path))?;
        Ok(File { path: self.below_root(path), text })
    }

    pub(crate) fn below_root(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
    }

    fn walk(&self, directory: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Error> {
        for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
            let entry = entry.map_err(Error::io(directory))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let kind = entry.file_type().map_err(Error::io(&entry.path()))?;
            if name.starts_with('.') || SKIPPED.contains(&&*name) {
                continue;
            }
            if kind.is_dir() {
                self.walk(&entry.path(), paths)?;
            } else if kind.is_file() {
                paths.push(entry.path());
            }
        }
        Ok(())
    }
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
}
