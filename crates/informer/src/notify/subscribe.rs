//! Subscriptions: their delivery, and whether a stream or a handler gets the changes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::View;
use informer_core::mailbox::{Delivery, Mode, WhenFull};

use crate::Error;
use crate::notify::change::Change;
use crate::notify::changes::Changes;
use crate::notify::handler::{self, Closure, Handler, Methods, Registration};
use crate::notify::notifications::Terms;
use crate::read::handle::Handle;
use crate::read::item::Item;

/// A subscription that is being configured: choose the delivery, then take the changes as a stream or pass them to a
/// handler.
///
/// ```no_run
/// # use std::time::Duration;
/// # use informer::{Change, Informer};
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn example(pods: Informer<Pod>) -> Result<(), informer::Error> {
/// let mut changes = pods
///     .subscribe()
///     .filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some("node-1")))
///     .resync(Duration::from_secs(600))
///     .changes()?;
/// while let Some(change) = changes.recv().await {
///     if let Change::Added { new: pod, .. } = change {
///         println!("{} runs here", pod.key());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is delivered before `changes`, `handler` or `on_change` is called"]
pub struct Subscribe<T: View> {
    handle: Handle<T>,
    terms: Terms<T>,
}

impl<T: View> Subscribe<T> {
    pub(crate) fn new(handle: Handle<T>) -> Self {
        let resync = handle.core().settings.resync;
        let terms = Terms { delivery: Delivery::default(), resync, filter: None, name: None };
        Self { handle, terms }
    }

    /// One pending change per object, from the last delivered state to the newest: the default. Memory: O(distinct
    /// keys), however slow the reader is.
    pub fn latest(mut self) -> Self {
        self.terms.delivery.mode = Mode::Latest;
        self
    }

    /// Keeps every change, of which up to `capacity` may wait. `when_full` decides what happens to one more. Objects of the
    /// initial list are never dropped.
    pub fn every_change(mut self, capacity: usize, when_full: WhenFull) -> Self {
        self.terms.delivery.mode = Mode::Every { capacity, when_full };
        self
    }

    /// Delivers deletion and re-creation of an object as two changes, instead of as one update whose uids differ.
    pub fn split_recreated(mut self) -> Self {
        self.terms.delivery.split_recreated = true;
        self
    }

    /// Delivers coalesced changes of an object even if they cancel each other out. An object that was added and deleted again
    /// is delivered as both, one that is again as it was as an update.
    ///
    /// For a reader that also reads the cache: the cache may have had the states in between, and no other change would tell
    /// the reader that they are gone. Memory: an object that comes and goes while the reader does not read counts until it
    /// does.
    pub fn keep_cancelled(mut self) -> Self {
        self.terms.delivery.keep_cancelled = true;
        self
    }

    /// Delivers each cached object again whenever this period has passed. Zero disables it.
    pub fn resync(mut self, period: Duration) -> Self {
        self.terms.resync = (!period.is_zero()).then_some(period);
        self
    }

    /// Selects objects for which `filter` returns true. An update that brings an object into the filter is reported as an
    /// addition. An update that takes it out is reported as a deletion with the reason
    /// [`DeleteReason::LeftView`](crate::DeleteReason::LeftView).
    ///
    /// The filter runs where the changes are taken: in the task that polls [`Changes`], or in the task of the handler. There
    /// the object is also decoded, if no other consumer has decoded it already. A filter or a `Deserialize` that blocks holds
    /// one worker thread of your runtime (of a current-thread runtime, all of it), as [`Subscribe::handler`] says. Connections,
    /// caches, and subscriptions that other threads serve go on.
    ///
    /// The filter may be called more than once for the same version, and must then return the same result. An object for
    /// which it panics is left out.
    pub fn filter(mut self, filter: impl Fn(&Item<T>) -> bool + Send + Sync + 'static) -> Self {
        self.terms.filter = Some(Arc::new(filter));
        self
    }

    /// Sets a name for logs and metrics, where it is the value of a label: use few different names. The default is a
    /// number.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.terms.name = Some(name.into());
        self
    }

    /// The changes as a stream: first the existing objects, then further changes. It ends when the informer stops.
    ///
    /// # Errors
    ///
    /// When the informer has stopped ([`Error::is_stopped`]), or, with a resync, outside of a tokio runtime.
    pub fn changes(self) -> Result<Changes<T>, Error> {
        Changes::subscribe(self.handle, self.terms)
    }

    /// Calls a handler for each change, in a task of its own, one call at a time. Must be called within a tokio runtime.
    ///
    /// The task runs on that runtime, and decodes, filters and calls the handler. Code of yours that blocks there, instead of
    /// awaiting, holds one worker thread of your runtime; on a current-thread runtime, all of it. Connections and caches go
    /// on, because the factory drives them on a thread of its own. A factory with a client or transport of yours drives them
    /// on your runtime: leave it another thread.
    ///
    /// # Errors
    ///
    /// When the informer has stopped ([`Error::is_stopped`]), or outside of a runtime.
    pub fn handler(self, handler: impl Handler<T>) -> Result<Registration, Error> {
        handler::register(&self.handle, self.terms, Methods(handler))
    }

    /// Calls a closure for each change, in a task of its own, one call at a time: a [`Handler`] of one function. Must be called
    /// within a tokio runtime, on which it runs: see [`Subscribe::handler`] for code that blocks.
    ///
    /// ```no_run
    /// # use informer::{Change, Informer, WhenFull};
    /// # fn example(pods: Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), informer::Error> {
    /// let every = pods.subscribe().every_change(1_000, WhenFull::Coalesce);
    /// let registration = every.on_change(|change| async move {
    ///     if let Change::Updated { old, new, .. } = change {
    ///         println!("{}: {} -> {}", new.key(), old.resource_version(), new.resource_version());
    ///     }
    /// })?;
    /// # drop(registration);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Subscribe::handler`].
    pub fn on_change<F, R>(self, call: F) -> Result<Registration, Error>
    where
        F: FnMut(Change<T>) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        handler::register(&self.handle, self.terms, Closure(call))
    }
}

impl<T: View> fmt::Debug for Subscribe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscribe")
            .field("informer", &self.handle)
            .field("name", &self.terms.name)
            .field("delivery", &self.terms.delivery)
            .field("resync", &self.terms.resync)
            .field("is_filtered", &self.terms.filter.is_some())
            .finish()
    }
}
