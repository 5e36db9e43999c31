//! The data that the writing and the reading side of a store share.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError};

use super::pending::PendingIndexes;
use super::published::{Draft, Published};
use super::report::Reports;
use super::state::State;
use crate::ContentKey;
use crate::sync::{AtomicU8, Mutex, MutexGuard, Reading};

pub(super) struct Shared {
    state: Published,
    names: Mutex<HashMap<Arc<str>, Name>>,
    pub(super) label_queries: AtomicU8,
    pub(super) pending: PendingIndexes,
    pub(super) reports: Reports,
    pub(super) content_key: OnceLock<ContentKey>,
}

/// A named index while it is being built, and its parts afterwards.
pub(super) type Name = Option<Box<dyn Any + Send + Sync>>;

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            state: Published::new(State::new()),
            names: Mutex::default(),
            label_queries: AtomicU8::new(0),
            pending: PendingIndexes::default(),
            reports: Reports::default(),
            content_key: OnceLock::new(),
        }
    }

    /// For one lookup, or for cloning the state.
    #[inline]
    pub(super) fn read(&self) -> Reading<State> {
        self.state.read()
    }

    /// For one change, or for publishing a prepared state.
    pub(super) fn draft(&self) -> Draft<'_> {
        self.state.draft()
    }

    pub(super) fn use_content_key(&self, key: ContentKey) {
        // If hashes were already made with another key, saved ones differ from them, which costs one comparison of trees
        // each.
        let _ = self.content_key.set(key);
    }

    pub(super) fn names(&self) -> MutexGuard<'_, HashMap<Arc<str>, Name>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
