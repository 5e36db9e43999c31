//! An index: for each value, the slots of the objects filed under it.
//!
//! This half knows no value types. It handles a value as a number, so that no user code runs under a lock: neither hashing,
//! comparing or dropping a value, nor the index function itself. The typed half ([`Indexer`]) looks values up first
//! ([`IndexEntry::plan`]); the result is then applied by number ([`IndexEntry::apply`]).

use std::any::Any;
use std::sync::{Arc, PoisonError};

use super::cow_table::CowTable;
use super::cow_vec::CowVec;
use super::posting::Posting;
use super::report::{IndexFault, Reports};
use crate::Object;
use crate::memory::{COUNTS, allocated};
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// A value of an index, of the index's own type.
pub(super) type AnyValue = Arc<dyn Any + Send + Sync>;

/// Returns the values of an object.
pub(super) trait Indexer: Send + Sync {
    /// The values of an object, each once. A value that `known` contains is returned by its number. `before` has the values
    /// of the object's former version, which are likely the same. May be user code: never call it under a lock.
    fn values_of(
        &self,
        object: &Arc<Object>,
        known: &Values,
        before: &[u32],
    ) -> Result<Vec<ValueRef>, IndexFault>;

    /// Whether the two are known to have equal values, without computing them.
    fn is_filed_alike(&self, _old: &Object, _new: &Object) -> bool {
        false
    }

    /// Whether the values come from a function of the user's, which runs where it may block.
    fn is_users(&self) -> bool {
        false
    }

    /// Whether it reads the objects' bytes. Then it takes long for a list.
    fn reads_bytes(&self) -> bool {
        false
    }

    /// Whether a second call for an object surely returns the same values. If not, the index remembers the filed values, at
    /// 16 bytes per object.
    fn is_pure(&self) -> bool;
}

/// A value of an object.
pub(super) enum ValueRef {
    /// The index contains the value: no hash or comparison of the user's runs when this is applied.
    Known(u32),
    /// The index did not contain the value when it was looked up, outside of the lock.
    New { hash: u64, value: AnyValue },
}

/// The values of an index and their objects: the part that snapshots share.
#[derive(Clone, Default)]
pub(super) struct Values {
    /// By the value's hash. The table holds numbers, not values, so that a write beside a snapshot copies four bytes for each
    /// entry.
    numbers: CowTable<u32>,
    /// By number. The number of a value that has no objects left is given to another value.
    values: CowVec<Option<Filed>>,
}

/// One value and the slots filed under it, at least one.
#[derive(Clone)]
pub(super) struct Filed {
    /// The hash of the value. It is kept, because computing it again would run user code under a lock.
    hash: u64,
    pub(super) value: AnyValue,
    pub(super) posting: Posting,
}

/// The part that does not change with the objects, and the writer's records.
pub(super) struct IndexCore {
    pub(super) name: Option<Arc<str>>,
    pub(super) indexer: Box<dyn Indexer>,
    installed: AtomicBool,
    books: Mutex<Books>,
}

/// The writer's own records. Once the index is installed, other threads lock them only for a moment, to read their size.
#[derive(Default)]
struct Books {
    free_numbers: Vec<u32>,
    /// By slot: the numbers of the values under which its object is filed.
    ///
    /// They are kept because an index function may return other values when it is called again. The object would then stay
    /// under the former values for ever.
    filed: Vec<Numbers>,
    /// The heap bytes of those [`Numbers`] that are not stored inline.
    filed_bytes: usize,
}

/// An index within one state of the store.
#[derive(Clone)]
pub(super) struct IndexEntry {
    pub(super) core: Arc<IndexCore>,
    pub(super) values: Values,
}

/// A change of the values of one slot.
pub(super) struct Refiling {
    slot: u32,
    old: Numbers,
    new: Vec<ValueRef>,
}

/// The text of a value of the index by namespace or by labels.
pub(super) fn text_of(value: &(dyn std::any::Any + Send + Sync)) -> Option<&str> {
    value.downcast_ref::<Box<str>>().map(|text| &**text)
}

impl Values {
    pub(super) fn find(
        &self,
        hash: u64,
        mut is_it: impl FnMut(&(dyn Any + Send + Sync)) -> bool,
    ) -> Option<u32> {
        let found = |number: &u32| self.filed(*number).is_some_and(|filed| is_it(&*filed.value));
        // Different values may have the same hash, so the caller compares the value itself.
        self.numbers.find(hash, found).copied()
    }

    fn held_bytes(&self) -> usize {
        let filed = |filed: &Filed| {
            let text = text_of(&*filed.value).map_or(0, |text| allocated(text.len()));
            allocated(COUNTS + size_of_val(&*filed.value)) + text + filed.posting.held_bytes()
        };
        self.numbers.held_bytes() + self.values.held_bytes() + self.iter().map(filed).sum::<usize>()
    }

