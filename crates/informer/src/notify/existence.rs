//! Whether an object that is gone from a subscription still exists on the server.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use informer_core::wire::ApiStatus;
use informer_core::{ObjectKey, ResourceVersion, Uid};

/// The server's answer about an object that is gone from a subscription ([`Deleted::confirm`](crate::Deleted::confirm)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Existence {
    /// The server has no object of that key.
    Gone,
    /// The object was deleted, and another one was created under the same key.
    Recreated {
        /// The uid of the other one.
        uid: Uid,
    },
    /// The object still exists.
    Exists {
        /// Its version now.
        resource_version: ResourceVersion,
    },
}

impl Existence {
    /// Whether the object was deleted, also if another object has its key now.
    pub fn is_gone(&self) -> bool {
        !matches!(self, Self::Exists { .. })
    }
}

/// The server did not say whether an object exists ([`Deleted::confirm`](crate::Deleted::confirm)).
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct ConfirmError(Arc<Kind>);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("the informer has stopped, and cannot ask the server about `{0}`")]
    Stopped(ObjectKey),
    #[error("the server did not answer whether `{0}` exists")]
    Unreachable(ObjectKey, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the server refused to say whether `{0}` exists: {1}")]
    Refused(ObjectKey, ApiStatus),
}

impl ConfirmError {
    /// Whether the informer has stopped. Ask with another informer, or with a client.
    pub fn is_stopped(&self) -> bool {
        matches!(*self.0, Kind::Stopped(_))
    }

    /// Whether the server could not be reached, or did not answer in time. Ask again later.
    pub fn is_unreachable(&self) -> bool {
        matches!(*self.0, Kind::Unreachable(..))
    }

    /// The server's refusal, if it refused: 403 if the credentials lack the verb `get`.
    pub fn status(&self) -> Option<&ApiStatus> {
        match &*self.0 {
            Kind::Refused(_, status) => Some(status),
            _ => None,
        }
    }

    pub(crate) fn stopped(key: &ObjectKey) -> Self {
        Self(Arc::new(Kind::Stopped(key.clone())))
    }

    pub(crate) fn unreachable(
        key: &ObjectKey,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self(Arc::new(Kind::Unreachable(key.clone(), source.into())))
    }

    pub(crate) fn refused(key: &ObjectKey, status: ApiStatus) -> Self {
        Self(Arc::new(Kind::Refused(key.clone(), status)))
    }
}

/// Asks the server about objects. An informer implements this, for the deletions that its subscriptions deliver.
pub(crate) trait Ask: Send + Sync {
    /// Whether the object of a key and uid exists.
    fn existence(
        self: Arc<Self>,
        key: ObjectKey,
        uid: Uid,
    ) -> BoxFuture<'static, Result<Existence, ConfirmError>>;
}
