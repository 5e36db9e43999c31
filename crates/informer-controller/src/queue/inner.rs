//! The state of a queue: the core's queue under a lock, and the wake-ups of its waiting workers.
//!
//! Two rules keep every waiting worker awake in time. Each item that becomes ready wakes one worker. A change that moves the
//! time of the next delayed item forward wakes all of them, so that each worker sleeps until that time at most.
//!
//! A worker registers for wake-ups before it looks at the queue, so that no change in between is lost. The lock is never held
//! across a wake-up.

use std::hash::Hash;
use std::time::Duration;

use informer_core::Time;
use informer_core::queue::{Add, Queue, RateLimiter, Taken};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::sync::{Mutex, lock};

pub(super) struct Inner<K> {
    pub(super) name: String,
    queue: Mutex<Queue<K>>,
    /// Wakes workers.
    changed: Notify,
    /// Wakes the tasks that wait for the end of a drain.
    drained: Notify,
    pub(super) limiter: Mutex<Box<dyn RateLimiter<K> + Send>>,
    started: Instant,
}

impl<K: Clone + Eq + Hash> Inner<K> {
    pub(super) fn new(name: String, queue: Queue<K>, limiter: Box<dyn RateLimiter<K> + Send>) -> Self {
        Self {
            name,
            queue: Mutex::new(queue),
            changed: Notify::new(),
            drained: Notify::new(),
            limiter: Mutex::new(limiter),
            started: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Time {
        Time::from_start(self.started.elapsed())
    }

    /// Changes the queue, and wakes the workers that the change concerns.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Queue<K>, Time) -> R) -> R {
        let mut queue = lock(&self.queue);
        // Read under the lock: a later change never has an earlier time.
        let now = self.now();
        let (ready, next) = (queue.len(), queue.next_delayed());
        let result = change(&mut queue, now);
        let more = queue.len().saturating_sub(ready);
        let is_sooner = queue.next_delayed().is_some_and(|at| next.is_none_or(|before| at < before));
        let (is_over, is_drained) = (queue.is_shut_down() && queue.is_empty(), queue.is_drained());
        drop(queue);
        if is_sooner || is_over {
            self.changed.notify_waiters();
        } else {
            (0..more).for_each(|_| self.changed.notify_one());
        }
        if is_drained {
            self.drained.notify_waiters();
        }
        result
    }

    pub(super) fn add(&self, key: K, add: Add) {
        self.change(|queue, now| queue.add(now, key, add));
    }

    pub(super) fn done(&self, key: &K) {
        self.change(|queue, now| queue.done(now, key));
    }

    pub(super) fn is_shut_down(&self) -> bool {
        lock(&self.queue).is_shut_down()
    }

    /// The delay of a retry, which the limiter counts.
    pub(super) fn back_off(&self, key: &K) -> Duration {
        let mut limiter = lock(&self.limiter);
        // Read under the lock: the time that a limiter is given never goes back.
        let now = self.now();
        limiter.when(now, key)
    }

    /// Waits for the next item. `None` is the end.
    pub(super) async fn take(&self) -> Option<Taken<K>> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let (taken, is_over, next) = self.change(|queue, now| {
                let taken = queue.take(now);
                (taken, queue.is_shut_down(), queue.next_ready(now))
            });
            if taken.is_some() || is_over {
                return taken;
            }
            match next {
                None => changed.await,
                Some(at) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = sleep_until(self.instant(at)) => {}
                },
            }
        }
    }

    /// Waits for the end of a drain.
    pub(super) async fn wait_for_drain(&self) {
        loop {
            let mut drained = std::pin::pin!(self.drained.notified());
            drained.as_mut().enable();
            if lock(&self.queue).is_drained() {
                return;
            }
            drained.await;
        }
    }

    /// The instant of a time of this queue; a distant one if the clock cannot represent it.
    fn instant(&self, at: Time) -> Instant {
        const DISTANT: Duration = Duration::from_secs(365 * 86_400);
        self.started.checked_add(at.since(Time::ZERO)).unwrap_or_else(|| Instant::now() + DISTANT)
    }
}
