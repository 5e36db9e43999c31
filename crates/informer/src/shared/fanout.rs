//! Tells every subscription what changed. The writer only puts changes into bounded mailboxes: it never waits.
//!
//! Nobody is woken while a lock is held: a waker is somebody else's code, and may drop a subscription.

#[cfg(all(test, loom))]
mod interleavings;

use std::sync::Arc;

use informer_core::mailbox::{Delivery, Mailbox, Notice};
use informer_core::{Change, Object};

use super::memory::{AtomicBool, AtomicWaker, Mutex, Ordering, lock};
use crate::metrics::{CallMeter, HandlerMetrics, lowest_free};

/// All subscriptions of one cache.
#[derive(Default)]
pub(crate) struct Fanout(Mutex<State>);

#[derive(Default)]
struct State {
    /// Shared with those who are telling something right now.
    subscribers: Arc<Vec<Arc<Subscriber>>>,
    synced: bool,
    stopped: bool,
}

/// One subscription: its mailbox, and who to wake.
pub(crate) struct Subscriber {
    mailbox: Mutex<Mailbox>,
    waker: AtomicWaker,
    /// Nothing more will come; what is there is still told.
    closed: AtomicBool,
    /// Nothing more is to be told.
    removed: AtomicBool,
    name: String,
    /// Its name, where none was given; else 0.
    number: usize,
    pub(crate) meter: CallMeter,
}

/// Subscriptions that were told something and do not know yet.
#[must_use = "who was told something has to be woken, once no lock is held"]
pub(super) struct Told(Arc<Vec<Arc<Subscriber>>>);

impl Fanout {
    /// Registers a subscription that collects changes from now on; the caller joins it with a snapshot. One without a
    /// name is called by a number. `None` when everything has stopped.
    pub(crate) fn subscribe(&self, delivery: Delivery, name: Option<String>) -> Option<Arc<Subscriber>> {
        let mut state = lock(&self.0);
        if state.stopped {
            return None;
        }
        let others = state.subscribers.iter().map(|subscriber| subscriber.number);
        let number = if name.is_some() { 0 } else { lowest_free(others) };
        let subscriber = Arc::new(Subscriber {
            mailbox: Mutex::new(Mailbox::new(delivery, state.synced)),
            waker: AtomicWaker::new(),
            closed: AtomicBool::new(false),
            removed: AtomicBool::new(false),
            name: name.unwrap_or_else(|| number.to_string()),
            number,
            meter: CallMeter::default(),
        });
        Arc::make_mut(&mut state.subscribers).push(subscriber.clone());
        Some(subscriber)
    }

    pub(crate) fn unsubscribe(&self, subscriber: &Arc<Subscriber>) {
        let mut state = lock(&self.0);
        if state.subscribers.iter().any(|candidate| Arc::ptr_eq(candidate, subscriber)) {
            Arc::make_mut(&mut state.subscribers).retain(|candidate| !Arc::ptr_eq(candidate, subscriber));
        }
    }

    /// Puts changes into all mailboxes. To be called in the order of the changes, one caller at a time.
    pub(super) fn offer(&self, revision: u64, changes: &[Change]) -> Told {
        if changes.is_empty() {
            return Told(Arc::default());
        }
        // Who subscribes from here on finds the changes in the cache.
        let subscribers = lock(&self.0).subscribers.clone();
        for subscriber in subscribers.iter() {
            let mut mailbox = lock(&subscriber.mailbox);
            for change in changes {
                mailbox.offer(revision, change);
            }
        }
        Told(subscribers)
    }

    /// The cache, which was empty, has begun with a content that was saved.
    pub(super) fn load(&self, revision: u64, content: &[Arc<Object>]) -> Told {
        let subscribers = lock(&self.0).subscribers.clone();
        for subscriber in subscribers.iter() {
            lock(&subscriber.mailbox).load(revision, content.to_vec());
        }
        Told(subscribers)
    }

    /// The first content is complete.
    pub(super) fn cache_synced(&self) -> Told {
        let mut state = lock(&self.0);
        if std::mem::replace(&mut state.synced, true) {
            return Told(Arc::default());
        }
        for subscriber in state.subscribers.iter() {
            lock(&subscriber.mailbox).cache_synced();
        }
        Told(state.subscribers.clone())
    }

    /// Whether nobody has anything to be told.
    pub(crate) fn is_idle(&self) -> bool {
        let subscribers = lock(&self.0).subscribers.clone();
        // Who subscribed last is woken last: most likely to have something still.
        subscribers.iter().rev().all(|subscriber| subscriber.with_mailbox(|mailbox| mailbox.backlog()) == 0)
    }

    /// Everybody, for a look at something other than the mailbox.
    pub(super) fn everybody(&self) -> Told {
        Told(lock(&self.0).subscribers.clone())
    }

    /// The numbers of each.
    pub(crate) fn metrics(&self) -> Vec<HandlerMetrics> {
        let subscribers = lock(&self.0).subscribers.clone();
        subscribers.iter().map(|subscriber| subscriber.metrics()).collect()
    }

    pub(super) fn stop(&self) {
        let subscribers = {
            let mut state = lock(&self.0);
            state.stopped = true;
            std::mem::take(&mut state.subscribers)
        };
        for subscriber in subscribers.iter() {
            subscriber.close();
        }
    }
}

impl Told {
    pub(super) fn wake(self) {
        for subscriber in self.0.iter() {
            subscriber.waker.wake();
        }
    }
}

impl Subscriber {
    pub(crate) fn waker(&self) -> &AtomicWaker {
        &self.waker
    }

    /// The next notice; to be asked after the waker was registered.
    pub(crate) fn take(&self) -> Option<Notice> {
        lock(&self.mailbox).take()
    }

    pub(crate) fn with_mailbox<R>(&self, look: impl FnOnce(&mut Mailbox) -> R) -> R {
        look(&mut lock(&self.mailbox))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn metrics(&self) -> HandlerMetrics {
        HandlerMetrics {
            name: self.name.clone(),
            backlog: self.with_mailbox(|mailbox| mailbox.backlog()),
            calls: self.meter.calls(),
            call_time: self.meter.time(),
            call_under_way: self.meter.under_way(),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    /// Ends the subscription at once, also where its reader never looks again.
    pub(crate) fn remove(&self) {
        self.removed.store(true, Ordering::Release);
        let pending =
            self.with_mailbox(|mailbox| std::mem::replace(mailbox, Mailbox::new(Delivery::default(), false)));
        drop(pending);
        self.close();
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.waker.wake();
    }
}
