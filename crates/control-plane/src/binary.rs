//! The control plane's binary: built once for each state of its source, kept in a cache.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use std::{env, path, process};

use crate::{Error, toolchain};

/// The Go module. This crate is never published, so its place in the repository is known.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../control-plane");

/// Builds that no process has used for this long are removed: each takes over 100 MB.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Returns the path of the control plane's binary. Builds it unless the cache has it.
///
/// The cache is in `$INFORMER_CACHE_DIR`, else in `informer` under `$XDG_CACHE_HOME` or `~/.cache`. A first build takes
/// minutes; later ones, after a change of the Go source, some seconds. Processes that build at the same time take
/// turns, and the second finds the result of the first.
///
/// # Errors
///
/// [`Error::GoMissing`] without a Go toolchain, otherwise the failure of the build.
pub fn build() -> Result<PathBuf, Error> {
    let source = Path::new(SOURCE);
    let go_mod = source.join("go.mod");
    let module = fs::read_to_string(&go_mod).map_err(Error::file("read", &go_mod))?;
    let linker_flags = linker_flags(&module).ok_or(Error::KubernetesVersion { go_mod })?;
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
        compile(source, &linker_flags, &binary)?;
        remove_unused(&cache);
    }
    Ok(binary)
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
fn linker_flags(go_mod: &str) -> Option<String> {
    let version = go_mod.lines().find_map(|line| {
        let line = line.trim().trim_start_matches("require ");
        line.strip_prefix("k8s.io/kubernetes ")?.split_whitespace().next()
    })?;
    let (major, rest) = version.strip_prefix('v')?.split_once('.')?;
    let (minor, _patch) = rest.split_once('.')?;
    let mut flags = String::from("-s -w");
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (variable, value) in [
            ("gitVersion", version),
            ("gitMajor", major),
            ("gitMinor", minor),
            // A module from the proxy is a release, and does not name its commit.
            ("gitTreeState", "clean"),
            ("gitCommit", ""),
        ] {
            flags.push_str(&format!(" -X {package}.{variable}={value}"));
        }
    }
    Some(flags)
}

/// Names a state of everything that the binary is built from.
fn fingerprint(source: &Path, linker_flags: &str) -> Result<String, Error> {
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

fn cache_directory() -> Result<PathBuf, Error> {
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
    fn the_api_server_reports_what_go_mod_requires() {
        for go_mod in
            ["require (\n\tk8s.io/kubernetes v1.36.3\n)", "require k8s.io/kubernetes v1.36.3 // why"]
        {
            let flags = linker_flags(go_mod).expect("a version");
            for flag in ["gitVersion=v1.36.3", "gitMajor=1", "gitMinor=36"] {
                assert!(flags.contains(&format!(" -X k8s.io/component-base/version.{flag} ")), "{flags}");
            }
        }
        for go_mod in ["", "replace k8s.io/kubernetes => ../kubernetes", "require k8s.io/kubernetes main"] {
            assert_eq!(linker_flags(go_mod), None, "{go_mod:?}");
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
