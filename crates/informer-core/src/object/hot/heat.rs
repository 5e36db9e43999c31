//! The hot parts of one object.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Retention, Shelf};
use crate::memory::{COUNTS, allocated};
use crate::sync::Vacant;

/// The place in an object for its hot parts. A look takes no lock. A change is made under the lock of the set's ring, or
/// while no other thread can reach the object: before it is in a cache, and when it is dropped.
pub(in super::super) struct Heat(Vacant<Hot>);

/// Immutable except for the mark: to change a value means to exchange the whole `Hot`.
// The order of the fields in memory: a look reads those that come first.
#[repr(C)]
pub(in super::super) struct Hot {
    /// Stored inline, because nearly all objects are decoded into one type only.
    first: Option<Value>,
    /// Whether it was used since the hand passed.
    mark: AtomicBool,
    /// The values are kept always, so a look at them says nothing about the use of the bytes.
    ignores_looks: bool,
    /// Whether the weight counts towards the set's bound: not before the object is in the ring, where it can be evicted.
    counts: AtomicBool,
    others: Box<[Value]>,
    weight: usize,
    shelf: Arc<Shelf>,
    /// The bytes as received, until they are stored at rest; and by how much they exceed what the object takes at rest.
    bytes: Option<(Arc<[u8]>, usize)>,
}

#[derive(Clone)]
pub(super) struct Value {
    type_id: TypeId,
    value: Arc<dyn Any + Send + Sync>,
    weight: usize,
}

impl Heat {
    /// An empty place, for a version whose bytes are stored on arrival.
    pub(in super::super) fn vacant() -> Self {
        Self(Vacant::new(None))
    }

    /// The place of a version that is hot on arrival, and that will take `resting` bytes at rest.
    pub(in super::super) fn arrived(shelf: &Arc<Shelf>, bytes: Arc<[u8]>, resting: usize) -> Self {
        let more = allocated(COUNTS + bytes.len()).saturating_sub(resting);
        let hot = Hot::of(shelf.clone(), Some((bytes, more)), None, [].into());
        shelf.charge(hot.weight);
        Self(Vacant::new(Some(Arc::new(hot))))
    }

    #[inline]
    pub(in super::super) fn value<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.0.with(|hot| hot?.value())
    }

    pub(in super::super) fn bytes(&self) -> Option<Arc<[u8]>> {
        self.0.with(|hot| hot?.bytes.as_ref().map(|(bytes, _)| bytes.clone()))
    }

    pub(in super::super) fn length(&self) -> Option<usize> {
        self.0.with(|hot| hot?.bytes.as_ref().map(|(bytes, _)| bytes.len()))
    }

    /// The cache of the object, if something of it is hot.
    pub(in super::super) fn shelf(&self) -> Option<Arc<Shelf>> {
        self.0.with(|hot| Some(hot?.shelf.clone()))
    }

    pub(in super::super) fn is_taken(&self) -> bool {
        self.0.with(|hot| hot.is_some())
    }

    /// The bytes that count towards the set's bound.
    pub(super) fn charged(&self) -> usize {
        let counts = |hot: &&Hot| hot.counts.load(Ordering::Relaxed);
        self.0.with(|hot| hot.filter(counts).map_or(0, |hot| hot.weight))
    }

    /// Clears the mark of a version that no reader can have used yet.
    pub(super) fn unmark(&self) {
        self.take_mark();
    }

    /// Makes the weight count towards the bound: the object is in the ring.
    pub(super) fn join(&self) {
        self.0.with(|hot| {
            if let Some(hot) = hot {
                hot.count();
            }
        });
    }

    /// Whether it has a value that may be evicted.
    pub(super) fn has_evictable_values(&self) -> bool {
        let may = |hot: &Hot| hot.first.is_some() && hot.shelf.retention == Retention::WhileHot;
        self.0.with(|hot| hot.is_some_and(may))
    }

    pub(super) fn take_mark(&self) -> bool {
        self.0.with(|hot| hot.is_some_and(|hot| hot.mark.swap(false, Ordering::Relaxed)))
    }

    pub(super) fn get(&self) -> Option<Arc<Hot>> {
        self.0.get()
    }

    /// Returns the former parts, which the caller drops without a lock.
    pub(super) fn exchange(&self, next: Option<Arc<Hot>>) -> Option<Arc<Hot>> {
        // A first `Hot` belongs to an object that has just joined the ring; a later one counts if the one that it replaces
        // did.
        let counted = self.0.with(|former| former.is_none_or(|former| former.counts.load(Ordering::Relaxed)));
        if let Some(next) = &next {
            next.shelf.charge(next.weight);
            if counted {
                next.count();
            }
        }
        let former = self.0.exchange(next);
        if let Some(former) = &former {
            former.shelf.release(former.weight);
            if former.counts.load(Ordering::Relaxed) {
                former.shelf.release_set(former.weight);
            }
        }
        former
    }
}

