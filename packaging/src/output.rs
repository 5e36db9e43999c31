//! The folder of what people download. Targets are built one after the other, so it may have the archives of others.

use std::fs;
use std::path::{Path, PathBuf};

use crate::target::Target;
use crate::{Error, Release, digest};

const SUMS: &str = "SHA256SUMS";

pub(crate) struct Output<'a> {
    folder: &'a Path,
    release: &'a Release,
}

/// An archive of this release.
pub(crate) struct Download {
    pub(crate) target: Target,
    pub(crate) name: String,
    pub(crate) sha256: String,
}

impl<'a> Output<'a> {
    pub(crate) fn new(folder: &'a Path, release: &'a Release) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
        Ok(Self { folder, release })
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.folder.join(name);
        fs::write(&path, bytes).map_err(Error::file(&path))
    }

    pub(crate) fn archive_name(&self, target: &Target) -> String {
        format!("{}{target}.tar.gz", self.start())
    }

    /// The archives of all targets.
    pub(crate) fn archives(&self) -> Result<Vec<Download>, Error> {
        let mut found = Vec::new();
        for path in self.files()? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let triple = name.strip_prefix(&self.start()).and_then(|rest| rest.strip_suffix(".tar.gz"));
            if let Some(Ok(target)) = triple.map(str::parse) {
                found.push(Download { target, sha256: sum(&path)?, name });
            }
        }
        Ok(found)
    }

    /// Writes the checksums of everything there, as `sha256sum --check` reads them. Returns the files and their sizes.
    pub(crate) fn sum(&self) -> Result<Vec<(PathBuf, u64)>, Error> {
        let mut sums = String::new();
        let mut files = Vec::new();
        for path in self.files()? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name != SUMS {
                sums.push_str(&format!("{}  {name}\n", sum(&path)?));
                let bytes = path.metadata().map_err(Error::file(&path))?.len();
                files.push((path, bytes));
            }
        }
        self.write(SUMS, sums.as_bytes())?;
        Ok(files)
    }

    fn start(&self) -> String {
        format!("{}-{}-", self.release.name, self.release.version)
    }

    /// In the order of their names.
    fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let entries = fs::read_dir(self.folder).map_err(Error::file(self.folder))?;
        let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut files: Vec<_> =
            paths.map_err(Error::file(self.folder))?.into_iter().filter(|path| path.is_file()).collect();
        files.sort();
        Ok(files)
    }
}

fn sum(path: &Path) -> Result<String, Error> {
    Ok(digest::hex(&fs::read(path).map_err(Error::file(path))?))
}
