//! The objects of one resource, with their history.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use parking_lot::{RwLock, RwLockWriteGuard};
use serve::{Batch, Change, Collection, CollectionError, Event, Events, Listing, Object, Range, Status};
use tokio::sync::Notify;

use super::key::Key;
use super::log::Log;

/// The objects of one resource. A handle: clones are the same collection.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The server's revision. It grows while the state is locked, so that a holder of the lock sees a consistent pair.
    revision: Arc<AtomicU64>,
    state: RwLock<State>,
    /// Wakes readers that wait for events.
    /// Wakes the watches, in the order in which they wait.
    news: Notify,
}

#[derive(Debug)]
struct State {
    objects: BTreeMap<Key, Arc<Object>>,
    log: Log,
    /// Incremented when all watches end.
    age: u64,
}

impl Objects {
    pub(super) fn new(revision: Arc<AtomicU64>, history: usize) -> Self {
        let log = Log::new(revision.load(Ordering::Acquire), history);
        let state = RwLock::new(State { objects: BTreeMap::new(), log, age: 0 });
        Self { inner: Arc::new(Inner { revision, state, news: Notify::new() }) }
    }

    pub(crate) fn current(&self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.inner.state.read().objects.get(&Key::new(namespace, name)).cloned()
    }

    /// All objects, or those of a namespace.
    pub(crate) fn all(&self, namespace: Option<&str>) -> Vec<Arc<Object>> {
        let range = Range { namespace: namespace.map(Into::into), after: None };
        self.inner.state.read().within(&range).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Whether a namespace has no objects.
    pub(crate) fn is_empty_in(&self, namespace: &str) -> bool {
        let range = Range { namespace: Some(namespace.into()), after: None };
        self.inner.state.read().within(&range).next().is_none()
    }

    pub(super) fn put(&self, object: Arc<Object>) {
        let mut state = self.inner.state.write();
        let previous = state.objects.insert(Key::of(&object), Arc::clone(&object));
        let change = if previous.is_some() { Change::Modified } else { Change::Added };
        self.log(state, Event { change, object, previous });
    }

    pub(super) fn remove(&self, last: Arc<Object>) {
        let mut state = self.inner.state.write();
        if let Some(previous) = state.objects.remove(&Key::of(&last)) {
            self.log(state, Event { change: Change::Deleted, object: last, previous: Some(previous) });
        }
    }

    fn log(&self, mut state: RwLockWriteGuard<'_, State>, event: Event) {
        self.inner.revision.store(event.object.revision, Ordering::Release);
        state.log.push(event);
        drop(state);
        self.inner.news.notify_waiters();
    }

    pub(super) fn compact(&self) {
        let mut state = self.inner.state.write();
        let now = self.inner.revision.load(Ordering::Acquire);
        state.log.compact(now);
    }

    pub(super) fn end_watches(&self) {
        self.inner.state.write().age += 1;
        self.inner.news.notify_waiters();
    }

    /// Replaces all objects, discards history, and ends the watches of the former objects.
    pub(super) fn replace(&self, objects: Vec<Arc<Object>>, revision: u64) {
        let mut state = self.inner.state.write();
        state.objects = objects.into_iter().map(|object| (Key::of(&object), object)).collect();
        state.log.compact(revision);
        drop(state);
        self.end_watches();
    }

    /// Checks that the history reaches back to `at`.
    fn known(&self, at: Option<u64>) -> Result<u64, CollectionError> {
        let now = self.revision();
        match at {
            Some(at) if at > now => Err(CollectionError::Failed(Status::too_large(at, now))),
            at => Ok(at.unwrap_or(now)),
        }
    }

    fn get_at(&self, key: &Key, at: Option<u64>) -> Result<Option<Arc<Object>>, CollectionError> {
        let state = self.inner.state.read();
        let revision = self.known(at)?;
        if at.is_some() {
            let position = state.log.position(revision)?;
            if let Some(next) = state.log.from(position)?.find(|event| Key::of(&event.object) == *key) {
                return Ok(next.previous.clone());
            }
        }
        Ok(state.objects.get(key).cloned())
    }

    fn list_at(&self, range: &Range, at: Option<u64>) -> Result<Listing, CollectionError> {
        let state = self.inner.state.read();
        let revision = self.known(at)?;
        if at.is_none() {
            let objects = state.within(range).map(|(_, object)| Arc::clone(object)).collect();
            return Ok(Listing::of(revision, objects));
        }
        // The former state of an object that has changed since is in its first event after that revision.
        let mut then: BTreeMap<Key, Option<Arc<Object>>> = BTreeMap::new();
        for event in state.log.from(state.log.position(revision)?)? {
            then.entry(Key::of(&event.object)).or_insert_with(|| event.previous.clone());
        }
        let unchanged = state.within(range).filter(|(key, _)| !then.contains_key(*key));
        let changed = then.iter().filter(|(key, _)| contains(range, key));
        let changed = changed.filter_map(|(key, object)| Some((key, object.as_ref()?)));
        let mut objects: Vec<_> = unchanged.chain(changed).collect();
        objects.sort_by_key(|(key, _)| *key);
        let objects = objects.into_iter().map(|(_, object)| Arc::clone(object));
        Ok(Listing::of(revision, objects.collect()))
    }
}

impl State {
    fn within(&self, range: &Range) -> impl Iterator<Item = (&Key, &Arc<Object>)> {
        let (from, to) = bounds(range);
        // `BTreeMap::range` panics on impossible ranges; they contain nothing.
        let possible = !matches!((&from, &to), (Bound::Excluded(from) | Bound::Included(from), Bound::Excluded(to)) if from >= to);
        possible.then(|| self.objects.range((from, to))).into_iter().flatten()
    }
}

fn bounds(range: &Range) -> (Bound<Key>, Bound<Key>) {
    let (mut from, mut to) = (Bound::Unbounded, Bound::Unbounded);
    if let Some(namespace) = &range.namespace {
        let (first, end) = Key::of_namespace(namespace);
        (from, to) = (Bound::Included(first), Bound::Excluded(end));
    }
    if let Some((namespace, name)) = &range.after {
        let after = Key::new(namespace, name);
        if !matches!(&from, Bound::Included(first) if *first > after) {
            from = Bound::Excluded(after);
        }
    }
    (from, to)
}

fn contains(range: &Range, key: &Key) -> bool {
    use std::ops::RangeBounds;
    bounds(range).contains(key)
}

impl Collection for Objects {
    fn revision(&self) -> u64 {
        self.inner.revision.load(Ordering::Acquire)
    }

