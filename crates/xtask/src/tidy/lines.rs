//! The table of crates and their lines in `docs/ARCHITECTURE.md`, written by `tidy --write`. Tidy refuses it when it is
//! off by more than a fifth, so that not every change has to update it.

use tooling::Error;

use super::Finding;
use super::size::{self, Lines, Sizes};

use crate::metadata::Package;
use crate::tree::{File, Tree};

const PAGE: &str = "docs/ARCHITECTURE.md";
const BEGIN: &str = "<!-- crates: cargo xtask tidy --write -->\n";
const END: &str = "<!-- end of crates -->";

/// The folders beside the crates, and their purposes.
const OTHERS: [(&str, &str); 2] = [
    ("bench", "The benchmarks, with the programs of client-go, controller-runtime and kube-rs"),
    ("packaging", "Builds what people download"),
];

/// A row: a folder, its purpose, and its lines.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    purpose: String,
    lines: Lines,
}

/// Updates the table.
pub(super) fn write(tree: &Tree, sizes: &Sizes, packages: &[Package]) -> Result<(), Error> {
    let page = tree.read(PAGE)?;
    let outside = || Error::format(PAGE, format!("no `{}` and `{END}`", BEGIN.trim_end()));
    let (before, rest) = page.split_once(BEGIN).ok_or_else(outside)?;
    let (_, after) = rest.split_once(END).ok_or_else(outside)?;
    let path = tree.root().join(PAGE);
    let page = format!("{before}{BEGIN}{}{END}{after}", table(&rows(sizes, packages), &size::all(sizes)));
    std::fs::write(&path, page).map_err(Error::io(&path))
}

pub(super) fn check(files: &[File], sizes: &Sizes, packages: &[Package]) -> Vec<Finding> {
    let page = files.iter().find(|file| file.path == PAGE).map_or("", |page| &page.text);
    let written = read(page);
    let stale = |row: &Row| {
        let near = |now: usize, then: usize| now.abs_diff(then) * 5 <= then.max(100);
        !written.iter().any(|it| {
            it.name == row.name
                && it.purpose == row.purpose
                && near(row.lines.total(), it.lines.total())
                && near(row.lines.tests, it.lines.tests)
        })
    };
    let message = |row: Row| {
        format!("the purpose or the size of `{}` is out of date: `cargo xtask tidy --write`", row.name)
    };
    let rows = rows(sizes, packages).into_iter().filter(stale);
    rows.map(|row| Finding::refused(PAGE, 0, message(row))).collect()
}

fn rows(sizes: &Sizes, packages: &[Package]) -> Vec<Row> {
    let purpose = |name: &str| {
        let manifest = format!("crates/{name}/Cargo.toml");
        let package = packages.iter().find(|package| package.manifest_path.ends_with(&manifest));
        let other = OTHERS.iter().find(|(other, _)| *other == name).map(|(_, purpose)| (*purpose).to_owned());
        other.or_else(|| package?.description.clone()).unwrap_or_default()
    };
    let row =
        |(name, lines): (&String, &Lines)| Row { name: name.clone(), purpose: purpose(name), lines: *lines };
    sizes.iter().map(row).collect()
}

fn table(rows: &[Row], all: &Lines) -> String {
    let mut text = "| Crate or folder | What it is for | Code | Rustdoc | Other comments | Blank | Tests and examples |\n|---|---|--:|--:|--:|--:|--:|\n".to_owned();
    let mut add = |name: &str, purpose: &str, lines: &Lines| {
        let Lines { code, rustdoc, comments, blank, tests } = lines;
        text.push_str(&format!(
            "| {name} | {purpose} | {code} | {rustdoc} | {comments} | {blank} | {tests} |\n"
        ));
    };
    for Row { name, purpose, lines } in rows {
        add(&format!("`{name}`"), purpose, lines);
    }
    add("", "all", all);
    text
}

fn read(page: &str) -> Vec<Row> {
    let table =
        page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).map_or("", |(table, _)| table);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, purpose, ref lines @ .., _] = cells[..] else { return None };
        let lines: Vec<usize> = lines.iter().map_while(|cell| cell.parse().ok()).collect();
        let [code, rustdoc, comments, blank, tests] = lines[..] else { return None };
        let lines = Lines { code, rustdoc, comments, blank, tests };
        Some(Row { name: name.trim_matches('`').to_owned(), purpose: purpose.to_owned(), lines })
    };
    table.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_off_is_found() {
        let package = Package {
            manifest_path: "/repository/crates/a/Cargo.toml".into(),
            description: Some("Does".to_owned()),
            ..Package::default()
        };
        let packages = [package];
        let lines = |code| Lines { code, rustdoc: 1, comments: 2, blank: 3, tests: 7 };
        let found = |now, written| {
            let rows = [Row { name: "a".to_owned(), purpose: "Does".to_owned(), lines: lines(written) }];
            let text = format!("# A\n{BEGIN}{}{END}\n", table(&rows, &rows[0].lines));
            assert_eq!(read(&text)[0], rows[0]);
            let page = File { path: PAGE.to_owned(), text };
            check(&[page], &Sizes::from([("a".to_owned(), lines(now))]), &packages).len()
        };
        assert_eq!([found(994, 994), found(1_194, 994), found(1_195, 994), found(793, 994)], [0, 0, 1, 1]);
        assert_eq!(check(&[], &Sizes::from([("a".to_owned(), lines(1))]), &packages).len(), 1);
    }
}
