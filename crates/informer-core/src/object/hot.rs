//! The hot set: decoded values, and the bytes of events, of all caches of a factory within one bound (design D16).
//!
//! What is hot of an object lies in the object's own [`Heat`], so a hit is a look into the object and takes no lock. The
//! [`Ring`] has all objects of which something is hot, in the order of a CLOCK: whoever looks at a value marks it, and the hand
//! passes what is marked once more.
//!
//! A version that a watch event brings is hot on arrival: its bytes stay as they came, and the first consumer decodes it for all.
//! It is packed when it cools, by whoever admits other versions or sweeps, never by a reader. Most versions of an object that
//! changes all the time are superseded before, and are never packed.

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

use super::{DecodeError, Object, Storage, Stored};
use crate::memory::{COUNTS, allocated};
use crate::sync::{Mutex, MutexGuard};
use heat::{Hot, Value};
use ring::{Passed, Ring};
use tally::Tally;

pub(super) use heat::Heat;

/// Decoded values of all caches that share it, and bytes that came a moment ago, within a number of bytes. A clone is the same
/// set.
#[derive(Clone)]
pub struct HotSet(Arc<Inner>);

/// Where one cache keeps its objects: in the hot set what was used a moment ago, in its storage the rest.
pub struct Shelf {
    set: HotSet,
    storage: Arc<dyn Storage>,
    retention: Retention,
    /// What is hot of this cache's objects.
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

/// Whose place a decoded value may take in a set that is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// That of values which nobody has used for the longest time.
    Evict,
    /// None: the value is kept where there is room already. So a look at all objects leaves hot what is.
    IfFree,
    /// As [`Evict`](Self::Evict) for an object that is hot already, as what an event brought is; else as
    /// [`IfFree`](Self::IfFree). For whoever looks at objects one by one, on arrival or all.
    EvictIfHot,
}

struct Inner {
    bound: usize,
    /// What counts towards the bound.
    bytes: AtomicUsize,
    hits: Tally,
    misses: Tally,
    weights: RwLock<HashMap<TypeId, Weigh>>,
    ring: Mutex<Ring>,
}

/// The bytes of the heap that a value takes, itself included.
type Weigh = Arc<dyn Fn(&dyn Any) -> usize + Send + Sync>;

/// How much smaller objects are at rest than they came, as far as is known.
#[derive(Default)]
struct Ratio {
    came: AtomicU64,
    rests: AtomicU64,
}

/// A reader turns the ring so far at most for one value. If that frees too little, the value is not kept.
const READER_TURNS: usize = 256;
/// Whoever admits a version turns it so far at most. What is too much then is taken by the next one.
const WRITER_TURNS: usize = 1024;
/// No value is said to weigh more: a sum of a few must not overflow.
const MOST: usize = usize::MAX / 1024;
/// So many bytes are packed in a row at most: half a millisecond.
const PACKED: usize = 512 << 10;

impl HotSet {
    /// A set of so many bytes at most.
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

    /// Says what a value of a type weighs, in bytes of memory, itself included, where the estimate is not good enough.
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

    /// How often a value was hot that somebody looked for.
    pub fn hits(&self) -> u64 {
        self.0.hits.sum()
    }

    /// How often it was not, and had to be decoded.
    pub fn misses(&self) -> u64 {
        self.0.misses.sum()
    }

    /// How many objects have something hot: how far a sweep has to go.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing is hot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks at the next `most` objects: what nobody has used since the last look cools. Returns at how many it has looked: fewer,
    /// where packing takes more than half a millisecond. There is no clock here: whoever calls this decides how long the unused
    /// stays hot.
    pub fn sweep(&self, most: usize) -> usize {
        let (mut looked, mut packed) = (0, 0);
        while looked < most && packed < PACKED {
            looked += 1;
            // One at a time: what is not packed yet is in the ring, where its owners find it.
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

    /// Packs an object that is in the ring no more, and drops its values, unless they are kept always or were used meanwhile.
    /// Returns how many bytes were packed.
    fn cool(&self, object: &Arc<Object>) -> usize {
        let Some(hot) = object.heat.get() else { return 0 };
        let packed = hot.bytes().map_or(0, <[u8]>::len);
        if let Some(bytes) = hot.bytes() {
            object.rest(|| hot.shelf().keep(Cow::Borrowed(bytes)));
        }
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

    /// Makes room by what readers may do: dropping values. Returns what is to be dropped without the lock.
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

    /// Takes the coldest objects out of the ring until what is left fits, with a little room for readers.
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
                    freed += object.heat.charged();
                    cooled.push(object);
                }
                Passed::Cold(object) => garbage.push(Garbage::Object(object)),
                Passed::Gone => {}
            }
        }
        (cooled, garbage)
    }

    /// No user code runs under this lock, so a poisoned one holds nothing half-done. Every change of a heat happens under it.
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops what may run user code. A panic there is nobody's end.
fn drop_guarded<T>(garbage: T) {
    // What it said is on standard error.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(garbage)));
}