    pub(super) fn filed(&self, number: u32) -> Option<&Filed> {
        self.values.get(number)?.as_ref()
    }

    /// All numbers in use are below this one.
    pub(super) fn numbers_end(&self) -> u32 {
        self.values.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Filed> {
        self.values.iter().filter_map(|(_, filed)| filed.as_ref())
    }

    fn posting_mut(&mut self, number: u32) -> Option<&mut Posting> {
        self.values.get_mut(number)?.as_mut().map(|filed| &mut filed.posting)
    }

    fn add(&mut self, free_number: Option<u32>, filed: Filed) -> u32 {
        let hash = filed.hash;
        // Freed numbers are reused; otherwise an index by owner would grow with every owner that ever existed.
        let number = free_number.unwrap_or_else(|| self.values.push(None));
        // Before the number is in the table, because the table asks for the hashes of its numbers as it grows.
        if let Some(place) = self.values.get_mut(number) {
            *place = Some(filed);
        }
        let values = &self.values;
        self.numbers.insert(hash, number, |number| hash_of(values, *number));
        number
    }

    fn remove(&mut self, number: u32) -> Option<Filed> {
        let hash = hash_of(&self.values, number);
        let values = &self.values;
        // Out of the table first: until then it may ask for the hash of this number.
        self.numbers.remove(hash, |other| *other == number, |number| hash_of(values, *number))?;
        self.values.get_mut(number)?.take()
    }
}

fn hash_of(values: &CowVec<Option<Filed>>, number: u32) -> u64 {
    values.get(number).and_then(Option::as_ref).map_or(0, |filed| filed.hash)
}

impl IndexCore {
    pub(super) fn new(name: Option<Arc<str>>, indexer: impl Indexer + 'static) -> Arc<Self> {
        Arc::new(Self {
            name,
            indexer: Box::new(indexer),
            installed: AtomicBool::new(false),
            books: Mutex::default(),
        })
    }

    pub(super) fn is_installed(&self) -> bool {
        self.installed.load(Ordering::Acquire)
    }

    /// Marks the index as installed: every state published from here on has it.
    pub(super) fn set_installed(&self) {
        self.installed.store(true, Ordering::Release);
    }

