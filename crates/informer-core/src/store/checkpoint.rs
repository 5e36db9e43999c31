//! The content of a saved cache: the objects of a store and the versions of its sources, both of one moment.

use std::collections::HashMap;
use std::sync::Arc;

use super::replace::Bits;
use super::snapshot::Snapshot;
use super::sources::SourceId;
use super::state::Scope;
use super::{NEW, Steps, Store};
use crate::{ContentKey, Object, Origin, ResourceVersion};

/// A store at one moment, and where each of its sources would resume.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The objects.
    pub snapshot: Snapshot,
    /// The sources that have objects, listed or loaded.
    pub sources: Vec<SourcePoint>,
    /// The key of the objects' content hashes.
    pub content_key: ContentKey,
}

/// The state of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePoint {
    /// The scope that it covers.
    pub scope: Scope,
    /// The version up to which the objects are complete: a watch resumes from here.
    pub resource_version: ResourceVersion,
    /// Whether some of its objects were undecodable, so that the snapshot has former versions of them, or none: the
    /// next process must list.
    pub has_unread: bool,
}

impl SourcePoint {
    /// The point of a scope that was not saved.
    pub fn nothing(scope: Scope) -> Self {
        Self { scope, resource_version: ResourceVersion::UNSET, has_unread: false }
    }
}

impl Store {
    /// The content that a save would write now. O(1) in the number of objects.
    ///
    /// Sources without content are left out, and so are those whose server has no versions.
    /// [`has_unread`](SourcePoint::has_unread) is known here only for sources that were loaded with it.
    pub fn checkpoint(&self) -> Checkpoint {
        let feeds = self.sources.iter().filter(|feed| feed.has_content() && !feed.reached.is_unset_or_zero());
        let sources = feeds.map(|feed| SourcePoint {
            scope: feed.scope.clone(),
            resource_version: feed.reached.clone(),
            has_unread: feed.has_unread(),
        });
        let cache = self.cache();
        Checkpoint {
            snapshot: cache.snapshot(),
            sources: sources.collect(),
            content_key: cache.content_key(),
        }
    }

    /// Uses the saved key of content hashes. Call it before the first list or event.
    pub fn use_content_key(&mut self, key: ContentKey) {
        self.shared.use_content_key(key);
    }

    /// Loads a saved state in one step: it adds a source for each of `sources`, and the objects that the sources with a
    /// version cover. The version of a source that was not saved is unset. Readers see nothing of the load, or all of it.
    /// Existing keys are not changed.
    ///
    /// A source with a version has its content from here on, but is not synced before a server has confirmed it
    /// ([`Store::confirm`]), or a list is committed. Returns the ids in the order of `sources`.
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
        let writes: Vec<_> = objects.into_iter().filter(is_new).collect();
        let slots = vec![NEW; writes.len()];
        let steps = Steps { gone: Bits::default(), last_states: HashMap::new(), writes, slots };
        // Subscribers get the content as such, not as changes.
        drop(self.apply_all(state.clone(), steps, Origin::List));
        ids
    }

    /// Notes that the server resumes from the loaded state of a source: the source is synced.
    pub fn confirm(&mut self, source: SourceId) {
        self.shared.install_waiting();
        self.sources.confirmed(source);
        self.publish_progress();
    }
}
