//! A controller without its type, ready to run.

use std::fmt;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer::{Informer, Object, View};
use tokio_util::sync::CancellationToken;

use super::Controller;
use crate::error::RunError;
use crate::handle::ControllerHandle;
use crate::leadership::Leadership;
use crate::reconcile::Reconcile;

/// A controller and its reconciler, ready to run in a [`Program`](crate::Program): the value of
/// [`Controller::with`](crate::Controller::with).
#[must_use = "a `Program` runs it"]
pub struct Runnable {
    pub(crate) handle: ControllerHandle,
    pub(crate) informers: Vec<Informer<Object>>,
    start: Box<Start>,
}

type Start = dyn FnOnce(Leadership, CancellationToken, Duration) -> Running + Send;
type Running = BoxFuture<'static, Result<(), RunError>>;

impl Runnable {
    pub(crate) fn new<T: View>(controller: Controller<T>, reconciler: impl Reconcile<T>) -> Self {
        Self {
            handle: controller.handle(),
            informers: controller.informers().to_vec(),
            start: Box::new(move |leadership, stop, grace| {
                let controller = controller.also_until(async move { stop.cancelled().await }, grace);
                controller.run_as(leadership, reconciler).boxed()
            }),
        }
    }

    pub(crate) fn run(self, leadership: Leadership, stop: CancellationToken, grace: Duration) -> Running {
        (self.start)(leadership, stop, grace)
    }
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runnable").field("handle", &self.handle).finish_non_exhaustive()
    }
}
