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
    /// Whether there was a time when all sources had content, listed or loaded.
    has_begun: bool,
}

pub(super) struct Feed {
    id: SourceId,
    pub(super) scope: Scope,
    pub(super) standing: Standing,
    pub(super) reached: ResourceVersion,
}

/// How far a source's part of the content can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The source has no content yet.
    Empty,
    /// The content was loaded, and no server has confirmed yet that a watch resumes from its version.
    Loaded { has_unread: bool },
    /// The content is what a server had.
    Synced,
}

impl Feed {
    pub(super) fn is_synced(&self) -> bool {
        self.standing == Standing::Synced
    }

    /// Whether the source has a version, and this one is not known to be at or before it.
    pub(super) fn is_behind(&self, version: &ResourceVersion) -> bool {
        !self.reached.is_unset_or_zero() && !self.reached.is_at_least(version)
    }

    pub(super) fn has_content(&self) -> bool {
        self.standing != Standing::Empty
    }

    /// As [`SourcePoint::has_unread`](super::SourcePoint::has_unread), for a source that was loaded with it.
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

    /// Notes that a source's part was loaded at this version.
    pub(super) fn loaded(&mut self, id: SourceId, version: ResourceVersion, has_unread: bool) {
        if let Some(feed) = self.get_mut(id) {
            feed.standing = Standing::Loaded { has_unread };
            feed.reached = version;
        }
    }

    /// Notes that the server resumes the watch from the loaded content.
    pub(super) fn confirmed(&mut self, id: SourceId) {
        if let Some(feed) = self.get_mut(id).filter(|feed| feed.has_content()) {
            feed.standing = Standing::Synced;
        }
    }

    /// Updates the version that the store as a whole reflects, after sources were loaded together.
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
        // No source that is left reflects that version.
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

    /// Notes that an event or a bookmark brought the source to this version. Returns whether the store's version moved.
    pub(super) fn advance(&mut self, id: SourceId, version: &ResourceVersion) -> bool {
        let Some(feed) = self.get_mut(id) else { return false };
        if version.is_unset() || feed.reached.is_at_least(version) {
            return false;
        }
        feed.reached = version.clone();
        self.update()
    }

    /// Notes that a list was committed. Returns whether the store's version moved.
    pub(super) fn synced(&mut self, id: SourceId, version: ResourceVersion, may_go_back: bool) -> bool {
        let Some(feed) = self.get_mut(id) else { return false };
        feed.standing = Standing::Synced;
        feed.reached = version;
        if may_go_back {
            self.reached = ResourceVersion::UNSET;
        }
        self.update()
    }

    /// Sets the store's version to that of the slowest source. It does not go back when a single source does. A source that
    /// was added later does not hold it back before it has content: if the server denies it, it never gets any.
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
