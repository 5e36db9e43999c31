//! Programs of Go modules besides the control plane that tests need.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::binary::{cache_directory, fingerprint, note};
use crate::shared::or_skip;
use crate::{Error, toolchain};

/// The repository. This crate is never published, so its place in it is known.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the path of a program that Go builds, such as `helm` of `helm.sh/helm/v3/cmd/helm` at `v3.22.0`. Builds it
/// unless the cache has it, which is the one of [`build`](crate::build).
///
/// # Errors
///
/// [`Error::GoMissing`] without a Go toolchain, otherwise the failure of the build.
pub fn tool(package: &str, version: &str) -> Result<PathBuf, Error> {
    // `v2` at the end of a module's path is its version, and no name.
    let is_name = |part: &&str| part.strip_prefix('v').is_none_or(|version| version.parse::<u32>().is_err());
    let name = package.rsplit('/').find(is_name).unwrap_or(package);
    cached(name, version, |folder| toolchain::install(&format!("{package}@{version}"), folder))
}

/// Returns the path of the program of a Go module of this repository, such as `foreign/collector`. Builds it unless the
/// cache has it, as [`tool`]. A test is skipped where [`shared_or_skip`](crate::shared_or_skip) would skip it: `None`.
///
/// # Panics
///
/// If the program cannot be built, and, where the variable `CI` is `true`, without Go.
#[must_use]
pub fn program_or_skip(test: &str, module: &str) -> Option<PathBuf> {
    const FLAGS: &str = "-s -w";
    let source = Path::new(REPOSITORY).join(module);
    let name = module.rsplit('/').next().unwrap_or(module);
    or_skip(test, || {
        let state = fingerprint(&source, FLAGS)?;
        cached(name, &state, |folder| toolchain::build(&source, FLAGS, &folder.join(name)))
    })
}

/// The program of this name and version in the cache, which `build` puts into the folder that it gets.
fn cached(
    name: &str,
    version: &str,
    build: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
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
        build(&folder)?;
        note(&format!("built {} in {} s", program.display(), begin.elapsed().as_secs()));
    }
    Ok(program)
}

/// Returns the path of a NATS server, for a test that is skipped where one with [`shared_or_skip`](crate::shared_or_skip) is.
///
/// # Panics
///
/// If the program cannot be built for any other reason, and, where the variable `CI` is `true`, without Go.
#[must_use]
pub fn nats_server_or_skip(test: &str) -> Option<PathBuf> {
    or_skip(test, || tool("github.com/nats-io/nats-server/v2", "v2.15.3"))
}
