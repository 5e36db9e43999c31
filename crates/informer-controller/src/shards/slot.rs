//! The place of one controller in a member: made for a share, running or waiting for its turn.

use futures_util::future::BoxFuture;
use informer::share::{Ranges, Share};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};

use super::{BoxError, ShardsError};
use crate::error::RunError;
use crate::leadership::TermClient;
use crate::seat::{Host, News, Seat};

/// Makes the controller of a share, of whatever type.
pub(super) type Make = Box<dyn FnMut(&Share) -> Result<Runs, BoxError> + Send>;
/// Runs it in a seat.
pub(super) type Runs = Box<dyn FnOnce(Seat, TermClient) -> BoxFuture<'static, Result<(), RunError>> + Send>;

/// A controller for some hashes. Dropping it ends the controller at once.
pub(super) struct Slot {
    pub(super) number: u64,
    pub(super) ranges: Ranges,
    pub(super) host: Host,
    task: tokio::task::AbortHandle,
}

impl Slot {
    /// Makes a controller, which begins to sync.
    pub(super) fn new(
        share: Share,
        number: u64,
        make: &mut Make,
        writes: &TermClient,
        news: &mpsc::UnboundedSender<(u64, News)>,
        tasks: &mut JoinSet<Result<(), RunError>>,
    ) -> Result<Self, ShardsError> {
        let run = make(&share).map_err(ShardsError::make)?;
        let ranges = share.ranges().clone();
        let (seat, host) = Seat::new(share, number, news.clone());
        let task = tasks.spawn(run(seat, writes.clone()));
        Ok(Self { number, ranges, host, task })
    }

    pub(super) fn id(&self) -> Id {
        self.task.id()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.task.abort();
    }
}
