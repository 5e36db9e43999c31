//! The writes of a reconciliation, and whether caches reflect them.

use std::sync::Arc;

use crate::{Object, ObjectKey, ResourceVersion, Uid};

/// A write of a reconciliation that the next one of the same key has to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnWrite {
    /// The object has this version, or a later one.
    Written {
        /// The number of the cache.
        cache: usize,
        /// The object.
        key: ObjectKey,
        /// The version that the server returned.
        version: ResourceVersion,
    },
    /// This incarnation of the object is gone.
    Gone {
        /// The number of the cache.
        cache: usize,
        /// The object.
        key: ObjectKey,
        /// Its incarnation.
        uid: Uid,
    },
    /// The server had no such object at this version, after a request without an answer.
    Absent {
        /// The number of the cache.
        cache: usize,
        /// The object.
        key: ObjectKey,
        /// The version of the server's answer.
        version: ResourceVersion,
    },
    /// A request without an answer: the server may have carried it out. Somebody has to ask it.
    Uncertain {
        /// The number of the cache.
        cache: usize,
        /// The namespace of the object.
        namespace: Option<String>,
        /// Its name; `None` if the server was to generate one.
        name: Option<String>,
    },
}

/// The caches of a controller, by number.
pub trait CacheStates {
    /// An object, as a cache has it.
    fn object(&self, cache: usize, key: &ObjectKey) -> Option<Arc<Object>>;

    /// The version up to which a cache knows everything.
    fn version(&self, cache: usize) -> ResourceVersion;
}

/// An object, as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The object.
    pub key: ObjectKey,
    /// Its version.
    pub version: ResourceVersion,
}

impl OwnWrite {
    /// Whether the caches reflect the write.
    pub fn is_reflected(&self, caches: &impl CacheStates) -> bool {
        match self {
            Self::Written { cache, key, version } | Self::Absent { cache, key, version } => {
                let has_it = match caches.object(*cache, key) {
                    Some(object) => reaches(object.resource_version(), version),
                    None => matches!(self, Self::Absent { .. }),
                };
                has_it || reaches(&caches.version(*cache), version)
            }
            Self::Gone { cache, key, uid } => {
                caches.object(*cache, key).is_none_or(|object| object.uid() != uid)
            }
            Self::Uncertain { .. } => false,
        }
    }

    /// The writes to wait for in place of an uncertain one, by the objects of its name that the server has at this version.
    pub fn resolve(&self, found: &[Found], at: &ResourceVersion) -> Vec<Self> {
        let Self::Uncertain { cache, namespace, name } = self else { return vec![self.clone()] };
        let cache = *cache;
        if found.is_empty() {
            // Somebody has deleted it, so it has to leave the cache, where former incarnations may go first.
            let key = name.as_ref().and_then(|name| ObjectKey::new(namespace.as_deref(), name).ok());
            let absent = |key| Self::Absent { cache, key, version: at.clone() };
            return key.map(absent).into_iter().collect();
        }
        let written =
            |found: &Found| Self::Written { cache, key: found.key.clone(), version: found.version.clone() };
        found.iter().map(written).collect()
    }

    /// Whether the caches will never reflect the write. The server has lost it, because it was restored from a backup; or a
    /// cache keeps a deleted incarnation, because it cannot read the next one, which it knows. `current` is the newest version
    /// of the server, `found` has its objects of this name.
    pub fn is_moot(&self, current: &ResourceVersion, found: &[Found], caches: &impl CacheStates) -> bool {
        match self {
            Self::Written { version, .. } => current.is_older_than(version),
            Self::Gone { cache, .. } | Self::Absent { cache, .. } => {
                found.iter().any(|found| reaches(&caches.version(*cache), &found.version))
            }
            Self::Uncertain { .. } => false,
        }
    }
}

/// Versions that cannot be compared never block, as in Kubernetes' own controllers (KEP-5504 makes all comparable).
fn reaches(current: &ResourceVersion, version: &ResourceVersion) -> bool {
    !current.is_unset() && (current.is_at_least(version) || current.compare(version).is_none())
}
