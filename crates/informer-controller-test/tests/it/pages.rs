//! The examples of docs and rustdoc: each that writes passes the rehearsal as it is printed.
//!
//! The modules have the text of the pages. `the_pages_have_the_rehearsed_text` compares, and finds examples that no module has.
//! `cargo xtask soak --only pages` plays 10,000 seeds of each.

use std::path::Path;

mod bucket;
mod checked;
mod secrets;
mod stamp;

/// The text of the modules.
const REHEARSED: [&str; 5] = [
    OPERATOR[0].1,
    include_str!("pages/bucket.rs"),
    include_str!("pages/checked.rs"),
    include_str!("pages/secrets.rs"),
    include_str!("pages/stamp.rs"),
];

/// The files of the operator that `docs/controllers.md` writes step by step. Its own tests rehearse it.
const OPERATOR: [(&str, &str); 2] = [
    ("main.rs", include_str!("../../../informer-controller/examples/operator/main.rs")),
    ("tests.rs", include_str!("../../../informer-controller/examples/operator/tests.rs")),
];

/// The folders with pages, and with code that has examples.
const FOLDERS: [&str; 3] = ["docs", "crates/informer-controller/src", "crates/informer-shards/src"];

#[test]
fn the_pages_have_the_rehearsed_text() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = 0;
    for folder in FOLDERS {
        for (path, text) in texts(&root.join(folder)) {
            for function in reconcilers_that_write(&text) {
                found += 1;
                assert!(
                    REHEARSED.iter().any(|module| module.contains(&function)),
                    "{path}: no module of tests/it/pages has this reconciler:\n{function}"
                );
            }
        }
    }
    assert!(found >= 6, "{found} reconcilers");
}

/// A reader who copies the blocks in order has the operator, but for the head of `main.rs` and for tests of processes.
#[test]
fn the_operator_of_the_page_is_the_tested_one() {
    let page = include_str!("../../../../docs/controllers.md");
    for (name, text) in OPERATOR {
        let mark = format!("<!-- crates/informer-controller/examples/operator/{name} -->\n```rust,ignore\n");
        let blocks: Vec<_> =
            page.split(&mark).skip(1).filter_map(|rest| rest.split("\n```\n").next()).collect();
        let code = text.find("use ").map_or("", |begin| &text[begin..]);
        let code = code.split("\n// The page ends here").next().unwrap_or_default();
        assert_eq!(blocks.join("\n\n"), code.trim_end(), "{name}");
    }
}

/// The pages and source files of a folder, without what is no documentation.
fn texts(folder: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(texts(&path));
            continue;
        }
        let text = || std::fs::read_to_string(&path).unwrap();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("md") => all.push((path.display().to_string(), text())),
            Some("rs") => all.push((path.display().to_string(), documentation(&text()))),
            _ => {}
        }
    }
    all
}

/// The doc comments of a source file.
fn documentation(source: &str) -> String {
    let lines = source.lines().filter_map(|line| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        Some(text.strip_prefix(' ').unwrap_or(text))
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// The functions from a `Context` that use its writer.
fn reconcilers_that_write(page: &str) -> Vec<String> {
    let mut functions: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        if line.starts_with("async fn ") && line.contains("Context<") {
            functions.push(String::new());
            is_inside = true;
        }
        if let Some(function) = functions.last_mut().filter(|_| is_inside) {
            function.push_str(line);
            function.push('\n');
            is_inside = line != "}";
        }
    }
    functions.retain(|function| function.contains(".writer()"));
    functions
}
