//! Late indexes: built beside the running store.
//!
//! Whoever adds the index does the work, on their own thread and from a snapshot; then they follow what changed
//! meanwhile, which snapshots tell cheaply, and put the index in when nothing changed any more. A writer that is too
//! busy for that ever to happen takes the index over and follows the last few changes itself.

use std::sync::{Arc, PoisonError};

use super::cache::Shared;
use super::index::{IndexCore, IndexEntry};
use super::report::Reports;
use super::state::{Slots, State};
use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering, yield_now};

/// Attempts to put the index in before the writer is asked to. With loom one, so that it gets to what follows.
const ATTEMPTS: usize = if cfg!(loom) { 1 } else { 8 };
/// Looks at whether the writer took the index, before it is tried again without it.
const LOOKS: usize = if cfg!(loom) { 1 } else { 256 };

/// An index that reflects `base`, on its way in.
pub(super) struct Build {
    entry: IndexEntry,
    /// Its place, where that matters.
    position: Option<usize>,
    /// Held so that a change of the store shows: what is in memory at another place is not this.
    base: Slots,
}

impl Build {
    pub(super) fn new(core: Arc<IndexCore>, position: Option<usize>, base: State, reports: &Reports) -> Self {
        let mut build = Self { entry: IndexEntry::new(core), position, base: Slots::default() };
        build.catch_up(base.slots, reports);
        build
    }

    fn catch_up(&mut self, slots: Slots, reports: &Reports) {
        self.entry.catch_up(&self.base, &slots, reports);
        self.base = slots;
    }
}

/// Indexes that wait for the writer.
#[derive(Default)]
pub(super) struct Inbox {
    is_waited_for: AtomicBool,
    builds: Mutex<Vec<Build>>,
    installed: Condvar,
}

impl Inbox {
    pub(super) fn is_waited_for(&self) -> bool {
        self.is_waited_for.load(Ordering::Relaxed)
    }

    /// No user code runs under this lock, so a poisoned one holds nothing half-done.
    fn builds(&self) -> MutexGuard<'_, Vec<Build>> {
        self.builds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Returns when the index is in.
    pub(super) fn build(&self, mut build: Build) {
        let core = build.entry.core.clone();
        loop {
            for _ in 0..ATTEMPTS {
                match self.try_install(build) {
                    Ok(()) => return,
                    Err(behind) => build = behind,
                }
            }
            self.inbox.builds().push(build);
            self.inbox.is_waited_for.store(true, Ordering::Release);
            for _ in 0..LOOKS {
                if core.is_installed() {
                    return;
                }
                yield_now();
            }
            let mut builds = self.inbox.builds();
            if let Some(at) = builds.iter().position(|build| Arc::ptr_eq(&build.entry.core, &core)) {
                build = builds.swap_remove(at);
                continue;
            }
            // The writer took it and is following the last changes.
            while !core.is_installed() {
                builds = self.inbox.installed.wait(builds).unwrap_or_else(PoisonError::into_inner);
            }
            return;
        }
    }

    /// Puts the index in if nothing changed since its base. If something did, brings it up to date.
    fn try_install(&self, mut build: Build) -> Result<(), Build> {
        let mut state = self.draft();
        if state.slots.is_same(&build.base) {
            let core = build.entry.core.clone();
            let refused = state.install(build.position, build.entry);
            state.publish();
            core.set_installed();
            drop(refused);
            return Ok(());
        }
        let slots = state.slots.clone();
        drop(state);
        build.catch_up(slots, &self.reports);
        Err(build)
    }

    /// The writer puts in what waits for it. Costs next to nothing when nothing does.
    #[inline]
    pub(super) fn install_waiting(&self) {
        if self.inbox.is_waited_for() {
            self.install_all_waiting();
        }
    }

    #[cold]
    fn install_all_waiting(&self) {
        self.inbox.is_waited_for.store(false, Ordering::Relaxed);
        let builds = std::mem::take(&mut *self.inbox.builds());
        for mut build in builds {
            // Only the writer changes slots, and this is the writer.
            let slots = self.read().slots.clone();
            build.catch_up(slots, &self.reports);
            let core = build.entry.core.clone();
            let mut state = self.draft();
            let refused = state.install(build.position, build.entry);
            state.publish();
            core.set_installed();
            drop(refused);
        }
        // Taking the lock makes sure that who looks at an index and then waits does not miss this.
        drop(self.inbox.builds());
        self.inbox.installed.notify_all();
    }
}
