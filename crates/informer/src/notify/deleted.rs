//! Objects that are gone from a subscription, and why.

use std::fmt;
use std::sync::Weak;

use informer_core::{ObjectKey, Origin};

use crate::notify::existence::{Ask, ConfirmError, Existence};
use crate::read::item::Item;

/// An object that is gone from a subscription, with its last known state and the reason.
///
/// Not every object that is gone was deleted: see [`DeleteReason`]. A consumer that cleans up after deleted objects looks at
/// [`Deleted::is_certain`], or asks the server with [`Deleted::confirm`].
///
/// ```
/// use informer::{DeleteReason, Deleted};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// async fn may_clean_up(gone: &Deleted<ConfigMap>) -> Result<bool, informer::ConfirmError> {
///     Ok(match gone.reason() {
///         DeleteReason::Observed | DeleteReason::Missed => true,
///         DeleteReason::LeftView => false,
///         // The server has deselected the object, or deleted it.
///         DeleteReason::DeletedOrDeselected => gone.confirm().await?.is_gone(),
///     })
/// }
/// ```
pub struct Deleted<T> {
    last: Item<T>,
    reason: DeleteReason,
    origin: Origin,
    informer: Weak<dyn Ask>,
}

/// Why an object is gone from a subscription.
///
/// The enum is exhaustive on purpose: a `match` that forgets a reason does not compile. A controller that took one reason
/// for another would delete what belongs to live objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeleteReason {
    /// The object was deleted: a watch event said so.
    Observed,
    /// The object was deleted: a list lacks it. No watch event showed the deletion, so its time and the object's final
    /// state are unknown (client-go: `DeletedFinalStateUnknown`).
    Missed,
    /// The object was not deleted, as far as the informer knows: its namespace was removed from the informer, or the filter
    /// of the subscription does not match it any more.
    LeftView,
    /// The object was deleted, or does not match the selection any more. [`Deleted::confirm`] asks the server which. The
    /// server sends the same event for both if the informer has a label selector, a field selector on mutable fields, or
    /// tweaked list options that select. A transform that drops objects hides the difference too.
    ///
    /// With a label selector every deletion has this reason, whether a watch or a list showed it.
    DeletedOrDeselected,
}

impl<T> Deleted<T> {
    pub(crate) fn new(last: Item<T>, reason: DeleteReason, origin: Origin, informer: Weak<dyn Ask>) -> Self {
        Self { last, reason, origin, informer }
    }

    /// The key of the object.
    pub fn key(&self) -> &ObjectKey {
        self.last.key()
    }

    /// The last state that decoded. After [`DeleteReason::Observed`] it usually has the resourceVersion of the deletion; after
    /// [`DeleteReason::Missed`] it may be an old one.
    pub fn last(&self) -> &Item<T> {
        &self.last
    }

    /// Why the object is gone from this subscription.
    pub fn reason(&self) -> DeleteReason {
        self.reason
    }

    /// How it became known that the object is gone.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Whether the object was deleted for certain: observed by a watch, or missed and noticed by a list.
    pub fn is_certain(&self) -> bool {
        matches!(self.reason, DeleteReason::Observed | DeleteReason::Missed)
    }

    /// Whether the reason is [`DeleteReason::Missed`]: a list noticed the deletion, and no watch event showed it.
    /// [`Deleted::origin`] says how a deletion of any reason became known.
    pub fn is_missed(&self) -> bool {
        self.reason == DeleteReason::Missed
    }

    /// Asks the server whether the object still exists, by its uid. Sends one GET for the object's metadata, or none if
    /// [`Deleted::is_certain`], because a uid is never used again.
    ///
    /// The informer sends the request over its own connection, with its own credentials, which need the verb `get`. The
    /// call fails after the informer's response timeout.
    ///
    /// # Errors
    ///
    /// When the informer has stopped ([`ConfirmError::is_stopped`]), the server refuses ([`ConfirmError::status`] says
    /// how), or the server does not answer in time ([`ConfirmError::is_unreachable`]).
    ///
    /// # Cancel safety
    ///
    /// Safe: the request is cancelled.
    pub async fn confirm(&self) -> Result<Existence, ConfirmError> {
        if self.is_certain() {
            return Ok(Existence::Gone);
        }
        let (key, uid) = (self.key().clone(), self.last.uid().clone());
        match self.informer.upgrade() {
            Some(informer) => informer.existence(key, uid).await,
            None => Err(ConfirmError::stopped(&key)),
        }
    }
}

impl<T> Clone for Deleted<T> {
    fn clone(&self) -> Self {
        let Self { last, reason, origin, informer } = self;
        Self { last: last.clone(), reason: *reason, origin: *origin, informer: informer.clone() }
    }
}

impl<T> fmt::Debug for Deleted<T> {
    /// Names the object and the reason. Content is never printed: it may be a Secret's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deleted({:?}, {:?})", self.last, self.reason)
    }
}
