//! A process of the program: from its start to its crash.

use std::time::Duration;

use tokio::sync::watch;

use crate::history::Instance;

/// A running program. Its end is immediate: whatever tasks of it still exist, no request leaves it and no answer reaches
/// it.
pub(crate) struct Process {
    pub(crate) instance: Instance,
    end: watch::Sender<Option<End>>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// The time until it starts again.
    pub(crate) down: Duration,
}

impl Process {
    pub(crate) fn new(instance: Instance) -> Self {
        Self { instance, end: watch::Sender::new(None) }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.end.borrow().is_some()
    }

    pub(crate) fn end(&self, end: End) {
        self.end.send_replace(Some(end));
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
