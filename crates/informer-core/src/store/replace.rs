//! Staging of a list.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::vec;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::cache::Cache;
use super::sources::SourceId;
use super::state::is_news;
use crate::object::{Comparison, Difference};
use crate::{Object, ObjectKey, ResourceVersion};

/// Stages a list of one source; [`Store::commit`](super::Store::commit) applies it in one step.
///
/// It holds the objects that changed, and one bit for each object that did not. Readers see nothing of it. Dropping it
/// discards it.
pub struct Replace {
    pub(super) cache: Cache,
    pub(super) source: SourceId,
    /// While a clone of this exists, the store reuses no slot, so that a kept slot keeps its object.
    pub(super) pins_slots: Arc<()>,
    pub(super) is_restored: bool,
    /// Other content at an equal version is a change, however often it came before.
    pub(crate) expects_revisions: bool,
    pub(super) kept: Bits,
    pub(super) staged: Staged,
    /// The places of `staged` that have the last state of a deleted object.
    pub(super) deleted: Bits,
    /// Objects that arrived with other content once more, although their version is the same.
    unsteady: Vec<ObjectKey>,
    /// Indexes into `staged`.
    pub(super) by_key: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// Staged objects in list order. When a deletion follows a listed object and the object is listed again, its former place is
/// empty.
///
/// They are in chunks, so that they are never copied to grow, and a commit frees each chunk once it has applied it.
#[derive(Default)]
pub(super) struct Staged(Vec<Vec<Option<Arc<Object>>>>);

/// The number of objects in a chunk: 8 KiB.
const CHUNK: usize = 1024;

impl Replace {
    pub(super) fn new(cache: Cache, source: SourceId, pins_slots: Arc<()>, is_restored: bool) -> Self {
        let hasher = cache.shared.read().hasher.clone();
        Self {
            cache,
            source,
            pins_slots,
            is_restored,
            expects_revisions: false,
            kept: Bits::default(),
            staged: Staged::default(),
            deleted: Bits::default(),
            unsteady: Vec::new(),
            by_key: HashTable::new(),
            hasher,
        }
    }

    /// Notes that the list has this key at an undecodable version, so that the cached object stays. After a restored backup
    /// this does nothing: the cached object may have a version that the restored server never had, and no later version would
    /// be newer. O(1).
    pub fn keep_cached(&mut self, key: &ObjectKey) {
        if self.is_restored {
            return;
        }
        // Nothing is cached, so there is nothing to keep: the key stays in quarantine until a good version.
        let Some((slot, known)) = self.known(key) else { return };
        let Some(place) = self.place(key.as_str()) else { return self.kept.set(slot) };
        // Of several versions of a key the newest one counts.
        if !self.deleted.contains(place)
            && let Some(staged) = self.staged.get_mut(place)
            && staged.resource_version().is_older_than(known.resource_version())
        {
            *staged = known;
        }
    }

    /// Stages an object of the list, or of an event that arrived before the list was complete. Of several versions of a key
    /// the newest one counts.
    pub fn stage(&mut self, object: Arc<Object>) {
        let known = self.known(object.key());
        let Some(place) = self.place(object.key().as_str()) else {
            if let Some((slot, known)) = known
                // An equal object is one bit instead of a staged one: most objects of a re-list are equal.
                && (self.is_behind_kept(slot, &object, &known)
                    || !(Self::is_change(self.is_restored, &object, &known)
                        || Self::goes_back(&object, &known)
                        || self.is_revision(&object, &known)))
            {
                self.kept.set(slot);
                return;
            }
            return self.push(object, None);
        };
        // The commit goes by the mark of a revision, and each event of a key has an object of its own to mark.
        if let Some((_, known)) = &known {
            self.is_revision(&object, known);
        }
        let Some(staged) = self.staged.get_mut(place) else { return };
        // A deletion by key staged the cached object. After a restored backup the version of that object is not comparable
        // with the list's versions, so the later statement counts.
        let is_of_another_past =
            self.is_restored && known.is_some_and(|(_, known)| Arc::ptr_eq(&known, staged));
        if !is_of_another_past && object.resource_version().is_older_than(staged.resource_version()) {
            return;
        }
        // The object came back after its deletion. A new place keeps the order of the stream.
        if self.deleted.contains(place) {
            self.push(object, Some(place));
        } else {
            *staged = object;
        }
    }

