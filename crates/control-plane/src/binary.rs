//! The control plane's binary: built once for each state of its source and each release, kept in a cache.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use std::{env, path, process};

use crate::{Error, Release, module, toolchain};

/// The Go module. This crate is never published, so its place in the repository is known.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../control-plane");

/// Builds that no process has used for this long are removed: each takes over 100 MB.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// If set, the release of Kubernetes that [`build`] builds.
pub const RELEASE: &str = "INFORMER_KUBERNETES";

/// The release that `control-plane/go.mod` pins: the one that everything in the repository follows.
///
/// # Errors
///
/// [`Error::KubernetesVersion`] if it names none.
pub fn pinned() -> Result<Release, Error> {
    let go_mod = Path::new(SOURCE).join("go.mod");
    let text = fs::read_to_string(&go_mod).map_err(Error::file("read", &go_mod))?;
    Release::required(&text).ok_or(Error::KubernetesVersion { go_mod })
}

/// The release that [`build`] builds: `$INFORMER_KUBERNETES`, else the [`pinned`] one.
///
/// # Errors
///
/// [`Error::NotARelease`] if the variable names none, and those of [`pinned`].
pub fn release() -> Result<Release, Error> {
    match env::var_os(RELEASE).filter(|value| !value.is_empty()) {
        Some(value) => Ok(value.to_string_lossy().parse()?),
        None => pinned(),
    }
}

/// Returns the path of the control plane's binary, of the release that [`release`] names. Builds it unless the cache has
/// it.
///
/// The cache is in `$INFORMER_CACHE_DIR`, else in `informer` under `$XDG_CACHE_HOME` or `~/.cache`. A first build takes
/// minutes; later ones, after a change of the Go source, some seconds. Processes that build at the same time take
/// turns, and the second finds the result of the first.
///
/// # Errors
///
/// [`Error::GoMissing`] without a Go toolchain, [`Error::NoSuchRelease`] for a release that does not exist, otherwise
/// the failure of the build.
pub fn build() -> Result<PathBuf, Error> {
    build_release(release()?)
}

/// As [`build`], of another release: beside the pinned one, from the same Go sources.
///
/// # Errors
///
/// As for [`build`].
pub fn build_release(release: Release) -> Result<PathBuf, Error> {
    let source = Path::new(SOURCE);
    let linker_flags = linker_flags(release);
    let cache = cache_directory()?.join("control-plane");
    let directory = cache.join(fingerprint(source, &linker_flags)?);
    let binary = directory.join("control-plane");

    fs::create_dir_all(&directory).map_err(Error::file("make the directory", &directory))?;
    let used = directory.join("last-used");
    fs::write(&used, []).map_err(Error::file("write", &used))?;
    if binary.exists() {
        return Ok(binary);
    }

    let lock_file = cache.join("lock");
    let lock = File::create(&lock_file).map_err(Error::file("make", &lock_file))?;
    lock.lock().map_err(Error::file("lock", &lock_file))?;
    if !binary.exists() {
        let module = if release == pinned()? {
            source.to_owned()
        } else {
            let module = directory.join("module");
            note(&format!("collecting the modules of Kubernetes {release}"));
            module::copy(source, release, &module)?;
            module
        };
        compile(&module, &linker_flags, &binary)?;
        remove_unused(&cache);
    }
    Ok(binary)
}

/// The text of a `control-plane/go.mod` for another release, before `go mod tidy`. Downloads what it needs.
///
/// # Errors
///
/// [`Error::NoSuchRelease`] for a release that does not exist, [`Error::GoMissing`] without a Go toolchain.
pub fn go_mod(release: Release) -> Result<String, Error> {
    module::text(Path::new(SOURCE), release)
}

fn compile(source: &Path, linker_flags: &str, binary: &Path) -> Result<(), Error> {
    note("building etcd and Kubernetes for tests; the first time this takes minutes");
    let begin = Instant::now();
    // Renamed into place when complete, so that the final name never shows a partial file.
    let unfinished = binary.with_extension(format!("unfinished-{}", process::id()));
    let built = toolchain::build(source, linker_flags, &unfinished)
        .and_then(|()| fs::rename(&unfinished, binary).map_err(Error::file("make", binary)));
    if built.is_err() {
        // It may not exist, and the error above explains more than this one could.
        let _ = fs::remove_file(&unfinished);
    }
    built?;
    note(&format!("built {} in {} s", binary.display(), begin.elapsed().as_secs()));
    Ok(())
}

