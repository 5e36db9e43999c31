//! The place of one controller in a member: made for a share, running or waiting for its turn.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer::View;
use informer::kube::Client;
use informer::share::{Ranges, Share};
use informer_controller::{Controller, Reconcile, RunError};
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::bounds::{Bounded, Bounds, News, Reporter};
use crate::{BoxError, ShardsError};

/// Makes the controller of a share, of whatever type.
pub(crate) type Make = Box<dyn FnMut(&Share) -> Result<Runs, BoxError> + Send>;
/// Runs it in a seat. With its grace.
type Runs = (Duration, Box<dyn FnOnce(Seat, Client) -> BoxFuture<'static, Result<(), RunError>> + Send>);

/// The controller's side of a slot.
pub(crate) struct Seat {
    bounds: Arc<Bounds>,
    begin: CancellationToken,
    stop: CancellationToken,
    reporter: Reporter,
}

/// A controller for some hashes. Dropping it ends the controller at once.
pub(crate) struct Slot {
    pub(crate) number: u64,
    pub(crate) ranges: Ranges,
    /// How long what runs may take to end.
    pub(crate) grace: Duration,
    bounds: Arc<Bounds>,
    begin: CancellationToken,
    stop: CancellationToken,
    task: AbortHandle,
}

/// Runs what a function of the user makes.
pub(crate) fn maker<T: View, R: Reconcile<T>>(
    mut make: impl FnMut(&Share) -> Result<(Controller<T>, R), BoxError> + Send + 'static,
) -> Make {
    Box::new(move |share| {
        let (controller, reconciler) = make(share)?;
        let grace = controller.grace_limit();
        Ok((grace, Box::new(move |seat, client| seat.run(controller, client, reconciler, grace).boxed())))
    })
}

impl Seat {
    async fn run<T: View>(
        self,
        controller: Controller<T>,
        client: Client,
        reconciler: impl Reconcile<T>,
        grace: Duration,
    ) -> Result<(), RunError> {
        let Self { bounds, begin, stop, reporter } = self;
        let turn = async move {
            reporter.tell(News::Synced);
            begin.cancelled_owned().await;
        };
        let ours = bounds.clone();
        let controller = controller.ours(move |object| ours.has(object));
        let bounded = Bounded { bounds, grace, reconciler };
        controller.begin_when(turn).until(stop.cancelled_owned()).run(client, bounded).await
    }
}

impl Slot {
    /// Makes a controller, which begins to sync, and writes through `client`.
    pub(crate) fn new(
        share: Share,
        make: &mut Make,
        client: Client,
        reporter: Reporter,
        tasks: &mut JoinSet<Result<(), RunError>>,
    ) -> Result<Self, ShardsError> {
        let (grace, run) = make(&share).map_err(ShardsError::make)?;
        let ranges = share.ranges().clone();
        let bounds = Arc::new(Bounds::new(share, reporter.clone()));
        let (number, begin, stop) = (reporter.number, CancellationToken::new(), CancellationToken::new());
        let seat = Seat { bounds: bounds.clone(), begin: begin.clone(), stop: stop.clone(), reporter };
        let task = tasks.spawn(run(seat, client));
        Ok(Self { number, ranges, grace, bounds, begin, stop, task })
    }

    pub(crate) fn id(&self) -> Id {
        self.task.id()
    }

    /// The controller begins.
    pub(crate) fn begin(&self) {
        self.begin.cancel();
    }

    /// The controller reconciles nothing outside of these any more.
    pub(crate) fn shrink(&self, accept: &Ranges) {
        self.bounds.shrink(accept);
    }

    /// The controller lets what runs end, and ends.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends the controller at once, as a drop does. Running reconciliations end at their next `await`, and the bounds show when.
    pub(crate) fn abort(self) -> Arc<Bounds> {
        self.bounds.close();
        self.bounds.clone()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.task.abort();
    }
}
