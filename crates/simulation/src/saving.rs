//! A cache that is saved, and an informer that begins with it, as `crates/informer/src/shared/loading.rs` does.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_core::reflector::Resume;
use informer_core::saved::{self, Saved};
use informer_core::store::SourcePoint;
use informer_core::{Scope, SourceId};

use crate::client::Client;
use crate::fanout::{Content, Doubts};
use crate::invariant::{Invariant, Violation};
use crate::network::{Cause, Doubt};
use crate::truth::{Key, namespace};

/// The file, and what is known of its content that is not in it.
pub(crate) struct File {
    bytes: Vec<u8>,
    pasts: Vec<Past>,
    doubts: Doubts,
    epoch: Option<usize>,
}

/// What is known of one source's part.
#[derive(Clone)]
pub(crate) struct Past {
    scope: Scope,
    pub(crate) epoch: usize,
    pub(crate) is_deceived: bool,
    pub(crate) doubts: BTreeMap<(Key, Cause), Doubt>,
}

/// What a client begins with.
pub(crate) struct Beginning {
    pub(crate) source: SourceId,
    pub(crate) resume: Option<Resume>,
    pub(crate) past: Option<Past>,
}

impl Past {
    /// Where nothing is said to be unread, what was damaged is no excuse.
    fn read_in_full(mut self) -> Self {
        self.doubts.retain(|(_, cause), _| *cause != Cause::Damage);
        self
    }
}

const LONGEST: usize = 1 << 20;

pub(crate) fn scope(number: Option<u8>) -> Scope {
    number.map_or(Scope::All, |number| Scope::Namespace(namespace(number).into()))
}

impl File {
    /// Saves what there is, if there is something.
    pub(crate) fn of(content: &Content, clients: &[Client]) -> Result<Option<Self>, Violation> {
        let mut checkpoint = content.store.checkpoint();
        if checkpoint.sources.is_empty() {
            return Ok(None);
        }
        let mut pasts = Vec::new();
        for client in clients {
            let scope = scope(client.namespace);
            let Some(source) = checkpoint.sources.iter_mut().find(|source| source.scope == scope) else {
                continue;
            };
            source.has_unread |= client.has_unread;
            let Client { epoch, is_deceived, .. } = *client;
            pasts.push(Past { scope, epoch, is_deceived, doubts: client.doubts.clone() });
        }
        let mut bytes = Vec::new();
        saved::save(&mut bytes, &[], &checkpoint)
            .map_err(|error| Invariant::Saved.violated(error.to_string()))?;
        Ok(Some(Self { bytes, pasts, doubts: content.doubts.clone(), epoch: content.epoch }))
    }

    /// Loads it for these namespaces.
    pub(crate) fn load(
        &self,
        content: &mut Content,
        namespaces: &[Option<u8>],
    ) -> Result<Vec<Beginning>, Violation> {
        let Saved { sources, objects } = saved::load(&self.bytes[..], &[], LONGEST, &*content.storage)
            .map_err(|error| Invariant::Saved.violated(error.to_string()))?;
        let points: Vec<_> = namespaces
            .iter()
            .map(|namespace| {
                let scope = scope(*namespace);
                let found = sources.iter().find(|source| source.scope == scope);
                found.cloned().unwrap_or_else(|| SourcePoint::nothing(scope))
            })
            .collect();
        content.doubts = self.doubts.clone();
        content.epoch = self.epoch;
        let ids = content.store.load(points.clone(), objects);
        let snapshot = content.cache.snapshot();
        let present: Vec<_> = snapshot.iter().map(Arc::clone).collect();
        for subscription in &mut content.subscriptions {
            subscription.load(snapshot.revision(), &present);
        }
        Invariant::Saved
            .holds(!content.store.is_synced(), || "synced before a server was asked".to_owned())?;
        let beginnings = ids.into_iter().zip(points).map(|(source, point)| {
            let past = self.pasts.iter().find(|past| past.scope == point.scope).cloned();
            let resume = point.resume();
            let past = match resume {
                Some(Resume::Watch(_)) => past.map(Past::read_in_full),
                _ => past,
            };
            Beginning { source, resume, past }
        });
        Ok(beginnings.collect())
    }
}
