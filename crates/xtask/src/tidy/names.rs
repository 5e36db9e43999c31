//! Names of files and tests in documents: text in backquotes that looks like a file of the repository must be one, and what
//! looks like the name of a clause's test must be that of a function.

use super::Finding;
use super::links::code_spans;
use crate::tree::File;

const EXTENSIONS: &[&str] = &[".rs", ".md", ".toml", ".go", ".sh"];
const FOLDERS: &[&str] = &["bench/", "control-plane/", "crates/", "docs/", "foreign/", "fuzz/"];

/// `files` are the files of the repository, documents included; `exists` says whether a folder exists.
pub(super) fn check(files: &[File], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let pages = files.iter().filter(|file| file.path == "README.md" || is_document(&file.path));
    let mut findings = Vec::new();
    for page in pages {
        for (line, name) in code_spans(&page.text).filter(|(_, name)| is_file_name(name)) {
            // A document may leave out folders that its sentence makes clear.
            let end = format!("/{name}");
            let is_there =
                exists(&name) || files.iter().any(|file| file.path == name || file.path.ends_with(&end));
            if !is_there {
                findings.push(Finding::refused(&page.path, line, format!("there is no file `{name}`")));
            }
        }
        for (line, name) in code_spans(&page.text).filter(|(_, name)| is_test_name(name)) {
            let definition = format!("fn {name}(");
            if !files.iter().any(|file| file.path.ends_with(".rs") && file.text.contains(&definition)) {
                findings.push(Finding::refused(&page.path, line, format!("there is no test `{name}`")));
            }
        }
    }
    findings
}

fn is_document(path: &str) -> bool {
    path.strip_prefix("docs/").is_some_and(|name| name.ends_with(".md"))
}

/// `l3_an_expired_list_...`: a clause, and at least two words.
fn is_test_name(text: &str) -> bool {
    let (clause, rest) = text.split_once('_').unwrap_or_default();
    let is_clause = clause.len() > 1
        && clause.starts_with(|c: char| c.is_ascii_lowercase())
        && clause.get(1..).is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    is_clause && rest.contains('_') && rest.chars().all(is_plain)
}

fn is_file_name(text: &str) -> bool {
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
    let has_extension = EXTENSIONS.iter().any(|end| text.len() > end.len() && text.ends_with(end));
    is_plain
        && !text.starts_with(['/', '.'])
        && (has_extension || FOLDERS.iter().any(|folder| text.starts_with(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_do_not_exist_are_found() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let page = "`crates/a/src/b.rs`, `src/b.rs` and `b.rs`; `crates/a`\n`gone.rs`, `crates/gone`\n\n    `c.rs`\n`a.b`, `/x/y.rs`, `cargo x`, `.rs`\n";
        let files =
            [file("docs/A.md", page), file("crates/a/src/b.rs", ""), file("CHANGELOG.md", "`gone.rs`\n")];
        let findings = check(&files, |path| path == "crates/a");
        let found: Vec<_> = findings.iter().map(|it| (it.line, it.message.as_str())).collect();
        assert_eq!(found, [(2, "there is no file `gone.rs`"), (2, "there is no file `crates/gone`")]);
    }

    #[test]
    fn tests_that_do_not_exist_are_found() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let page = "`l3_it_lists`, `c10_it_is_gone`, `a_b_c`, `l3`, `l3_list`\n";
        let files = [file("docs/A.md", page), file("crates/a/tests/b.rs", "async fn l3_it_lists() {}")];
        let findings = check(&files, |_| false);
        let found: Vec<_> = findings.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(found, ["there is no test `c10_it_is_gone`"]);
    }
}
