//! The rule against circles: sibling modules may not use each other in a circle, directly or through others. So a
//! reader can understand each module from the modules that it uses.
//!
//! Test modules may use any module. A re-exported name counts as the module that defines it.

mod known;
mod paths;

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::source::SourceCode;
use crate::tree::File;
use paths::Crate;

/// Modules of one parent that use each other in a circle, by the parent: `informer-core::store`.
type Knots = Vec<(String, BTreeSet<String>)>;

/// The place where a module uses a sibling, by both names.
type Uses = BTreeMap<(String, String), String>;

const LIST: &str = "crates/xtask/src/tidy/circles/known.rs";

pub(super) fn check(files: &[(&File, SourceCode)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = Knots::new();
    for (name, modules) in Crate::all(files) {
        for (parent, uses) in modules.siblings() {
            let parent = [&[name.to_owned()], &*parent].concat().join("::");
            for knot in knots(&uses) {
                findings.extend(unknown(&parent, &knot, &uses, known::KNOTS));
                found.push((parent.clone(), knot));
            }
        }
    }
    findings.extend(untied(&found, known::KNOTS));
    findings
}

/// Findings for modules that are in a circle and not listed, with the uses that close the circle.
fn unknown(parent: &str, knot: &BTreeSet<String>, uses: &Uses, known: &[(&str, &[&str])]) -> Vec<Finding> {
    let listed =
        |module: &String| known.iter().any(|(of, knot)| *of == parent && knot.contains(&module.as_str()));
    let new = |module: &&String| !listed(module);
    let message = |module: &String| {
        let inside = |((from, to), place): (&(String, String), &String)| {
            let ours = (from == module || to == module) && knot.contains(from) && knot.contains(to);
            ours.then(|| format!("{from} uses {to} ({place})"))
        };
        let uses: Vec<_> = uses.iter().filter_map(inside).collect();
        format!("`{parent}::{module}` is in a circle: {}", uses.join(", "))
    };
    knot.iter().filter(new).map(|module| Finding::refused(LIST, 0, message(module))).collect()
}

/// Findings for listed modules that are in no circle any more.
fn untied(found: &Knots, known: &[(&str, &[&str])]) -> Vec<Finding> {
    let is_found =
        |parent: &str, module: &str| found.iter().any(|(of, knot)| of == parent && knot.contains(module));
    let listed = known.iter().flat_map(|&(parent, knot)| knot.iter().map(move |&module| (parent, module)));
    listed
        .filter(|(parent, module)| !is_found(parent, module))
        .map(|(parent, module)| {
            Finding::refused(
                LIST,
                0,
                format!("`{parent}::{module}` is in no circle any more: take it off the list"),
            )
        })
        .collect()
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
    fn the_list_only_shrinks() {
        let knot = BTreeSet::from(["x".to_owned(), "y".to_owned()]);
        let uses = Uses::from([(("x".to_owned(), "y".to_owned()), "x.rs:1".to_owned())]);
        let known: &[(&str, &[&str])] = &[("a", &["x"])];
        let new = unknown("a", &knot, &uses, known);
        assert_eq!(new.len(), 1);
        assert_eq!(new[0].message, "`a::y` is in a circle: x uses y (x.rs:1)");
        let found = vec![("a".to_owned(), knot)];
        assert_eq!(untied(&found, known), []);
        assert_eq!(untied(&found, &[("a", &["x", "z"])]).len(), 1);
    }
}
