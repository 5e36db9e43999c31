//! The questions that a program can ask a running member.

use std::fmt;
use std::sync::Arc;

use futures_util::Stream;
use tokio::sync::watch;

use crate::{ShardsMetrics, ShardsStatus};

/// A handle to a member that runs.
#[derive(Clone)]
pub struct ShardsHandle {
    status: Arc<watch::Sender<ShardsStatus>>,
}

impl ShardsHandle {
    pub(crate) fn new(status: Arc<watch::Sender<ShardsStatus>>) -> Self {
        Self { status }
    }

    /// Where the member stands.
    pub fn status(&self) -> ShardsStatus {
        self.status.borrow().clone()
    }

    /// A stream of statuses, beginning with the current one. If the status changes several times between two polls, the
    /// stream returns only the latest. It never ends.
    pub fn status_changes(&self) -> impl Stream<Item = ShardsStatus> + Send + use<> {
        let mut receiver = self.status.subscribe();
        receiver.mark_changed();
        futures_util::stream::unfold((receiver, self.clone()), |(mut receiver, keep_alive)| async move {
            receiver.changed().await.ok()?;
            let status = receiver.borrow_and_update().clone();
            Some((status, (receiver, keep_alive)))
        })
    }

    /// The metrics at this moment.
    pub fn metrics(&self) -> ShardsMetrics {
        ShardsMetrics::of(&self.status())
    }
}

impl fmt::Debug for ShardsHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardsHandle").field("status", &*self.status.borrow()).finish()
    }
}
