//! Programs of other Go modules that tests need.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Instant;

use crate::binary::{cache_directory, note};
use crate::{Error, toolchain};

/// Returns the path of a program that Go builds, such as `helm` of `helm.sh/helm/v3/cmd/helm` at `v3.22.0`. Builds it
/// unless the cache has it, which is the one of [`build`](crate::build).
///
/// # Errors
///
/// [`Error::GoMissing`] without a Go toolchain, otherwise the failure of the build.
pub fn tool(package: &str, version: &str) -> Result<PathBuf, Error> {
    let name = package.rsplit('/').next().unwrap_or(package);
    let cache = cache_directory()?.join("tools");
    let folder = cache.join(format!("{name}-{version}"));
    let program = folder.join(name);
    fs::create_dir_all(&folder).map_err(Error::file("make the directory", &folder))?;
    let lock_file = cache.join("lock");
    let lock = File::create(&lock_file).map_err(Error::file("make", &lock_file))?;
    lock.lock().map_err(Error::file("lock", &lock_file))?;
    if !program.exists() {
        note(&format!("building {name} {version} for tests"));
        let begin = Instant::now();
        toolchain::install(&format!("{package}@{version}"), &folder)?;
        note(&format!("built {} in {} s", program.display(), begin.elapsed().as_secs()));
    }
    Ok(program)
}
