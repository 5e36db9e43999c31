//! Which element of the new list was which of the old one.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use similar::DiffOp;

use super::sequence;
use crate::model::lists::Lists;
use crate::model::path::keys::{Identity, Keyed, identify};

/// Two lists laid side by side.
pub(crate) struct Alignment {
    /// Places in the old and the new list that hold the same element, or the one that came in its place. Ascending by
    /// the new place; no place occurs twice.
    pub(crate) pairs: Vec<(usize, usize)>,
    pub(crate) identity: Identity,
}

/// Lays `old` and `new` side by side, two states of the list in `field`.
///
/// `left` elements, [`MOST`] for an object, are compared one by one where nothing but their order tells them apart.
pub(crate) fn align(
    field: Option<&str>,
    lists: Lists<'_>,
    old: &[Value],
    new: &[Value],
    left: &mut usize,
) -> Alignment {
    let identity = identify(field, lists, old, new);
    let pairs = match &identity {
        Identity::Keyed(keyed) => by_key(field, keyed, old, new),
        Identity::Set => by_content(old, new),
        Identity::Sequence => {
            let pairs = by_content(old, new);
            let is_shuffled = old.len() == new.len() && pairs.len() == old.len();
            if is_shuffled { pairs } else { by_sequence(old, new, left) }
        }
    };
    Alignment { pairs, identity }
}

impl Alignment {
    /// Whether elements that both lists have changed places.
    pub(crate) fn is_reordered(&self) -> bool {
        !self.pairs.is_sorted_by_key(|(old, _)| old)
    }
}

fn by_key(field: Option<&str>, keyed: &Keyed, old: &[Value], new: &[Value]) -> Vec<(usize, usize)> {
    let places: HashMap<&str, usize> =
        keyed.old.iter().enumerate().map(|(at, key)| (key.as_str(), at)).collect();
    let mut partner: Vec<Option<usize>> =
        keyed.new.iter().map(|key| places.get(key.as_str()).copied()).collect();

    // A port that got another number is still the port of that name.
    if field != Some("ports") {
        return partner.into_iter().enumerate().filter_map(|(new, old)| Some((old?, new))).collect();
    }
    let found: HashSet<usize> = partner.iter().flatten().copied().collect();
    let lost = old.iter().enumerate().filter(|(at, _)| !found.contains(at));
    let mut named: HashMap<&str, usize> =
        lost.filter_map(|(at, element)| Some((name(element)?, at))).collect();
    for (element, partner) in new.iter().zip(&mut partner) {
        if partner.is_none() {
            *partner = name(element).and_then(|name| named.remove(name));
        }
    }
    partner.into_iter().enumerate().filter_map(|(new, old)| Some((old?, new))).collect()
}

fn name(element: &Value) -> Option<&str> {
    element.get("name").and_then(Value::as_str)
}

fn by_content(old: &[Value], new: &[Value]) -> Vec<(usize, usize)> {
    let mut places: HashMap<&Value, Vec<usize>> = HashMap::new();
    for (at, element) in old.iter().enumerate().rev() {
        places.entry(element).or_default().push(at);
    }
    new.iter().enumerate().filter_map(|(at, element)| Some((places.get_mut(element)?.pop()?, at))).collect()
}

/// Equal elements by common subsequence; elements in between are paired from the first on.
fn by_sequence(old: &[Value], new: &[Value], left: &mut usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for op in sequence::steps(old, new, left) {
        let (old_index, new_index, len) = match op {
            DiffOp::Equal { old_index, new_index, len } => (old_index, new_index, len),
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                (old_index, new_index, old_len.min(new_len))
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } => continue,
        };
        pairs.extend((old_index..).zip(new_index..).take(len));
    }
    pairs
}
