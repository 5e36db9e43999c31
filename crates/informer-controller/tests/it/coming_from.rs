//! The pages for people who come from client-go and from kube-rs.

/// Text in backquotes.
fn spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The doctests of this crate compile the code of the page, so a name in that code exists.
fn each_name_of_the_tables_is_in_code(tables: &str, page: &str, at_least: usize) {
    let code: String =
        page.split("```").skip(1).step_by(2).filter(|block| block.starts_with("rust,no_run")).collect();
    let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let cells =
        tables.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit(" | ").next());
    let mut names = 0;
    for name in cells.flat_map(spans) {
        for word in name.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
            assert!(words.contains(&word), "`{name}` is in a table and in no code");
            names += 1;
        }
    }
    assert!(
        names > at_least,
        "only {names} names were found: the tables have another form than this test reads"
    );
}

#[test]
fn each_name_of_from_client_go_exists() {
    let page = include_str!("../../../../docs/from-client-go.md");
    each_name_of_the_tables_is_in_code(page, page, 60);
}

#[test]
fn each_name_of_from_kube_rs_exists() {
    let page = include_str!("../../../../docs/from-kube-rs.md");
    // Later tables have no names.
    let (tables, _) = page.split_once("## kube's own Controller").unwrap();
    each_name_of_the_tables_is_in_code(tables, page, 50);
}
