//! One state of the store: its objects and indexes, and the version that they reflect.
//!
//! A clone costs a few reference counts, whatever the number of objects. Every change is made to a clone, which is then
//! published. Small and large changes use the same code.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;

use super::builtin::{ByNamespace, posting_of_namespace};
use super::cow_table::CowTable;
use super::cow_vec::CowVec;
use super::index::{AnyValue, IndexCore, IndexEntry, Refiling};
use super::posting::Posting;
use super::report::Reports;
use crate::{Object, ObjectKey, ResourceVersion};

/// The position of the index by namespace.
pub(super) const BY_NAMESPACE: usize = 0;
/// The position of the index by labels, once it exists.
pub(super) const BY_LABEL: usize = 1;

pub(super) type Slots = CowVec<Option<Arc<Object>>>;

/// By position. An index keeps its position while it exists.
pub(super) type Indexes = Arc<Vec<Option<IndexEntry>>>;

#[derive(Clone)]
pub(super) struct State {
    pub(super) hasher: DefaultHashBuilder,
    /// The slots, by the keys of their objects.
    pub(super) keys: CowTable<u32>,
    pub(super) slots: Slots,
    pub(super) indexes: Indexes,
    /// Counts additions and removals of indexes. A plan for one set of indexes does not fit another.
    pub(super) indexes_version: u64,
    pub(super) held_bytes: usize,
    pub(super) resource_version: ResourceVersion,
    pub(super) is_synced: bool,
    /// Counts the steps in which objects changed.
    pub(super) revision: u64,
}

/// A change of one slot.
pub(super) enum SlotChange {
    /// Fills a free slot, or the next new one.
    Insert(Arc<Object>),
    Replace(Arc<Object>),
    Remove,
}

impl State {
    pub(super) fn new() -> Self {
        let hasher = DefaultHashBuilder::default();
        let by_namespace = IndexCore::new(None, ByNamespace(hasher.clone()));
        by_namespace.set_installed();
        Self {
            hasher,
            keys: CowTable::default(),
            slots: CowVec::default(),
            indexes: Arc::new(vec![Some(IndexEntry::new(by_namespace)), None]),
            indexes_version: 0,
            held_bytes: 0,
            resource_version: ResourceVersion::UNSET,
            is_synced: false,
            revision: 0,
        }
    }

    /// The bytes of memory that tables and indexes take, without the objects.
    pub(super) fn table_bytes(&self) -> usize {
        let indexes = self.indexes.iter().flatten().map(IndexEntry::held_bytes).sum::<usize>();
        self.keys.held_bytes() + self.slots.held_bytes() + indexes
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline]
    pub(super) fn locate(&self, key: &str) -> Option<(u32, &Arc<Object>)> {
        let mut found = None;
        self.keys.find(self.hasher.hash_one(key), |&slot| {
            found =
                self.object(slot).filter(|object| object.key().as_str() == key).map(|object| (slot, object));
            found.is_some()
        })?;
        found
    }

    #[inline]
    pub(super) fn object(&self, slot: u32) -> Option<&Arc<Object>> {
        self.slots.get(slot)?.as_ref()
    }

    pub(super) fn index(&self, position: usize) -> Option<&IndexEntry> {
        self.indexes.get(position)?.as_ref()
    }

    pub(super) fn namespace(&self, namespace: &str) -> Option<&Posting> {
        posting_of_namespace(&self.index(BY_NAMESPACE)?.values, &self.hasher, namespace)
    }

    /// Changes a slot, and files it as planned for these indexes. Runs no user code.
    pub(super) fn apply(
        &mut self,
        slot: u32,
        change: SlotChange,
        filing: Filing,
        displaced: &mut Vec<AnyValue>,
    ) {
        match change {
            SlotChange::Insert(object) => {
                self.held_bytes += object.held_bytes();
                let hash = self.hasher.hash_one(object.key().as_str());
                if slot == self.slots.len() {
                    self.slots.push(Some(object));
                } else if let Some(place) = self.slots.get_mut(slot) {
                    *place = Some(object);
                }
                let (slots, hasher) = (&self.slots, &self.hasher);
                self.keys.insert(hash, slot, |slot| hash_at(slots, hasher, *slot));
            }
            SlotChange::Replace(object) => {
                self.held_bytes += object.held_bytes();
                if let Some(old) = self.slots.get_mut(slot).and_then(|place| place.replace(object)) {
                    self.held_bytes = self.held_bytes.saturating_sub(old.held_bytes());
                }
            }
            SlotChange::Remove => {
                let (slots, hasher) = (&self.slots, &self.hasher);
                let hash = hash_at(slots, hasher, slot);
                self.keys.remove(hash, |other| *other == slot, |slot| hash_at(slots, hasher, *slot));
                if let Some(old) = self.slots.get_mut(slot).and_then(Option::take) {
                    self.held_bytes = self.held_bytes.saturating_sub(old.held_bytes());
                }
            }
        }
        if filing.0.is_empty() {
            return;
        }
        let indexes = Arc::make_mut(&mut self.indexes);
        for (position, refiling) in filing.0 {
            if let Some(Some(index)) = indexes.get_mut(position) {
                index.apply(refiling, displaced);
            }
        }
    }

