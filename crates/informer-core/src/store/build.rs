//! Late indexes: an index that is added to a running store is built beside it.
//!
//! The thread that adds the index does the work, from a snapshot. Then it follows later changes, which a comparison with a
//! newer snapshot finds cheaply, and installs the index when nothing has changed any more. If the writer is too busy for that
//! ever to happen, the writer takes the index over and follows the last few changes itself.

use std::sync::{Arc, PoisonError};

use super::builtin::ByLabel;
use super::index::IndexCore;
use super::pending::Build;
use super::shared::Shared;
use super::state::BY_LABEL;
use crate::sync::{Ordering, yield_now};

/// Attempts to install the index before the writer is asked to do it. Under loom it is one, so that loom reaches the code
/// that follows.
const ATTEMPTS: usize = if cfg!(loom) { 1 } else { 8 };
/// How often the thread checks whether the writer has installed the index, before it tries again itself.
const LOOKS: usize = if cfg!(loom) { 1 } else { 256 };

/// Values of `label_queries`: one query was answered by a scan; the index is being built, or exists.
const SCANNED_ONCE: u8 = 1;
const INDEXED: u8 = 2;

impl Shared {
    /// Returns when the index is installed.
    pub(super) fn build(&self, mut build: Build) {
        let core = build.entry.core.clone();
        loop {
            for _ in 0..ATTEMPTS {
                match self.try_install(build) {
                    Ok(()) => return,
                    Err(behind) => build = behind,
                }
            }
            self.pending.builds().push(build);
            self.pending.is_waited_for.store(true, Ordering::Release);
            for _ in 0..LOOKS {
                if core.is_installed() {
                    return;
                }
                yield_now();
            }
            let mut builds = self.pending.builds();
            if let Some(at) = builds.iter().position(|build| Arc::ptr_eq(&build.entry.core, &core)) {
                build = builds.swap_remove(at);
                continue;
            }
            // The writer has taken the index and is following the last changes.
            while !core.is_installed() {
                builds = self.pending.installed.wait(builds).unwrap_or_else(PoisonError::into_inner);
            }
            return;
        }
    }

    /// Installs the index if no object has changed since its base. Otherwise brings the index up to date and returns it.
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

    /// The writer installs the indexes that wait for it. If none does, this costs next to nothing.
    #[inline]
    pub(super) fn install_waiting(&self) {
        if self.pending.is_waited_for() {
            self.install_all_waiting();
        }
    }

    #[cold]
    fn install_all_waiting(&self) {
        self.pending.is_waited_for.store(false, Ordering::Relaxed);
        let builds = std::mem::take(&mut *self.pending.builds());
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
        // The lock makes sure that a thread which has checked the index and is about to wait does not miss this notification.
        drop(self.pending.builds());
        self.pending.installed.notify_all();
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

    /// Counts a query that the label index would have answered. The second one builds the index.
    pub(super) fn note_label_query(&self) {
        let first = self.label_queries.compare_exchange(0, SCANNED_ONCE, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            self.index_labels();
        }
    }
}
