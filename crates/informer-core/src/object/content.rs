//! The content of one version as it came, in eight bytes: what tells that it changed though nobody wrote (contract L14).
//!
//! A resourceVersion says that nobody wrote the object, not that its bytes are equal: a definition's defaults, pruning or
//! conversion, or a newer server, change what is read at the same version (design D19). Each list compares a hash of the
//! bytes as received, so that what is equal is not decoded.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

/// The key of the hashes of one cache. Random, so that nobody can prepare a content that passes for another one; kept with
/// what is saved, so that hashes can be compared after a load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ContentKey(pub(crate) u64);

impl ContentKey {
    /// A new key.
    pub(crate) fn random() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }
}

impl fmt::Debug for ContentKey {
    /// A key that stands in a log is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentKey")
    }
}

/// Hashes contents with the key of one cache: another key for each encoding, since equal bytes of two are not equal.
pub(crate) struct ContentHasher {
    json: RapidSecrets,
    protobuf: RapidSecrets,
}

impl ContentHasher {
    pub(crate) fn new(ContentKey(key): ContentKey) -> Self {
        Self { json: RapidSecrets::seed(key), protobuf: RapidSecrets::seed(!key) }
    }

    pub(crate) fn json(&self, bytes: &[u8]) -> ContentHash {
        ContentHash::of(rapidhash_v3_seeded(bytes, &self.json))
    }

    pub(crate) fn protobuf(&self, bytes: &[u8]) -> ContentHash {
        ContentHash::of(rapidhash_v3_seeded(bytes, &self.protobuf))
    }
}

/// The hash of a content and of its encoding: the upper 62 bits, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentHash(u64);

impl ContentHash {
    fn of(hash: u64) -> Self {
        Self((hash & !STANDING).max(STANDING + 1))
    }
}

/// The lower two bits of a [`ContentRecord`].
const STANDING: u64 = 0b11;
/// The object is what these bytes say, as far as is known.
const SETTLED: u64 = 0;
/// A list brought it at the version that the cache had with another content, and no list since had it like that again.
const REVISED: u64 = 1;
/// The last list had these bytes at this version, and the object is not what they say: each list had others.
const UNSTEADY: u64 = 2;

/// What is remembered with each object: the hash that a list last had for this version, and how it stands to the object.
///
/// It changes in place: an object that others hold learns that an equal content has come in other bytes.
#[derive(Default)]
pub(crate) struct ContentRecord(AtomicU64);

/// What a list's item at the version that the cache has means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The cache has it like that.
    Same,
    /// The bytes are others than before: the trees say whether the content is.
    Differs,
    /// The bytes are those of the list before, of which the cache did not follow any.
    SteadyAgain,
}

/// What becomes of an item whose tree is not the object's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// A change.
    Revision,
    /// Not one: it differs at each list. Worth a report.
    Unsteady,
    /// The same, which is reported already.
    StillUnsteady,
}

impl ContentRecord {
    pub(crate) fn settled(ContentHash(hash): ContentHash) -> Self {
        Self(AtomicU64::new(hash | SETTLED))
    }

    /// A list brought the object at the version that the cache had with another content.
    pub(crate) fn revise(&self) {
        self.0.fetch_or(REVISED, Ordering::Relaxed);
    }

    /// `None` where the bytes did not come from a server.
    pub(crate) fn hash(&self) -> Option<ContentHash> {
        Some(self.to_saved() & !STANDING).filter(|hash| *hash != 0).map(ContentHash)
    }

    /// As it was saved.
    pub(crate) fn from_saved(saved: u64) -> Self {
        Self(AtomicU64::new(saved))
    }

    /// As it is saved; zero where nothing is known.
    pub(crate) fn to_saved(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// What a list's item with this hash means. One that was revised is settled once a list has it like that again.
    #[inline]
    pub(crate) fn compare(&self, hash: ContentHash) -> Comparison {
        let content = self.0.load(Ordering::Relaxed);
        match (content & !STANDING == hash.0, content & STANDING) {
            (true, SETTLED) => Comparison::Same,
            (true, UNSTEADY) => Comparison::SteadyAgain,
            (true, _) => {
                self.settle(hash);
                Comparison::Same
            }
            (false, _) => Comparison::Differs,
        }
    }

    /// These bytes say the same as the object.
    pub(crate) fn settle(&self, hash: ContentHash) {
        self.0.store(hash.0 | SETTLED, Ordering::Relaxed);
    }

    /// These bytes differ, and so do the trees.
    pub(crate) fn differs(&self, hash: ContentHash) -> Difference {
        let standing = self.0.load(Ordering::Relaxed) & STANDING;
        if standing == SETTLED {
            return Difference::Revision;
        }
        self.0.store(hash.0 | UNSTEADY, Ordering::Relaxed);
        if standing == REVISED { Difference::Unsteady } else { Difference::StillUnsteady }
    }

    /// Whether this came by a list at the version of `known`, and is not `known`.
    pub(crate) fn revises(&self, known: &Self) -> bool {
        let (ours, theirs) = (self.to_saved(), known.to_saved());
        ours & STANDING == REVISED
            && (ours & !STANDING != theirs & !STANDING || theirs & STANDING == UNSTEADY)
    }
}

impl Clone for ContentRecord {
    fn clone(&self) -> Self {
        Self::from_saved(self.to_saved())
    }
}
