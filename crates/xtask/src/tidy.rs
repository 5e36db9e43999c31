//! `cargo xtask tidy`: the rules of this repository that no compiler checks.
//!
//! Each rule is a pure function from a file's text to findings, with tests on snippets; this module only calls them. A
//! test of this crate runs the same check, so that `cargo test` fails too.

mod circles;
mod dependencies;
mod lines;
mod links;
mod names;
mod parameters;
mod patches;
mod promises;
mod rust;
mod size;
mod text;

use std::fmt;

use tooling::Error;

use crate::metadata::Metadata;
use crate::source::SourceCode;
use crate::tree::Tree;
use size::Sizes;

/// A rule's finding at a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1; 0 for the whole file.
    line: usize,
    message: String,
    weight: Weight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// Fails the check.
    Refused,
    /// Is shown only.
    Noted,
}

impl Finding {
    fn refused(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into(), weight: Weight::Refused }
    }

    fn noted(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { weight: Weight::Noted, ..Self::refused(path, line, message) }
    }
}

/// In the format of compilers, so that editors can jump to the place.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, message, weight } = self;
        let weight = match weight {
            Weight::Refused => "refused",
            Weight::Noted => "note",
        };
        match line {
            0 => write!(f, "{path}: {weight}: {message}"),
            _ => write!(f, "{path}:{line}: {weight}: {message}"),
        }
    }
}

/// With `write` it writes the table of crates and the copy of the contract first.
pub(crate) fn run(tree: &Tree, write: bool) -> Result<(), Error> {
    if write {
        promises::write(tree)?;
        lines::write(
            tree,
            &size::count(&tree.files(EXTENSIONS)?)?,
            &Metadata::workspace(tree.root())?.packages,
        )?;
    }
    let (findings, sizes) = check(tree)?;
    for finding in &findings {
        println!("{finding}");
    }
    let refused = findings.iter().filter(|finding| finding.weight == Weight::Refused).count();
    println!("{}", size::summary(&sizes));
    println!("tidy: {refused} refused, {} noted", findings.len() - refused);
    if refused > 0 { Err(Error::Found(format!("tidy refused {refused} places"))) } else { Ok(()) }
}

const EXTENSIONS: &[&str] = &["rs", "md", "toml", "go", "yaml", "yml", "sh"];

fn check(tree: &Tree) -> Result<(Vec<Finding>, Sizes), Error> {
    let files = tree.files(EXTENSIONS)?;
    let mut findings: Vec<Finding> = files.iter().flat_map(text::check).collect();
    let mut sources = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with("crates/") && file.path.ends_with(".rs")) {
        match SourceCode::read(&file.text) {
            Ok(source) => sources.push((file, source)),
            Err(reason) => findings.push(Finding::refused(&file.path, 0, reason)),
        }
    }
    for (file, source) in &sources {
        findings.extend(rust::check(file, source));
        findings.extend(parameters::check(&file.path, source));
    }
    findings.extend(circles::check(&sources));
    findings.extend(links::check(&files, |path| tree.exists(path)));
    findings.extend(names::check(&files, |path| tree.exists(path)));
    let workspace = Metadata::workspace(tree.root())?;
    findings.extend(dependencies::check(&workspace));
    findings.extend(promises::check(&files));
    findings.extend(patches::check(&files, &tree.files(&["patch"])?));
    let sizes = size::count(&files)?;
    findings.extend(lines::check(&files, &sizes, &workspace.packages));
    findings.extend(size::check(&sizes));
    Ok((findings, sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_tree_is_tidy() {
        let (findings, _) = check(&Tree::here()).unwrap();
        let refused: Vec<String> =
            findings.iter().filter(|it| it.weight == Weight::Refused).map(ToString::to_string).collect();
        assert!(refused.is_empty(), "\n{}", refused.join("\n"));
    }
}
