//! The table of crates and their lines in `docs/ARCHITECTURE.md`, written by `tidy --write`. Tidy refuses it when it is
//! off by more than a fifth, so that not every change has to update it.

use super::Finding;
use tooling::Error;

use crate::metadata::Package;
use crate::tree::{File, Tree};

const PAGE: &str = "docs/ARCHITECTURE.md";
const BEGIN: &str = "<!-- crates: cargo xtask tidy --write -->\n";
const END: &str = "<!-- end of crates -->";

/// A row: the crate, its lines of Rust in `src` (with unit tests), and its lines elsewhere.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    purpose: String,
    source: usize,
    tests: usize,
}

/// Updates the table.
pub(super) fn write(tree: &Tree, files: &[File], packages: &[Package]) -> Result<(), Error> {
    let page = tree.read(PAGE)?;
    let outside = || Error::format(PAGE, format!("no `{}` and `{END}`", BEGIN.trim_end()));
    let (before, rest) = page.split_once(BEGIN).ok_or_else(outside)?;
    let (_, after) = rest.split_once(END).ok_or_else(outside)?;
    let path = tree.root().join(PAGE);
    let page = format!("{before}{BEGIN}{}{END}{after}", table(&rows(files, packages)));
    std::fs::write(&path, page).map_err(Error::io(&path))
}

pub(super) fn check(files: &[File], packages: &[Package]) -> Vec<Finding> {
    let page = files.iter().find(|file| file.path == PAGE).map_or("", |page| &page.text);
    let written = read(page);
    let stale = |row: &Row| {
        let written = written.iter().find(|it| it.name == row.name);
        let near = |now: usize, then: usize| now.abs_diff(then) * 5 <= then.max(100);
        !written.is_some_and(|it| {
            it.purpose == row.purpose && near(row.source, it.source) && near(row.tests, it.tests)
        })
    };
    let message =
        |row: Row| format!("what `{}` is for or costs is not so: `cargo xtask tidy --write`", row.name);
    let rows = rows(files, packages).into_iter().filter(stale);
    rows.map(|row| Finding::refused(PAGE, 0, message(row))).collect()
}

fn rows(files: &[File], packages: &[Package]) -> Vec<Row> {
    let row = |package: &Package| {
        let lines = |is_source: bool| {
            let ours = format!("crates/{}/", package.folder());
            let of = files.iter().filter_map(|file| Some((file.path.strip_prefix(&ours)?, file)));
            let of = of.filter(|(path, _)| path.ends_with(".rs") && path.starts_with("src/") == is_source);
            of.map(|(_, file)| file.text.lines().count()).sum()
        };
        let purpose = package.description.clone().unwrap_or_default();
        Row { name: package.folder().to_owned(), purpose, source: lines(true), tests: lines(false) }
    };
    // Crates in other folders, such as the harness, are not part of a build of the library.
    let is_crate = |package: &&Package| {
        files.iter().any(|file| file.path == format!("crates/{}/Cargo.toml", package.folder()))
    };
    let mut rows: Vec<Row> = packages.iter().filter(is_crate).map(row).collect();
    rows.sort_by(|left, right| left.name.cmp(&right.name));
    rows
}

fn table(rows: &[Row]) -> String {
    let mut text =
        "| Crate | What it is for | Lines in `src` | in tests and examples |\n|---|---|--:|--:|\n".to_owned();
    for Row { name, purpose, source, tests } in rows {
        text.push_str(&format!("| `{name}` | {purpose} | {source} | {tests} |\n"));
    }
    let sum = |lines: fn(&Row) -> usize| rows.iter().map(lines).sum::<usize>();
    text.push_str(&format!("| | all | {} | {} |\n", sum(|row| row.source), sum(|row| row.tests)));
    text
}

fn read(page: &str) -> Vec<Row> {
    let table =
        page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).map_or("", |(table, _)| table);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, purpose, source, tests, _] = cells[..] else { return None };
        let name = name.trim_matches('`').to_owned();
        Some(Row {
            name,
            purpose: purpose.to_owned(),
            source: source.parse().ok()?,
            tests: tests.parse().ok()?,
        })
    };
    table.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_off_is_found() {
        let file = |path: &str, lines: usize| File { path: path.to_owned(), text: "x\n".repeat(lines) };
        let package =
            Package { name: "a".to_owned(), description: Some("Does".to_owned()), ..Package::default() };
        let packages = [package];
        let found = |source, written| {
            let rows = [Row { name: "a".to_owned(), purpose: "Does".to_owned(), source: written, tests: 7 }];
            assert_eq!(read(&format!("{BEGIN}{}{END}", table(&rows)))[0], rows[0]);
            let text = format!("# A\n{BEGIN}{}{END}\n", table(&rows));
            let page = File { path: PAGE.to_owned(), text };
            let files = [
                file("crates/a/Cargo.toml", 1),
                file("crates/a/src/lib.rs", source),
                file("crates/a/tests/b.rs", 7),
                page,
            ];
            check(&files, &packages).len()
        };
        assert_eq!(
            [found(1_000, 1_000), found(1_200, 1_000), found(1_201, 1_000), found(799, 1_000)],
            [0, 0, 1, 1]
        );
        assert_eq!(check(&[file("crates/a/Cargo.toml", 1)], &packages).len(), 1);
        assert_eq!(check(&[file("bench/a/Cargo.toml", 1)], &packages).len(), 0);
    }
}
