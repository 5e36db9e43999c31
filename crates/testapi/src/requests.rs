//! The request log of a server.

use std::collections::VecDeque;
use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::Call;
use crate::faults::Matcher;

/// The number of requests that are kept.
const REQUESTS_MAX: usize = 10_000;

/// The last 10,000 requests to a server. A clone is a handle to the same log.
#[derive(Debug, Clone)]
pub struct Requests(Arc<Inner>);

/// A request and its outcome.
#[derive(Debug, Clone)]
pub struct Logged {
    /// The request.
    pub call: Arc<Call>,
    /// The status code of the response, from the moment its body begins; `None` before, and for a request that was
    /// never answered.
    pub status: Option<StatusCode>,
}

#[derive(Debug)]
struct Inner {
    log: Mutex<Log>,
    /// Notified of each change.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<Logged>,
    /// The number of the last request.
    last: u64,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner { log: Mutex::default(), changed: watch::Sender::new(()) }))
    }

    /// All remembered requests, oldest first.
    pub fn all(&self) -> Vec<Logged> {
        self.0.log.lock().entries.iter().cloned().collect()
    }

    /// The requests that match, oldest first.
    pub fn matching(&self, matcher: &Matcher) -> Vec<Logged> {
        self.0.log.lock().entries.iter().filter(|logged| matcher.matches(&logged.call)).cloned().collect()
    }

    /// How many requests match, answered or not.
    pub fn count(&self, matcher: &Matcher) -> usize {
        self.0.log.lock().entries.iter().filter(|logged| matcher.matches(&logged.call)).count()
    }

    /// Waits until this many matching requests have been answered, or their responses begun, and returns them. To wait
    /// for the next one, call `clear` first.
    pub async fn answered(&self, matcher: &Matcher, count: usize) -> Vec<Logged> {
        self.wait(|logged| logged.status.is_some() && matcher.matches(&logged.call), count).await
    }

    /// Waits until this many matching requests have arrived, answered or not, and returns them.
    pub async fn came(&self, matcher: &Matcher, count: usize) -> Vec<Logged> {
        self.wait(|logged| matcher.matches(&logged.call), count).await
    }

    /// Clears the log; numbers go on.
    pub fn clear(&self) {
        self.0.log.lock().entries.clear();
    }

    /// Adds a request under its number.
    pub(crate) fn add(&self, call: impl FnOnce(u64) -> Call) -> Arc<Call> {
        let mut log = self.0.log.lock();
        log.last += 1;
        let call = Arc::new(call(log.last));
        if log.entries.len() == REQUESTS_MAX {
            log.entries.pop_front();
        }
        log.entries.push_back(Logged { call: call.clone(), status: None });
        drop(log);
        self.0.changed.send_replace(());
        call
    }

    pub(crate) fn answer(&self, number: u64, status: StatusCode) {
        let mut log = self.0.log.lock();
        if let Some(logged) = log.entries.iter_mut().rev().find(|logged| logged.call.number == number) {
            logged.status = Some(status);
        }
        drop(log);
        self.0.changed.send_replace(());
    }

    async fn wait(&self, wanted: impl Fn(&Logged) -> bool, count: usize) -> Vec<Logged> {
        let mut changed = self.0.changed.subscribe();
        loop {
            let found: Vec<_> =
                self.0.log.lock().entries.iter().filter(|logged| wanted(logged)).cloned().collect();
            if found.len() >= count {
                return found;
            }
            // The sender is borrowed, so the channel cannot be closed.
            let _ = changed.changed().await;
        }
    }
}

/// `7 WATCH /api/v1/pods?watch=true -> 200`
impl std::fmt::Display for Logged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.call.number, self.call)?;
        match self.status {
            Some(status) => write!(f, " -> {}", status.as_u16()),
            None => write!(f, " -> ?"),
        }
    }
}
