//! The content of one version as received, hashed into eight bytes: it shows a change without a write (contract L14).
//!
//! An unchanged resourceVersion means that nothing wrote the object; it does not mean that its bytes are equal. The defaults,
//! pruning or conversion of a CRD, or a newer server, change what is served at the same version (design D19). Each list
//! compares a hash of the bytes as received, so that equal content need not be decoded.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

/// The key of the hashes of one cache. It is random, so that content cannot be crafted to collide with other content. A save
/// includes it, so that hashes can be compared after a load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ContentKey(pub(crate) u64);

impl ContentKey {
    /// A new key.
    pub(crate) fn random() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }
}

impl fmt::Debug for ContentKey {
    /// Prints no key: a key in a log would protect nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentKey")
    }
}

/// Hashes contents with the key of one cache. Each encoding has its own key, because equal bytes in two encodings mean
/// different content.
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
/// The object agrees with these bytes, as far as is known.
const SETTLED: u64 = 0;
/// A list brought the object at the cached version with other content, and no list has confirmed that content since.
const REVISED: u64 = 1;
/// The last list had these bytes at this version, and the object differs from them: each list had other content.
const UNSTEADY: u64 = 2;

/// The record of an object's content: the hash that a list last had for this version, and how it relates to the object.
///
/// The record changes in place: an object that others hold is updated when a list brings equal content in other bytes.
#[derive(Default)]
pub(crate) struct ContentRecord(AtomicU64);

/// The result of comparing a list's item with the cached object of the same version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The cached object has this content.
    Same,
    /// The bytes differ from the former ones: the trees decide whether the content does.
    Differs,
    /// The bytes equal those of the previous list, whose content the cache did not take over.
    SteadyAgain,
}

/// The treatment of an item whose tree differs from the cached object's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Apply it as a change.
    Revision,
    /// Do not apply it, because the content differs at each list; report that.
    Unsteady,
    /// As `Unsteady`, and reported before.
    StillUnsteady,
}

impl ContentRecord {
    pub(crate) fn settled(ContentHash(hash): ContentHash) -> Self {
        Self(AtomicU64::new(hash | SETTLED))
    }

    /// Notes that a list brought the object at the cached version with other content.
    pub(crate) fn revise(&self) {
        self.0.fetch_or(REVISED, Ordering::Relaxed);
    }

    /// The hash; `None` where the bytes did not come from a server.
    pub(crate) fn hash(&self) -> Option<ContentHash> {
        Some(self.to_saved() & !STANDING).filter(|hash| *hash != 0).map(ContentHash)
    }

    /// The record of a saved object.
    pub(crate) fn from_saved(saved: u64) -> Self {
        Self(AtomicU64::new(saved))
    }

    /// The record as a save writes it; zero where nothing is known.
    pub(crate) fn to_saved(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Compares a list's item with this hash. A revised object is settled once another list has the same content.
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

    /// Notes that these bytes say the same as the object.
    pub(crate) fn settle(&self, hash: ContentHash) {
        self.0.store(hash.0 | SETTLED, Ordering::Relaxed);
    }

    /// Notes that these bytes, and their tree, differ from the object.
    pub(crate) fn differs(&self, hash: ContentHash) -> Difference {
        let standing = self.0.load(Ordering::Relaxed) & STANDING;
        if standing == SETTLED {
            return Difference::Revision;
        }
        self.0.store(hash.0 | UNSTEADY, Ordering::Relaxed);
        if standing == REVISED { Difference::Unsteady } else { Difference::StillUnsteady }
    }

    /// Whether this object came by a list at the version of `known`, and has other content.
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