    /// Puts an index at a position, or at any free one. Returns the index if that position is taken.
    pub(super) fn install(&mut self, position: Option<usize>, index: IndexEntry) -> Option<IndexEntry> {
        let indexes = Arc::make_mut(&mut self.indexes);
        let free = || indexes.iter().skip(BY_LABEL + 1).position(Option::is_none).map(|at| at + BY_LABEL + 1);
        let position = position.or_else(free).unwrap_or(indexes.len());
        if position == indexes.len() {
            indexes.push(None);
        }
        match indexes.get_mut(position) {
            Some(place @ None) => *place = Some(index),
            _ => return Some(index),
        }
        self.indexes_version += 1;
        None
    }

    /// Removes an index.
    pub(super) fn uninstall(&mut self, core: &Arc<IndexCore>) -> Option<IndexEntry> {
        let is_it =
            |index: &Option<IndexEntry>| index.as_ref().is_some_and(|index| Arc::ptr_eq(&index.core, core));
        let position = self.indexes.iter().position(is_it)?;
        self.indexes_version += 1;
        Arc::make_mut(&mut self.indexes).get_mut(position)?.take()
    }

    /// Takes over the published set of indexes, which has changed while this state was being prepared. An index that was
    /// added reflects `published`, the slots that this state started from.
    pub(super) fn take_over(
        &mut self,
        indexes: &Indexes,
        version: u64,
        published: &Slots,
        reports: &Reports,
    ) {
        let prepared = std::mem::take(&mut self.indexes);
        let merged = indexes.iter().map(|index| {
            let index = index.as_ref()?;
            let mut ours = prepared.iter().flatten().filter(|ours| Arc::ptr_eq(&ours.core, &index.core));
            Some(ours.next().cloned().unwrap_or_else(|| {
                let mut index = index.clone();
                index.catch_up(published, &self.slots, reports);
                index
            }))
        });
        self.indexes = Arc::new(merged.collect());
        self.indexes_version = version;
    }
}

fn hash_at(slots: &Slots, hasher: &DefaultHashBuilder, slot: u32) -> u64 {
    let object = slots.get(slot).and_then(Option::as_ref);
    object.map_or(0, |object| hasher.hash_one(object.key().as_str()))
}

/// How each index changes with one slot, by position.
#[derive(Default)]
pub(super) struct Filing(Vec<(usize, Refiling)>);

impl Filing {
    /// Asks each index for its plan. Runs user code: never call it under a lock.
    pub(super) fn plan(
        indexes: &Indexes,
        slot: u32,
        old: Option<&Arc<Object>>,
        new: Option<&Arc<Object>>,
        reports: &Reports,
    ) -> Self {
        let planned = indexes
            .iter()
            .enumerate()
            .filter_map(|(position, index)| Some((position, index.as_ref()?.plan(slot, old, new, reports)?)));
        Self(planned.collect())
    }
}

/// Whether `new` is a change to `old`, a version of the same key.
pub(super) fn is_news(new: &Object, old: &Object) -> bool {
    match new.resource_version().compare(old.resource_version()) {
        Some(order) => order.is_gt(),
        // The order is unknown: without versions the contents are compared; another opaque version counts as newer.
        None => new.resource_version() != old.resource_version() || !new.same_content(old),
    }
}

/// Whether `new` has another content at the version of `old`.
pub(super) fn is_revision(new: &Object, old: &Object) -> bool {
    new.resource_version() == old.resource_version() && !new.same_content(old)
}

/// Which objects one list and watch covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All of the resource.
    All,
    /// The objects of one namespace.
    Namespace(Arc<str>),
}

impl Scope {
    /// The scope of one namespace. The empty name stands for all namespaces, as client-go's `NamespaceAll` does.
    ///
    /// ```
    /// use informer_core::Scope;
    ///
    /// assert_eq!(Scope::of_namespace("shop"), Scope::Namespace("shop".into()));
    /// assert_eq!(Scope::of_namespace(""), Scope::All);
    /// ```
    pub fn of_namespace(namespace: &str) -> Self {
        if namespace.is_empty() { Self::All } else { Self::Namespace(namespace.into()) }
    }

    /// Whether an object with this key is covered.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(namespace) => key.namespace() == Some(namespace),
        }
    }
}