    /// No user code runs under this lock, so a poisoned one is consistent.
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IndexEntry {
    /// The bytes of memory that the index takes, without what values other than strings refer to. O(number of values).
    pub(super) fn held_bytes(&self) -> usize {
        // A statement of its own, so that the lock is released before the O(n) part.
        let books = self.core.books().held_bytes();
        books + self.values.held_bytes()
    }

    /// Whether the index function is the user's.
    pub(super) fn is_users(&self) -> bool {
        self.core.indexer.is_users()
    }

    /// Whether the index reads the bytes of each new version.
    pub(super) fn reads_bytes(&self) -> bool {
        self.core.indexer.reads_bytes()
    }

    pub(super) fn new(core: Arc<IndexCore>) -> Self {
        Self { core, values: Values::default() }
    }

    /// Plans the change when a slot's object becomes `new`; `None` when nothing changes. Runs user code.
    pub(super) fn plan(
        &self,
        slot: u32,
        old: Option<&Arc<Object>>,
        new: Option<&Arc<Object>>,
        reports: &Reports,
    ) -> Option<Refiling> {
        let indexer = &self.core.indexer;
        // Most updates change a status and no label, so for these indexes they need no lookup.
        if old.zip(new).is_some_and(|(old, new)| indexer.is_filed_alike(old, new)) {
            return None;
        }
        let values_of = |object: &Arc<Object>, before: &[u32]| {
            // An object whose values cannot be computed is under no value: a reader must not find it under former ones.
            indexer.values_of(object, &self.values, before).unwrap_or_else(|fault| {
                reports.add(self.core.name.clone(), object, fault);
                Vec::new()
            })
        };
        let old = match old {
            None => Numbers::None,
            // The function may return other values for the old object than those under which it is filed.
            Some(_) if !indexer.is_pure() => self.core.books().filed(slot),
            Some(old) => values_of(old, &[]).iter().filter_map(ValueRef::number).collect(),
        };
        let new = new.map(|new| values_of(new, old.as_slice())).unwrap_or_default();
        // If the values are equal, nothing is written, so that snapshots keep sharing the whole index.
        let is_same = new.len() == old.as_slice().len()
            && new.iter().all(|value| value.number().is_some_and(|number| old.contains(number)));
        (!is_same).then_some(Refiling { slot, old, new })
    }

    /// Applies a plan that was made against these same values. Replaced values go to `displaced`, because dropping them runs
    /// user code.
    pub(super) fn apply(&mut self, refiling: Refiling, displaced: &mut Vec<AnyValue>) {
        let Refiling { slot, old, new } = refiling;
        // One lock for the whole change. Nothing below runs user code: values were compared in `plan`, and dropped values leave
        // by `displaced`.
        let mut books = self.core.books();
        let numbers: Numbers = new
            .into_iter()
            .map(|value| match value {
                ValueRef::Known(number) => {
                    // An unchanged posting is not written, because a write beside a snapshot copies it.
                    if !old.contains(number)
                        && let Some(posting) = self.values.posting_mut(number)
                    {
                        posting.insert(slot);
                    }
                    number
                }
                ValueRef::New { hash, value } => {
                    let filed = Filed { hash, value, posting: Posting::One(slot) };
                    self.values.add(books.free_numbers.pop(), filed)
                }
            })
            .collect();
        for &number in old.as_slice() {
            if numbers.contains(number) {
                continue;
            }
            let Some(posting) = self.values.posting_mut(number) else { continue };
            posting.remove(slot);
            if posting.is_empty() {
                // A value without objects would show up among the index's values (contract C2).
                displaced.extend(self.values.remove(number).map(|filed| filed.value));
                books.free_numbers.push(number);
            }
        }
        if !self.core.indexer.is_pure() {
            books.remember(slot, numbers);
        }
    }

    /// Updates the index from one state of the slots to another.
    pub(super) fn catch_up(
        &mut self,
        from: &CowVec<Option<Arc<Object>>>,
        to: &CowVec<Option<Arc<Object>>>,
        reports: &Reports,
    ) {
        from.visit_differences(to, &mut |slot, old, new| {
            let (old, new) = (old.and_then(Option::as_ref), new.and_then(Option::as_ref));
            let is_same = match (old, new) {
                // Objects do not change in place: another version is another pointer.
                (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                _ => old.is_none() && new.is_none(),
            };
            if is_same {
                return;
            }
            if let Some(refiling) = self.plan(slot, old, new, reports) {
                self.apply(refiling, &mut Vec::new());
            }
        });
    }

    /// The remembered values of a slot; for an index that remembers none, the values of its object now.
    pub(super) fn numbers_of(&self, slot: u32, object: &Arc<Object>) -> Vec<u32> {
        if !self.core.indexer.is_pure() {
            return self.core.books().filed(slot).as_slice().to_vec();
        }
        let values = self.core.indexer.values_of(object, &self.values, &[]).unwrap_or_default();
        values.iter().filter_map(ValueRef::number).collect()
    }
}

impl Books {
    /// O(1), because the writer waits for the lock in the meantime.
    fn held_bytes(&self) -> usize {
        let lists =
            self.filed.capacity() * size_of::<Numbers>() + self.free_numbers.capacity() * size_of::<u32>();
        lists + self.filed_bytes
    }

    fn filed(&self, slot: u32) -> Numbers {
        self.filed.get(slot as usize).cloned().unwrap_or_default()
    }

    fn remember(&mut self, slot: u32, numbers: Numbers) {
        let slot = slot as usize;
        if self.filed.len() <= slot {
            self.filed.resize(slot + 1, Numbers::None);
        }
        if let Some(filed) = self.filed.get_mut(slot) {
            // Counted as it changes, so that the size is known without a walk. Added first: the sum never goes below zero.
            self.filed_bytes += numbers.held_bytes();
            self.filed_bytes -= filed.held_bytes();
            *filed = numbers;
        }
    }
}

impl ValueRef {
    fn number(&self) -> Option<u32> {
        match self {
            Self::Known(number) => Some(*number),
            Self::New { .. } => None,
        }
    }
}

/// A few numbers, sorted. A single one, the usual case, is stored inline.
#[derive(Clone, Default)]
enum Numbers {
    #[default]
    None,
    One(u32),
    Many(Box<[u32]>),
}

impl Numbers {
    fn as_slice(&self) -> &[u32] {
        match self {
            Self::None => &[],
            Self::One(number) => std::slice::from_ref(number),
            Self::Many(numbers) => numbers,
        }
    }

    /// The heap bytes.
    fn held_bytes(&self) -> usize {
        match self {
            Self::None | Self::One(_) => 0,
            Self::Many(numbers) => allocated(size_of_val(&**numbers)),
        }
    }

    fn contains(&self, number: u32) -> bool {
        self.as_slice().binary_search(&number).is_ok()
    }
}

impl FromIterator<u32> for Numbers {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers = numbers.into_iter();
        match (numbers.next(), numbers.next()) {
            (None, _) => Self::None,
            (Some(one), None) => Self::One(one),
            (Some(one), Some(two)) => {
                let mut all: Vec<_> = [one, two].into_iter().chain(numbers).collect();
                all.sort_unstable();
                Self::Many(all.into())
            }
        }
    }
}