/// Makes the API server report the version that it was built from, because clients decide by it which requests a server
/// supports. Kubernetes' own build does the same.
fn linker_flags(release: Release) -> String {
    let mut flags = String::from("-s -w");
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (variable, value) in [
            ("gitVersion", format!("v{release}")),
            ("gitMajor", "1".to_owned()),
            ("gitMinor", release.minor.to_string()),
            // A module from the proxy is a release, and does not name its commit.
            ("gitTreeState", "clean".to_owned()),
            ("gitCommit", String::new()),
        ] {
            flags.push_str(&format!(" -X {package}.{variable}={value}"));
        }
    }
    flags
}

/// Names a state of everything that the binary is built from.
pub(crate) fn fingerprint(source: &Path, linker_flags: &str) -> Result<String, Error> {
    let mut files: Vec<PathBuf> = fs::read_dir(source)
        .map_err(Error::file("read the directory", source))?
        .map(|entry| entry.map(|entry| entry.path()).map_err(Error::file("read the directory", source)))
        .collect::<Result<_, _>>()?;
    files.retain(|file| is_source(file));
    files.sort();

    let mut hash = Fnv::new();
    hash.add(linker_flags.as_bytes());
    hash.add(toolchain::version(source)?.as_bytes());
    for file in files {
        hash.add(file.file_name().unwrap_or_default().as_encoded_bytes());
        hash.add(&fs::read(&file).map_err(Error::file("read", &file))?);
    }
    Ok(format!("{:016x}", hash.0))
}

fn is_source(file: &Path) -> bool {
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    matches!(name, "go.mod" | "go.sum") || (name.ends_with(".go") && !name.ends_with("_test.go"))
}

/// FNV-1a, because the standard library promises no hash that stays the same from release to release.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a field and its length, so that no two lists of fields look the same.
    fn add(&mut self, field: &[u8]) {
        for byte in field.iter().chain(&field.len().to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

pub(crate) fn cache_directory() -> Result<PathBuf, Error> {
    let directory =
        |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = directory("INFORMER_CACHE_DIR")
        .or_else(|| directory("XDG_CACHE_HOME").map(|cache| cache.join("informer")))
        .or_else(|| directory("HOME").map(|home| home.join(".cache/informer")))
        .ok_or(Error::NoCacheDirectory)?;
    // The build runs in the directory of its source, where a relative path means something else.
    path::absolute(&cache).map_err(Error::file("find", &cache))
}

/// Best effort: a build that cannot be removed only takes up space.
fn remove_unused(cache: &Path) {
    let Ok(entries) = fs::read_dir(cache) else { return };
    for directory in entries.flatten().map(|entry| entry.path()) {
        let used = fs::metadata(directory.join("last-used")).and_then(|file| file.modified());
        let age = used.ok().and_then(|used| SystemTime::now().duration_since(used).ok());
        if age.is_some_and(|age| age > KEPT_FOR) {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// Writes a line to stderr past the test harness, which captures what the print macros write: a wait of minutes needs
/// an explanation.
pub(crate) fn note(text: &str) {
    // Nothing depends on the note, so a failure to write it is ignored.
    let _ = writeln!(io::stderr(), "control-plane: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_server_reports_what_it_was_built_from() {
        let flags = linker_flags(Release { minor: 37, patch: 2 });
        for flag in ["gitVersion=v1.37.2", "gitMajor=1", "gitMinor=37"] {
            assert!(flags.contains(&format!(" -X k8s.io/component-base/version.{flag} ")), "{flags}");
        }
    }

    #[test]
    fn only_what_goes_into_the_binary_counts() {
        for (file, counts) in [
            ("go.mod", true),
            ("go.sum", true),
            ("run.go", true),
            ("run_test.go", false),
            ("README.md", false),
        ] {
            assert_eq!(is_source(Path::new(file)), counts, "{file}");
        }
    }

    #[test]
    fn fields_are_told_apart() {
        let hash = |fields: &[&str]| {
            let mut hash = Fnv::new();
            fields.iter().for_each(|field| hash.add(field.as_bytes()));
            hash.0
        };
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_ne!(hash(&["a"]), hash(&["a", ""]));
    }
}
