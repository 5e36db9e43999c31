//! The scopes that feed the cache, and how they come and go.

use std::collections::HashMap;
use std::sync::Arc;

use crate::reflector::{self, Reflector, Resume, Status};
use crate::saved::Saved;
use crate::store::SourcePoint;
use crate::{Scope, SourceId, Time};

use super::request::RequestId;
use super::scope_feed::ScopeFeed;
use super::writer::{Operation, Step, Writer};
use super::{Command, Engine};

#[derive(Default)]
pub(super) struct Scopes {
    feeds: Vec<ScopeFeed>,
    /// The scopes whose source was not added to the store yet.
    adding: Vec<Scope>,
    /// The sources that were loaded for scopes that have not started.
    loaded: HashMap<Scope, (SourceId, Option<Resume>)>,
    /// The schema with which the loaded content was read.
    loaded_schema: Arc<str>,
    /// The removed sources that the store still has, and the schemas with which their content was read.
    pub(super) leaving: Vec<(SourceId, Arc<str>)>,
    begun: u64,
}

impl Scopes {
    pub(super) fn len(&self) -> usize {
        self.feeds.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<&ScopeFeed> {
        self.feeds.get(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut ScopeFeed> {
        self.feeds.get_mut(at)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ScopeFeed> {
        self.feeds.iter()
    }

    pub(super) fn position_of(&self, request: RequestId) -> Option<usize> {
        self.feeds.iter().position(|source| source.request == Some(request))
    }

    pub(super) fn position(&self, id: SourceId) -> Option<usize> {
        self.feeds.iter().position(|source| source.id == id)
    }

    /// The schemas with which the content of the sources was read. A list that is not in the cache yet has none. A removed
    /// source counts until the store has dropped it: a stop may come first, and save its content.
    pub(super) fn content_schemas(&self) -> impl Iterator<Item = &str> {
        let loaded = (!self.loaded.is_empty()).then_some(&*self.loaded_schema);
        let leaving = self.leaving.iter().map(|(_, schema)| &**schema);
        self.feeds.iter().map(ScopeFeed::content_schema).chain(loaded).chain(leaving)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.feeds.is_empty() && self.adding.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.feeds.iter().filter_map(|source| source.reflector.deadline()).min()
    }

    fn contains(&self, scope: &Scope) -> bool {
        self.adding.contains(scope) || self.feeds.iter().any(|source| source.scope == *scope)
    }

    /// Loads the saved state of these scopes into the store.
    pub(super) fn load(&mut self, writer: &mut Writer, saved: Saved, scopes: &[Scope]) {
        let points: Vec<_> = scopes.iter().map(|scope| saved_of(&saved.sources, scope)).collect();
        let ids = writer.load(points.clone(), saved.objects, saved.content_key);
        self.loaded_schema = saved.note.into();
        for (point, id) in points.into_iter().zip(ids) {
            let resume = Resume::from_saved(&point.resource_version, point.has_unread);
            self.loaded.insert(point.scope, (id, resume));
        }
    }
}

/// The saved point of a scope: its own, or that of all namespaces.
fn saved_of(sources: &[SourcePoint], scope: &Scope) -> SourcePoint {
    let of = |wanted: &Scope| sources.iter().find(|source| source.scope == *wanted);
    let found = of(scope).or_else(|| of(&Scope::All));
    found.map_or_else(
        || SourcePoint::nothing(scope.clone()),
        |source| SourcePoint { scope: scope.clone(), ..source.clone() },
    )
}

impl Engine {
    pub(super) fn add_scope(&mut self, now: Time, scope: Scope) {
        if self.scopes.contains(&scope) {
            return;
        }
        match self.scopes.loaded.remove(&scope) {
            Some((id, resume)) => self.begin_source(now, id, scope, resume),
            None => {
                self.scopes.adding.push(scope.clone());
                self.apply(now, Operation::Add(scope));
            }
        }
    }

    /// The store has added the source. It lists, or resumes from the loaded state.
    pub(super) fn source_added(&mut self, now: Time, id: SourceId, scope: Scope) {
        match self.scopes.adding.iter().position(|adding| *adding == scope) {
            Some(at) => {
                self.scopes.adding.swap_remove(at);
                self.begin_source(now, id, scope, None);
            }
            // The scope was removed in the meantime.
            None => self.remove_source(now, id, scope),
        }
    }

    fn begin_source(&mut self, now: Time, id: SourceId, scope: Scope, resume: Option<Resume>) {
        let Some(running) = &self.running else { return };
        self.scopes.begun += 1;
        // Each source has a seed of its own, so that their random waits differ.
        let seed = running.seed.wrapping_mul(1_000_003).wrapping_add(self.scopes.begun);
        let config = running.reflector.clone();
        self.counters.source_added(id, resume.is_some());
        let (reflector, schema) = match resume {
            None => (Reflector::new(config, seed), Arc::default()),
            Some(resume) => (Reflector::resuming(config, seed, resume), self.scopes.loaded_schema.clone()),
        };
        self.scopes.feeds.push(ScopeFeed::new(id, scope, reflector, schema));
        let at = self.scopes.len() - 1;
        self.relist_outdated(now, at);
        self.reflect(now, at, reflector::Input::Start);
    }

    pub(super) fn remove_scope(&mut self, now: Time, scope: &Scope) {
        if let Some(at) = self.scopes.feeds.iter().position(|source| source.scope == *scope) {
            // No operation of this source follows: the writer ignores those still queued once the removal is applied.
            self.hang_up(at);
            let source = self.scopes.feeds.swap_remove(at);
            self.scopes.leaving.push((source.id, source.content_schema().into()));
            self.commands.push_back(Command::SourceStatus(source.scope, Status::Stopped));
            self.remove_source(now, source.id, scope.clone());
        } else if let Some((id, _)) = self.scopes.loaded.remove(scope) {
            self.scopes.leaving.push((id, self.scopes.loaded_schema.clone()));
            self.remove_source(now, id, scope.clone());
        } else if let Some(at) = self.scopes.adding.iter().position(|adding| adding == scope) {
            self.scopes.adding.swap_remove(at);
        } else {
            self.commands.push_back(Command::ScopeRemoved(scope.clone()));
        }
    }

    fn remove_source(&mut self, now: Time, id: SourceId, scope: Scope) {
        self.counters.source_removed(id);
        self.apply(now, Operation::Of { source: id, request: RequestId(0), scope, step: Step::Remove });
    }
}
