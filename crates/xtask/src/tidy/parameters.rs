//! The rule against type-parameter soup: a public type of the libraries has two type parameters at most.

use super::Finding;

const MAX: usize = 2;
const CRATES: &[&str] = &["crates/informer/src/", "crates/informer-core/src/"];
const ITEMS: &[&str] = &["pub struct ", "pub enum ", "pub trait ", "pub type "];

pub(super) fn check(path: &str, code: &str) -> Vec<Finding> {
    if !CRATES.iter().any(|library| path.starts_with(library)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for item in ITEMS {
        for (at, _) in code.match_indices(item) {
            let rest = &code[at + item.len()..];
            let name_end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (name, generics) = rest.split_at(name_end);
            let parameters = type_parameters(generics);
            if parameters > MAX {
                let line = code[..at].matches('\n').count() + 1;
                let message = format!("`{name}` has {parameters} type parameters, more than {MAX}");
                findings.push(Finding::refused(path, line, message));
            }
        }
    }
    findings
}

/// Counts the type parameters of a list that starts `text` with `<`, without lifetimes and constants.
fn type_parameters(text: &str) -> usize {
    let Some(list) = text.strip_prefix('<') else { return 0 };
    let mut depth = 0_i32;
    let mut parameters = vec![String::new()];
    let mut before = ' ';
    for c in list.chars() {
        match c {
            // The arrow of `Fn() -> T` closes nothing.
            '>' if before == '-' => {}
            '>' if depth == 0 => break,
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => parameters.push(String::new()),
            _ => {}
        }
        if let Some(parameter) = parameters.last_mut() {
            parameter.push(c);
        }
        before = c;
    }
    let is_type = |parameter: &&str| {
        !parameter.is_empty() && !parameter.starts_with('\'') && !parameter.starts_with("const ")
    };
    parameters.iter().map(|parameter| parameter.trim_matches([',', ' ', '\n'])).filter(is_type).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_counted_and_nothing_else() {
        for (text, count) in [
            ("", 0),
            ("(A, B)", 0),
            ("<A>", 1),
            ("<'a, A, const N: usize>", 1),
            ("<A: Fn(B, C) -> D, E = F<G, H>>(I)", 2),
            ("<\n    A,\n    B,\n    C,\n>", 3),
        ] {
            assert_eq!(type_parameters(text), count, "{text}");
        }
    }

    #[test]
    fn only_public_types_of_the_libraries_are_looked_at() {
        let code = "pub struct Free<A>;\n\npub trait Soup<A, B, C> {}\npub(crate) struct Own<A, B, C>;\n";
        let findings = check("crates/informer/src/a.rs", code);
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [3]);
        assert_eq!(check("crates/xtask/src/a.rs", code), []);
    }
}