/// What is dropped without the lock: it may be the last reference, and run user code.
enum Garbage {
    Object(#[expect(dead_code, reason = "held until it is dropped")] Arc<Object>),
    Hot(#[expect(dead_code, reason = "held until it is dropped")] Option<Arc<Hot>>),
}

impl Shelf {
    /// A cache's place in a set, with its objects at rest in `storage`.
    pub fn new(set: &HotSet, storage: Arc<dyn Storage>, retention: Retention) -> Arc<Self> {
        let (bytes, ratio) = (AtomicUsize::new(0), Ratio::default());
        Arc::new(Self { set: set.clone(), storage, retention, bytes, ratio })
    }

    /// A place where nothing is hot: versions are stored on arrival, and decoded for each who looks.
    pub fn cold(storage: Arc<dyn Storage>) -> Arc<Self> {
        Self::new(&HotSet::new(0), storage, Retention::WhileHot)
    }

    /// The set that it is in.
    pub fn set(&self) -> &HotSet {
        &self.set
    }

    /// The bytes of memory that what is hot of this cache takes: more than its objects take at rest.
    pub fn hot_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether what a watch event brings is hot on arrival. Bytes that rest as they came need not be.
    pub(super) fn takes_hot(&self) -> bool {
        !self.storage.is_plain() && (self.set.bound() > 0 || self.retention == Retention::Always)
    }

    /// What bytes of this length will take at rest, as far as is known.
    pub(super) fn resting(&self, length: usize) -> usize {
        self.ratio.estimate(length)
    }

    /// An event's version is in the cache now: it takes its place in the set, and what is coldest leaves.
    pub(crate) fn admit(&self, object: &Arc<Object>) {
        if !object.heat.is_taken() {
            return;
        }
        let (cooled, garbage) = {
            let mut ring = self.set.lock();
            // Superseded versions leave holes, which take memory until the hand comes by.
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

    /// An event's version is one of a list, and in no cache yet: it rests at once.
    pub(crate) fn settle(&self, object: &Arc<Object>) {
        if object.heat.is_taken() {
            object.heat.unmark();
            self.set.cool(object);
            object.settle_account();
        }
    }

    /// The object as a `T`: what is hot, or a freshly decoded value, which is kept as `room` says.
    ///
    /// # Errors
    ///
    /// When the object does not fit `T`. The error concerns this object alone.
    pub fn decode<T: DeserializeOwned + Send + Sync + 'static>(
        self: &Arc<Self>,
        object: &Arc<Object>,
        room: Room,
    ) -> Result<Arc<T>, DecodeError> {
        if let Some(value) = object.heat.value() {
            self.set.0.hits.add();
            return Ok(value);
        }
        self.set.0.misses.add();
        let (value, heap) = object.read_as::<T>()?;
        Ok(self.keep_value(object, Some(object), Arc::new(value), heap, room))
    }

    /// Keeps a value with an object; `entry` is the same object, where it may join the ring. Of two who decode at once both
    /// get the first one's.
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
        // Its own values may have been evicted just now.
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

    /// Towards the bound, too.
    fn charge_set(&self, bytes: usize) {
        self.set.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn release_set(&self, bytes: usize) {
        self.set.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// At rest.
impl Storage for Shelf {
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
        let length = bytes.len();
        // A storage may be the user's. One that panics stores nothing, and concerns this version alone.
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
            // What was long ago counts less: objects pack better once there is a dictionary. Two who come at once halve twice.
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

/// The ratio is that of about so many bytes.
const RATIO_OF: u64 = 4 << 20;

impl Default for HotSet {
    /// 16 MiB.
    fn default() -> Self {
        Self::new(16 << 20)
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
