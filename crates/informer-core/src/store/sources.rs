//! The sources of a store: one list and watch per scope, and the version that each has reached.

use super::state::Scope;
use crate::{ObjectKey, ResourceVersion};

/// One list and watch that feeds a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceId(u64);

#[derive(Default)]
pub(super) struct Sources {
    sources: Vec<Feed>,
    added: u64,
    /// The version that the store as a whole reflects.
    reached: ResourceVersion,
    /// All sources that there were at the time had a content once.
    has_begun: bool,
}

pub(super) struct Feed {
    id: SourceId,
    pub(super) scope: Scope,
    pub(super) standing: Standing,
    pub(super) reached: ResourceVersion,
}

/// What a source's part of the content is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing is known yet.
    Empty,
    /// It was saved, and no server has confirmed yet that it goes on from there.
    Loaded { has_unread: bool },
    /// It is what a server had.
    Synced,
}

impl Feed {
    pub(super) fn is_synced(&self) -> bool {
        self.standing == Standing::Synced
    }

    pub(super) fn has_content(&self) -> bool {
        self.standing != Standing::Empty
    }

    /// As [`SourcePoint::has_unread`](super::SourcePoint::has_unread), as far as it was loaded.
    pub(super) fn has_unread(&self) -> bool {
        self.standing == Standing::Loaded { has_unread: true }
    }
}

impl Sources {
    pub(super) fn add(&mut self, scope: Scope) -> SourceId {
        let id = SourceId(self.added);
        self.added += 1;
        self.sources.push(Feed { id, scope, standing: Standing::Empty, reached: ResourceVersion::UNSET });
        id
    }

    /// A source's part was saved at this version.
    pub(super) fn loaded(&mut self, id: SourceId, version: ResourceVersion, has_unread: bool) {
        if let Some(feed) = self.get_mut(id) {
            feed.standing = Standing::Loaded { has_unread };
            feed.reached = version;
        }
    }

    /// The server goes on from what was loaded.
    pub(super) fn confirmed(&mut self, id: SourceId) {
        if let Some(feed) = self.get_mut(id).filter(|feed| feed.has_content()) {
            feed.standing = Standing::Synced;
        }
    }

    /// Looks once more at what the store as a whole reflects, after sources were loaded together.
    pub(super) fn begin(&mut self) {
        self.update();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Feed> {
        self.sources.iter()
    }

    fn get_mut(&mut self, id: SourceId) -> Option<&mut Feed> {
        self.sources.iter_mut().find(|feed| feed.id == id)
    }

    pub(super) fn remove(&mut self, id: SourceId) -> Option<Scope> {
        let at = self.sources.iter().position(|feed| feed.id == id)?;
        let scope = self.sources.swap_remove(at).scope;
        // Nothing that is left reflects it.
        if !self.sources.iter().any(|feed| feed.has_content() && !feed.reached.is_older_than(&self.reached)) {
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
        !self.sources.is_empty() && self.sources.iter().all(Feed::is_synced)
    }

    pub(super) fn reached(&self) -> &ResourceVersion {
        &self.reached
    }

    /// An event or a bookmark said that the source has come this far. Whether the store's version moved.
    pub(super) fn advance(&mut self, id: SourceId, version: &ResourceVersion) -> bool {
        let Some(feed) = self.get_mut(id) else { return false };
        if version.is_unset() || feed.reached.is_at_least(version) {
            return false;
        }
        feed.reached = version.clone();
        self.update()
    }

    /// A list is in. Whether the store's version moved.
    pub(super) fn synced(&mut self, id: SourceId, version: ResourceVersion, may_go_back: bool) -> bool {
        let Some(feed) = self.get_mut(id) else { return false };
        feed.standing = Standing::Synced;
        feed.reached = version;
        if may_go_back {
            self.reached = ResourceVersion::UNSET;
        }
        self.update()
    }

    /// The store reflects what the slowest source does; it takes part in no going back of a single source's. Nor does a
    /// source that was added later hold it back: it may never come, if the server denies it.
    fn update(&mut self) -> bool {
        self.has_begun |= !self.sources.is_empty() && self.sources.iter().all(Feed::has_content);
        if !self.has_begun {
            return false;
        }
        let mut slowest: Option<&ResourceVersion> = None;
        for feed in self.sources.iter().filter(|feed| feed.has_content()) {
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
