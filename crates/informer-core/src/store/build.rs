//! Late indexes: built beside the running store.
//!
//! Whoever adds the index does the work, on their own thread and from a snapshot; then they follow what changed
//! meanwhile, which snapshots tell cheaply, and put the index in when nothing changed any more. A writer that is too
//! busy for that ever to happen takes the index over and follows the last few changes itself.

use std::sync::{Arc, PoisonError};

use super::builtin::ByLabel;
use super::inbox::Build;
use super::index::IndexCore;
use super::shared::Shared;
use super::state::BY_LABEL;
use crate::sync::{Ordering, yield_now};

/// Attempts to put the index in before the writer is asked to. With loom one, so that it gets to what follows.
const ATTEMPTS: usize = if cfg!(loom) { 1 } else { 8 };
/// Looks at whether the writer took the index, before it is tried again without it.
const LOOKS: usize = if cfg!(loom) { 1 } else { 256 };

/// Label queries were answered by scanning; the index is being built, or exists.
const SCANNED_ONCE: u8 = 1;
const INDEXED: u8 = 2;

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

    /// Builds the label index unless it exists or is being built.
    pub(super) fn index_labels(&self) {
        if self.label_queries.swap(INDEXED, Ordering::AcqRel) == INDEXED {
            return;
        }
        let base = self.read().clone();
        let core = IndexCore::new(None, ByLabel(base.hasher.clone()));
        self.build(Build::new(core, Some(BY_LABEL), base, &self.reports));
    }

    /// Called for each query that the label index would have answered. One is a single question; two are a habit.
    pub(super) fn note_label_query(&self) {
        let first = self.label_queries.compare_exchange(0, SCANNED_ONCE, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            self.index_labels();
        }
    }
}
