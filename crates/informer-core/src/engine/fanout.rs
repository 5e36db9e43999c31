//! Delivers changes to every subscription. The engine only puts them into bounded mailboxes, so it never waits.
//!
//! No waker is called while a lock is held: a waker is foreign code and may drop a subscription.

use std::sync::{Arc, PoisonError};
use std::task::Waker;

use crate::mailbox::{Delivery, Mailbox, Notice};
use crate::sync::{Mutex, MutexGuard};
use crate::{Change, Object};

/// All subscriptions of one cache.
#[derive(Default)]
pub struct Fanout(Mutex<State>);

#[derive(Default)]
struct State {
    /// Shared with an offer that is running.
    subscribers: Arc<Vec<Arc<Subscriber>>>,
    synced: bool,
    stopped: bool,
}

/// One subscription: its mailbox, and the waker of its reader.
pub struct Subscriber(Mutex<Place>);

struct Place {
    /// `None` once the subscription was removed: later changes are not kept (contract H15).
    mailbox: Option<Mailbox>,
    waker: Option<Waker>,
    /// Whether no further change will be offered. Pending ones are still delivered.
    is_closed: bool,
}

impl Fanout {
    /// Makes a subscription that collects changes from now on. The caller then joins it with a snapshot, which must be taken
    /// after this call. `None` when the engine has stopped.
    pub fn subscribe(&self, delivery: Delivery) -> Option<Arc<Subscriber>> {
        let mut state = lock(&self.0);
        if state.stopped {
            return None;
        }
        let place =
            Place { mailbox: Some(Mailbox::new(delivery, state.synced)), waker: None, is_closed: false };
        let subscriber = Arc::new(Subscriber(Mutex::new(place)));
        Arc::make_mut(&mut state.subscribers).push(subscriber.clone());
        Some(subscriber)
    }

    /// Removes a subscription from the fan-out.
    pub fn unsubscribe(&self, subscriber: &Arc<Subscriber>) {
        let mut state = lock(&self.0);
        if state.subscribers.iter().any(|candidate| Arc::ptr_eq(candidate, subscriber)) {
            Arc::make_mut(&mut state.subscribers).retain(|candidate| !Arc::ptr_eq(candidate, subscriber));
        }
    }

    /// The number of subscriptions.
    pub fn len(&self) -> usize {
        lock(&self.0).subscribers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts changes into all mailboxes, in the order in which they happened. Returns the readers to wake.
    pub(super) fn offer(&self, revision: u64, changes: &[Change]) -> Vec<Waker> {
        if changes.is_empty() {
            return Vec::new();
        }
        // A subscription that is made from here on finds these changes in the cache.
        let subscribers = lock(&self.0).subscribers.clone();
        let offer = |subscriber: &Arc<Subscriber>| {
            subscriber.deliver(|mailbox| changes.iter().for_each(|change| mailbox.offer(revision, change)))
        };
        subscribers.iter().filter_map(offer).collect()
    }

    /// The cache, which was empty, was loaded with saved objects.
    pub(super) fn load(&self, revision: u64, content: &[Arc<Object>]) -> Vec<Waker> {
        let subscribers = lock(&self.0).subscribers.clone();
        let load = |subscriber: &Arc<Subscriber>| {
            subscriber.deliver(|mailbox| mailbox.load(revision, content.to_vec()))
        };
        subscribers.iter().filter_map(load).collect()
    }

    /// The initial list is complete. Returns the readers to wake.
    pub(super) fn cache_synced(&self) -> Vec<Waker> {
        let mut state = lock(&self.0);
        if std::mem::replace(&mut state.synced, true) {
            return Vec::new();
        }
        // The lock is held throughout, so that a new subscription either is in the list or begins as synced.
        state.subscribers.iter().filter_map(|subscriber| subscriber.deliver(Mailbox::cache_synced)).collect()
    }

    /// Takes the wakers of all readers, to make them check something other than their mailbox.
    pub(super) fn wakers(&self) -> Vec<Waker> {
        let subscribers = lock(&self.0).subscribers.clone();
        subscribers.iter().filter_map(|subscriber| lock(&subscriber.0).waker.take()).collect()
    }

    /// Closes all subscriptions. They still deliver their pending changes. Returns the readers to wake.
    #[must_use = "the readers wait until they are woken"]
    pub fn stop(&self) -> Vec<Waker> {
        let subscribers = {
            let mut state = lock(&self.0);
            state.stopped = true;
            std::mem::take(&mut state.subscribers)
        };
        let close = |subscriber: &Arc<Subscriber>| {
            let mut place = lock(&subscriber.0);
            place.is_closed = true;
            place.waker.take()
        };
        subscribers.iter().filter_map(close).collect()
    }
}

impl Subscriber {
    /// Registers a waker, which is woken once when a notice arrives. Call this before [`Subscriber::take`].
    pub fn register(&self, waker: &Waker) {
        let mut place = lock(&self.0);
        match &mut place.waker {
            Some(registered) if registered.will_wake(waker) => {}
            registered => *registered = Some(waker.clone()),
        }
    }

    /// The next notice.
    pub fn take(&self) -> Option<Notice> {
        lock(&self.0).mailbox.as_mut()?.take()
    }

    /// Calls `look` with the mailbox; `None` once the subscription was removed.
    pub fn with_mailbox<R>(&self, look: impl FnOnce(&mut Mailbox) -> R) -> Option<R> {
        lock(&self.0).mailbox.as_mut().map(look)
    }

    /// The number of pending changes.
    pub fn backlog(&self) -> usize {
        self.with_mailbox(|mailbox| mailbox.backlog()).unwrap_or_default()
    }

    /// Whether no further change will be offered.
    pub fn is_closed(&self) -> bool {
        lock(&self.0).is_closed
    }

    /// Whether the subscription was removed, so that nothing more is delivered.
    pub fn is_removed(&self) -> bool {
        lock(&self.0).mailbox.is_none()
    }

    /// Ends the subscription at once, even if its reader never polls again. Nothing is kept for it from here on.
    pub fn remove(&self) {
        let (mailbox, waker) = {
            let mut place = lock(&self.0);
            place.is_closed = true;
            (place.mailbox.take(), place.waker.take())
        };
        drop(mailbox);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn deliver(&self, put: impl FnOnce(&mut Mailbox)) -> Option<Waker> {
        let mut place = lock(&self.0);
        put(place.mailbox.as_mut()?);
        place.waker.take()
    }
}

/// No user code runs under these locks, so a poisoned lock guards consistent data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Fanout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fanout({} subscriptions)", self.len())
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subscriber({} changes wait)", self.backlog())
    }
}
