//! The hot set: decoded values, and the bytes of events, of all caches of a factory within one bound (design D16).
//!
//! The hot parts of an object lie in the object's own [`Heat`], so a hit only reads a field of the object and takes no lock.
//! The [`Ring`] holds all objects with something hot, in CLOCK order. Each use of a value marks its object. When the clock
//! hand comes to a marked object, it clears the mark, and the object stays hot for another turn.
//!
//! A version that a watch event brings is hot on arrival: its bytes stay as received, and the first consumer decodes it for
//! all consumers. It is packed when it cools, by the thread that admits other versions or sweeps, never by a reader. Most
//! versions of a frequently changing object are superseded before they cool, and are never packed.

mod heat;
mod ring;
mod tally;

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde::de::DeserializeOwned;

use super::{BySerde, Decode, DecodeError, Object, Storage, Stored};
use crate::memory::{COUNTS, allocated};
use crate::sync::{Mutex, MutexGuard};
use heat::{Hot, Value};
use ring::{Passed, Ring};
use tally::Tally;

pub(super) use heat::Heat;

/// A bounded set of decoded values, and of bytes that arrived recently. All caches with the same set share its bound. A clone
/// is the same set.
#[derive(Clone)]
pub struct HotSet(Arc<Inner>);

/// Where one cache keeps its objects: recently used ones in the hot set, the rest in its storage.
pub struct Shelf {
    set: HotSet,
    storage: Arc<dyn Storage>,
    retention: Retention,
    /// The bytes that are hot of this cache's objects.
    bytes: AtomicUsize,
    ratio: Ratio,
}

/// For how long decoded values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// As long as they are used and the bound has room for them.
    WhileHot,
    /// As long as the object version lives, without a bound.
    Always,
}

/// Whether a decoded value may displace others when the set is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It may evict the values that have been unused for the longest time.
    Evict,
    /// It may evict nothing: the value is kept only where there is room already. So a scan over all objects does not displace
    /// what is hot.
    IfFree,
    /// Like [`Evict`](Self::Evict) for an object with something hot, such as the bytes of an event; like
    /// [`IfFree`](Self::IfFree) for any other. Meant for consumers that decode objects one by one, as they arrive or in a
    /// scan of all objects.
    EvictIfHot,
}

struct Inner {
    bound: usize,
    /// The bytes that count towards the bound.
    bytes: AtomicUsize,
    hits: Tally,
    misses: Tally,
    weights: RwLock<HashMap<TypeId, Weigh>>,
    ring: Mutex<Ring>,
}

/// The bytes of the heap that a value takes, itself included.
type Weigh = Arc<dyn Fn(&dyn Any) -> usize + Send + Sync>;

/// The ratio of an object's size at rest to its size on arrival, as far as it is known.
#[derive(Default)]
struct Ratio {
    came: AtomicU64,
    rests: AtomicU64,
}

/// The ring's hand moves at most this far to make room for one value that a reader decoded. If that frees too little, the
/// value is not kept.
const READER_TURNS: usize = 256;
/// The hand moves at most this far when a version is admitted. The next admission evicts what is still too much.
const WRITER_TURNS: usize = 1024;
/// The maximum that a user's weight function can return: the sum of several must not overflow.
const MOST: usize = usize::MAX / 1024;
/// A sweep ends after it has packed this many bytes, which takes about half a millisecond.
const PACKED: usize = 512 << 10;

impl HotSet {
    /// A set with a bound of this many bytes.
    pub fn new(bound: usize) -> Self {
        Self(Arc::new(Inner {
            bound,
            bytes: AtomicUsize::new(0),
            hits: Tally::default(),
            misses: Tally::default(),
            weights: RwLock::default(),
            ring: Mutex::default(),
        }))
    }

