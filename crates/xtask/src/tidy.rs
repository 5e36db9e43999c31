//! `cargo xtask tidy`: the rules of the house that no compiler checks.
//!
//! Each rule is a pure function from a file's text to findings, with tests on snippets; this module only feeds them.
//! The same check is a test of this crate, so that `cargo test` says so too.

mod dependencies;
mod links;
mod parameters;
mod rust;
mod text;

use std::fmt;

use crate::error::Error;
use crate::metadata::Metadata;
use crate::source;
use crate::tree::{File, Tree};

/// What a rule has to say about a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1; 0 concerns the whole file.
    line: usize,
    message: String,
    weight: Weight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// Must go.
    Refused,
    /// Worth a look.
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

/// As compilers write it, so that editors can jump there.
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

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    let findings = check(tree)?;
    for finding in &findings {
        println!("{finding}");
    }
    let refused = findings.iter().filter(|finding| finding.weight == Weight::Refused).count();
    println!("tidy: {refused} refused, {} noted", findings.len() - refused);
    if refused > 0 { Err(Error::Found(format!("tidy refused {refused} places"))) } else { Ok(()) }
}

fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let files = tree.files(&["rs", "md", "toml", "go", "yaml", "yml", "sh"])?;
    let mut findings: Vec<Finding> = files.iter().flat_map(text::check).collect();
    findings.extend(files.iter().filter(|file| is_rust_of_crates(file)).flat_map(check_rust));
    findings.extend(links::check(&files, |path| tree.exists(path)));
    findings.extend(dependencies::check(&Metadata::workspace(tree.root())?));
    Ok(findings)
}

fn is_rust_of_crates(file: &File) -> bool {
    file.path.starts_with("crates/") && file.path.ends_with(".rs")
}

fn check_rust(file: &File) -> Vec<Finding> {
    let code = source::code_only(&file.text);
    let mut findings = rust::check(file, &code);
    findings.extend(parameters::check(&file.path, &code));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_tree_is_tidy() {
        let findings = check(&Tree::here()).unwrap();
        let refused: Vec<String> =
            findings.iter().filter(|it| it.weight == Weight::Refused).map(ToString::to_string).collect();
        assert!(refused.is_empty(), "\n{}", refused.join("\n"));
    }
}
