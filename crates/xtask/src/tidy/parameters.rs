//! The rule that a public type of the libraries has at most two type parameters.

use super::Finding;
use crate::source::{Kind, SourceCode};

const MAX: usize = 2;
const CRATES: &[&str] = &["crates/informer/src/", "crates/informer-core/src/"];
const ITEMS: &[&str] = &["struct", "enum", "trait", "type"];

pub(super) fn check(path: &str, source: &SourceCode) -> Vec<Finding> {
    if !CRATES.iter().any(|library| path.starts_with(library)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for at in 0..source.tokens.len() {
        let is_item =
            source.is_word(at, "pub") && source.word(at + 1).is_some_and(|word| ITEMS.contains(&word));
        let (true, Some(name)) = (is_item, source.word(at + 2)) else { continue };
        let parameters = type_parameters(source, at + 3);
        if parameters > MAX {
            let message = format!("`{name}` has {parameters} type parameters, more than {MAX}");
            findings.push(Finding::refused(path, source.tokens[at].line, message));
        }
    }
    findings
}

/// Counts the type parameters of the list that starts with `<` at this index, without lifetimes and constants.
fn type_parameters(source: &SourceCode, start: usize) -> usize {
    if !source.is_punct(start, '<') {
        return 0;
    }
    let (mut depth, mut count, mut begins) = (0, 0, true);
    let mut at = start + 1;
    while let Some(token) = source.tokens.get(at) {
        // The `>` of `Fn() -> T` closes no list.
        let arrow = source.is_punct(at, '>') && source.is_punct(at - 1, '-');
        match &token.kind {
            Kind::Punct('>') if depth == 0 && !arrow => break,
            Kind::Punct('>') if !arrow => depth -= 1,
            Kind::Punct('<') => depth += 1,
            Kind::Punct(',') if depth == 0 => begins = true,
            // A lifetime, or a constant.
            Kind::Punct('\'') => begins = false,
            Kind::Word(word) if begins => {
                count += usize::from(word != "const");
                begins = false;
            }
            Kind::Open(_, close) => at = *close,
            _ => {}
        }
        at += 1;
    }
    count
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
            assert_eq!(type_parameters(&SourceCode::read(text).unwrap(), 0), count, "{text}");
        }
    }

    #[test]
    fn only_public_types_of_the_libraries_are_looked_at() {
        let code = "pub struct Free<A>;\n\npub trait Soup<A, B, C> {}\npub(crate) struct Own<A, B, C>;\n";
        let findings = check("crates/informer/src/a.rs", &SourceCode::read(code).unwrap());
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [3]);
        assert_eq!(check("crates/xtask/src/a.rs", &SourceCode::read(code).unwrap()), []);
    }
}
