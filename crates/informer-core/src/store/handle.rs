//! The typed half of an index, and its handle.

use std::error::Error;
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::cache::Cache;
use super::index::{Filed, IndexCore, IndexEntry, Indexer, ValueRef, Values};
use super::objects::Objects;
use super::pending::Build;
use super::posting::Posting;
use super::report::IndexFault;
use super::shared::Shared;
use super::snapshot::Snapshot;
use super::state::State;
use crate::{Object, Uid};

/// An index over the objects of a cache, by values of type `K` that a function derives from each object.
///
/// Every snapshot taken after the index was added agrees with it. An older snapshot, or one of another cache, does not
/// contain the index; a lookup then calls the function for each of the snapshot's objects.
///
/// An index without a name is dropped with the last clone of its handle. A named index stays as long as the cache.
///
/// ```
/// # use std::sync::Arc;
/// use informer_core::{Object, Scope, Store};
///
/// let mut store = Store::new();
/// let source = store.add_source(Scope::All);
/// let by_node = store.cache().add_index(|pod: &Arc<Object>| {
///     let pod = pod.decode::<serde_json::Value>()?;
///     Ok(pod["spec"]["nodeName"].as_str().map(str::to_owned).into_iter().collect())
/// });
/// store.upsert(source, Arc::new(Object::from_json(
///     br#"{"metadata":{"name":"cart","namespace":"shop","resourceVersion":"7"},"spec":{"nodeName":"n1"}}"#,
/// )?));
/// assert_eq!(by_node.get("n1").len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Index<K> {
    cache: Cache,
    parts: Parts<K>,
}

/// Returns the values of an object. `?` works on any error. No error may quote the object's content.
type Function<K> = dyn Fn(&Arc<Object>) -> Result<Vec<K>, Box<dyn Error + Send + Sync>> + Send + Sync;

/// The parts of a handle besides the cache. The registry of names keeps these parts, because a reference to the cache there
/// would form a cycle.
struct Parts<K> {
    core: Arc<IndexCore>,
    function: Arc<Function<K>>,
    /// Removes the index when its last user drops it.
    _lease: Arc<Lease>,
}

struct Lease {
    core: Arc<IndexCore>,
    shared: Weak<Shared>,
}

/// The name of an index is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an index named `{0}` exists already; choose another name, or get that one by its name")]
pub struct NameTaken(Arc<str>);

impl Cache {
    /// Indexes all objects, existing and future ones, by the values of `function`.
    ///
    /// Returns when the index is complete: O(number of objects), mostly calls of the function, on this thread. It blocks
    /// neither readers nor the writer. Afterwards the writer calls the function for each new version. If the function fails
    /// or panics, the object is left out of the index and reported ([`Cache::take_reports`]).
    pub fn add_index<K, F>(&self, function: F) -> Index<K>
    where
        K: Hash + Eq + Send + Sync + 'static,
        F: Fn(&Arc<Object>) -> Result<Vec<K>, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    {
        Index { cache: self.clone(), parts: self.shared.add_index(None, Arc::new(function), Author::User) }
    }

    /// Indexes all objects by the uid of the owner that controls them ([`Object::controller_uid`]).
    ///
    /// No object is decoded for it, and it runs no code of the user's: a change costs no thread.
    pub fn add_controller_index(&self) -> Index<Uid> {
        let of = |object: &Arc<Object>| Ok(object.controller_uid()?.into_iter().collect());
        Index { cache: self.clone(), parts: self.shared.add_index(None, Arc::new(of), Author::Library) }
    }

    /// As [`Cache::add_index`], with a name. The index stays as long as the cache.
    ///
    /// # Errors
    ///
    /// When the name is taken. Nothing changes then.
    pub fn add_named_index<K, F>(&self, name: &str, function: F) -> Result<Index<K>, NameTaken>
    where
        K: Hash + Eq + Send + Sync + 'static,
        F: Fn(&Arc<Object>) -> Result<Vec<K>, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    {
        let name: Arc<str> = name.into();
        {
            let mut names = self.shared.names();
            if names.contains_key(&name) {
                return Err(NameTaken(name));
            }
            names.insert(name.clone(), None);
        }
        let parts = self.shared.add_index(Some(name.clone()), Arc::new(function), Author::User);
        self.shared.names().insert(name, Some(Box::new(parts.clone())));
        Ok(Index { cache: self.clone(), parts })
    }

