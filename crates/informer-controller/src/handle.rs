//! A handle to a running controller.

use std::fmt;
use std::sync::Arc;

use informer::{Item, ObjectKey, Registration, View};

use crate::inbox::Inbox;
use crate::metrics::{ControllerMetrics, QueueMetrics};
use crate::source::{self, Watched};
use crate::trigger::Trigger;

/// A handle to a [`Controller`](crate::Controller), which [`run`](crate::Controller::run) consumes: it triggers
/// reconciliations and reads the metrics.
///
/// ```
/// # fn example(maps: informer::Informer<k8s_openapi::api::core::v1::ConfigMap>) -> Result<(), informer::InvalidKey> {
/// use informer_controller::Controller;
///
/// let controller = Controller::new("example", &maps);
/// let handle = controller.handle();
/// // Something outside of the cluster has changed.
/// handle.reconcile("shop/prices".parse()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ControllerHandle {
    name: Arc<str>,
    inbox: Arc<Inbox>,
}

impl ControllerHandle {
    pub(crate) fn new(name: Arc<str>, inbox: Arc<Inbox>) -> Self {
        Self { name, inbox }
    }

    /// Reconciles an object, whether it exists or not, as after a change of it. Nothing happens once the controller has
    /// ended.
    pub fn reconcile(&self, key: ObjectKey) {
        self.inbox.changed(key, Trigger::Asked, 0);
    }

    /// As [`Controller::watches`](crate::Controller::watches), while the controller runs: starts an informer, and reconciles the objects with
    /// these keys when one of its objects changes, until the registration is dropped.
    ///
    /// For resources that are known late, such as those of definitions that come and go. Contexts have no snapshot of this informer: a
    /// reconciler reads its [lister](informer::Informer::lister), which is as new as the change that woke it. Reconciliations do not wait until it has
    /// their own writes.
    ///
    /// ```no_run
    /// # use informer::SharedInformerFactory;
    /// # async fn example(
    /// #     factory: SharedInformerFactory,
    /// #     handle: informer_controller::ControllerHandle,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let widgets = factory.informer_named::<informer::kube::DynamicObject>("widgets.example.com").await?;
    /// let watching = handle.watch(&widgets, |widget| [widget.key().clone()])?;
    /// // Later:
    /// drop(watching);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the informer has stopped.
    pub fn watch<U: View, I: IntoIterator<Item = ObjectKey>>(
        &self,
        objects: impl Into<Watched<U>>,
        keys: impl Fn(&Item<U>) -> I + Send + Sync + 'static,
    ) -> Result<Registration, informer::Error> {
        let watched = objects.into();
        watched.informer.start();
        source::mapped(watched, keys)(&self.name, self.inbox.clone())
    }

    /// The metrics at this moment.
    pub fn metrics(&self) -> ControllerMetrics {
        let numbers = self.inbox.control().queue().metrics(self.inbox.now());
        ControllerMetrics::new(QueueMetrics::new(&self.name, numbers), self.inbox.endings.counts())
    }
}

impl fmt::Debug for ControllerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerHandle").field("name", &self.name).finish_non_exhaustive()
    }
}
