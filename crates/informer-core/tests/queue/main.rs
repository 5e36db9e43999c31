//! The work queue, against what workers are promised. Contract group Q. The numbers I1 to I12 in comments are those of
//! client-go's unit tests of its queue, in the order of its files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod clauses;
mod limiters;
mod model;
mod numbers;
mod own_writes;
mod priorities;
mod random;

use std::time::Duration;

use informer_core::Time;
use informer_core::queue::{Add, Queue};

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}

/// A queue and a clock.
struct Desk {
    queue: Queue<&'static str>,
    now: Time,
}

impl Desk {
    fn new() -> Self {
        Self { queue: Queue::default(), now: Time::ZERO }
    }

    fn wait(&mut self, milliseconds: u64) {
        self.now = self.now + Duration::from_millis(milliseconds);
    }

    fn add(&mut self, key: &'static str) {
        self.queue.add(self.now, key, Add::default());
    }

    fn add_after(&mut self, key: &'static str, milliseconds: u64) {
        let after = Some(Duration::from_millis(milliseconds));
        self.queue.add(self.now, key, Add { after, ..Add::default() });
    }

    fn add_at(&mut self, key: &'static str, priority: i32) {
        self.queue.add(self.now, key, Add { priority, ..Add::default() });
    }

    fn mark(&mut self, key: &'static str, marks: u32) {
        self.queue.add(self.now, key, Add { marks, ..Add::default() });
    }

    /// The next item; empty without one.
    fn take(&mut self) -> &'static str {
        self.queue.take(self.now).map_or("", |taken| taken.key)
    }

    fn done(&mut self, key: &'static str) {
        self.queue.done(self.now, &key);
    }

    /// All items that are ready, each done before the next one is taken.
    fn process_all(&mut self) -> Vec<&'static str> {
        let mut taken = Vec::new();
        while let Some(item) = self.queue.take(self.now) {
            self.queue.done(self.now, &item.key);
            taken.push(item.key);
        }
        taken
    }
}