    /// The index of that name, if it is complete and its values are of type `K`.
    pub fn index_by_name<K: 'static>(&self, name: &str) -> Option<Index<K>> {
        let parts = self.shared.names().get(name)?.as_ref()?.downcast_ref::<Parts<K>>()?.clone();
        Some(Index { cache: self.clone(), parts })
    }
}

impl Shared {
    fn add_index<K>(
        self: &Arc<Self>,
        name: Option<Arc<str>>,
        function: Arc<Function<K>>,
        author: Author,
    ) -> Parts<K>
    where
        K: Hash + Eq + Send + Sync + 'static,
    {
        let base = self.read().clone();
        let core =
            IndexCore::new(name, Typed { function: function.clone(), author, hasher: base.hasher.clone() });
        let lease = Arc::new(Lease { core: core.clone(), shared: Arc::downgrade(self) });
        self.build(Build::new(core.clone(), None, base, &self.reports));
        Parts { core, function, _lease: lease }
    }
}

impl<K: Hash + Eq + Send + Sync + 'static> Index<K> {
    /// The objects filed under a value in a snapshot, in no particular order. O(number of hits).
    pub fn lookup<'a, Q>(&self, snapshot: &'a Snapshot, value: &Q) -> Objects<'a>
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let state = snapshot.state();
        match self.entry(state) {
            Some(index) => {
                let posting = find::<K, Q>(index, &state.hasher, value).map(|filed| filed.posting.clone());
                Objects::of(&state.slots, posting.unwrap_or_default())
            }
            None => {
                let is_filed = |object: &&Arc<Object>| {
                    values_of(&*self.parts.function, object)
                        .is_ok_and(|values| values.iter().any(|filed| filed.borrow() == value))
                };
                Objects::listed(&state.slots, snapshot.iter().filter(is_filed).collect())
            }
        }
    }

    /// The objects filed under a value now, in no particular order. O(number of hits).
    pub fn get<Q>(&self, value: &Q) -> Vec<Arc<Object>>
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.with(value, Arc::clone)
    }

    /// Calls `look` for each object filed under a value now, as [`Index::get`]. Cheaper, because it takes no reference
    /// counts. `look` blocks no other thread, but keeps the whole state in memory.
    pub fn with<Q, R>(&self, value: &Q, mut look: impl FnMut(&Arc<Object>) -> R) -> Vec<R>
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let state = self.cache.shared.read();
        let filed = self.entry(&state).and_then(|index| find::<K, Q>(index, &state.hasher, value));
        let Some(filed) = filed else { return Vec::new() };
        match filed.posting {
            // The usual case of an address or an owner: it needs neither a reference count nor an iterator.
            Posting::One(slot) => state.object(slot).into_iter().map(look).collect(),
            ref posting => {
                let mut found = Vec::with_capacity(posting.len());
                found.extend(Objects::of(&state.slots, posting.clone()).map(&mut look));
                found
            }
        }
    }

    /// The number of objects filed under a value. O(1).
    pub fn count<Q>(&self, snapshot: &Snapshot, value: &Q) -> usize
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        match self.entry(snapshot.state()) {
            Some(index) => {
                find::<K, Q>(index, &snapshot.state().hasher, value).map_or(0, |filed| filed.posting.len())
            }
            None => self.lookup(snapshot, value).count(),
        }
    }

    /// All values with objects, in no particular order. O(number of values).
    pub fn values(&self, snapshot: &Snapshot) -> Vec<Arc<K>> {
        if let Some(index) = self.entry(snapshot.state()) {
            return index.values.iter().filter_map(|filed| filed.value.clone().downcast().ok()).collect();
        }
        let hasher = &snapshot.state().hasher;
        let mut distinct = HashTable::<Arc<K>>::new();
        for object in snapshot {
            for value in values_of(&*self.parts.function, object).unwrap_or_default() {
                let hash = hasher.hash_one(&value);
                distinct
                    .entry(hash, |other| **other == value, |other| hasher.hash_one(&**other))
                    .or_insert_with(|| value.into());
            }
        }
        distinct.into_iter().collect()
    }

    /// The name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.parts.core.name.as_deref()
    }

    fn entry<'a>(&self, state: &'a State) -> Option<&'a IndexEntry> {
        state.indexes.iter().flatten().find(|index| Arc::ptr_eq(&index.core, &self.parts.core))
    }
}

