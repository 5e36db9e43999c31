//! The contract in the documentation of `informer`: a file in its package, because a package has no file from outside of its
//! folder. `tidy --write` makes it of `docs/CONTRACT.md`; tidy refuses it when the two differ.

use tooling::Error;

use super::Finding;
use crate::tree::{File, Tree};

const CONTRACT: &str = "docs/CONTRACT.md";
const COPY: &str = "crates/informer/src/promises.md";

pub(super) fn write(tree: &Tree) -> Result<(), Error> {
    let path = tree.root().join(COPY);
    std::fs::write(&path, copy(&tree.read(CONTRACT)?)).map_err(Error::io(&path))
}

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
    if copy(text(CONTRACT)) == text(COPY) {
        return Vec::new();
    }
    vec![Finding::refused(COPY, 0, format!("is not what {CONTRACT} says: `cargo xtask tidy --write`"))]
}

/// The same text without its title, which the module has, and without links to files that are only in the repository.
fn copy(contract: &str) -> String {
    let text = contract.strip_prefix("# Contract\n\n").unwrap_or(contract);
    let mut copy = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        copy.push_str(before);
        let link = after.split_once("](").and_then(|(name, after)| Some((name, after.split_once(')')?)));
        match link {
            Some((name, (target, after))) if !name.contains(['[', ']']) && !target.starts_with('#') => {
                copy.push_str(name);
                rest = after;
            }
            _ => {
                copy.push('[');
                rest = after;
            }
        }
    }
    copy.push_str(rest);
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_within_the_page_stay() {
        let page = "# Contract\n\nA [page](OTHER.md#a) and [in\nforce](#force), [x] or a[0] (b).\n";
        assert_eq!(copy(page), "A page and [in\nforce](#force), [x] or a[0] (b).\n");
    }

    #[test]
    fn a_copy_that_differs_is_found() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let found = |text: &str| check(&[file(CONTRACT, "# Contract\n\nA.\n"), file(COPY, text)]).len();
        assert_eq!([found("A.\n"), found("B.\n")], [0, 1]);
    }
}
