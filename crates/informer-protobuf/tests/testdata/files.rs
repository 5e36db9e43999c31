//! Where the test data is, and how its files are named.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use informer_protobuf::{Envelope, Kind, open};

/// One object in both encodings.
pub(crate) struct Pair {
    /// The folder and the name of the file: `HEAD/core.v1.Pod`.
    pub(crate) name: String,
    pub(crate) protobuf: Vec<u8>,
    pub(crate) json: Vec<u8>,
}

impl Pair {
    pub(crate) fn envelope(&self) -> Envelope<'_> {
        open(&self.protobuf).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// `None` for kinds that only earlier versions have.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self.envelope() {
            // A watch event does not name its kind.
            Envelope { kind: "", .. } if self.name.ends_with("/core.v1.WatchEvent") => {
                Kind::of("v1", "WatchEvent")
            }
            Envelope { api_version, kind, .. } => Kind::of(api_version, kind),
        }
    }
}

/// The pairs of this version, or `None` where the test is skipped.
pub(crate) fn head_or_skip(test: &str) -> Option<Vec<Pair>> {
    let mut pairs = Vec::new();
    for module in ["k8s.io/api", "k8s.io/apiextensions-apiserver"] {
        pairs.extend(pairs_in(&test_data_or_skip(module, test)?.join("HEAD")));
    }
    Some(pairs)
}

/// The pairs of earlier versions. Where today's server would write something else, that counts.
pub(crate) fn earlier_or_skip(test: &str) -> Option<Vec<Pair>> {
    let folder = test_data_or_skip("k8s.io/api", test)?;
    let mut pairs = Vec::new();
    for path in files_in(&folder) {
        if path.file_name().is_some_and(|name| name != "HEAD") && path.is_dir() {
            pairs.extend(pairs_in(&path));
        }
    }
    Some(pairs)
}

/// One object, by the name of its file.
pub(crate) fn one<'a>(pairs: &'a [Pair], name: &str) -> &'a Pair {
    pairs.iter().find(|pair| pair.name == format!("HEAD/{name}")).expect("a file of that name")
}

fn pairs_in(folder: &Path) -> Vec<Pair> {
    let version = folder.file_name().unwrap().to_string_lossy().into_owned();
    let protobuf = files_in(folder).into_iter().filter(|path| path.extension().is_some_and(|it| it == "pb"));
    let pair = |path: PathBuf| {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let object = stem.trim_end_matches(".after_roundtrip");
        let written = [format!("{object}.after_roundtrip.json"), format!("{object}.json")];
        let json = written.iter().map(|name| folder.join(name)).find(|path| path.exists()).expect("its JSON");
        let read = |path: &Path| std::fs::read(path).expect("a readable file");
        Pair { name: format!("{version}/{stem}"), protobuf: read(&path), json: read(&json) }
    };
    protobuf.map(pair).collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Skips a test without Go, which knows where the data is, and says so; not in CI, where a skipped test would look like
/// one that passed.
fn test_data_or_skip(module: &str, test: &str) -> Option<PathBuf> {
    let folder = if module == "k8s.io/api" { "testdata" } else { "pkg/apis/testdata" };
    let directory = || go(&["list", "-m", "-f", "{{.Dir}}", module]);
    let mut found = match directory() {
        Ok(found) => found,
        Err(GoMissing) => {
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{test} has need of Go");
            // Past the harness, which captures the output of tests.
            let _ = writeln!(io::stderr(), "{test} skipped: no Go toolchain");
            return None;
        }
    };
    if found.is_empty() {
        go(&["mod", "download", module]).expect("it was there");
        found = directory().expect("it was there");
    }
    assert!(!found.is_empty(), "`go mod download {module}` has not brought it");
    Some(Path::new(&found).join(folder))
}

#[derive(Debug)]
struct GoMissing;

/// Runs `go` in the module of the control plane for tests, whose versions apply.
fn go(arguments: &[&str]) -> Result<String, GoMissing> {
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../../control-plane");
    let output = match Command::new("go").current_dir(module).args(arguments).output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(GoMissing),
        output => output.expect("Go runs"),
    };
    assert!(
        output.status.success(),
        "go {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}
