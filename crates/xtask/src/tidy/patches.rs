//! The table of deliberate bugs in `docs/TESTING.md`: a row for each patch, with the patch's first line.

use super::Finding;
use crate::tree::File;

const PAGE: &str = "docs/TESTING.md";
const FOLDER: &str = "crates/xtask/mutants/";

pub(super) fn check(files: &[File], patches: &[File]) -> Vec<Finding> {
    let rows: Vec<String> = patches.iter().filter_map(row).collect();
    let page = files.iter().find(|file| file.path == PAGE).map_or("", |page| &page.text);
    let missing = rows.iter().filter(|row| !page.lines().any(|line| line == *row));
    let missing = missing.map(|row| Finding::refused(PAGE, 0, format!("the table of patches lacks `{row}`")));
    let without =
        page.lines().enumerate().filter(|(_, line)| is_row(line) && !rows.iter().any(|row| row == line));
    let without = without.map(|(at, _)| Finding::refused(PAGE, at + 1, "no patch begins so"));
    missing.chain(without).collect()
}

fn row(patch: &File) -> Option<String> {
    let name = patch.path.strip_prefix(FOLDER)?.strip_suffix(".patch")?;
    Some(format!("| `{name}` | {} |", patch.text.lines().next().unwrap_or_default()))
}

/// ``| `07-…` | … |``
fn is_row(line: &str) -> bool {
    let name = line.strip_prefix("| `").unwrap_or_default().as_bytes();
    matches!(name, [b'0'..=b'9', b'0'..=b'9', b'-', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_patch_has_its_row_and_each_row_its_patch() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let patches = [file("crates/xtask/mutants/01-a.patch", "It breaks.\nBreaks W1.\n")];
        let found = |page: &str| {
            let findings = check(&[file(PAGE, page)], &patches);
            findings.into_iter().map(|finding| finding.line).collect::<Vec<_>>()
        };
        assert_eq!(found("| Patch | The bug |\n|---|---|\n| `01-a` | It breaks. |\n"), [0; 0]);
        assert_eq!(found(""), [0]);
        assert_eq!(found("| `01-a` | It breaks. |\n| `02-b` | Gone. |\n"), [2]);
        assert_eq!(found("| `01-a` | It broke. |\n"), [0, 1]);
    }
}
