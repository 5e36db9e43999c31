//! A list on its way in.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::cache::Cache;
use super::sources::SourceId;
use super::state::is_news;
use crate::{Object, ObjectKey, ResourceVersion};

/// Collects a (re-)list of one source, to be applied in one step by [`Store::commit`](super::Store::commit).
///
/// Holds the objects that changed, and one bit for each that did not. Readers see nothing of it; dropping it discards
/// it.
pub struct Replace {
    pub(super) cache: Cache,
    pub(super) source: SourceId,
    /// While any of these exists, the store gives no slot to another key, so that a kept slot stays what it was.
    pub(super) pins_slots: Arc<()>,
    pub(super) is_restored: bool,
    pub(super) kept: Bits,
    /// In list order. An object that was listed and deleted, and then listed again, has an empty place.
    pub(super) staged: Vec<Option<Staged>>,
    /// Places in `staged`.
    by_key: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

pub(super) struct Staged {
    pub(super) object: Arc<Object>,
    pub(super) is_deleted: bool,
}

impl Replace {
    pub(super) fn new(cache: Cache, source: SourceId, pins_slots: Arc<()>, is_restored: bool) -> Self {
        let hasher = cache.shared.read().hasher.clone();
        Self {
            cache,
            source,
            pins_slots,
            is_restored,
            kept: Bits::default(),
            staged: Vec::new(),
            by_key: HashTable::new(),
            hasher,
        }
    }

    /// The list has this version of this key. Whether the cache has it as well: then it stays, and there is nothing to
    /// decode or to stage (contract L10). O(1).
    #[must_use = "what is not kept has to be staged"]
    pub fn keep_unchanged(&mut self, key: &str, version: &ResourceVersion) -> bool {
        !self.is_restored
            && !version.is_unset()
            && self.keep_if(key, |known| known.resource_version() == version)
    }

    /// The list has this key, in whatever version: what the cache has of it stays. Whether it has anything. O(1).
    pub fn keep(&mut self, key: &str) -> bool {
        self.keep_if(key, |_| true)
    }

    fn keep_if(&mut self, key: &str, is_right: impl FnOnce(&Object) -> bool) -> bool {
        if self.place(key).is_some() {
            return false;
        }
        let state = self.cache.shared.read();
        let Some((slot, _)) = state.locate(key).filter(|(_, object)| is_right(object)) else { return false };
        self.kept.set(slot);
        true
    }

    /// The list has this key, in a version that cannot be read: whatever the cache has of it stays. Not so after a restore
    /// from a backup, where that may be of a past that the server has not had, and no later version be news. O(1).
    pub fn keep_cached(&mut self, key: &ObjectKey) {
        if !self.is_restored
            && self.place(key.as_str()).is_none()
            && let Some((slot, _)) = self.known(key)
        {
            self.kept.set(slot);
        }
    }

    /// The list has this object, or an event told of it before the list was complete. Of several versions of a key the
    /// newest counts.
    pub fn stage(&mut self, object: Arc<Object>) {
        let Some(place) = self.place(object.key().as_str()) else {
            let known = self.known(object.key());
            if let Some((slot, known)) = known
                && (self.is_behind_kept(slot, &object, &known)
                    || !Self::is_change(self.is_restored, &object, &known))
            {
                self.kept.set(slot);
                return;
            }
            return self.push(Staged { object, is_deleted: false }, None);
        };
        let Some(Some(staged)) = self.staged.get_mut(place) else { return };
        if object.resource_version().is_older_than(staged.object.resource_version()) {
            return;
        }
        if staged.is_deleted {
            self.push(Staged { object, is_deleted: false }, Some(place));
        } else {
            staged.object = object;
        }
    }

    /// An event told of the object's deletion before the list was complete; `object` is its last state.
    pub fn delete(&mut self, object: Arc<Object>) {
        if let Some(place) = self.place(object.key().as_str()) {
            if let Some(Some(staged)) = self.staged.get_mut(place)
                && !object.resource_version().is_older_than(staged.object.resource_version())
            {
                *staged = Staged { object, is_deleted: true };
            }
            return;
        }
        if let Some((slot, known)) = self.known(object.key())
            && !self.is_behind_kept(slot, &object, &known)
            && (self.is_restored || !object.resource_version().is_older_than(known.resource_version()))
        {
            self.kept.clear(slot);
            self.push(Staged { object, is_deleted: true }, None);
        }
    }

    /// The number of objects that are held to be applied.
    pub fn staged_len(&self) -> usize {
        self.by_key.len()
    }

    /// The source whose list this is.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// Whether the list's object differs from the cache's. After a restore from a backup the same version may mean
    /// another state.
    pub(super) fn is_change(is_restored: bool, listed: &Object, known: &Object) -> bool {
        if is_restored {
            listed.resource_version() != known.resource_version()
                || listed.uid() != known.uid()
                || !listed.same_content(known)
        } else {
            is_news(listed, known)
        }
    }

    /// The list has had what the cache has, and this is older.
    fn is_behind_kept(&self, slot: u32, object: &Object, known: &Object) -> bool {
        self.kept.contains(slot) && object.resource_version().is_older_than(known.resource_version())
    }

    fn known(&self, key: &ObjectKey) -> Option<(u32, Arc<Object>)> {
        self.cache.shared.read().locate(key.as_str()).map(|(slot, object)| (slot, object.clone()))
    }

    fn place(&self, key: &str) -> Option<usize> {
        if self.by_key.is_empty() {
            return None;
        }
        self.by_key
            .find(self.hasher.hash_one(key), |&place| key_at(&self.staged, place) == Some(key))
            .copied()
    }

    /// Appends what is the latest of its key; its former place is emptied.
    fn push(&mut self, staged: Staged, former: Option<usize>) {
        let place = self.staged.len();
        let hash = self.hasher.hash_one(staged.object.key().as_str());
        self.staged.push(Some(staged));
        if let Some(former) = former {
            if let Some(former) = self.staged.get_mut(former) {
                *former = None;
            }
            if let Some(entry) = self.by_key.find_mut(hash, |&other| other == former) {
                *entry = place;
            }
            return;
        }
        let (staged, hasher) = (&self.staged, &self.hasher);
        let rehash = |&place: &usize| key_at(staged, place).map_or(0, |key| hasher.hash_one(key));
        self.by_key.insert_unique(hash, place, rehash);
    }
}

fn key_at(staged: &[Option<Staged>], place: usize) -> Option<&str> {
    Some(staged.get(place)?.as_ref()?.object.key().as_str())
}

impl std::fmt::Debug for Replace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replace({} staged for {:?})", self.staged_len(), self.source)
    }
}

/// A set of slots, one bit each.
#[derive(Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
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
