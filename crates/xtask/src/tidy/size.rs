//! The size of the tree: lines of Rust and Go in `crates`, `bench` and `packaging`, without tests and generated files.
//! One budget holds for all of them together.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use tooling::Error;

use super::Finding;
use crate::source::SourceCode;
use crate::tree::File;

/// The size of the tree when this rule began (129,050), and 900 lines for generated decoders, which halve the work for each typed
/// value, with their generator. The seams between crates that had been one (shards, tables) took 2,000. What an attack on kubediff
/// found (issue 9) took the rest: retention that no clock misleads, ids that are never given twice, sinks that refuse everything, the
/// order of lists. Scrubs of what a history has, a bound of the daemon's memory and words that are no secrets took another 2,100 after merges
/// had saved as much elsewhere; the third attack (tenants that hold up sinks, damaged files, marks, `blame` where knowledge changed) 1,200.
/// Controllers that are safe by construction took 700: finalizers that the server confirms, writes that are sent once, permissions that are
/// asked for as informers ask, statuses by apply. Calm in an outage, and a fourth attack on kubediff, took 300. A controller that is whole in a pod (`Program`: signals, one election,
/// health, metrics) took 1,000, a complete writer and shards that hand over 500, a rehearsal that fails reads and knows requests and
/// reconciliations the rest. An operator from an empty folder (events in testapi, a lease that is given up in time) took 100. Two more attacks
/// took 450: comparisons with a bound, manifests in more comments, more parts of values. One reading of the history for all sinks, and numbers of
/// YAML as they are written, took 130 after former ways to compare and to list had gone. An eighth attack on kubediff took 350: gaps that last
/// until the slowest list, objects that a configuration leaves out, resources that are not watched at present. Rehearsals with a quarter less work,
/// by a server that keeps the objects parsed that it has read or written last, took 55. Times as places in the log, and answers
/// that are longer than the memory (issue 11), took 255. Events that are kept, times as spans of numbers, and several kinds in a question
/// took 770. Stories (`log --fold`) took 2,550. The page (`kubediff ui`, also of a
/// daemon), `/v1` and its layer of answers took 5,100; the page for a team,
/// where each user sees what the cluster lets them see, 1,300; tags of answers 250. A benchmark of the
/// page on a history of 10,000,000 changes took 1,050, and deadlines of questions 60. Compression, and the mends after
/// a further attack on the page (connections whose clients take nothing, the first second of a namespace) and of gaps of lists, took 400. Log records
/// for OpenTelemetry took 350. A second database for histories (the questions over both, PostgreSQL, a server of it for tests) took 2,850, streams of NATS
/// JetStream 950, and positions that are true for a second daemon 300. What a server says about itself (its release and schemas, for the past), retention
/// that reads ahead of the writer, and mends after an attack on the past and on audit events took 300. A change that deletes code lowers it; a change
/// that raises it says why the capability is worth the lines.
const BUDGET: usize = 169_600;

/// Generated files have a folder of this name. People neither review nor change them.
const GENERATED: &str = "/generated/";

/// Lines by their kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) code: usize,
    pub(super) rustdoc: usize,
    pub(super) comments: usize,
    pub(super) blank: usize,
    /// Of any kind, in tests and examples. They are no part of the other counts.
    pub(super) tests: usize,
}

impl Lines {
    /// The lines that the budget is for.
    pub(super) fn total(&self) -> usize {
        self.code + self.rustdoc + self.comments + self.blank
    }
}

impl AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.code += other.code;
        self.rustdoc += other.rustdoc;
        self.comments += other.comments;
        self.blank += other.blank;
        self.tests += other.tests;
    }
}

/// Lines by folder: each crate, `bench` and `packaging`.
pub(super) type Sizes = BTreeMap<String, Lines>;

pub(super) fn count(files: &[File]) -> Result<Sizes, Error> {
    let mut sources = Vec::new();
    let mut sizes = Sizes::new();
    for file in files.iter().filter(|file| !file.path.contains(GENERATED)) {
        let Some(folder) = folder(&file.path) else { continue };
        if file.path.ends_with(".rs") {
            let source = SourceCode::read(&file.text).map_err(|error| Error::format(&file.path, error))?;
            sources.push((folder, file, source));
        } else if file.path.ends_with(".go") {
            *sizes.entry(folder.to_owned()).or_default() += go(file);
        }
    }
    let modules: BTreeSet<String> =
        sources.iter().flat_map(|(_, file, source)| test_modules(&file.path, source)).collect();
    for (folder, file, source) in &sources {
        let lines = if is_test(&file.path, &modules) {
            Lines { tests: file.text.lines().count(), ..Lines::default() }
        } else {
            rust(&file.text, source)
        };
        *sizes.entry((*folder).to_owned()).or_default() += lines;
    }
    Ok(sizes)
}

pub(super) fn check(sizes: &Sizes) -> Option<Finding> {
    let total = all(sizes).total();
    let message = format!("{total} lines of code are more than {BUDGET}: what can go?");
    (total > BUDGET).then(|| Finding::refused("crates", 0, message))
}