impl Drop for Heat {
    fn drop(&mut self) {
        drop(self.exchange(None));
    }
}

impl Hot {
    /// The bytes of an entry besides its bytes and values.
    pub(super) const WEIGHT: usize = allocated(COUNTS + size_of::<Self>());

    pub(super) fn new(shelf: Arc<Shelf>, value: Value) -> Arc<Self> {
        Arc::new(Self::of(shelf, None, Some(value), [].into()))
    }

    fn of(
        shelf: Arc<Shelf>,
        bytes: Option<(Arc<[u8]>, usize)>,
        first: Option<Value>,
        others: Box<[Value]>,
    ) -> Self {
        let of_values = first.iter().chain(&others).map(|value| value.weight).sum::<usize>();
        let more = bytes.as_ref().map_or(0, |(_, more)| *more) + allocated(size_of_val(&*others));
        // A new entry begins as used: its creator uses it.
        let (mark, ignores_looks) = (AtomicBool::new(true), shelf.retention == Retention::Always);
        let weight = Self::WEIGHT + more + of_values;
        let counts = AtomicBool::new(false);
        Self { shelf, bytes, first, others, weight, counts, mark, ignores_looks }
    }

    /// A copy with one value more.
    pub(super) fn with(&self, value: Value) -> Arc<Self> {
        let (shelf, bytes) = (self.shelf.clone(), self.bytes.clone());
        Arc::new(match &self.first {
            None => Self::of(shelf, bytes, Some(value), [].into()),
            Some(first) => {
                let others = self.others.iter().cloned().chain([value]).collect();
                Self::of(shelf, bytes, Some(first.clone()), others)
            }
        })
    }

    /// A copy without the bytes, which are at rest now; `None` if nothing would be left.
    pub(super) fn without_bytes(&self) -> Option<Arc<Self>> {
        let first = self.first.clone()?;
        Some(Arc::new(Self::of(self.shelf.clone(), None, Some(first), self.others.clone())))
    }

    /// A copy without values; `None` if nothing would be left. It is not marked, because nothing has used it.
    pub(super) fn without_values(&self) -> Option<Arc<Self>> {
        let bytes = self.bytes.clone()?;
        let hot = Self::of(self.shelf.clone(), Some(bytes), None, [].into());
        hot.mark.store(false, Ordering::Relaxed);
        Some(Arc::new(hot))
    }

    fn count(&self) {
        let is_bounded = self.shelf.retention == Retention::WhileHot;
        if is_bounded && !self.counts.swap(true, Ordering::Relaxed) {
            self.shelf.charge_set(self.weight);
        }
    }

    pub(super) fn is_marked(&self) -> bool {
        self.mark.load(Ordering::Relaxed)
    }

    pub(super) fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    pub(super) fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_ref().map(|(bytes, _)| &**bytes)
    }

    /// Returns the value as a `T`, and marks it as used.
    #[inline]
    pub(super) fn value<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let is_it = |value: &&Value| value.type_id == TypeId::of::<T>();
        let value = self.first.iter().chain(&self.others).find(is_it)?;
        // The mark is read before it is written: a store at each hit would take the cache line from other processors.
        if !self.mark.load(Ordering::Relaxed) && !self.ignores_looks {
            self.mark.store(true, Ordering::Relaxed);
        }
        Arc::downcast(value.value.clone()).ok()
    }
}

impl Value {
    pub(super) fn new<T: Send + Sync + 'static>(value: Arc<T>, weight: usize) -> Self {
        Self { type_id: TypeId::of::<T>(), value, weight }
    }
}
