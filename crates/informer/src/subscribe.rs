//! Asking to be told of changes: how, and by a stream or a handler.

use std::sync::Arc;
use std::time::Duration;

use informer_core::View;
use informer_core::mailbox::{Delivery, Mode, WhenFull};

use crate::changes::Changes;
use crate::handler::{Handler, Registration};
use crate::informer::Informer;
use crate::{Error, handler};

pub(crate) type Filter<T> = Arc<dyn Fn(&T) -> bool + Send + Sync>;

/// A subscription in the making: choose how changes are delivered, then take them as a stream or hand them to a handler.
///
/// ```no_run
/// # use std::time::Duration;
/// # use informer::{Change, Informer};
/// # use futures_util::StreamExt;
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn example(pods: Informer<Pod>) -> Result<(), informer::Error> {
/// let mut changes = pods
///     .subscribe()
///     .filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some("node-1")))
///     .resync(Duration::from_secs(600))
///     .changes()?;
/// while let Some(change) = changes.next().await {
///     if let Change::Added { object, .. } = change {
///         println!("{:?} runs here", object.metadata.name);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is delivered before `changes` or `handler` is called"]
pub struct Subscribe<T: View> {
    pub(crate) informer: Informer<T>,
    pub(crate) delivery: Delivery,
    pub(crate) resync: Option<Duration>,
    pub(crate) filter: Option<Filter<T>>,
    pub(crate) name: Option<String>,
}

impl<T: View> Subscribe<T> {
    pub(crate) fn new(informer: Informer<T>) -> Self {
        let resync = informer.core().settings.resync;
        Self { informer, delivery: Delivery::default(), resync, filter: None, name: None }
    }

    /// One pending change per object, from the state last told to the newest: the default.
    /// Memory: O(distinct keys), however slow the reader is.
    pub fn latest(mut self) -> Self {
        self.delivery.mode = Mode::Latest;
        self
    }

    /// Every change, of which up to `capacity` may wait; `when_full` says what happens to one more. The first content is
    /// never dropped.
    pub fn every_change(mut self, capacity: usize, when_full: WhenFull) -> Self {
        self.delivery.mode = Mode::Every { capacity, when_full };
        self
    }

    /// Tells of an object that was deleted and created again as a deletion and an addition, instead of as one update
    /// whose uids differ.
    pub fn split_recreated(mut self) -> Self {
        self.delivery.split_recreated = true;
        self
    }

    /// Tells of each present object again whenever this much time has passed. Zero: never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = (!period.is_zero()).then_some(period);
        self
    }

    /// Only objects for which this is true. An update across the border is an addition, or a deletion. It may be asked
    /// about the same version more than once, and should say the same then; an object for which it panics is left out.
    pub fn filter(mut self, filter: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// A name for logs and metrics; one of few, since it is a label there. Without one it is a number.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The changes as a stream: first what is there, then what happens. It ends when the informer stops.
    ///
    /// # Errors
    ///
    /// When the informer has stopped ([`Error::is_stopped`]), or, with a resync, outside of a tokio runtime.
    pub fn changes(self) -> Result<Changes<T>, Error> {
        Changes::subscribe(self)
    }

    /// Calls a handler for each change, in a task of its own, one call at a time. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// When the informer has stopped ([`Error::is_stopped`]), or outside of a runtime.
    pub fn handler(self, handler: impl Handler<T>) -> Result<Registration, Error> {
        handler::register(self, handler)
    }
}