/// The size in one line.
pub(super) fn summary(sizes: &Sizes) -> String {
    let all = all(sizes);
    format!(
        "size: {} lines of at most {BUDGET}: {} of code, {} of rustdoc, {} of other comments, {} blank; and {} of tests",
        all.total(),
        all.code,
        all.rustdoc,
        all.comments,
        all.blank,
        all.tests
    )
}

pub(super) fn all(sizes: &Sizes) -> Lines {
    let mut all = Lines::default();
    sizes.values().for_each(|lines| all += *lines);
    all
}

fn folder(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    match (parts.next()?, parts.next()?) {
        ("crates", name) => Some(name),
        (folder @ ("bench" | "packaging"), _) => Some(folder),
        _ => None,
    }
}

fn is_test(path: &str, modules: &BTreeSet<String>) -> bool {
    let is_folder = |part| matches!(part, "tests" | "examples" | "benches");
    let module = path.strip_suffix(".rs").unwrap_or(path);
    // The module itself, or one of those that it is in.
    let mut ends = module.match_indices('/').map(|(at, _)| &module[..at]).chain([module]);
    module.rsplit('/').next() == Some("tests")
        || path.split('/').any(is_folder)
        || ends.any(|module| modules.contains(module))
}

/// The paths, without `.rs`, of the modules that a file declares for its tests only.
fn test_modules(path: &str, source: &SourceCode) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let (parent, name) = path.rsplit_once('/').unwrap_or_default();
    let folder = if matches!(name, "lib" | "main" | "mod") { parent } else { path };
    let declared = |at: usize| {
        let name = source.is_word(at, "mod").then(|| source.word(at + 1)).flatten()?;
        source.is_punct(at + 2, ';').then(|| format!("{folder}/{name}"))
    };
    source.tests().into_iter().flatten().filter_map(declared).collect()
}

fn rust(text: &str, source: &SourceCode) -> Lines {
    let tokens = || source.tokens.iter().flat_map(|token| token.line..=token.last);
    let code: BTreeSet<usize> = tokens().collect();
    let rustdoc: BTreeSet<usize> = source.docs.iter().cloned().flatten().collect();
    let tests: BTreeSet<usize> = source
        .tests()
        .into_iter()
        .flat_map(|test| source.tokens[test.start].line..=source.tokens[test.end - 1].last)
        .collect();
    let mut lines = Lines::default();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let kind = if tests.contains(&number) {
            &mut lines.tests
        } else if code.contains(&number) {
            &mut lines.code
        } else if rustdoc.contains(&number) {
            &mut lines.rustdoc
        } else if line.trim().is_empty() {
            &mut lines.blank
        } else {
            &mut lines.comments
        };
        *kind += 1;
    }
    lines
}

fn go(file: &File) -> Lines {
    let mut lines = Lines::default();
    for line in file.text.lines().map(str::trim) {
        let kind = if file.path.ends_with("_test.go") {
            &mut lines.tests
        } else if line.is_empty() {
            &mut lines.blank
        } else if line.starts_with("//") {
            &mut lines.comments
        } else {
            &mut lines.code
        };
        *kind += 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn each_line_has_one_kind() {
        let text = "//! A.\n\n// why\n/// B.\n/** C\n   D */\n#[e]\nfn f() {\n    g(\"h\n// in the text\"); // i\n}\n\n#[cfg(test)]\nmod tests {\n\n    /// J.\n    fn k() {}\n}\n";
        let lines = Lines { code: 5, rustdoc: 4, comments: 1, blank: 2, tests: 6 };
        assert_eq!(count(&[file("crates/a/src/lib.rs", text)]).unwrap()["a"], lines);
    }

    #[test]
    fn tests_in_files_of_their_own_are_found() {
        let tests = |path: &str| {
            let lib = "mod b;\n#[cfg(all(test, loom))]\nmod orders;\n";
            let files = [file("crates/a/src/lib.rs", lib), file(path, "x;\n")];
            count(&files).unwrap()["a"].tests == 3
        };
        for path in [
            "crates/a/src/orders.rs",
            "crates/a/src/orders/c.rs",
            "crates/a/src/b/tests.rs",
            "crates/a/tests/it/d.rs",
            "crates/a/examples/e.rs",
        ] {
            assert!(tests(path), "{path}");
        }
        for path in ["crates/a/src/b.rs", "crates/a/src/b/orders.rs", "crates/a/src/borders.rs"] {
            assert!(!tests(path), "{path}");
        }
    }

    #[test]
    fn other_folders_and_generated_files_do_not_count() {
        let go = "package a\n\n// b\nfunc c() {}\n";
        let sizes = count(&[
            file("bench/a/main.go", go),
            file("bench/a/main_test.go", go),
            file("crates/a/src/generated/b.rs", "x;\n"),
            file("control-plane/main.go", go),
            file("packaging/src/lib.rs", "x;\n"),
        ]);
        let bench = Lines { code: 2, comments: 1, blank: 1, tests: 4, rustdoc: 0 };
        let packaging = Lines { code: 1, ..Lines::default() };
        let wanted = [("bench".to_owned(), bench), ("packaging".to_owned(), packaging)];
        assert_eq!(sizes.unwrap(), Sizes::from(wanted));
    }
}