    /// Stages a deletion by an event that arrived before the list was complete. `object` is the last state of the object.
    pub fn delete(&mut self, object: Arc<Object>) {
        if let Some(place) = self.place(object.key().as_str()) {
            if let Some(staged) = self.staged.get_mut(place)
                && !object.resource_version().is_older_than(staged.resource_version())
            {
                *staged = object;
                self.deleted.set(place);
            }
            return;
        }
        if let Some((slot, known)) = self.known(object.key())
            && !self.is_behind_kept(slot, &object, &known)
            // A deletion before the cached version is not the last word: the cache has a later state. After a restored
            // backup the versions cannot be compared, and the event is the later statement.
            && (self.is_restored || !object.resource_version().is_older_than(known.resource_version()))
        {
            self.kept.clear(slot);
            self.push_deleted(object);
        }
    }

    /// As [`Replace::delete`], for an event without the last state of the object. The last state is then the one that was
    /// listed before the event, or the cached one.
    pub fn delete_key(&mut self, key: &ObjectKey, version: &ResourceVersion) {
        if let Some(place) = self.place(key.as_str()) {
            if let Some(staged) = self.staged.get(place)
                && !version.is_older_than(staged.resource_version())
            {
                self.deleted.set(place);
            }
            return;
        }
        if let Some((slot, known)) = self.known(key)
            && (!version.is_older_than(known.resource_version())
                || self.is_restored && !self.kept.contains(slot))
        {
            self.kept.clear(slot);
            self.push_deleted(known);
        }
    }

    /// Whether the list's object has other content at the version that is known (contract L14). If so, it is marked as
    /// revised.
    fn is_revision(&mut self, listed: &Object, known: &Object) -> bool {
        let is_again = !listed.resource_version().is_unset()
            && listed.resource_version() == known.resource_version()
            && !self.is_restored;
        // Another version is news by itself. The hash is that of the bytes as received, so a difference proves little.
        let Some(hash) = listed.content().hash().filter(|_| is_again) else { return false };
        let comparison = known.content().compare(hash);
        if comparison == Comparison::Same {
            return false;
        }
        if known.says_the_same(listed) {
            // The same values in other bytes: the hash is remembered, so that the next list needs no comparison of trees.
            known.content().settle(hash);
            return false;
        }
        if comparison == Comparison::Differs && !self.expects_revisions {
            match known.content().differs(hash) {
                Difference::Revision => {}
                Difference::Unsteady => {
                    self.unsteady.push(listed.key().clone());
                    return false;
                }
                Difference::StillUnsteady => return false,
            }
        }
        listed.content().revise();
        true
    }

    /// The objects that have other content at each list, unless that was reported before.
    pub(crate) fn take_unsteady(&mut self) -> Vec<ObjectKey> {
        std::mem::take(&mut self.unsteady)
    }

    /// The number of staged objects.
    pub fn staged_len(&self) -> usize {
        self.by_key.len()
    }

    /// The number of cached objects that stay, because the list has them unchanged. O(slots / 64).
    pub fn kept_len(&self) -> usize {
        self.kept.len()
    }

    /// The source of this list.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// Whether the listed object differs from the cached one. After a restored backup the same version may mean another
    /// state.
    pub(super) fn is_change(is_restored: bool, listed: &Object, known: &Object) -> bool {
        if is_restored {
            listed.resource_version() != known.resource_version()
                || listed.uid() != known.uid()
                || !listed.same_content(known)
        } else {
            is_news(listed, known) || listed.revises(known)
        }
    }

    /// Whether the listed object is older than the cached one. If the list as a whole is not older, the server was restored
    /// from a backup without the reflector noticing it (contract L12).
    pub(super) fn goes_back(listed: &Object, known: &Object) -> bool {
        listed.resource_version().is_older_than(known.resource_version())
    }

    /// Whether the list has kept the cached object, and this object is older.
    fn is_behind_kept(&self, slot: u32, object: &Object, known: &Object) -> bool {
        self.kept.contains(slot) && object.resource_version().is_older_than(known.resource_version())
    }

    fn known(&self, key: &ObjectKey) -> Option<(u32, Arc<Object>)> {
        self.cache.shared.read().locate(key.as_str()).map(|(slot, object)| (slot, object.clone()))
    }

