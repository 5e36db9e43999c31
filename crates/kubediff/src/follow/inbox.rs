//! The inbox: between the informers, which never wait, and the thread that takes it empty, which waits for a reader or a disk.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::item::InboxItem;
use super::shadow::{Led, Recorded, Shadow};
use crate::backlog::Backlog;

/// The number of waiting bytes that are taken without waiting for more.
const MUCH: usize = 1 << 20;

/// The backlog, for two threads.
pub(crate) struct Inbox {
    bound: usize,
    state: Mutex<State>,
    arrived: Condvar,
}

struct State {
    backlog: Backlog<InboxItem>,
    /// While another process records: what that one may not have recorded.
    shadow: Option<Shadow>,
    /// What is left to another process. It keeps the low watermarks below it.
    left: Option<Backlog<InboxItem>>,
    /// Whether the consumer works on an entry, or has some that wait for a Secret.
    holds: bool,
    closed: bool,
}

/// The result of waiting for an entry.
pub(crate) enum Next {
    Entry(InboxItem),
    /// Nothing came in time.
    Nothing,
    /// Nothing more will come.
    Closed,
}

impl Inbox {
    /// With a bound in bytes.
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            bound,
            state: Mutex::new(State {
                backlog: Backlog::new(bound),
                shadow: None,
                left: None,
                holds: false,
                closed: false,
            }),
            arrived: Condvar::new(),
        }
    }

    /// Adds an entry. Never waits. Returns how many changes have been merged into others since the start.
    pub(crate) fn push(&self, waiting: InboxItem) -> u64 {
        let mut state = self.lock();
        match &mut state.shadow {
            Some(shadow) => shadow.push(waiting),
            None => state.backlog.push(waiting),
        }
        self.arrived.notify_one();
        state.backlog.merged()
    }

    /// From now on another process records, and this one stands by.
    pub(crate) fn stand_by(&self) {
        self.lock().shadow = Some(Shadow::new(self.bound));
    }

    /// While it stands by: the other process has recorded so much.
    pub(crate) fn recorded(&self, recorded: &Recorded) {
        if let Some(shadow) = &mut self.lock().shadow {
            shadow.recorded(recorded);
        }
    }

    /// While it stands by: how many changes the other process may not have recorded, and how many resources that were listed would be listed again.
    pub(crate) fn shadow(&self) -> (usize, usize) {
        self.lock().shadow.as_ref().map_or((0, 0), |shadow| (shadow.len(), shadow.torn()))
    }

    /// From now on this process records, after what the other one has recorded. What is to be recorded is taken.
    pub(crate) fn lead(&self, recorded: &Recorded) -> Led {
        let mut state = self.lock();
        let mut led = state.shadow.take().map(|shadow| shadow.lead(recorded)).unwrap_or_default();
        led.items.drain(..).for_each(|item| state.backlog.push(item));
        self.arrived.notify_one();
        led
    }

    /// The next entry; waits for it, but not longer than `limit`, if there is one. Blocks the thread.
    pub(crate) fn next(&self, limit: Option<Duration>) -> Next {
        let mut state = self.lock();
        let is_idle = |state: &mut State| state.backlog.is_empty() && !state.closed;
        state = match limit {
            None => self.arrived.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                let waited = self.arrived.wait_timeout_while(state, limit, is_idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        match state.backlog.pop() {
            Some(waiting) => {
                // Until the consumer says otherwise.
                state.holds = true;
                Next::Entry(waiting)
            }
            None if state.closed => Next::Closed,
            None => Next::Nothing,
        }
    }

    /// Waits up to `limit` for the inbox to be closed. Returns whether it is closed.
    pub(crate) fn closed_within(&self, limit: Duration) -> bool {
        let state = self.lock();
        let open = |state: &mut State| !state.closed;
        let waited = self.arrived.wait_timeout_while(state, limit, open);
        waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    /// Waits up to `limit` for an entry or for the close. Returns whether the inbox is empty.
    pub(crate) fn rests(&self, limit: Duration) -> bool {
        let idle = |state: &mut State| state.backlog.is_empty() && !state.closed;
        let waited = self.arrived.wait_timeout_while(self.lock(), limit, idle);
        waited.unwrap_or_else(PoisonError::into_inner).0.backlog.is_empty()
    }

    /// Lets changes come together: waits so long, unless much waits, or nothing more will come.
    pub(crate) fn gather(&self, time: Duration) {
        let little = |state: &mut State| state.backlog.bytes() < MUCH && !state.closed;
        // The waiting entries are taken next, however the wait has ended.
        drop(self.arrived.wait_timeout_while(self.lock(), time, little));
    }

    /// The consumer says whether it still holds entries that it took: some may wait for a Secret.
    pub(crate) fn holds(&self, some: bool) {
        self.lock().holds = some;
    }

    /// Whether the consumer has taken everything that has come.
    pub(crate) fn is_settled(&self) -> bool {
        let state = self.lock();
        state.backlog.is_empty() && !state.holds
    }

    /// What waits is left to another process, which stands by and has it too.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        let left = std::mem::replace(&mut state.backlog, Backlog::new(self.bound));
        state.left = Some(left);
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// How many changes have been merged into others since the start.
    pub(crate) fn merged(&self) -> u64 {
        self.lock().backlog.merged()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().backlog.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
