//! What a consumer is told.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use informer_core::{DecodeError, Object, ObjectKey, Source, View};

/// One thing that a subscription tells of.
///
/// Per key, in the server's order, the story is always a legal one: added, updated any number of times, deleted, and so
/// on. States in between may be merged ([`Subscribe`](crate::Subscribe) says which), the last one never is.
#[derive(Debug, Clone)]
pub enum Change<T> {
    /// An object is there that was not.
    Added {
        /// The object.
        object: Arc<T>,
        /// Whether it belongs to the first content that this subscription sees.
        initial: bool,
        /// How it became known.
        source: Source,
    },
    /// An object has another version. If it was deleted and created again in between, the uids differ.
    Updated {
        /// What was told before.
        old: Previous<T>,
        /// What is there now.
        new: Arc<T>,
        /// How it became known.
        source: Source,
    },
    /// An object is gone.
    Deleted(Deleted<T>),
    /// The resync period has passed; nothing has changed.
    Resynced(Arc<T>),
    /// The first content is complete.
    Synced,
    /// So many changes were dropped, because the reader was too slow for the delivery that it chose. Read a snapshot.
    Lagged(u64),
    /// A version of an object cannot be read as a `T` and was left out. The story goes on with the next good one.
    Undecodable(DecodeError),
}

/// The state that an update replaced, decoded when it is asked for.
pub struct Previous<T> {
    object: Arc<Object>,
    view: PhantomData<fn() -> T>,
}

/// An object that is gone.
pub enum Deleted<T> {
    /// An event told of it.
    Observed {
        /// The last state, with the resourceVersion of the deletion.
        last: Arc<T>,
        /// The object that it was decoded from.
        object: Arc<Object>,
    },
    /// A list did not have it any more: when it went, and what it was like by then, was missed
    /// (client-go: `DeletedFinalStateUnknown`).
    Missed {
        /// What is gone.
        key: ObjectKey,
        /// The last state that was seen, possibly an old one.
        last_known: Arc<T>,
        /// The object that it was decoded from.
        object: Arc<Object>,
    },
}

impl<T: View> Previous<T> {
    pub(crate) fn new(object: Arc<Object>) -> Self {
        Self { object, view: PhantomData }
    }

    /// The state as a `T`.
    ///
    /// # Errors
    ///
    /// When it does not fit the type. A state that was told before did fit.
    pub fn get(&self) -> Result<Arc<T>, DecodeError> {
        T::of(&self.object)
    }
}

impl<T> Previous<T> {
    /// The undecoded object.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }
}

impl<T> Deleted<T> {
    /// What is gone.
    pub fn key(&self) -> &ObjectKey {
        self.object().key()
    }

    /// The last state that was seen.
    pub fn last(&self) -> &Arc<T> {
        match self {
            Self::Observed { last, .. } | Self::Missed { last_known: last, .. } => last,
        }
    }

    /// The undecoded last state.
    pub fn object(&self) -> &Arc<Object> {
        match self {
            Self::Observed { object, .. } | Self::Missed { object, .. } => object,
        }
    }

    /// Whether nobody saw it go.
    pub fn is_missed(&self) -> bool {
        matches!(self, Self::Missed { .. })
    }
}

impl<T> Clone for Previous<T> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), view: PhantomData }
    }
}

impl<T> fmt::Debug for Previous<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.object, f)
    }
}

impl<T> Clone for Deleted<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Observed { last, object } => Self::Observed { last: last.clone(), object: object.clone() },
            Self::Missed { key, last_known, object } => {
                Self::Missed { key: key.clone(), last_known: last_known.clone(), object: object.clone() }
            }
        }
    }
}

impl<T> fmt::Debug for Deleted<T> {
    /// Names the object; its content is never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.is_missed() { "Missed" } else { "Observed" };
        write!(f, "{how}({:?})", self.object())
    }
}
