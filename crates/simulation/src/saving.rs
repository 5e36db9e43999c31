//! A saved cache, and an informer that loads it, as in a later process.

use std::collections::BTreeMap;

use informer_core::reflector::Resume;
use informer_core::saved;
use informer_core::store::SourcePoint;

use crate::client::Client;
use crate::content::Content;
use crate::doubt::{Cause, Doubt, Doubts};
use crate::invariant::{Invariant, Violation};
use crate::past::{Beginning, Past};
use crate::render::number;
use crate::truth::{Key, scope};

/// The file, and what the oracle knows of its content.
pub(crate) struct File {
    bytes: Vec<u8>,
    pasts: Vec<Past>,
    doubts: Doubts,
    epoch: Option<usize>,
    /// The version of the resource.
    pub(crate) version: u8,
}

const LONGEST: usize = 1 << 20;

impl File {
    /// Saves the cache; `None` if there is nothing to save. `removing` has the removed namespaces that the cache may still have,
    /// with their schemas.
    pub(crate) fn of(
        content: &Content,
        clients: &[Client],
        removing: &[(u8, u64)],
        version: u8,
    ) -> Result<Option<Self>, Violation> {
        // While user code runs, no checkpoint exists.
        let Ok(checkpoint) = content.engine.checkpoint() else { return Ok(None) };
        if checkpoint.sources.is_empty() {
            return Ok(None);
        }
        let mut pasts = Vec::new();
        let removed = |of: &_| removing.iter().find(|(namespace, _)| scope(Some(*namespace)) == *of);
        for client in clients {
            let scope = scope(client.namespace);
            // A client that was added again since the removal knows nothing of the content.
            if removed(&scope).is_some() || !checkpoint.sources.iter().any(|source| source.scope == scope) {
                continue;
            }
            let Client { epoch, is_deceived, schema, .. } = *client;
            pasts.push(Past { scope, epoch, is_deceived, schema, doubts: client.doubts.clone() });
        }
        // A removed source may still have objects in the cache. Nothing vouches for them any more, but their schema is known.
        for source in &checkpoint.sources {
            if !pasts.iter().any(|past| past.scope == source.scope) {
                let doubts = BTreeMap::new();
                let scope = source.scope.clone();
                let schema = removed(&scope).map_or(0, |(_, schema)| *schema);
                pasts.push(Past { scope, epoch: 0, is_deceived: true, schema, doubts });
            }
        }
        let mut bytes = Vec::new();
        saved::save_with_note(&mut bytes, &[], content.engine.content_schema(), &checkpoint)
            .map_err(|error| Invariant::Saved.violated(error.to_string()))?;
        Ok(Some(Self { bytes, pasts, doubts: content.doubts.clone(), epoch: content.epoch, version }))
    }

    /// An object changed at an unchanged version.
    pub(crate) fn revised(&mut self, key: Key, version: u64) {
        let doubt = Doubt { until: version + 1, cause: Cause::Revision, is_held: false, lists: 0 };
        let of_key = |past: &&mut Past| [None, Some(key.namespace())].map(scope).contains(&past.scope);
        for past in self.pasts.iter_mut().filter(of_key) {
            past.doubts.insert((key, Cause::Revision), doubt);
        }
        self.doubts.of(key);
    }

    /// Loads the file for these namespaces.
    pub(crate) fn load(
        &self,
        content: &mut Content,
        namespaces: &[Option<u8>],
    ) -> Result<Vec<Beginning>, Violation> {
        let saved = saved::load(&self.bytes[..], &[], LONGEST, &*content.storage)
            .map_err(|error| Invariant::Saved.violated(error.to_string()))?;
        let points: Vec<_> = namespaces
            .iter()
            .map(|namespace| {
                let scope = scope(*namespace);
                let found = saved.sources.iter().find(|source| source.scope == scope);
                found.cloned().unwrap_or_else(|| SourcePoint::nothing(scope))
            })
            .collect();
        content.doubts = self.doubts.clone();
        for subscription in &mut content.subscriptions {
            subscription.doubts = self.doubts.clone();
        }
        content.epoch = self.epoch;
        let scopes: Vec<_> = points.iter().map(|point| point.scope.clone()).collect();
        let versions = points.iter().map(|point| (point.scope.clone(), point.resource_version.clone()));
        content.loaded = versions.collect();
        content.engine.load(saved, &scopes);
        content.loaded();
        Invariant::Saved
            .holds(!content.cache().is_synced(), || "synced before a server confirmed the load".to_owned())?;
        let beginnings = points.into_iter().map(|point| {
            let past = self.pasts.iter().find(|past| past.scope == point.scope).cloned();
            let past = past.map(Past::before_any_list);
            let resume = Resume::from_saved(&point.resource_version, point.has_unread);
            let past = match resume {
                Some(Resume::Watch(_)) => past.map(Past::read_in_full),
                _ => past,
            };
            let loaded_at = resume.map_or(0, |_| number(&point.resource_version));
            Beginning { loaded_at, past }
        });
        Ok(beginnings.collect())
    }
}
