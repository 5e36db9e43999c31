//! The parts of a README that readers copy.

/// The first block of code in this language.
pub(super) fn block<'a>(page: &'a str, language: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("```{language}\n"))?;
    rest.split_once("\n```").map(|(block, _)| block)
}

/// The dependency lines of `package` in code spans: `a = { version = "1", features = ["b"] }`.
pub(super) fn dependency_lines<'a>(page: &'a str, package: &str) -> Vec<&'a str> {
    let start = format!("{package} = ");
    page.lines()
        .filter(|line| line.starts_with('|'))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|span| span.starts_with(&start))
        .collect()
}

/// The line with a path in place of the version.
pub(super) fn by_path(line: &str, path: &str) -> String {
    let path = format!("path = {path:?}");
    match line.split_once(" = ") {
        Some((name, version)) if version.starts_with('"') => format!("{name} = {{ {path} }}"),
        Some((name, table)) => {
            let (_, rest) = table.split_once("\", ").unwrap_or(("", "}"));
            format!("{name} = {{ {path}, {rest}")
        }
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n\n```toml\n[dependencies]\na = \"1\"\n```\n\n```rust\nfn main() {}\n```\n\n| to | `b` |\n|---|---|\n| x | `a = \"1\"` |\n| y | `a = { version = \"1\", features = [\"b\"] }` |\n";

    #[test]
    fn blocks_and_lines_are_found() {
        assert_eq!(block(PAGE, "toml"), Some("[dependencies]\na = \"1\""));
        assert_eq!(block(PAGE, "rust"), Some("fn main() {}"));
        assert_eq!(block(PAGE, "go"), None);
        let lines = dependency_lines(PAGE, "a");
        assert_eq!(lines, ["a = \"1\"", "a = { version = \"1\", features = [\"b\"] }"]);
        assert_eq!(by_path(lines[0], "/c"), "a = { path = \"/c\" }");
        assert_eq!(by_path(lines[1], "/c"), "a = { path = \"/c\", features = [\"b\"] }");
    }
}
