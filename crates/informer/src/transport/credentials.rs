//! The credentials of a factory: read once for all requests that wait for them, without blocking the thread of the
//! connections.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use kube_client::Client;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tower::BoxError;

use super::TransportError;

#[cfg(test)]
mod tests;

/// A client with credentials, and when they expire.
pub(super) struct Fresh {
    pub(super) client: Client,
    pub(super) expires: Option<SystemTime>,
}

/// Reads credentials and makes a client from them. It sets its own deadline.
pub(super) type Read = Box<dyn Fn() -> BoxFuture<'static, Result<Fresh, BoxError>> + Send + Sync>;

/// A handle to the credentials of one factory.
#[derive(Clone)]
pub(super) struct Credentials(Arc<Shared>);

struct Shared {
    read: Read,
    state: Mutex<State>,
    /// Counts the reads that have ended.
    ended: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    current: Option<Current>,
    /// The latest credentials that the server refused.
    refused: u64,
    /// How many reads have ended since the server last accepted credentials.
    fruitless: u32,
    /// The read that runs. Dropping the transport aborts it.
    reading: Option<AbortOnDropHandle<()>>,
    /// The next read does not begin before this time.
    not_before: Option<Instant>,
    /// Why the last read failed.
    failure: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The client with the credentials that were read last.
#[derive(Clone)]
pub(super) struct Current {
    pub(super) client: Client,
    /// The number of the read that returned them.
    pub(super) number: u64,
    /// When they are to be renewed: shortly before they expire.
    renew: Option<SystemTime>,
    expires: Option<SystemTime>,
}

/// The wait after the first read that changed nothing. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Credentials are renewed this long before they expire, and in the last tenth of their lifetime at the earliest.
const EARLY: Duration = Duration::from_secs(60);

/// The failure of a read, for each request that waited for it.
#[derive(Debug, Clone)]
struct SharedFailure(Arc<dyn std::error::Error + Send + Sync>);

impl std::fmt::Display for SharedFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SharedFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

impl Credentials {
    /// Credentials that are read when the first request needs them, unless a client with credentials exists already.
    pub(super) fn new(read: Read, present: Option<Client>) -> Self {
        let mut state = State::default();
        if let Some(client) = present {
            state.replace(Fresh { client, expires: None });
            state.fruitless = 1;
        }
        Self(Arc::new(Shared { read, state: Mutex::new(state), ended: watch::Sender::new(0) }))
    }

    /// The client to send with. Reads credentials first if none were read yet, or if they are about to expire.
    pub(super) async fn current(&self) -> Result<Current, TransportError> {
        let now = SystemTime::now();
        let present = self.0.state().current.clone();
        if let Some(current) = present.as_ref().filter(|current| current.renew.is_none_or(|at| now < at)) {
            return Ok(current.clone());
        }
        let number = present.as_ref().map_or(0, |current| current.number);
        self.renewed(number).await;
        let state = self.0.state();
        // Credentials that could not be renewed may be valid for some more time.
        match &state.current {
            Some(current) if current.expires.is_none_or(|at| SystemTime::now() < at) => Ok(current.clone()),
            _ => Err(state.failure()),
        }
    }

    /// Reads credentials again if the server has refused the latest ones.
    pub(super) async fn refresh(&self) -> Result<(), TransportError> {
        let number = {
            let state = self.0.state();
            let Some(current) = &state.current else { return Ok(()) };
            if state.refused < current.number {
                return Ok(());
            }
            current.number
        };
        self.renewed(number).await;
        let state = self.0.state();
        match &state.failure {
            Some(_) => Err(state.failure()),
            None => Ok(()),
        }
    }

    /// Notes the server's answer to a request with credentials.
    pub(super) fn answered(&self, number: u64, status: http::StatusCode) {
        let mut state = self.0.state();
        match status {
            http::StatusCode::UNAUTHORIZED => state.refused = state.refused.max(number),
            // A proxy may have answered instead of the server.
            status if status.is_server_error() => {}
            _ => (state.fruitless, state.not_before) = (0, None),
        }
    }

    /// Waits for credentials that are newer than `number`. Returns without them when a read fails, or while the next read
    /// must wait.
    async fn renewed(&self, number: u64) {
        loop {
            let mut ended = self.0.ended.subscribe();
            {
                let mut state = self.0.state();
                if state.current.as_ref().is_some_and(|current| current.number > number) {
                    return;
                }
                if state.reading.is_none() {
                    if state.not_before.is_some_and(|at| Instant::now() < at) {
                        return;
                    }
                    let reading = Reading(Arc::downgrade(&self.0));
                    state.reading = Some(AbortOnDropHandle::new(tokio::spawn(reading.run((self.0.read)()))));
                }
            }
            // The sender is in `self`, so this cannot fail.
            let _ = ended.changed().await;
        }
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn replace(&mut self, Fresh { client, expires }: Fresh) {
        let number = self.current.as_ref().map_or(0, |current| current.number) + 1;
        let lifetime = |at: SystemTime| at.duration_since(SystemTime::now()).ok();
        // Credentials that have expired on arrival come from another clock: the server decides about them.
        let expires = expires.filter(|at| lifetime(*at).is_some());
        let renew = expires.and_then(|at| at.checked_sub(EARLY.min(lifetime(at)? / 10)));
        self.current = Some(Current { client, number, renew, expires });
        self.failure = None;
    }

    /// Spaces out reads that change nothing: a server that refuses fresh credentials will refuse the next ones, too.
    fn pace(&mut self) {
        self.fruitless = self.fruitless.saturating_add(1);
        // After a successful read, one more read is allowed without a wait.
        let patience = if self.failure.is_some() { 0 } else { 1 };
        let wait = self.fruitless.checked_sub(patience + 1);
        let wait = wait.map(|doublings| FIRST_WAIT.saturating_mul(1 << doublings.min(10)).min(LONGEST_WAIT));
        self.not_before = wait.map(|wait| Instant::now() + wait);
    }

    fn failure(&self) -> TransportError {
        let cause = self.failure.clone().map(|failure| BoxError::from(SharedFailure(failure)));
        TransportError::new("the credentials cannot be read", cause)
    }
}

/// A read that runs. However it ends, its drop wakes the requests that wait for it.
struct Reading(Weak<Shared>);

impl Reading {
    async fn run(self, read: BoxFuture<'static, Result<Fresh, BoxError>>) {
        let fresh = read.await;
        let Some(shared) = self.0.upgrade() else { return };
        let mut state = shared.state();
        match fresh {
            Ok(fresh) => state.replace(fresh),
            Err(failure) => state.failure = Some(Arc::from(failure)),
        }
        state.pace();
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Some(shared) = self.0.upgrade() else { return };
        shared.state().reading = None;
        shared.ended.send_modify(|ended| *ended += 1);
    }
}
