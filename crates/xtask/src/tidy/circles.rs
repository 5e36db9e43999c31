//! The rule against circles: sibling modules may not use each other in a circle, directly or through others. So a
//! reader can understand each module from the modules that it uses.
//!
//! Test modules may use any module. A re-exported name counts as the module that defines it.

mod paths;

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::source::SourceCode;
use crate::tree::File;
use paths::Crate;

/// The place where a module uses a sibling, by both names.
type Uses = BTreeMap<(String, String), String>;

pub(super) fn check(files: &[(&File, SourceCode)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, modules) in Crate::all(files) {
        for (parent, uses) in modules.siblings() {
            let parent = [&[name.to_owned()], &*parent].concat().join("::");
            findings.extend(knots(&uses).iter().map(|knot| finding(&parent, knot, &uses)));
        }
    }
    findings
}

/// The finding for a circle, with the uses that close it, at the place of the first of them.
fn finding(parent: &str, knot: &BTreeSet<String>, uses: &Uses) -> Finding {
    let inside = uses.iter().filter(|((from, to), _)| knot.contains(from) && knot.contains(to));
    let closing: Vec<_> =
        inside.clone().map(|((from, to), place)| format!("{from} uses {to} ({place})")).collect();
    let (path, line) =
        inside.map(|(_, place)| place).next().and_then(|place| place.split_once(':')).unwrap_or_default();
    let message = format!("modules of `{parent}` use each other in a circle: {}", closing.join(", "));
    Finding::refused(path, line.parse().unwrap_or(0), message)
}

/// The sets of modules in which each can be reached from each other one.
fn knots(uses: &Uses) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        uses.keys().map(|(from, _)| (from, reached(from, uses))).collect();
    let mut knots: Vec<BTreeSet<String>> = Vec::new();
    for (from, to) in &reach {
        if !to.contains(*from) || knots.iter().any(|knot| knot.contains(*from)) {
            continue;
        }
        let back = |other: &&&String| reach.get(**other).is_some_and(|back| back.contains(*from));
        knots.push(to.iter().filter(back).map(|&other| other.clone()).collect());
    }
    knots
}

fn reached<'a>(from: &'a String, uses: &'a Uses) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(module) = waiting.pop() {
        let next = uses.keys().filter(|(from, _)| from == module).map(|(_, to)| to);
        waiting.extend(next.filter(|&to| reached.insert(to)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles in a crate of these files.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File { path: format!("crates/a/src/{path}"), text: (*text).to_owned() })
            .collect();
        let files: Vec<_> = files.iter().map(|file| (file, SourceCode::read(&file.text).unwrap())).collect();
        let mut found = Vec::new();
        for (name, modules) in Crate::all(&files) {
            for (parent, uses) in modules.siblings() {
                let parent = [&[name.to_owned()], &*parent].concat().join("::");
                found.extend(knots(&uses).into_iter().map(|knot| format!("{parent}: {knot:?}")));
            }
        }
        found
    }

    #[test]
    fn a_circle_of_siblings_is_found() {
        let lib = ("lib.rs", "mod x; mod y; mod z;");
        let one_way = [lib, ("x.rs", "use crate::y::{self, Y};"), ("y.rs", "use super::z;"), ("z.rs", "")];
        assert_eq!(found(&one_way), [""; 0]);
        let around = [one_way[0], one_way[1], one_way[2], ("z.rs", "fn f() { vec![crate::x::new()] }")];
        assert_eq!(found(&around), [r#"a: {"x", "y", "z"}"#]);
    }

    #[test]
    fn a_re_export_is_the_module_that_has_it() {
        let files = |lib| [("lib.rs", lib), ("x.rs", "use crate::Y;"), ("y.rs", "use crate::x::X;")];
        assert_eq!(found(&files("mod x; mod y; pub use y::Y;")), [r#"a: {"x", "y"}"#]);
        assert_eq!(found(&files("mod x; mod y; pub use y::{Z, Other as Y};")), [r#"a: {"x", "y"}"#]);
        assert_eq!(found(&files("mod x; mod y; pub use outside::Y;")), [""; 0]);
    }

    #[test]
    fn parents_children_and_tests_are_no_siblings() {
        let child =
            [("lib.rs", "mod x;"), ("x.rs", "mod c; use c::C; struct X;"), ("x/c.rs", "use super::X;")];
        assert_eq!(found(&child), [""; 0]);
        let test = [
            ("lib.rs", "mod x; mod y;"),
            ("x.rs", "use crate::y::Y;"),
            ("y.rs", "#[cfg(test)] mod tests; #[cfg(test)] mod t { use crate::x; }"),
            ("y/tests.rs", "use crate::x;"),
        ];
        assert_eq!(found(&test), [""; 0]);
        // Through children of siblings.
        let deep = [
            ("lib.rs", "mod x; mod y;"),
            ("x.rs", "mod c;"),
            ("y.rs", "mod d;"),
            ("x/c.rs", "use crate::y::Y;"),
            ("y/d.rs", "use super::super::x::c::C;"),
        ];
        assert_eq!(found(&deep), [r#"a: {"x", "y"}"#]);
    }

    #[test]
    fn a_finding_names_the_uses_that_close_the_circle() {
        let knot = BTreeSet::from(["x".to_owned(), "y".to_owned()]);
        let use_of = |from: &str, to: &str, place: &str| ((from.to_owned(), to.to_owned()), place.to_owned());
        let uses = [use_of("x", "y", "x.rs:1"), use_of("y", "x", "y.rs:2"), use_of("y", "z", "y.rs:3")];
        let finding = finding("a", &knot, &uses.into());
        assert_eq!(
            finding.message,
            "modules of `a` use each other in a circle: x uses y (x.rs:1), y uses x (y.rs:2)"
        );
    }
}
