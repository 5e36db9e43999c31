//! Links between Markdown files of the repository: the file must exist, and so must the heading or anchor in it.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::tree::File;

/// `exists` says whether a path below the root exists that is not in `files`.
pub(super) fn check(files: &[File], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let pages: Vec<&File> = files.iter().filter(|file| file.path.ends_with(".md")).collect();
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut findings = Vec::new();
    for page in &pages {
        for (line, link) in links(&page.text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.path.clone() } else { resolve(&page.path, file) };
            let broken = match anchors.get(target.as_str()) {
                Some(known) => !anchor.is_empty() && !known.contains(anchor),
                None => !exists(&target),
            };
            if broken {
                findings.push(Finding::refused(&page.path, line, format!("`{link}` leads nowhere")));
            }
        }
    }
    findings
}

/// `link` as seen from `page`, as a path below the root.
fn resolve(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// The lines outside of fenced code, counted from 1.
fn unfenced(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    let lines = text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    lines.map(|(index, line)| (index + 1, line))
}

/// The lines outside of fenced code, without the text in backquotes.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    unfenced(text).map(|(number, line)| (number, line.split('`').step_by(2).collect::<Vec<_>>().join("")))
}

/// The text in backquotes outside of fenced code, with its line.
pub(super) fn code_spans(text: &str) -> impl Iterator<Item = (usize, String)> {
    let lines = unfenced(text).filter(|(_, line)| !line.starts_with("    "));
    lines.flat_map(|(number, line)| {
        line.split('`').skip(1).step_by(2).map(move |span| (number, span.to_owned()))
    })
}

/// The targets of `[text](target)` and `[name]: target` inside the repository, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        let reference = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        let reference = reference.and_then(|(_, target)| target.split_whitespace().next());
        let ours = inline.chain(reference).filter(|target| !target.contains(':') && !target.is_empty());
        links.extend(ours.map(|target| (number, target.to_owned())));
    }
    links
}

/// The anchors of a page: slugs of headings, and `<a id="…">`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if let (false, Some(heading)) = (fenced, line.strip_prefix('#')) {
            anchors.insert(slug(heading.trim_start_matches('#').trim()));
        }
        let ids = line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        anchors.extend(ids.map(str::to_owned));
    }
    anchors
}

/// A heading's anchor, as the usual hosts of Markdown make it.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn broken_links_are_found() {
        let readme = "[a](docs/A.md) [b](docs/B.md) [web](https://example.org)\n[c](docs/A.md#one-two), [d](docs/A.md#x)\n";
        let a = "# One, two\n[up](../README.md) [here](#l1) [there](#l2)\n- <a id=\"l1\"></a>L1\n[ref]: ../LICENSE\n";
        let files = [page("README.md", readme), page("docs/A.md", a)];
        let findings = check(&files, |path| path == "LICENSE");
        let found: Vec<_> =
            findings.iter().map(|it| (it.path.as_str(), it.line, it.message.as_str())).collect();
        assert_eq!(
            found,
            [
                ("README.md", 1, "`docs/B.md` leads nowhere"),
                ("README.md", 2, "`docs/A.md#x` leads nowhere"),
                ("docs/A.md", 2, "`#l2` leads nowhere"),
            ]
        );
    }

    #[test]
    fn code_is_not_prose() {
        assert_eq!(links("`[a](b.md)` [c](d.md)\n```\n[e](f.md)\n```\n"), [(1, "d.md".to_owned())]);
    }
}