    /// Sets how to weigh values of a type, in bytes of memory that include the value itself, where the estimate is not good
    /// enough.
    pub fn weigh<T: Send + Sync + 'static>(&self, weigh: impl Fn(&T) -> usize + Send + Sync + 'static) {
        let weigh: Weigh = Arc::new(move |value| value.downcast_ref::<T>().map_or(0, &weigh));
        self.0.weights.write().unwrap_or_else(PoisonError::into_inner).insert(TypeId::of::<T>(), weigh);
    }

    /// The bound, in bytes.
    pub fn bound(&self) -> usize {
        self.0.bound
    }

    /// The bytes that count towards the bound now.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// How often a requested value was hot.
    pub fn hits(&self) -> u64 {
        self.0.hits.sum()
    }

    /// How often a requested value was not hot and had to be decoded.
    pub fn misses(&self) -> u64 {
        self.0.misses.sum()
    }

    /// How many objects have something hot, which is the length of a full sweep.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing is hot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Visits the next `most` objects and cools those that nothing has used since the last visit. Returns how many it
    /// visited: fewer than `most` when packing takes more than half a millisecond. The set has no clock: the caller decides
    /// how long unused values stay hot.
    pub fn sweep(&self, most: usize) -> usize {
        let (mut looked, mut packed) = (0, 0);
        while looked < most && packed < PACKED {
            looked += 1;
            // The lock is taken for one object at a time: an object that is not packed yet stays in the ring, where other
            // threads find it.
            let passed = {
                let mut ring = self.lock();
                let passed = ring.pass();
                if let Passed::Marked(object) = &passed {
                    ring.push(object);
                }
                passed
            };
            if let Passed::Unmarked(object) = passed {
                packed += self.cool(&object);
            }
        }
        looked
    }

    /// Packs an object that was taken out of the ring, and drops its values unless they are kept always or were used in the
    /// meantime. Returns how many bytes were packed.
    fn cool(&self, object: &Arc<Object>) -> usize {
        let Some(hot) = object.heat.get() else { return 0 };
        let packed = hot.bytes().map_or(0, <[u8]>::len);
        if let Some(bytes) = hot.bytes() {
            object.rest(|| hot.shelf().keep(Cow::Borrowed(bytes)));
        }
        // Readers may have used or changed the heat while the bytes were packed, so it is read again under the lock.
        let former = {
            let mut ring = self.lock();
            let current = object.heat.get();
            let cooled = current.and_then(|hot| match hot.shelf().retention {
                Retention::WhileHot if !hot.is_marked() => None,
                Retention::WhileHot => hot.without_bytes().inspect(|_| ring.push(object)),
                Retention::Always => hot.without_bytes(),
            });
            object.heat.exchange(cooled)
        };
        drop_guarded((hot, former));
        packed
    }

    /// Makes room in the way that readers may: it drops values. Returns garbage that the caller drops without the lock.
    fn evict_values(&self, ring: &mut Ring, needed: usize) -> Vec<Garbage> {
        let mut garbage = Vec::new();
        for _ in 0..READER_TURNS.min(ring.len()) {
            if self.bytes() + needed <= self.0.bound {
                break;
            }
            match ring.pass_values() {
                Passed::Marked(object) => {
                    ring.push(&object);
                    garbage.push(Garbage::Object(object));
                }
                Passed::Unmarked(object) => {
                    let rest = object.heat.get().and_then(|hot| hot.without_values());
                    if rest.is_some() {
                        ring.push(&object);
                    }
                    garbage.push(Garbage::Hot(object.heat.exchange(rest)));
                    garbage.push(Garbage::Object(object));
                }
                Passed::Cold(object) => garbage.push(Garbage::Object(object)),
                Passed::Gone => {}
            }
        }
        garbage
    }

    /// Takes the coldest objects out of the ring until the rest fits, with a little room to spare for readers.
    fn evict(&self, ring: &mut Ring) -> (Vec<Arc<Object>>, Vec<Garbage>) {
        let (mut cooled, mut garbage, mut freed) = (Vec::new(), Vec::new(), 0);
        if self.bytes() <= self.0.bound {
            return (cooled, garbage);
        }
        let enough = self.0.bound - self.0.bound / 16;
        for _ in 0..WRITER_TURNS.min(2 * ring.len()) {
            if self.bytes() <= enough.saturating_add(freed) {
                break;
            }
            match ring.pass() {
                Passed::Marked(object) => {
                    ring.push(&object);
                    garbage.push(Garbage::Object(object));
                }
                Passed::Unmarked(object) => {
                    // The caller cools it after the lock is released. Until then `freed` counts what that will free.
                    freed += object.heat.charged();
                    cooled.push(object);
                }
                Passed::Cold(object) => garbage.push(Garbage::Object(object)),
                Passed::Gone => {}
            }
        }
        (cooled, garbage)
    }

    /// No user code runs under this lock, so a poisoned lock guards a consistent ring. Every change of a heat happens under
    /// it.
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops values, which may run user code. A panic of that code goes no further.
fn drop_guarded<T>(garbage: T) {
    // The panic hook has already reported the message.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(garbage)));
}

