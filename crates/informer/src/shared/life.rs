//! The life of a factory or an informer: how it is asked to stop, which tasks a stop waits for, and which it cuts off.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The life of a factory, or of one of its informers, which is a part of the factory's.
pub(crate) struct Life {
    stop: CancellationToken,
    /// Handler calls that did not end in time are dropped at their next `await`.
    cut: CancellationToken,
    tasks: TaskTracker,
    whole: Option<TaskTracker>,
}

/// A place among the tasks that a stop waits for. The code that starts a task takes a place before it checks whether a stop
/// has begun. So no task begins after the wait.
pub(crate) struct Running {
    _part: TaskTrackerToken,
    _whole: Option<TaskTrackerToken>,
}

impl Life {
    /// A life that ends when `stop` is cancelled, or earlier.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self { stop, cut: CancellationToken::new(), tasks: TaskTracker::new(), whole: None }
    }

    /// A life that ends when this one ends, or earlier.
    pub(crate) fn part(&self) -> Self {
        Self {
            stop: self.stop.child_token(),
            cut: self.cut.child_token(),
            tasks: TaskTracker::new(),
            whole: Some(self.tasks.clone()),
        }
    }

    pub(crate) fn running(&self) -> Running {
        Running { _part: self.tasks.token(), _whole: self.whole.as_ref().map(TaskTracker::token) }
    }

    /// A token that is cancelled when a stop begins.
    pub(crate) fn stop_token(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// A token that is cancelled when running handler calls are to be dropped.
    pub(crate) fn cut_token(&self) -> CancellationToken {
        self.cut.child_token()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Resolves when a stop begins.
    pub(crate) async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    pub(crate) fn begin_stop(&self) {
        self.stop.cancel();
        self.tasks.close();
    }

    /// Waits until nothing runs, after a stop has begun.
    pub(crate) async fn ended(&self) {
        self.tasks.wait().await;
    }

    /// As [`Life::ended`], but what still runs after `limit` is dropped. Returns whether everything ended by itself.
    pub(crate) async fn ended_within(&self, limit: Duration) -> bool {
        if tokio::time::timeout(limit, self.ended()).await.is_ok() {
            return true;
        }
        self.cut.cancel();
        self.ended().await;
        false
    }
}
