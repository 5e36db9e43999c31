//! What feeds a store: one list and watch per scope, and how far each has come.

use super::state::Scope;
use crate::{ObjectKey, ResourceVersion};

/// One list and watch that feeds a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceId(u64);

#[derive(Default)]
pub(super) struct Sources {
    sources: Vec<Feed>,
    added: u64,
    /// What the store as a whole reflects.
    reached: ResourceVersion,
    /// All sources that there were at the time were synced once.
    has_begun: bool,
}

pub(super) struct Feed {
    id: SourceId,
    pub(super) scope: Scope,
    pub(super) is_synced: bool,
    pub(super) reached: ResourceVersion,
}

impl Sources {
    pub(super) fn add(&mut self, scope: Scope) -> SourceId {
        let id = SourceId(self.added);
        self.added += 1;
        self.sources.push(Feed { id, scope, is_synced: false, reached: ResourceVersion::UNSET });
        id
    }

    pub(super) fn remove(&mut self, id: SourceId) -> Option<Scope> {
        let at = self.sources.iter().position(|feed| feed.id == id)?;
        let scope = self.sources.swap_remove(at).scope;
        // Nothing that is left reflects it.
        if !self.sources.iter().any(|feed| feed.is_synced && !feed.reached.is_older_than(&self.reached)) {
            self.reached = ResourceVersion::UNSET;
        }
        self.update();
        Some(scope)
    }

    pub(super) fn get(&self, id: SourceId) -> Option<&Feed> {
        self.sources.iter().find(|feed| feed.id == id)
    }

    pub(super) fn covers(&self, key: &ObjectKey) -> bool {
        self.sources.iter().any(|feed| feed.scope.contains(key))
    }

    pub(super) fn is_synced(&self) -> bool {
        !self.sources.is_empty() && self.sources.iter().all(|feed| feed.is_synced)
    }

    pub(super) fn reached(&self) -> &ResourceVersion {
        &self.reached
    }

    /// An event or a bookmark said that the source has come this far. Whether the store's version moved.
    pub(super) fn advance(&mut self, id: SourceId, version: &ResourceVersion) -> bool {
        let Some(feed) = self.sources.iter_mut().find(|feed| feed.id == id) else { return false };
        if version.is_unset() || feed.reached.is_at_least(version) {
            return false;
        }
        feed.reached = version.clone();
        self.update()
    }

    /// A list is in. Whether the store's version moved.
    pub(super) fn synced(&mut self, id: SourceId, version: ResourceVersion, may_go_back: bool) -> bool {
        let Some(feed) = self.sources.iter_mut().find(|feed| feed.id == id) else { return false };
        feed.is_synced = true;
        feed.reached = version;
        if may_go_back {
            self.reached = ResourceVersion::UNSET;
        }
        self.update()
    }

    /// The store reflects what the slowest source does; it takes part in no going back of a single source's. Nor does a
    /// source that was added later hold it back: it may never come, if the server denies it.
    fn update(&mut self) -> bool {
        self.has_begun |= self.is_synced();
        if !self.has_begun {
            return false;
        }
        let mut slowest: Option<&ResourceVersion> = None;
        for feed in self.sources.iter().filter(|feed| feed.is_synced) {
            slowest = match slowest {
                Some(other) if feed.reached.is_at_least(other) => Some(other),
                Some(other) if !feed.reached.is_older_than(other) => Some(&ResourceVersion::UNSET),
                _ => Some(&feed.reached),
            };
        }
        match slowest {
            Some(slowest)
                if !slowest.is_unset()
                    && *slowest != self.reached
                    && !slowest.is_older_than(&self.reached) =>
            {
                self.reached = slowest.clone();
                true
            }
            _ => false,
        }
    }
}
