//! The changes of an informer as a stream.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use informer_core::View;

use crate::Error;
use crate::notify::change::Change;
use crate::notify::notifications::{Notifications, Terms};
use crate::read::handle::Handle;

/// A stream of changes: the existing objects, then [`Change::Synced`], then further changes. Keeps its informer alive.
///
/// When the informer stops, the stream returns the pending changes and ends. Dropping the stream ends the subscription.
/// While other tasks wait for their turn, the stream may return `Pending` although changes are queued (cooperative
/// yielding); it is woken afterwards.
///
/// ```no_run
/// # async fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), informer::Error> {
/// use informer::Change;
///
/// let mut changes = pods.changes()?;
/// while let Some(change) = changes.recv().await {
///     if let Change::Added { new, initial: false, .. } = change {
///         println!("{} is new", new.key());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct Changes<T: View> {
    handle: Handle<T>,
    notifications: Notifications<T>,
}

impl<T: View> Changes<T> {
    pub(crate) fn subscribe(handle: Handle<T>, terms: Terms<T>) -> Result<Self, Error> {
        Ok(Self { notifications: Notifications::subscribe(handle.core(), terms)?, handle })
    }

    pub(crate) fn handle(&self) -> &Handle<T> {
        &self.handle
    }

    /// Waits for the next change; `None` when the informer has stopped and every pending change was returned.
    ///
    /// ```no_run
    /// # async fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), informer::Error> {
    /// let mut changes = pods.changes()?;
    /// while let Some(change) = changes.recv().await {
    ///     println!("{change:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Safe: a change that was not returned stays pending.
    pub async fn recv(&mut self) -> Option<Change<T>> {
        std::future::poll_fn(|context| self.notifications.poll_next(context)).await
    }

    /// The number of pending changes.
    pub fn backlog(&self) -> usize {
        self.notifications.subscription().backlog()
    }
}

impl<T: View> Stream for Changes<T> {
    type Item = Change<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Change<T>>> {
        self.notifications.poll_next(context)
    }
}

impl<T: View> Unpin for Changes<T> {}

impl<T: View> fmt::Debug for Changes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("informer", &self.handle)
            .field("backlog", &self.backlog())
            .finish_non_exhaustive()
    }
}
