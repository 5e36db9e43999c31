//! A process of the program: from its start to its crash.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::history::{Instance, Seen};

/// A running program. Its end is immediate: whatever tasks of it still exist, no request leaves it and no answer reaches
/// it.
pub(crate) struct Process {
    pub(crate) instance: Instance,
    end: watch::Sender<Option<End>>,
    /// The states in the answer that the server is making.
    sent: Mutex<Vec<Seen>>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// The time until it starts again.
    pub(crate) down: Duration,
}

impl Process {
    pub(crate) fn new(instance: Instance) -> Self {
        Self { instance, end: watch::Sender::new(None), sent: Mutex::default() }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.end.borrow().is_some()
    }

    pub(crate) fn end(&self, end: End) {
        self.end.send_replace(Some(end));
    }

    /// A list or a watch of the server has read these states.
    pub(crate) fn sends(&self, seen: Seen) {
        self.sent.lock().push(seen);
    }

    /// The states in the answer that the server has just made: all happens on one thread.
    pub(crate) fn sent(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.sent.lock())
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) -> End {
        let mut ends = self.end.subscribe();
        let end = ends.wait_for(Option::is_some).await.ok().and_then(|end| *end);
        match end {
            Some(end) => end,
            // The sender is in `self`.
            None => std::future::pending().await,
        }
    }

    /// Goes on only while the process lives.
    pub(crate) async fn lives(&self) {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }
}
