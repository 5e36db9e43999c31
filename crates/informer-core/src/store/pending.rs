//! Late indexes that wait for the writer to install them.

use std::sync::{Arc, PoisonError};

use super::index::{IndexCore, IndexEntry};
use super::report::Reports;
use super::state::{Slots, State};
use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};

/// An index that reflects `base` and is not installed yet.
pub(super) struct Build {
    pub(super) entry: IndexEntry,
    /// The position to install it at; `None` for any.
    pub(super) position: Option<usize>,
    /// The slots that the index reflects. Holding them makes a later change visible as a different pointer.
    pub(super) base: Slots,
}

impl Build {
    pub(super) fn new(core: Arc<IndexCore>, position: Option<usize>, base: State, reports: &Reports) -> Self {
        let mut build = Self { entry: IndexEntry::new(core), position, base: Slots::default() };
        build.catch_up(base.slots, reports);
        build
    }

    pub(super) fn catch_up(&mut self, slots: Slots, reports: &Reports) {
        self.entry.catch_up(&self.base, &slots, reports);
        self.base = slots;
    }
}

/// Indexes that wait for the writer.
#[derive(Default)]
pub(super) struct PendingIndexes {
    pub(super) is_waited_for: AtomicBool,
    builds: Mutex<Vec<Build>>,
    pub(super) installed: Condvar,
}

impl PendingIndexes {
    pub(super) fn is_waited_for(&self) -> bool {
        self.is_waited_for.load(Ordering::Relaxed)
    }

    /// No user code runs under this lock, so a poisoned lock guards consistent data.
    pub(super) fn builds(&self) -> MutexGuard<'_, Vec<Build>> {
        self.builds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
