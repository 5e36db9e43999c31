//! What is hot of one object.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Retention, Shelf};
use crate::memory::{COUNTS, allocated};
use crate::sync::Vacant;

/// An object's place for what is hot of it. A look takes no lock. Every change is made under the lock of the set's ring, or
/// where nobody else has the object: before it is in a cache, and when it is dropped.
pub(in super::super) struct Heat(Vacant<Hot>);

/// Does not change, but for the mark: another value is another `Hot`.
// In this order in memory: a look touches what comes first.
#[repr(C)]
pub(in super::super) struct Hot {
    /// In a place of its own, because nearly all objects are decoded into one type.
    first: Option<Value>,
    /// Somebody used it since the hand passed.
    mark: AtomicBool,
    /// Values are kept always: a look at them says nothing of the bytes.
    ignores_looks: bool,
    /// It counts towards the set's bound: not before its object is in the ring, where it can be evicted.
    counts: AtomicBool,
    others: Box<[Value]>,
    weight: usize,
    shelf: Arc<Shelf>,
    /// The bytes as they came, until they are stored at rest; and what of them the object does not take at rest.
    bytes: Option<(Arc<[u8]>, usize)>,
}

#[derive(Clone)]
pub(super) struct Value {
    type_id: TypeId,
    value: Arc<dyn Any + Send + Sync>,
    weight: usize,
}

impl Heat {
    /// For a version that rests on arrival.
    pub(in super::super) fn vacant() -> Self {
        Self(Vacant::new(None))
    }

    /// For a version that is hot on arrival, and that will take `resting` bytes at rest.
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

    /// The cache of an object of which something is hot.
    pub(in super::super) fn shelf(&self) -> Option<Arc<Shelf>> {
        self.0.with(|hot| Some(hot?.shelf.clone()))
    }

    pub(in super::super) fn is_taken(&self) -> bool {
        self.0.with(|hot| hot.is_some())
    }

    /// The bytes that it takes of the set's bound.
    pub(super) fn charged(&self) -> usize {
        let counts = |hot: &&Hot| hot.counts.load(Ordering::Relaxed);
        self.0.with(|hot| hot.filter(counts).map_or(0, |hot| hot.weight))
    }

    /// Nobody can have used it.
    pub(super) fn unmark(&self) {
        self.take_mark();
    }

    /// It counts towards the bound from now on: its object is in the ring.
    pub(super) fn join(&self) {
        self.0.with(|hot| {
            if let Some(hot) = hot {
                hot.count();
            }
        });
    }

    /// Whether there is a value that may be dropped.
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

    /// Returns what was there, to be dropped without a lock.
    pub(super) fn exchange(&self, next: Option<Arc<Hot>>) -> Option<Arc<Hot>> {
        // One that is new where there was none has joined the ring; else it is as the one before.
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
    /// What one takes beside its bytes and values.
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
        // Whoever makes it uses it.
        let (mark, ignores_looks) = (AtomicBool::new(true), shelf.retention == Retention::Always);
        let weight = Self::WEIGHT + more + of_values;
        let counts = AtomicBool::new(false);
        Self { shelf, bytes, first, others, weight, counts, mark, ignores_looks }
    }

    /// The same with one value more.
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

    /// What is left when the bytes are at rest; `None` if that is nothing.
    pub(super) fn without_bytes(&self) -> Option<Arc<Self>> {
        let first = self.first.clone()?;
        Some(Arc::new(Self::of(self.shelf.clone(), None, Some(first), self.others.clone())))
    }

    /// What is left without values; `None` if that is nothing. It is not marked: nobody has used it.
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

    /// The value as a `T`, and marks it as used.
    #[inline]
    pub(super) fn value<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let is_it = |value: &&Value| value.type_id == TypeId::of::<T>();
        let value = self.first.iter().chain(&self.others).find(is_it)?;
        // Looked at first: a store would take the line from other processors each time.
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
