//! Which module of a crate uses which other one, by the paths in its source.

use std::collections::{BTreeMap, BTreeSet};

use super::Uses;
use crate::source::SourceCode;
use crate::tree::File;

/// A path of a module below its crate's root.
type Module = Vec<String>;

/// The modules of a crate.
#[derive(Default)]
pub(super) struct Crate {
    modules: BTreeSet<Module>,
    tests: BTreeSet<Module>,
    /// The path that a name has by a `use` in a module.
    names: BTreeMap<(Module, String), Module>,
    /// The using module, the used path, and the place.
    uses: Vec<(Module, Module, String)>,
}

impl Crate {
    /// The crates of the workspace by their names.
    pub(super) fn all<'a>(files: &'a [(&'a File, SourceCode)]) -> BTreeMap<&'a str, Self> {
        let mut crates: BTreeMap<&str, Self> = BTreeMap::new();
        let places: Vec<_> =
            files.iter().filter_map(|(file, source)| Some((place(&file.path)?, file, source))).collect();
        for ((name, module), _, _) in &places {
            crates.entry(name).or_default().modules.insert(module.clone());
        }
        for ((name, module), file, source) in places {
            if let Some(of) = crates.get_mut(name) {
                of.read(&module, file, source);
            }
        }
        crates
    }

    /// For each module with children: which child uses which other child.
    pub(super) fn siblings(&self) -> BTreeMap<Module, Uses> {
        let mut siblings: BTreeMap<Module, Uses> = BTreeMap::new();
        for (from, path, place) in &self.uses {
            let to = self.resolve(path);
            let common = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
            if let (Some(one), Some(other), false) = (from.get(common), to.get(common), self.is_test(from)) {
                let uses = siblings.entry(from[..common].to_vec()).or_default();
                uses.entry((one.clone(), other.clone())).or_insert_with(|| place.clone());
            }
        }
        siblings
    }

    fn is_test(&self, module: &Module) -> bool {
        (0..=module.len()).any(|length| self.tests.contains(&module[..length]))
    }

    /// The module that a path is in, once re-exports are followed.
    fn resolve(&self, path: &Module) -> Module {
        let mut path = path.clone();
        // Re-exports of re-exports end after a few steps.
        for _ in 0..8 {
            let length = self.module_length(&path);
            let Some(name) = path.get(length) else { break };
            let Some(target) = self.names.get(&(path[..length].to_vec(), name.clone())) else { break };
            path = [target, &path[length + 1..]].concat();
        }
        path.truncate(self.module_length(&path));
        path
    }

    /// How many names at the front of a path are modules.
    fn module_length(&self, path: &Module) -> usize {
        (0..=path.len()).rev().find(|&length| self.modules.contains(&path[..length])).unwrap_or(0)
    }

    fn read(&mut self, module: &Module, file: &File, source: &SourceCode) {
        let tests = source.tests();
        let is_test = |at: usize| tests.iter().any(|test| test.contains(&at));
        let mut at = 0;
        while at < source.tokens.len() {
            if is_test(at) {
                if let (true, Some(name)) = (source.is_word(at, "mod"), source.word(at + 1)) {
                    self.tests.insert([&**module, &[name.to_owned()]].concat());
                }
                at += 1;
                continue;
            }
            let is_use = source.is_word(at, "use");
            let start = if is_use { at + 1 } else { at };
            let mut leaves = Vec::new();
            let first = source.word(start).unwrap_or_default();
            let starts = matches!(first, "crate" | "self" | "super") && source.is_path_separator(start + 1);
            let of_child = is_use && self.modules.contains(&[&**module, &[first.to_owned()]].concat());
            // The middle of a path is not a path by itself.
            let inside = start >= 2 && source.is_path_separator(start - 2);
            if (starts || of_child) && !inside {
                let base = if of_child { module.clone() } else { Module::new() };
                at = leaves_of(source, start, &base, module, &mut leaves).max(start + 1);
            } else {
                at = start + usize::from(!is_use);
            }
            for Leaf { path, name, line } in leaves {
                if is_use {
                    self.names.insert((module.clone(), name), path.clone());
                }
                self.uses.push((module.clone(), path, format!("{}:{line}", file.path)));
            }
        }
    }
}

/// One of the paths that `a::{b, c as d}` names.
struct Leaf {
    path: Module,
    name: String,
    line: usize,
}

/// Reads the path at `start`, with the paths in its braces, and returns the index after it.
fn leaves_of(
    source: &SourceCode,
    start: usize,
    base: &Module,
    module: &Module,
    leaves: &mut Vec<Leaf>,
) -> usize {
    let mut path = base.clone();
    let mut at = start;
    loop {
        let line = source.tokens.get(at).map_or(0, |token| token.line);
        if let Some(close) = source.brackets(at, '{') {
            let mut inside = at + 1;
            while inside < close {
                inside = leaves_of(source, inside, &path, module, leaves).max(inside + 1);
            }
            return close + 1;
        }
        match source.word(at) {
            Some("crate") => path = Module::new(),
            Some("self") if at == start && base.is_empty() => path = module.clone(),
            Some("self") => {}
            Some("super") if path.is_empty() && at == start => path = parent(module),
            Some("super") => drop(path.pop()),
            Some(name) => path.push(name.to_owned()),
            // A star, or no path at all.
            None => {
                leaves.push(Leaf { name: "*".to_owned(), path, line });
                return at + 1;
            }
        }
        if source.is_path_separator(at + 1) {
            at += 3;
            continue;
        }
        let renamed = source.is_word(at + 1, "as").then(|| source.word(at + 2)).flatten();
        let name = renamed.or(path.last().map(String::as_str)).unwrap_or_default().to_owned();
        leaves.push(Leaf { path, name, line });
        return at + if renamed.is_some() { 3 } else { 1 };
    }
}

fn parent(module: &Module) -> Module {
    module[..module.len().saturating_sub(1)].to_vec()
}

/// The crate and the module of a file: `crates/a/src/b/c.rs` is `b::c` of `a`. A program beside a library is a crate of
/// its own, of one file.
fn place(path: &str) -> Option<(&str, Module)> {
    let (name, path) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let path = path.strip_suffix(".rs")?;
    let mut module: Module = path.split('/').map(str::to_owned).collect();
    if module[0] == "bin" {
        return None;
    }
    if matches!(module.last().map(String::as_str), Some("lib" | "main" | "mod")) {
        module.pop();
    }
    Some((name, module))
}
