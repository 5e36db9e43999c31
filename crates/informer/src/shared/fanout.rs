//! Tells every subscription what changed. The writer only puts changes into bounded mailboxes: it never waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::task::AtomicWaker;
use informer_core::Change;
use informer_core::mailbox::{Delivery, Mailbox, Notice};

use super::lock;

/// All subscriptions of one cache.
#[derive(Default)]
pub(crate) struct Fanout(Mutex<State>);

#[derive(Default)]
struct State {
    subscribers: Vec<Arc<Subscriber>>,
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
}

impl Fanout {
    /// Registers a subscription that collects changes from now on; the caller joins it with a snapshot. `None` when
    /// everything has stopped.
    pub(crate) fn subscribe(&self, delivery: Delivery) -> Option<Arc<Subscriber>> {
        let mut state = lock(&self.0);
        if state.stopped {
            return None;
        }
        let subscriber = Arc::new(Subscriber {
            mailbox: Mutex::new(Mailbox::new(delivery, state.synced)),
            waker: AtomicWaker::new(),
            closed: AtomicBool::new(false),
            removed: AtomicBool::new(false),
        });
        state.subscribers.push(subscriber.clone());
        Some(subscriber)
    }

    pub(crate) fn unsubscribe(&self, subscriber: &Arc<Subscriber>) {
        lock(&self.0).subscribers.retain(|candidate| !Arc::ptr_eq(candidate, subscriber));
    }

    pub(super) fn offer(&self, revision: u64, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        let state = lock(&self.0);
        for subscriber in &state.subscribers {
            let mut mailbox = lock(&subscriber.mailbox);
            for change in changes {
                mailbox.offer(revision, change);
            }
            drop(mailbox);
            subscriber.waker.wake();
        }
    }

    /// The first content is complete.
    pub(super) fn cache_synced(&self) {
        let mut state = lock(&self.0);
        if !std::mem::replace(&mut state.synced, true) {
            for subscriber in &state.subscribers {
                lock(&subscriber.mailbox).cache_synced();
                subscriber.waker.wake();
            }
        }
    }

    /// Wakes everybody, for a look at something other than the mailbox.
    pub(super) fn wake_all(&self) {
        for subscriber in &lock(&self.0).subscribers {
            subscriber.waker.wake();
        }
    }

    pub(super) fn stop(&self) {
        let mut state = lock(&self.0);
        state.stopped = true;
        for subscriber in std::mem::take(&mut state.subscribers) {
            subscriber.close();
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

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    pub(crate) fn remove(&self) {
        self.removed.store(true, Ordering::Release);
        self.close();
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.waker.wake();
    }
}
