//! Which message the next one about an object answers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The most objects whose messages are remembered. The next change of another one begins a thread.
const MOST: usize = 1_000;

#[derive(Debug)]
pub(super) struct Threads {
    lasts: Duration,
    last: HashMap<u64, Thread>,
}

#[derive(Debug)]
struct Thread {
    ts: Box<str>,
    until: Instant,
}

impl Threads {
    pub(super) fn new(lasts: Duration) -> Self {
        Self { lasts, last: HashMap::new() }
    }

    /// The thread of an object, if it has one.
    pub(super) fn of(&mut self, object: u64) -> Option<Box<str>> {
        let thread = self.last.get(&object)?;
        (thread.until > Instant::now()).then(|| thread.ts.clone())
    }

    /// A message about the object is in this thread.
    pub(super) fn note(&mut self, object: u64, ts: Box<str>) {
        let now = Instant::now();
        if self.last.len() >= MOST && !self.last.contains_key(&object) {
            self.last.retain(|_, thread| thread.until > now);
            let oldest = self.last.iter().min_by_key(|(_, thread)| thread.until).map(|(object, _)| *object);
            if let Some(oldest) = oldest.filter(|_| self.last.len() >= MOST) {
                self.last.remove(&oldest);
            }
        }
        self.last.insert(object, Thread { ts, until: now + self.lasts });
    }
}
