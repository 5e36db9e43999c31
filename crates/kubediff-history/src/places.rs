//! The places at which records show differences.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::filter::element;
use crate::record::{ChangeRecord, Verb};

/// The places at which records show that an object differs. Two of its states may differ elsewhere, too: in noise, and where
/// something is hidden in one of them only.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Of an object that was created all is new.
    pub(crate) everywhere: bool,
    paths: BTreeMap<String, ()>,
}

impl Places {
    /// Adds those of a record.
    pub fn add(&mut self, record: &ChangeRecord) {
        self.everywhere |= matches!(record.verb, Verb::Added | Verb::Recreated);
        self.paths.extend(record.paths.iter().map(|path| (path.clone(), ())));
    }

    /// Whether one of them is `path`, above it or below it.
    pub fn has(&self, path: &str) -> bool {
        let mut above = above(path);
        self.everywhere
            || above.any(|it| self.paths.contains_key(it))
            || within(&self.paths, path).next().is_some()
    }

    /// The elements of a list that they are in. A text in quotes may be the name of a field.
    pub(crate) fn elements<'p>(&'p self, list: &'p str) -> impl Iterator<Item = &'p str> {
        within(&self.paths, list).filter_map(move |(path, ())| {
            let inside = path.strip_prefix(list).filter(|inside| !inside.starts_with("[\""))?;
            path.strip_suffix(element(inside)?)
        })
    }
}

/// The places that `path` is in, the outermost first.
pub(crate) fn above(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.match_indices(['.', '[', '#']).filter_map(|(at, _)| path.get(..at))
}

/// The part at `place`, with all below it.
pub(crate) fn within<'m, T>(
    all: &'m BTreeMap<String, T>,
    place: &'m str,
) -> impl Iterator<Item = (&'m str, &'m T)> {
    let next = all.range::<str, _>((Bound::Included(place), Bound::Unbounded));
    let next =
        next.map(|(path, it)| (path.as_str(), it)).take_while(move |(path, _)| path.starts_with(place));
    next.filter(move |(path, _)| *path == place || is_below(path, place))
}

/// Whether `path` is in `place`.
pub(crate) fn is_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.starts_with(['.', '[', '#']))
}
