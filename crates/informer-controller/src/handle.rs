//! A handle to a running controller.

use std::fmt;
use std::sync::Arc;

use informer::ObjectKey;

use crate::inbox::Inbox;
use crate::metrics::{ControllerMetrics, QueueMetrics};
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
