//! JSON Patch ([RFC 6902](https://www.rfc-editor.org/rfc/rfc6902)): the difference for programs.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

use crate::model::diff::align::align;
use crate::model::diff::sequence::MOST;
use crate::model::lists::Lists;

/// The most operations for the elements of one list. Each of them costs as much as the list is long.
const MOST_OPS: usize = 1_000;

/// One operation of a JSON Patch. Paths are JSON Pointers (RFC 6901).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOp {
    /// Puts a value into a map or a list.
    Add {
        /// Where.
        path: String,
        /// The value.
        value: Value,
    },
    /// Takes a value out.
    Remove {
        /// Which.
        path: String,
    },
    /// Puts another value in a value's place.
    Replace {
        /// Which.
        path: String,
        /// The value.
        value: Value,
    },
    /// Puts an element of a list at another place of it.
    Move {
        /// Where it is.
        from: String,
        /// Where it will be, once it was taken out.
        path: String,
    },
}

/// The patch that makes `new` of `old`: exactly, whatever the two are.
///
/// Serialised as a list it is a JSON Patch. Elements of lists are found again as in [`diff`](crate::diff()).
pub fn patch(old: &Value, new: &Value) -> Vec<PatchOp> {
    let mut walk = Walk { pointer: String::new(), ops: Vec::new() };
    walk.value(Lists::of_object(new, None), None, old, new);
    walk.ops
}

struct Walk {
    pointer: String,
    ops: Vec<PatchOp>,
}

impl Walk {
    fn value(&mut self, lists: Lists<'_>, field: Option<&str>, old: &Value, new: &Value) {
        match (old, new) {
            _ if old == new => {}
            (Value::Object(old), Value::Object(new)) => {
                let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
                for name in names {
                    let path = self.child(&escape(name));
                    match (old.get(name), new.get(name)) {
                        (Some(old), Some(new)) => {
                            self.within(path, |walk| walk.value(lists.field(name), Some(name), old, new));
                        }
                        (Some(_), None) => self.ops.push(PatchOp::Remove { path }),
                        (None, Some(new)) => self.ops.push(PatchOp::Add { path, value: new.clone() }),
                        (None, None) => {}
                    }
                }
            }
            (Value::Array(before), Value::Array(now)) => {
                let pairs = align(field, lists, before, now, &mut MOST.clone()).pairs;
                let is_reordered = !pairs.is_sorted_by_key(|(old, _)| old);
                let moved = if is_reordered { pairs.len() } else { 0 };
                if before.len() + now.len() - 2 * pairs.len() + moved > MOST_OPS {
                    return self
                        .ops
                        .push(PatchOp::Replace { path: self.pointer.clone(), value: new.clone() });
                }
                self.list(lists, field, &pairs, [before, now]);
            }
            _ => self.ops.push(PatchOp::Replace { path: self.pointer.clone(), value: new.clone() }),
        }
    }

    /// Removes deleted elements, orders those that stay, inserts new ones; then each element is in its final place, and
    /// can be changed there.
    fn list(
        &mut self,
        lists: Lists<'_>,
        field: Option<&str>,
        pairs: &[(usize, usize)],
        [old, new]: [&[Value]; 2],
    ) {
        let kept: BTreeSet<usize> = pairs.iter().map(|(old, _)| *old).collect();
        for gone in (0..old.len()).rev().filter(|at| !kept.contains(at)) {
            self.ops.push(PatchOp::Remove { path: self.child(&gone.to_string()) });
        }
        self.reorder(pairs, kept.into_iter().collect());
        let mut staying = pairs.iter().peekable();
        for (at, value) in new.iter().enumerate() {
            if staying.next_if(|(_, new)| *new == at).is_none() {
                self.ops.push(PatchOp::Add { path: self.child(&at.to_string()), value: value.clone() });
            }
        }
        for &(before, at) in pairs {
            if let (Some(old), Some(new)) = (old.get(before), new.get(at)) {
                let path = self.child(&at.to_string());
                self.within(path, |walk| walk.value(lists.element(), field, old, new));
            }
        }
    }

    /// Moves the elements of `list`, which has the old order, into the order of `pairs`. The elements of the longest
    /// run that is in order already stay in their places.
    fn reorder(&mut self, pairs: &[(usize, usize)], mut list: Vec<usize>) {
        let wanted: Vec<usize> = pairs.iter().map(|(old, _)| *old).collect();
        let still = longest_increasing(&wanted);
        let mut previous = None;
        for &element in &wanted {
            if !still.contains(&element)
                && let Some(from) = list.iter().position(|it| *it == element)
            {
                list.remove(from);
                let to = previous.and_then(|previous| list.iter().position(|it| *it == previous));
                let to = to.map_or(0, |before| before + 1);
                list.insert(to, element);
                if from != to {
                    let (from, path) = (self.child(&from.to_string()), self.child(&to.to_string()));
                    self.ops.push(PatchOp::Move { from, path });
                }
            }
            previous = Some(element);
        }
    }

    fn child(&self, token: &str) -> String {
        format!("{}/{token}", self.pointer)
    }

    fn within(&mut self, pointer: String, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.pointer, pointer);
        visit(self);
        self.pointer = outer;
    }
}

/// The elements of a longest subsequence of distinct numbers that increases (patience sorting).
fn longest_increasing(numbers: &[usize]) -> BTreeSet<usize> {
    // Per length, the place of the smallest number that ends such a subsequence; and each number's predecessor's place.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(numbers.len());
    for (at, &number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|(end, _)| *end < number);
        before.push(length.checked_sub(1).and_then(|shorter| ends.get(shorter)).map(|(_, place)| *place));
        match ends.get_mut(length) {
            Some(end) => *end = (number, at),
            None => ends.push((number, at)),
        }
    }
    let mut longest = BTreeSet::new();
    let mut place = ends.last().map(|(_, place)| *place);
    while let Some(at) = place {
        longest.extend(numbers.get(at));
        place = before.get(at).copied().flatten();
    }
    longest
}

fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}