    fn get<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, CollectionError>> {
        ready(self.get_at(&Key::new(namespace, name), at)).boxed()
    }

    fn list<'a>(
        &'a self,
        range: &'a Range,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Listing, CollectionError>> {
        ready(self.list_at(range, at)).boxed()
    }

    fn events(&self, after: u64) -> Result<Box<dyn Events>, CollectionError> {
        let state = self.inner.state.read();
        let position = state.log.position(after)?;
        let age = state.age;
        drop(state);
        Ok(Box::new(Cursor { objects: self.clone(), position, age, revision: after }))
    }
}

/// A reader's position in the log of a collection.
struct Cursor {
    objects: Objects,
    position: u64,
    age: u64,
    revision: u64,
}

impl Cursor {
    /// The events after the position; empty if there are none.
    fn take(&mut self) -> Result<Batch, CollectionError> {
        let state = self.objects.inner.state.read();
        if state.age != self.age {
            return Err(CollectionError::Gone);
        }
        let events: Vec<_> = state.log.from(self.position)?.cloned().collect();
        if let Some(last) = events.last() {
            self.revision = last.object.revision;
        }
        self.position = state.log.end();
        Ok(Batch { events })
    }
}

impl Events for Cursor {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, CollectionError>> {
        async move {
            let objects = self.objects.clone();
            loop {
                // From here on, news count.
                let news = objects.inner.news.notified();
                let batch = self.take()?;
                if !batch.events.is_empty() {
                    return Ok(batch);
                }
                news.await;
            }
        }
        .boxed()
    }

    fn revision(&self) -> u64 {
        let state = self.objects.inner.state.read();
        let unread =
            state.log.from(self.position).map(|mut events| events.next().map(|event| event.object.revision));
        match unread {
            Ok(None) if state.age == self.age => self.objects.revision(),
            Ok(Some(next)) if state.age == self.age => next - 1,
            // The watch has ended.
            _ => self.revision,
        }
    }
}