/// Dropped without the lock: it may be the last reference, and dropping it may run user code.
enum Garbage {
    Object(#[expect(dead_code, reason = "held until it is dropped")] Arc<Object>),
    Hot(#[expect(dead_code, reason = "held until it is dropped")] Option<Arc<Hot>>),
}

impl Shelf {
    /// The shelf of one cache in a set; its objects at rest are in `storage`.
    pub fn new(set: &HotSet, storage: Arc<dyn Storage>, retention: Retention) -> Arc<Self> {
        let (bytes, ratio) = (AtomicUsize::new(0), Ratio::default());
        Arc::new(Self { set: set.clone(), storage, retention, bytes, ratio })
    }

    /// A shelf without a hot set: versions are stored on arrival, and decoded at each request.
    pub fn cold(storage: Arc<dyn Storage>) -> Arc<Self> {
        Self::new(&HotSet::new(0), storage, Retention::WhileHot)
    }

    /// The set that the shelf belongs to.
    pub fn set(&self) -> &HotSet {
        &self.set
    }

    /// The bytes of memory that this cache's hot values and bytes take, on top of what its objects take at rest.
    pub fn hot_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether a version of a watch event is hot on arrival. A plain storage keeps bytes as received, so it gains nothing
    /// from that.
    pub(super) fn takes_hot(&self) -> bool {
        !self.storage.is_plain() && (self.set.bound() > 0 || self.retention == Retention::Always)
    }

    /// The estimated size at rest of bytes of this length.
    pub(super) fn resting(&self, length: usize) -> usize {
        self.ratio.estimate(length)
    }

    /// Admits the version of an event that is now in the cache: it joins the ring, and the coldest objects leave.
    pub(crate) fn admit(&self, object: &Arc<Object>) {
        if !object.heat.is_taken() {
            return;
        }
        let (cooled, garbage) = {
            let mut ring = self.set.lock();
            // Superseded versions leave dead entries, which take memory until the hand passes them.
            ring.drop_gone();
            object.heat.join();
            ring.push(object);
            self.set.evict(&mut ring)
        };
        drop_guarded(garbage);
        for object in cooled {
            self.set.cool(&object);
        }
    }

    /// Stores the bytes of an event's version that is part of a list and in no cache yet.
    pub(crate) fn settle(&self, object: &Arc<Object>) {
        if object.heat.is_taken() {
            object.heat.unmark();
            self.set.cool(object);
            object.settle_account();
        }
    }

    /// The object as a `T`: the hot value, or a freshly decoded one, which is kept as `room` says.
    ///
    /// # Errors
    ///
    /// When the object does not decode as `T`. The error concerns this object alone.
    pub fn decode<T: DeserializeOwned + Send + Sync + 'static>(
        self: &Arc<Self>,
        object: &Arc<Object>,
        room: Room,
    ) -> Result<Arc<T>, DecodeError> {
        self.decode_by::<T, BySerde>(object, room)
    }

    /// As [`decode`](Self::decode), by `D` where that can.
    pub(crate) fn decode_by<T: DeserializeOwned + Send + Sync + 'static, D: Decode>(
        self: &Arc<Self>,
        object: &Arc<Object>,
        room: Room,
    ) -> Result<Arc<T>, DecodeError> {
        if let Some(value) = object.heat.value() {
            self.set.0.hits.add();
            return Ok(value);
        }
        self.set.0.misses.add();
        let (value, heap) = object.read_as::<T, D>(object.skips_managed_fields)?;
        Ok(self.keep_value(object, Some(object), Arc::new(value), heap, room))
    }

