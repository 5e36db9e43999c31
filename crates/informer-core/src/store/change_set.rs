//! The changes of one step of the store, made one by one from the slots before and after it.
//!
//! As values the changes of a list of 200,000 objects would take 32 bytes each until subscribers have them. The numbers of their
//! slots take four (contract L9).

use std::collections::HashMap;
use std::sync::Arc;
use std::vec;

use super::replace::BitsIter;
use super::state::Slots;
use crate::{Change, Delta, Object, Origin};

/// The changes of one step, in order. Each is made when it is taken.
///
/// It holds the states before and after the step. The old state of an object is let go with its change.
pub struct ChangeSet(Kind);

enum Kind {
    One(Option<Change>),
    Many(Box<Step>),
}

/// A step that changed many slots: first deletions, then additions and updates.
pub(super) struct Step {
    pub(super) origin: Origin,
    pub(super) before: Slots,
    pub(super) after: Slots,
    /// The slots of deleted objects.
    pub(super) gone: BitsIter,
    /// By slot: the last states of deleted objects, where an event brought one.
    pub(super) last_states: HashMap<u32, Arc<Object>>,
    /// The slots of added and updated objects. A slot that a deletion vacated may be among them.
    pub(super) written: vec::IntoIter<u32>,
}

impl ChangeSet {
    pub(super) fn of(step: Step) -> Self {
        Self(Kind::Many(Box::new(step)))
    }

    /// Whether no change is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// No change.
impl Default for ChangeSet {
    fn default() -> Self {
        Self(Kind::One(None))
    }
}

impl From<Option<Change>> for ChangeSet {
    fn from(change: Option<Change>) -> Self {
        Self(Kind::One(change))
    }
}

impl Iterator for ChangeSet {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        match &mut self.0 {
            Kind::One(change) => change.take(),
            Kind::Many(step) => step.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = match &self.0 {
            Kind::One(change) => usize::from(change.is_some()),
            Kind::Many(step) => step.gone.len() + step.written.len(),
        };
        (len, Some(len))
    }
}

impl ExactSizeIterator for ChangeSet {}

impl Step {
    fn next(&mut self) -> Option<Change> {
        let delta = match self.gone.next() {
            Some(slot) => {
                let old = self.take_before(slot)?;
                let last = self.last_states.get(&slot).map_or(&old, |last| last_known(&old, last)).clone();
                Delta::Deleted { old, last }
            }
            None => {
                let slot = self.written.next()?;
                let new = self.after.get(slot)?.clone()?;
                match self.take_before(slot) {
                    Some(old) => Delta::Updated { old, new },
                    None => Delta::Added(new),
                }
            }
        };
        Some(Change { delta, origin: self.origin })
    }

    /// Takes the object out of its slot. So the last change of a large step does not free the objects of all others, and a
    /// slot that was vacated is empty for the object that has it now.
    fn take_before(&mut self, slot: u32) -> Option<Arc<Object>> {
        self.before.get_mut(slot)?.take()
    }
}

/// The last state of the cached object. If `last` belongs to another incarnation, which came and went unseen, that is the
/// cached state.
pub(super) fn last_known<'a>(known: &'a Arc<Object>, last: &'a Arc<Object>) -> &'a Arc<Object> {
    if last.uid() == known.uid() { last } else { known }
}

impl std::fmt::Debug for ChangeSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChangeSet({} changes)", self.len())
    }
}
