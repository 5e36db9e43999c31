//! The page for people who come from client-go.

/// Text in backquotes.
fn spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The doctests of this crate compile the code of the page, so a name in that code exists.
#[test]
fn each_name_of_the_tables_is_in_code_of_the_page() {
    let page = include_str!("../../../../docs/from-client-go.md");
    let code: String = page.split("```").skip(1).step_by(2).collect();
    let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let cells =
        page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit(" | ").next());
    let mut names = 0;
    for name in cells.flat_map(spans) {
        for word in name.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
            assert!(words.contains(&word), "`{name}` is in a table and in no code");
            names += 1;
        }
    }
    assert!(names > 60, "only {names} names were found: the tables have another form than this test reads");
}