    fn place(&self, key: &str) -> Option<u32> {
        // The usual list finds all objects unchanged and stages none. Then no key needs to be hashed.
        if self.by_key.is_empty() {
            return None;
        }
        self.by_key.find(self.hasher.hash_one(key), |&place| self.staged.key_at(place) == Some(key)).copied()
    }

    fn push_deleted(&mut self, last: Arc<Object>) {
        self.deleted.set(self.staged.len());
        self.push(last, None);
    }

    /// Appends the latest version of a key, and empties its former place.
    fn push(&mut self, object: Arc<Object>, former: Option<u32>) {
        let place = self.staged.len();
        let hash = self.hasher.hash_one(object.key().as_str());
        self.staged.push(object);
        if let Some(former) = former {
            self.staged.clear(former);
            // The key's entry stays and points to the new place, so the number of entries is the number of staged keys.
            if let Some(entry) = self.by_key.find_mut(hash, |&other| other == former) {
                *entry = place;
            }
            return;
        }
        let (staged, hasher) = (&self.staged, &self.hasher);
        let rehash = |&place: &u32| staged.key_at(place).map_or(0, |key| hasher.hash_one(key));
        self.by_key.insert_unique(hash, place, rehash);
    }
}

impl Staged {
    /// The next place.
    fn len(&self) -> u32 {
        let Some((last, full)) = self.0.split_last() else { return 0 };
        u32::try_from(full.len() * CHUNK + last.len()).unwrap_or(u32::MAX)
    }

    fn get(&self, place: u32) -> Option<&Arc<Object>> {
        self.0.get(place as usize / CHUNK)?.get(place as usize % CHUNK)?.as_ref()
    }

    fn place_mut(&mut self, place: u32) -> Option<&mut Option<Arc<Object>>> {
        self.0.get_mut(place as usize / CHUNK)?.get_mut(place as usize % CHUNK)
    }

    fn get_mut(&mut self, place: u32) -> Option<&mut Arc<Object>> {
        self.place_mut(place)?.as_mut()
    }

    fn clear(&mut self, place: u32) {
        self.place_mut(place).and_then(Option::take);
    }

    fn key_at(&self, place: u32) -> Option<&str> {
        Some(self.get(place)?.key().as_str())
    }

    fn push(&mut self, object: Arc<Object>) {
        match self.0.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(Some(object)),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(Some(object));
                self.0.push(chunk);
            }
        }
    }

    /// All places, with the empty ones.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Option<Arc<Object>>> {
        self.0.iter_mut().flatten()
    }

    /// All places, with the empty ones.
    pub(super) fn into_iter(self) -> impl Iterator<Item = Option<Arc<Object>>> {
        self.0.into_iter().flatten()
    }
}

impl std::fmt::Debug for Replace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replace({} staged for {:?})", self.staged_len(), self.source)
    }
}

/// A set of slots or places, one bit each.
#[derive(Clone, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// In ascending order.
    pub(super) fn into_iter(self) -> BitsIter {
        BitsIter { len: self.len(), words: self.0.into_iter(), word: 0, end: 0 }
    }

    pub(super) fn contains(&self, slot: u32) -> bool {
        self.0.get(slot as usize / 64).is_some_and(|word| word & (1 << (slot % 64)) != 0)
    }

    pub(super) fn set(&mut self, slot: u32) {
        let at = slot as usize / 64;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        if let Some(word) = self.0.get_mut(at) {
            *word |= 1 << (slot % 64);
        }
    }

    pub(super) fn clear(&mut self, slot: u32) {
        if let Some(word) = self.0.get_mut(slot as usize / 64) {
            *word &= !(1 << (slot % 64));
        }
    }
}

impl FromIterator<u32> for Bits {
    fn from_iter<I: IntoIterator<Item = u32>>(slots: I) -> Self {
        let mut bits = Self::default();
        slots.into_iter().for_each(|slot| bits.set(slot));
        bits
    }
}

/// The slots of a set, in ascending order.
pub(super) struct BitsIter {
    words: vec::IntoIter<u64>,
    /// The bits of the last taken word that are left.
    word: u64,
    /// The first slot after that word.
    end: u32,
    len: usize,
}

impl Iterator for BitsIter {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.word == 0 {
            self.word = self.words.next()?;
            self.end += 64;
        }
        let slot = self.end - 64 + self.word.trailing_zeros();
        self.word &= self.word - 1;
        self.len -= 1;
        Some(slot)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for BitsIter {}
