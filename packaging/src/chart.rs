//! The chart as `helm install` and `helm push` take it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::archive::Archive;
use crate::{Error, Release};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/chart");
/// Its name in Chart.yaml.
const NAME: &str = "kubediff";

/// The file, under the name that helm gives it.
pub(crate) fn package(release: &Release) -> Result<(String, Vec<u8>), Error> {
    let mut archive = Archive::default();
    add(&mut archive, Path::new(FOLDER), NAME)?;
    Ok((format!("{NAME}-{}.tgz", release.version), archive.compressed()?))
}

/// Adds the files of a folder, in the order of their names. Those that begin with a dot are for helm's commands here.
fn add(archive: &mut Archive, folder: &Path, name: &str) -> Result<(), Error> {
    let entries = fs::read_dir(folder).map_err(Error::file(folder))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(Error::file(folder))?;
    paths.sort();
    for path in paths {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if file.starts_with('.') {
            continue;
        }
        let name = format!("{name}/{file}");
        if path.is_dir() {
            add(archive, &path, &name)?;
        } else {
            archive.file(&name, 0o644, &fs::read(&path).map_err(Error::file(&path))?)?;
        }
    }
    Ok(())
}
