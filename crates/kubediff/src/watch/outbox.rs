//! Between the informers, which never wait, and the printer, which waits for the reader of the output.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::seen::Waiting;
use crate::backlog::Backlog;

/// The backlog, for two threads.
pub(super) struct Outbox {
    state: Mutex<State>,
    arrived: Condvar,
}

struct State {
    backlog: Backlog<Waiting>,
    closed: bool,
}

impl Outbox {
    /// With a bound in bytes.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            state: Mutex::new(State { backlog: Backlog::new(bound), closed: false }),
            arrived: Condvar::new(),
        }
    }

    /// Adds something to be shown. Never waits. Returns how many changes have been merged into others since the start.
    pub(super) fn push(&self, waiting: Waiting) -> u64 {
        let mut state = self.lock();
        state.backlog.push(waiting);
        self.arrived.notify_one();
        state.backlog.merged()
    }

    /// What is to be shown next; waits for it. `None` when the outbox is closed and empty. Blocks the thread.
    pub(super) fn next(&self) -> Option<Waiting> {
        let mut state = self.lock();
        loop {
            if let Some(waiting) = state.backlog.pop() {
                return Some(waiting);
            }
            if state.closed {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing more will come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// How many changes have been merged into others since the start.
    pub(super) fn merged(&self) -> u64 {
        self.lock().backlog.merged()
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().backlog.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
