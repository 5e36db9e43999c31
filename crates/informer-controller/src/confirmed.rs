//! The finalizers that the server has shown in this term.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use informer::Uid;
use informer_core::Time;
use informer_core::queue::{RateLimiter, TokenBucket};
use tokio::time::Instant;

/// The finalizers that the server itself has shown, not only a cache, and the pace at which it is asked.
///
/// It belongs to one term, or to the process where nothing is elected: in a term only this process removes them, and sees that
/// it did. The content of a cache may be older than the term, and the finalizer removed meanwhile.
pub(crate) struct Confirmed {
    start: Instant,
    state: Mutex<State>,
}

struct State {
    held: HashSet<(Uid, &'static str)>,
    looks: TokenBucket,
}

/// The server is asked at this pace, ...
const INTERVAL: Duration = Duration::from_millis(20);
/// ... after so many questions at once.
const BURST: u32 = 100;

impl Confirmed {
    pub(crate) fn new() -> Self {
        let state = State { held: HashSet::new(), looks: TokenBucket::new(INTERVAL, BURST) };
        Self { start: Instant::now(), state: Mutex::new(state) }
    }

    pub(crate) fn has(&self, uid: &Uid, finalizer: &'static str) -> bool {
        self.state().held.contains(&(uid.clone(), finalizer))
    }

    pub(crate) fn add(&self, uid: &Uid, finalizer: &'static str) {
        self.state().held.insert((uid.clone(), finalizer));
    }

    pub(crate) fn remove(&self, uid: &Uid, finalizer: &'static str) {
        self.state().held.remove(&(uid.clone(), finalizer));
    }

    /// Waits until the server may be asked.
    pub(crate) async fn turn(&self) {
        let now = Time::from_start(self.start.elapsed());
        let wait = self.state().looks.when(now, &());
        tokio::time::sleep(wait).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
