//! The result of a query on a snapshot.

use std::slice;
use std::sync::Arc;
use std::vec;

use super::posting::{Posting, PostingIter};
use super::state::Slots;
use crate::{Object, Selector};

/// Objects of a snapshot, in no particular order.
pub struct Objects<'a> {
    slots: &'a Slots,
    from: From<'a>,
    without: Without,
}

enum From<'a> {
    All { leaf: slice::Iter<'a, Option<Arc<Object>>>, next_leaf: u32 },
    Slots(PostingIter),
    Listed(vec::IntoIter<&'a Arc<Object>>),
}

/// The slots that a query leaves out.
pub(super) enum Without {
    Nothing,
    Slots(Posting),
    Mismatches(Selector),
}

impl<'a> Objects<'a> {
    pub(super) fn all(slots: &'a Slots) -> Self {
        Self { slots, from: From::All { leaf: [].iter(), next_leaf: 0 }, without: Without::Nothing }
    }

    pub(super) fn of(slots: &'a Slots, posting: Posting) -> Self {
        Self { slots, from: From::Slots(posting.iter()), without: Without::Nothing }
    }

    pub(super) fn listed(slots: &'a Slots, objects: Vec<&'a Arc<Object>>) -> Self {
        Self { slots, from: From::Listed(objects.into_iter()), without: Without::Nothing }
    }

    pub(super) fn but(self, without: Without) -> Self {
        Self { without, ..self }
    }
}

impl<'a> Iterator for Objects<'a> {
    type Item = &'a Arc<Object>;

    fn next(&mut self) -> Option<&'a Arc<Object>> {
        loop {
            let (slot, object) = match &mut self.from {
                From::All { leaf, next_leaf } => match leaf.next() {
                    Some(None) => continue,
                    Some(Some(object)) => {
                        // The iterator has passed the object, in the leaf before `next_leaf`.
                        (*next_leaf - 1 - u32::try_from(leaf.len()).unwrap_or_default(), object)
                    }
                    None => {
                        *leaf = self.slots.leaf(*next_leaf)?.iter();
                        *next_leaf += u32::try_from(leaf.len()).unwrap_or_default();
                        continue;
                    }
                },
                From::Slots(slots) => {
                    let slot = slots.next()?;
                    match self.slots.get(slot) {
                        Some(Some(object)) => (slot, object),
                        _ => continue,
                    }
                }
                From::Listed(objects) => return objects.next(),
            };
            let is_left_out = match &self.without {
                Without::Nothing => false,
                Without::Slots(slots) => slots.contains(slot),
                Without::Mismatches(selector) => !selector.matches(object.labels()),
            };
            if !is_left_out {
                return Some(object);
            }
        }
    }
}

impl std::fmt::Debug for Objects<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Objects")
    }
}
