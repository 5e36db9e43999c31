//! The handler of all subscriptions, and the counts of its calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use informer::{Handler, Item, Previous};
use tokio::sync::watch;

use crate::delays::{Delays, SENT_AT};
use crate::view::Measured;

/// The namespace of the objects that `until` asks for.
pub const NAMESPACE: &str = "bench";

pub struct Counting {
    told: Arc<Told>,
}

/// The counts of one handler.
#[derive(Default)]
pub struct Told {
    state: Mutex<State>,
    is_stuck: AtomicBool,
    /// Notified when an object of [`NAMESPACE`] has changed.
    news: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    updates: u64,
    delays: Delays,
    versions: HashMap<String, u64>,
}

/// The counts of all handlers together.
#[derive(Default)]
pub struct Sum {
    pub updates: u64,
    pub delays: Delays,
}

impl Counting {
    pub fn new() -> (Self, Arc<Told>) {
        let told = Arc::new(Told::default());
        (Self { told: told.clone() }, told)
    }

    async fn stuck(&self) {
        if self.told.is_stuck.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

impl<T: Measured> Handler<T> for Counting {
    async fn on_add(&mut self, object: Item<T>, _is_in_initial_list: bool) {
        self.stuck().await;
        self.told.note_version(&*object);
    }

    async fn on_update(&mut self, old: Previous<T>, new: Item<T>) {
        self.stuck().await;
        let metadata = new.metadata();
        let before = old.object().resource_version().to_string();
        if metadata.resource_version.as_deref() != Some(&before) {
            let sent_at = new.annotations().and_then(|annotations| annotations.get(SENT_AT));
            self.told.count(sent_at.and_then(|micros| micros.parse().ok()));
        }
        self.told.note_version(&*new);
    }
}

impl Told {
    /// Makes the handler's next call never return.
    pub fn get_stuck(&self) {
        self.is_stuck.store(true, Ordering::Relaxed);
    }

    pub fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    /// Waits until the handler was notified of a version of an object.
    pub async fn until(&self, key: &str, version: u64) {
        let mut news = self.news.subscribe();
        let reached = |state: &State| state.versions.get(key).is_some_and(|told| *told >= version);
        while !reached(&self.state()) {
            // This struct keeps the sender, so the channel cannot be closed.
            let _ = news.changed().await;
        }
    }

    fn count(&self, sent_at: Option<f64>) {
        let mut state = self.state();
        state.updates += 1;
        if let Some(micros) = sent_at {
            state.delays.add_since(micros);
        }
    }

    fn note_version<T: Measured>(&self, object: &T) {
        let metadata = object.metadata();
        if metadata.namespace.as_deref() != Some(NAMESPACE) {
            return;
        }
        let name = metadata.name.as_deref().unwrap_or_default();
        let version = metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
        self.state().versions.insert(format!("{NAMESPACE}/{name}"), version.unwrap_or_default());
        self.news.send_replace(());
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counts of the handlers that are not stuck.
pub fn sum(handlers: &[Arc<Told>]) -> Sum {
    let mut sum = Sum { updates: u64::MAX, ..Sum::default() };
    for told in handlers.iter().filter(|told| !told.is_stuck()) {
        let state = told.state();
        sum.updates = sum.updates.min(state.updates);
        sum.delays.add_all(&state.delays);
    }
    sum
}
