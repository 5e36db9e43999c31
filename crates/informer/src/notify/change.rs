//! The changes of which a subscription is notified.

use std::fmt;
use std::sync::Arc;

use informer_core::{DecodeError, Object, ObjectKey, Origin, ResourceVersion, Room, Shelf, Uid, View};

use crate::notify::deleted::Deleted;
use crate::read::generated::Generated;
use crate::read::item::Item;

/// One notification of a subscription.
///
/// The changes of one key come in the server's order and form a legal chain: added, updated any number of times, deleted,
/// added again. States in between may be coalesced ([`Subscribe`](crate::Subscribe) describes when), but the last state
/// never is.
///
/// ```
/// use informer::Change;
///
/// fn line<T>(change: &Change<T>) -> Option<String> {
///     let key = change.key()?;
///     Some(match (change.old(), change.new()) {
///         (None, Some(new)) => format!("+ {key} at {}", new.resource_version()),
///         (Some(old), Some(new)) => format!("~ {key} {} -> {}", old.resource_version(), new.resource_version()),
///         (Some(_), None) => format!("- {key}"),
///         (None, None) => format!("? {key}"),
///     })
/// }
/// ```
#[non_exhaustive]
pub enum Change<T> {
    /// The object exists, and was not part of this subscription before.
    Added {
        /// The object.
        new: Item<T>,
        /// Whether it belongs to the initial list of this subscription.
        initial: bool,
        /// How it became known.
        origin: Origin,
    },
    /// The object has another version. If it was deleted and created again in between, the uids differ.
    Updated {
        /// The version that this subscription was notified of before.
        old: Previous<T>,
        /// The version now.
        new: Item<T>,
        /// How it became known.
        origin: Origin,
    },
    /// The object is gone from this subscription. [`Deleted::reason`] says whether it was deleted.
    Deleted(Deleted<T>),
    /// The resync period has passed; nothing has changed.
    Resynced(Item<T>),
    /// The initial list is complete.
    Synced,
    /// This many changes were dropped, because the reader was too slow for the delivery that it chose. Read a snapshot.
    Lagged(u64),
    /// A version does not decode as a `T` and was left out. The chain continues with the next version that decodes.
    Undecodable(DecodeError),
}

impl<T> Change<T> {
    /// The key of the object; `None` for [`Change::Synced`] and [`Change::Lagged`].
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } | Self::Resynced(new) => Some(new.key()),
            Self::Deleted(deleted) => Some(deleted.key()),
            Self::Undecodable(error) => Some(error.key()),
            Self::Synced | Self::Lagged(_) => None,
        }
    }

    /// The previous state, for an update or a deletion. `None` for all other changes; a resync has none because nothing has
    /// changed.
    pub fn old(&self) -> Option<Previous<T>> {
        match self {
            Self::Updated { old, .. } => Some(old.clone()),
            Self::Deleted(deleted) => Some(Previous::known(deleted.last())),
            _ => None,
        }
    }

    /// The current state, for an addition, an update or a resync.
    #[expect(clippy::new_ret_no_self, reason = "the counterpart of `old`, not a constructor")]
    pub fn new(&self) -> Option<&Item<T>> {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } | Self::Resynced(new) => Some(new),
            _ => None,
        }
    }
}

impl<T> Clone for Change<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { new, initial, origin } => {
                Self::Added { new: new.clone(), initial: *initial, origin: *origin }
            }
            Self::Updated { old, new, origin } => {
                Self::Updated { old: old.clone(), new: new.clone(), origin: *origin }
            }
            Self::Deleted(deleted) => Self::Deleted(deleted.clone()),
            Self::Resynced(item) => Self::Resynced(item.clone()),
            Self::Synced => Self::Synced,
            Self::Lagged(dropped) => Self::Lagged(*dropped),
            Self::Undecodable(error) => Self::Undecodable(error.clone()),
        }
    }
}

impl<T> fmt::Debug for Change<T> {
    /// Names objects and versions. Content is never printed: it may be a Secret's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { new, initial, origin } => {
                let mut added = f.debug_struct("Added");
                added.field("new", new).field("initial", initial).field("origin", origin).finish()
            }
            Self::Updated { old, new, origin } => {
                let mut updated = f.debug_struct("Updated");
                updated.field("old", old).field("new", new).field("origin", origin).finish()
            }
            Self::Deleted(deleted) => fmt::Debug::fmt(deleted, f),
            Self::Resynced(item) => f.debug_tuple("Resynced").field(item).finish(),
            Self::Synced => f.write_str("Synced"),
            Self::Lagged(dropped) => f.debug_tuple("Lagged").field(dropped).finish(),
            Self::Undecodable(error) => f.debug_tuple("Undecodable").field(error).finish(),
        }
    }
}

/// The state before a change, decoded when [`Previous::get`] is called. Its key, uid and version need no decoding.
pub struct Previous<T> {
    object: Arc<Object>,
    value: Value<T>,
}

enum Value<T> {
    /// Already decoded.
    Known(Arc<T>),
    On(Arc<Shelf>),
}

impl<T: View> Previous<T> {
    /// The state as a `T`: the hot value, or else a freshly decoded one.
    ///
    /// # Errors
    ///
    /// When the state does not decode as a `T`. A state that this subscription was notified of did decode.
    pub fn get(&self) -> Result<Item<T>, DecodeError> {
        let value = match &self.value {
            Value::Known(value) => value.clone(),
            Value::On(shelf) => T::of::<Generated>(&self.object, shelf, Room::IfFree)?,
        };
        Ok(Item::new(value, self.object.clone()))
    }
}

impl<T> Previous<T> {
    pub(crate) fn new(object: Arc<Object>, shelf: Arc<Shelf>) -> Self {
        Self { object, value: Value::On(shelf) }
    }

    fn known(item: &Item<T>) -> Self {
        Self { object: item.object().clone(), value: Value::Known(item.value().clone()) }
    }

    /// The object's namespace and name.
    pub fn key(&self) -> &ObjectKey {
        self.object.key()
    }

    /// The incarnation: it differs from the new state's if the object was deleted and created again.
    pub fn uid(&self) -> &Uid {
        self.object.uid()
    }

    /// The version of this state.
    pub fn resource_version(&self) -> &ResourceVersion {
        self.object.resource_version()
    }

    /// The undecoded object.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }
}

impl<T> Clone for Previous<T> {
    fn clone(&self) -> Self {
        let value = match &self.value {
            Value::Known(value) => Value::Known(value.clone()),
            Value::On(shelf) => Value::On(shelf.clone()),
        };
        Self { object: self.object.clone(), value }
    }
}

impl<T> fmt::Debug for Previous<T> {
    /// Names the version, as `namespace/name@resourceVersion`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.object, f)
    }
}
