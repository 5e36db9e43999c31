//! The objects of which something is hot, in the order in which the hand comes to them.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use crate::Object;

/// A CLOCK: an object that was used since the hand passed it is passed once more.
#[derive(Default)]
pub(super) struct Ring(VecDeque<Weak<Object>>);

/// What the hand found. The object is out of the ring.
pub(super) enum Passed {
    /// It was used since; it is not marked any more.
    Marked(Arc<Object>),
    Unmarked(Arc<Object>),
    /// Nothing of it is hot any more.
    Cold(Arc<Object>),
    /// Nobody has it any more.
    Gone,
}

impl Ring {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// At the place to which the hand comes last.
    pub(super) fn push(&mut self, object: &Arc<Object>) {
        self.0.push_back(Arc::downgrade(object));
    }

    /// Moves the hand by one.
    pub(super) fn pass(&mut self) -> Passed {
        if self.0.capacity() > 4 * self.0.len().max(64) {
            let enough = 2 * self.0.len();
            self.0.shrink_to(enough);
        }
        match self.0.pop_front().and_then(|object| object.upgrade()) {
            None => Passed::Gone,
            Some(object) if !object.heat.is_taken() => Passed::Cold(object),
            Some(object) if object.heat.take_mark() => Passed::Marked(object),
            Some(object) => Passed::Unmarked(object),
        }
    }

    /// The same for who can only drop values: an object that has none, or keeps them always, is passed as if it were marked,
    /// and stays as it is.
    pub(super) fn pass_values(&mut self) -> Passed {
        match self.0.pop_front().and_then(|object| object.upgrade()) {
            None => Passed::Gone,
            Some(object) if !object.heat.is_taken() => Passed::Cold(object),
            Some(object) if !object.heat.has_evictable_values() => Passed::Marked(object),
            Some(object) if object.heat.take_mark() => Passed::Marked(object),
            Some(object) => Passed::Unmarked(object),
        }
    }

    /// Takes out what is gone at the hand, twice as fast as objects come.
    pub(super) fn drop_gone(&mut self) {
        for _ in 0..2 {
            if self.0.front().is_some_and(|object| object.strong_count() == 0) {
                self.0.pop_front();
            }
        }
    }
}
