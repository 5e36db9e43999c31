//! Where the test data is, and what a file of it is called after.

use std::path::{Path, PathBuf};
use std::process::Command;

use informer_protobuf::{Envelope, Kind, open};

/// One object in both forms.
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

    /// `None` for kinds of earlier versions that are no more.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self.envelope() {
            // A watch event does not say what it is.
            Envelope { kind: "", .. } if self.name.ends_with("/core.v1.WatchEvent") => {
                Kind::of("v1", "WatchEvent")
            }
            Envelope { api_version, kind, .. } => Kind::of(api_version, kind),
        }
    }
}

/// Those of this version.
pub(crate) fn head() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for folder in ["k8s.io/api", "k8s.io/apiextensions-apiserver"].map(test_data_of) {
        pairs.extend(pairs_in(&folder.join("HEAD")));
    }
    pairs
}

/// Those of earlier versions; what today's server would write instead counts, where it differs.
pub(crate) fn earlier() -> Vec<Pair> {
    let folder = test_data_of("k8s.io/api");
    let mut pairs = Vec::new();
    for path in files_in(&folder) {
        if path.file_name().is_some_and(|name| name != "HEAD") && path.is_dir() {
            pairs.extend(pairs_in(&path));
        }
    }
    pairs
}

/// Of one object, by the name of its file.
pub(crate) fn one(name: &str) -> Pair {
    head().into_iter().find(|pair| pair.name == format!("HEAD/{name}")).expect("a file of that name")
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

fn test_data_of(module: &str) -> PathBuf {
    let folder = if module == "k8s.io/api" { "testdata" } else { "pkg/apis/testdata" };
    let directory = || go(&["list", "-m", "-f", "{{.Dir}}", module]);
    let mut found = directory();
    if found.is_empty() {
        go(&["mod", "download", module]);
        found = directory();
    }
    assert!(!found.is_empty(), "`go mod download {module}` has not brought it");
    Path::new(&found).join(folder)
}

/// Runs it in the module of the control plane for tests, whose versions they are.
fn go(arguments: &[&str]) -> String {
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../../control-plane");
    let output = Command::new("go").current_dir(module).args(arguments).output();
    let output = output.expect("Go is installed: it knows where Kubernetes' test data is");
    assert!(
        output.status.success(),
        "go {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
