//! A share of a collection: the objects whose hash is in some ranges. Several processes that divide all hashes among
//! themselves divide the objects.
//!
//! Hash and selector are those of Kubernetes' `shardSelector` (KEP-5866).

use std::fmt;
use std::str::FromStr;

use crate::{DecodeError, Object, ObjectKey};

use kube_selector::{ShardBy, ShardSelector};

pub use kube_selector::{HashRange, InvalidRange, Ranges, hash};

/// Which value of an object is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShareBy {
    /// `metadata.uid`: the objects of each namespace are divided. Never changes during the life of an object.
    Uid,
    /// `metadata.namespace`: all objects of a namespace are in one share, of whatever kind. Objects without namespace are all
    /// in one. Never changes.
    Namespace,
    /// The uid of the owner that controls the object (`metadata.ownerReferences` with `controller: true`): objects are in the
    /// share that has their owner by its uid. An object without such an owner is in no share. The owner may change
    /// (adoption, orphaning), and the share with it. No server selects by it.
    ControllerUid,
}

/// The objects of a collection whose hash is in some ranges.
///
/// ```
/// # use informer_core as informer;
/// use informer::Object;
/// use informer::share::{HashRange, Share, ShareBy};
///
/// let lower = Share::new(ShareBy::Namespace, HashRange::new(0, 1 << 63)?);
/// let pod = Object::from_json(br#"{"kind":"Pod","metadata":{"name":"cart","namespace":"shop"}}"#)?;
/// assert_eq!(lower.has(&pod), informer::share::hash("shop") < 1 << 63);
/// assert_eq!(
///     lower.selector().as_deref(),
///     Some("shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')"),
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Share {
    by: ShareBy,
    ranges: Ranges,
}

/// An object that cannot be assigned to a share. Never holds any of the object's content.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Unhashable {
    /// It has no uid.
    #[error("{0} has no uid, so it belongs to no share")]
    NoUid(ObjectKey),
    /// Its owners are undecodable.
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
}

impl Share {
    /// The objects whose hash is in these ranges.
    pub fn new(by: ShareBy, ranges: impl Into<Ranges>) -> Self {
        Self { by, ranges: ranges.into() }
    }

    /// Which value of an object is hashed.
    pub fn by(&self) -> ShareBy {
        self.by
    }

    /// The ranges of hashes.
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// The same ranges of another value's hash: `share.of(ShareBy::ControllerUid)` has what the objects of a share by uid
    /// own.
    #[must_use]
    pub fn of(&self, by: ShareBy) -> Self {
        Self { by, ranges: self.ranges.clone() }
    }

    /// The hash of an object's value; `None` if the object has no such value, and so is in no share.
    ///
    /// # Errors
    ///
    /// When the object has no uid, or its owners are undecodable.
    pub fn hash_of(&self, object: &Object) -> Result<Option<u64>, Unhashable> {
        match self.by {
            ShareBy::Uid if object.uid().is_unset() => Err(Unhashable::NoUid(object.key().clone())),
            ShareBy::Uid => Ok(Some(hash(&object.uid().to_string()))),
            ShareBy::Namespace => Ok(Some(hash(object.key().namespace().unwrap_or_default()))),
            ShareBy::ControllerUid => Ok(object.controller_uid()?.map(|uid| hash(&uid.to_string()))),
        }
    }

    /// Whether an object is in the share. One that is [`Unhashable`] is not.
    pub fn has(&self, object: &Object) -> bool {
        self.hash_of(object).ok().flatten().is_some_and(|hash| self.ranges.contains(hash))
    }

    /// The value of the parameter `shardSelector` that asks a server for this share. `None` if no selector can: by
    /// [`ShareBy::ControllerUid`], and for no hash at all.
    pub fn selector(&self) -> Option<String> {
        let by = match self.by {
            ShareBy::Uid => ShardBy::Uid,
            ShareBy::Namespace => ShardBy::Namespace,
            ShareBy::ControllerUid => return None,
        };
        let ranges: Vec<_> = self.ranges.iter().collect();
        (!ranges.is_empty()).then(|| ShardSelector { by, ranges }.to_string())
    }
}

/// As in `uid 0x0000000000000000-0x8000000000000000`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nothing = if self.ranges.is_empty() { "none" } else { "" };
        write!(f, "{} {}{nothing}", self.by, self.ranges)
    }
}

/// `uid`, `namespace` or `controllerUid`.
impl fmt::Display for ShareBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Uid => "uid",
            Self::Namespace => "namespace",
            Self::ControllerUid => "controllerUid",
        })
    }
}

/// A string that names no [`ShareBy`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of `uid`, `namespace` and `controllerUid`")]
pub struct UnknownShareBy(String);

impl FromStr for ShareBy {
    type Err = UnknownShareBy;

    fn from_str(text: &str) -> Result<Self, UnknownShareBy> {
        let all = [Self::Uid, Self::Namespace, Self::ControllerUid];
        all.into_iter().find(|by| by.to_string() == text).ok_or_else(|| UnknownShareBy(text.to_owned()))
    }
}

#[cfg(test)]
mod tests;