    /// Keeps a value with an object. `entry` is the same object, given where it may join the ring. If two threads decode it
    /// at once, both get the first thread's value.
    pub(super) fn keep_value<T: Send + Sync + 'static>(
        self: &Arc<Self>,
        object: &Object,
        entry: Option<&Arc<Object>>,
        value: Arc<T>,
        heap: usize,
        room: Room,
    ) -> Arc<T> {
        let weight = self.set.weight_of(&value, heap);
        let needed = weight + Hot::WEIGHT;
        let is_bounded = self.retention == Retention::WhileHot;
        if is_bounded && needed > self.set.bound() {
            return value;
        }
        let mut ring = self.set.lock();
        let was_hot = object.heat.get();
        // Another thread may have decoded the object in the meantime.
        if let Some(first) = was_hot.as_ref().and_then(|hot| hot.value()) {
            return first;
        }
        let takes_room = room == Room::Evict || (room == Room::EvictIfHot && was_hot.is_some());
        let garbage = match is_bounded && takes_room {
            true => self.set.evict_values(&mut ring, needed),
            false => Vec::new(),
        };
        if is_bounded && self.set.bytes() + needed > self.set.bound() {
            drop(ring);
            drop_guarded(garbage);
            return value;
        }
        // The eviction above may have dropped the object's own values.
        let current = object.heat.get();
        let next = match &current {
            Some(hot) => hot.with(Value::new(value.clone(), weight)),
            None => Hot::new(self.clone(), Value::new(value.clone(), weight)),
        };
        if current.is_none() && is_bounded {
            let Some(entry) = entry else {
                drop(ring);
                drop_guarded(garbage);
                return value;
            };
            ring.push(entry);
        }
        let former = object.heat.exchange(Some(next));
        drop(ring);
        drop_guarded((garbage, former, current, was_hot));
        value
    }

    fn charge(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Charges bytes that also count towards the bound.
    fn charge_set(&self, bytes: usize) {
        self.set.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn release_set(&self, bytes: usize) {
        self.set.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Keeps bytes at rest.
impl Storage for Shelf {
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
        let length = bytes.len();
        // A storage may be user code. If it panics, this version's bytes are kept plain in memory.
        let kept = catch_unwind(AssertUnwindSafe(|| self.storage.keep(Cow::Borrowed(&bytes))));
        let stored = kept.unwrap_or_else(|_| Stored::plain(bytes));
        self.ratio.note(length, stored.held_bytes());
        stored
    }

    fn shared_bytes(&self) -> usize {
        self.storage.shared_bytes()
    }

    fn is_plain(&self) -> bool {
        self.storage.is_plain()
    }
}

impl HotSet {
    fn weight_of<T: Send + Sync + 'static>(&self, value: &Arc<T>, heap: usize) -> usize {
        let weights = self.0.weights.read().unwrap_or_else(PoisonError::into_inner);
        let own = weights.get(&TypeId::of::<T>()).cloned();
        drop(weights);
        let estimate = allocated(COUNTS + size_of::<T>()) + heap;
        let Some(weigh) = own else { return estimate };
        let said = catch_unwind(AssertUnwindSafe(|| weigh(&**value)));
        said.map_or(estimate, |said| allocated(COUNTS) + said.min(MOST))
    }
}

impl Ratio {
    fn note(&self, came: usize, rests: usize) {
        let all = self.came.fetch_add(came as u64, Ordering::Relaxed);
        self.rests.fetch_add(rests as u64, Ordering::Relaxed);
        if all > RATIO_OF {
            // The counters are halved, so that old sizes count less: objects pack better once there is a dictionary. Two
            // threads that get here at once halve twice, which does no harm.
            self.came.fetch_sub(all / 2, Ordering::Relaxed);
            let rests = self.rests.load(Ordering::Relaxed);
            self.rests.fetch_sub(rests / 2, Ordering::Relaxed);
        }
    }

    fn estimate(&self, length: usize) -> usize {
        let (came, rests) = (self.came.load(Ordering::Relaxed), self.rests.load(Ordering::Relaxed));
        if came == 0 {
            return length / 8;
        }
        let estimate = u128::from(rests) * length as u128 / u128::from(came);
        usize::try_from(estimate).map_or(length, |estimate| estimate.min(length))
    }
}

/// The ratio covers about the latest this many bytes.
const RATIO_OF: u64 = 4 << 20;

impl Default for HotSet {
    /// A set of 32 MiB.
    fn default() -> Self {
        Self::new(32 << 20)
    }
}

impl fmt::Debug for HotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HotSet({} of {} bytes)", self.bytes(), self.bound())
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shelf({} bytes hot)", self.hot_bytes())
    }
}
