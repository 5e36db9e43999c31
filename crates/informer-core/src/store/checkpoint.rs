//! The content of a store and how far its sources have come, both of one moment: what is saved, and loaded again.

use std::sync::Arc;

use super::snapshot::Snapshot;
use super::sources::SourceId;
use super::state::Scope;
use super::{Steps, Store, Write};
use crate::reflector::Resume;
use crate::{Object, ResourceVersion, Source};

/// Everything in a store at one moment, and from where each of its sources would go on.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The content.
    pub snapshot: Snapshot,
    /// The sources that have a content.
    pub sources: Vec<SourcePoint>,
}

/// How far one source has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePoint {
    /// What it covers.
    pub scope: Scope,
    /// The state of the server that is wholly in the content: a watch goes on from here.
    pub resource_version: ResourceVersion,
    /// Whether some of its objects could not be read, so that the content has former versions of them, or none: a list
    /// has to find out what they are by then.
    pub has_unread: bool,
}

impl SourcePoint {
    /// The source of a scope of which nothing was saved.
    pub fn nothing(scope: Scope) -> Self {
        Self { scope, resource_version: ResourceVersion::UNSET, has_unread: false }
    }

    /// From where a reflector goes on; `None` if it has nothing to go on from.
    pub fn resume(&self) -> Option<Resume> {
        let version = Some(self.resource_version.clone()).filter(|version| !version.is_unset_or_zero())?;
        Some(if self.has_unread { Resume::List(version) } else { Resume::Watch(version) })
    }
}

impl Store {
    /// What would have to be saved now. O(1) in the number of objects.
    ///
    /// Sources that have no content yet are left out, and so are those whose server gives no versions. Whether a source has
    /// something [unread](SourcePoint::has_unread) is known here only of what was loaded like that.
    pub fn checkpoint(&self) -> Checkpoint {
        let feeds = self.sources.iter().filter(|feed| feed.has_content() && !feed.reached.is_unset_or_zero());
        let sources = feeds.map(|feed| SourcePoint {
            scope: feed.scope.clone(),
            resource_version: feed.reached.clone(),
            has_unread: feed.has_unread(),
        });
        Checkpoint { snapshot: self.cache().snapshot(), sources: sources.collect() }
    }

    /// Begins with what was saved: adds a source for each of `sources`, whose version is unset where it was not saved, and the objects that those with a version cover. In one step: readers see nothing,
    /// or all of it. Keys that are there already stay as they are.
    ///
    /// A source with a version has its content from here on, but is not synced before a server has confirmed that it
    /// goes on from there ([`Store::confirm`]), or a list is committed. Returns their ids in their order.
    pub fn load(
        &mut self,
        sources: impl IntoIterator<Item = SourcePoint>,
        objects: impl IntoIterator<Item = Arc<Object>>,
    ) -> Vec<SourceId> {
        self.shared.install_waiting();
        let mut ids = Vec::new();
        let mut loaded = Vec::new();
        for SourcePoint { scope, resource_version, has_unread } in sources {
            let id = self.sources.add(scope.clone());
            if !resource_version.is_unset_or_zero() {
                self.sources.loaded(id, resource_version, has_unread);
                loaded.push(scope);
            }
            ids.push(id);
        }
        self.sources.begin();
        let state = self.shared.read().clone();
        let is_new = |object: &Arc<Object>| {
            loaded.iter().any(|scope| scope.contains(object.key()))
                && state.locate(object.key().as_str()).is_none()
        };
        let new = objects.into_iter().filter(is_new);
        let writes = new.map(|new| Write { known: None, new }).collect();
        self.apply_all(state, Steps { gone: Vec::new(), writes }, Source::List);
        ids
    }

    /// A server goes on from the state that a source was loaded with: the source is synced.
    pub fn confirm(&mut self, source: SourceId) {
        self.shared.install_waiting();
        self.sources.confirmed(source);
        self.publish_progress();
    }
}