fn find<'a, K, Q>(index: &'a IndexEntry, hasher: &DefaultHashBuilder, value: &Q) -> Option<&'a Filed>
where
    K: std::borrow::Borrow<Q> + 'static,
    Q: Hash + Eq + ?Sized,
{
    let is_it = |filed: &(dyn std::any::Any + Send + Sync)| {
        filed.downcast_ref::<K>().is_some_and(|filed| filed.borrow() == value)
    };
    index.values.filed(index.values.find(hasher.hash_one(value), is_it)?)
}

/// Up to this many values of the former version are compared one by one.
const FEW_BEFORE: usize = 4;

/// The author of an index's function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    User,
    Library,
}

/// Files objects under the values of a function.
struct Typed<K> {
    function: Arc<Function<K>>,
    author: Author,
    hasher: DefaultHashBuilder,
}

impl<K: Hash + Eq + Send + Sync + 'static> Indexer for Typed<K> {
    fn values_of(
        &self,
        object: &Arc<Object>,
        known: &Values,
        before: &[u32],
    ) -> Result<Vec<ValueRef>, IndexFault> {
        // Hashing and comparing values are user code as much as the function is.
        guarded(|| {
            let mut values = Vec::new();
            let mut new = HashTable::<(u64, Arc<K>)>::new();
            // Most updates change no value, so the former values are compared first, without hashing.
            let before = before.get(..FEW_BEFORE).unwrap_or(before);
            for value in (self.function)(object)? {
                let is_it = |number: &u32| {
                    known.filed(*number).is_some_and(|filed| filed.value.downcast_ref::<K>() == Some(&value))
                };
                if let Some(number) = before.iter().copied().find(is_it) {
                    values.push(number);
                    continue;
                }
                let hash = self.hasher.hash_one(&value);
                match known.find(hash, |filed| filed.downcast_ref::<K>() == Some(&value)) {
                    Some(number) => values.push(number),
                    None => {
                        new.entry(hash, |(_, other)| **other == value, |(hash, _)| *hash)
                            .or_insert_with(|| (hash, Arc::new(value)));
                    }
                }
            }
            values.sort_unstable();
            values.dedup();
            let new = new.into_iter().map(|(hash, value)| ValueRef::New { hash, value });
            Ok(values.into_iter().map(ValueRef::Known).chain(new).collect())
        })
    }

    fn is_users(&self) -> bool {
        self.author == Author::User
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn is_pure(&self) -> bool {
        false
    }
}

fn values_of<K>(function: &Function<K>, object: &Arc<Object>) -> Result<Vec<K>, IndexFault> {
    guarded(|| function(object))
}

fn guarded<T>(call: impl FnOnce() -> Result<T, Box<dyn Error + Send + Sync>>) -> Result<T, IndexFault> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(IndexFault::Failed(error.to_string().into())),
        Err(payload) => Err(IndexFault::from_panic(&*payload)),
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut state = shared.draft();
        let index = state.uninstall(&self.core);
        state.publish();
        // Dropping the index runs user code, so the draft must not be held.
        drop(index);
    }
}

impl<K> Clone for Parts<K> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone(), function: self.function.clone(), _lease: self._lease.clone() }
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), parts: self.parts.clone() }
    }
}

impl<K> std::fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Index({})", self.parts.core.name.as_deref().unwrap_or("without a name"))
    }
}
