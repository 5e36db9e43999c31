//! What is saved of a cache, and how one begins with that (design D10).

use std::sync::Arc;

use informer_core::saved::Saved;
use informer_core::store::SourcePoint;
use informer_core::{Checkpoint, Scope};

use super::{Content, Core, Phase, Setup, lock};
use crate::saving::{Description, Unnamed};

impl Core {
    /// What would have to be saved now.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        let store = lock(&self.store);
        let mut checkpoint = store.checkpoint();
        // An event that cannot be read is in quarantine before those after it are in the cache, and leaves it after a
        // list is: asked for while the store is locked, it tells of no later one.
        for source in &mut checkpoint.sources {
            source.has_unread |= self.quarantine.covers_any(&source.scope);
        }
        checkpoint
    }

    /// What the cache is of. Which namespaces is not part of it: each is saved with how far it was.
    pub(crate) fn description(&self) -> Result<Description, Unnamed> {
        let setup = self.setup();
        let transform = match &setup.transform {
            None => String::new(),
            Some(transform) => transform.name().ok_or(Unnamed::Transform)?,
        };
        let content = match setup.content {
            Content::Whole => "whole",
            Content::Metadata => "metadata",
        };
        Ok([
            ("server", self.server.name().ok_or(Unnamed::Server)?.to_owned()),
            ("resource", self.resource.to_string()),
            ("kind", self.resource.kind.clone()),
            ("label selector", self.selection.labels.clone()),
            ("field selector", self.selection.fields.clone()),
            ("content", content.to_owned()),
            ("transform", transform),
        ])
    }

    /// Whether it is too late to load.
    pub(crate) fn is_begun(&self) -> bool {
        lock(&self.setup).phase != Phase::New
    }

    /// Begins with what was saved. How many objects that are; `None` if it is too late.
    pub(crate) fn load(&self, saved: Saved) -> Option<usize> {
        let mut setup = lock(&self.setup);
        if setup.phase != Phase::New || self.life.is_stopped() {
            return None;
        }
        setup.phase = Phase::Loaded;
        Some(self.begin_with(&mut setup, saved))
    }

    /// Starts what waited for a file, with what was in it.
    pub(crate) fn begin(self: &Arc<Self>, saved: Option<Saved>) {
        let mut setup = lock(&self.setup);
        if setup.phase != Phase::Loading {
            return;
        }
        if let Some(saved) = saved {
            self.begin_with(&mut setup, saved);
        }
        self.start_sources(&mut setup);
    }

    fn begin_with(&self, setup: &mut Setup, saved: Saved) -> usize {
        let saved =
            if self.settings.decodes_managed_fields { saved } else { saved.skipping_managed_fields() };
        let points: Vec<_> = setup.scopes.iter().map(|scope| saved_of(&saved.sources, scope)).collect();
        let told = {
            let mut store = lock(&self.store);
            let ids = store.load(points.clone(), saved.objects);
            for (point, id) in points.into_iter().zip(ids) {
                let resume = point.resume();
                setup.loaded.insert(point.scope, (id, resume));
            }
            let snapshot = self.cache.snapshot();
            self.fanout.load(snapshot.revision(), &snapshot.iter().cloned().collect::<Vec<_>>())
        };
        told.wake();
        self.progress.version_reached(&self.cache);
        self.cache.len()
    }
}

/// What was saved of a scope: by itself, or as a part of everything.
fn saved_of(sources: &[SourcePoint], scope: &Scope) -> SourcePoint {
    let of = |wanted: &Scope| sources.iter().find(|source| source.scope == *wanted);
    let found = of(scope).or_else(|| of(&Scope::All));
    found.map_or_else(
        || SourcePoint::nothing(scope.clone()),
        |source| SourcePoint { scope: scope.clone(), ..source.clone() },
    )
}
