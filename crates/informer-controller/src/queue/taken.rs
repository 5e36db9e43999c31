//! An item in process.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use informer_core::queue;

use super::inner::Inner;

/// An item that a worker has got from a [`WorkQueue`](super::WorkQueue). It derefs to the item.
///
/// Dropping it ends the processing, also in a panic: it is client-go's `Done`. If the item was added again meanwhile, it waits
/// again from then on. While a worker has this, no other worker gets the item.
#[must_use = "dropping it ends the processing of the item"]
pub struct Taken<K: Clone + Eq + Hash> {
    inner: Arc<Inner<K>>,
    taken: queue::Taken<K>,
}

impl<K: Clone + Eq + Hash> Taken<K> {
    pub(super) fn new(inner: Arc<Inner<K>>, taken: queue::Taken<K>) -> Self {
        Self { inner, taken }
    }

    /// The highest priority of the adds since the item was last taken.
    pub fn priority(&self) -> i32 {
        self.taken.priority
    }

    /// The marks of these adds ([`Add::marks`](queue::Add::marks)).
    pub fn marks(&self) -> u32 {
        self.taken.marks
    }
}

impl<K: Clone + Eq + Hash> Deref for Taken<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.taken.key
    }
}

impl<K: Clone + Eq + Hash> Drop for Taken<K> {
    fn drop(&mut self) {
        self.inner.done(&self.taken.key);
    }
}

impl<K: Clone + Eq + Hash + fmt::Debug> fmt::Debug for Taken<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Taken").field(&self.taken.key).finish()
    }
}
