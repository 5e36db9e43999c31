//! The objects with something hot, in the order in which the clock hand visits them.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use crate::Object;

/// A CLOCK: the hand passes an object that was used since its last visit, and the object stays for one more turn.
#[derive(Default)]
pub(super) struct Ring(VecDeque<Weak<Object>>);

/// The object that the hand visited. It is no longer in the ring.
pub(super) enum Passed {
    /// It was used since the last visit; its mark is cleared now.
    Marked(Arc<Object>),
    Unmarked(Arc<Object>),
    /// No part of it is hot any more.
    Cold(Arc<Object>),
    /// The object no longer exists.
    Gone,
}

impl Ring {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds an object at the place that the hand visits last.
    pub(super) fn push(&mut self, object: &Arc<Object>) {
        self.0.push_back(Arc::downgrade(object));
    }

    /// Moves the hand by one object.
    pub(super) fn pass(&mut self) -> Passed {
        // A burst must not leave its capacity behind.
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

    /// Like [`pass`](Self::pass), for callers that may only drop values. An object without values, or one that keeps them
    /// always, is returned as if it were marked, and stays as it is.
    pub(super) fn pass_values(&mut self) -> Passed {
        match self.0.pop_front().and_then(|object| object.upgrade()) {
            None => Passed::Gone,
            Some(object) if !object.heat.is_taken() => Passed::Cold(object),
            Some(object) if !object.heat.has_evictable_values() => Passed::Marked(object),
            Some(object) if object.heat.take_mark() => Passed::Marked(object),
            Some(object) => Passed::Unmarked(object),
        }
    }

    /// Removes objects that no longer exist at the hand: up to two for each object that joins.
    pub(super) fn drop_gone(&mut self) {
        for _ in 0..2 {
            if self.0.front().is_some_and(|object| object.strong_count() == 0) {
                self.0.pop_front();
            }
        }
    }
}
