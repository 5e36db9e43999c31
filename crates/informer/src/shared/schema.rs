//! The schema with which an informer's objects were read (L14).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use informer_core::Scope;
use informer_core::reflector::WatchRequest;
use tokio::time::Instant;

use super::Core;
use crate::lock::lock;
use crate::resource::ResourceType;
use crate::server::Server;

/// The schema of a driver's resource, as far as it is known.
pub(super) struct Schema {
    server: Arc<Server>,
    news: BoxStream<'static, String>,
    /// The fingerprint that the server reported last. Until then, that of a loaded cache's file.
    last: Option<String>,
    /// When the watch of each scope ends by its own timeout.
    watched_until: HashMap<Scope, Instant>,
}

impl Schema {
    /// `known` is the fingerprint of a loaded cache.
    pub(super) fn new(server: Arc<Server>, resource: ResourceType, known: Option<String>) -> Self {
        let news = server.schemas(resource, known.clone());
        Self { server, news, last: known, watched_until: HashMap::new() }
    }

    pub(super) fn last(&self) -> Option<&String> {
        self.last.as_ref()
    }

    /// Waits until the server reports another fingerprint. Returns whether the cache may have objects that were read with
    /// the former schema. The first fingerprint of an informer without a loaded cache is that of its initial list, so it
    /// returns `false`.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn told(&mut self) -> bool {
        match self.news.next().await {
            Some(fingerprint) => self.last.replace(fingerprint).is_some(),
            None => std::future::pending().await,
        }
    }

    /// Notes that a watch begins. If the former watch ended before its timeout, a changed definition may be the cause.
    pub(super) fn watch_begins(&mut self, scope: &Scope, watch: &WatchRequest) {
        let now = Instant::now();
        let until = now.checked_add(Duration::from_secs(watch.timeout_seconds)).unwrap_or(now);
        let former = self.watched_until.insert(scope.clone(), until);
        if former.is_some_and(|until| now < until) {
            self.server.watch_ended_early();
        }
    }

    pub(super) fn scope_removed(&mut self, scope: &Scope) {
        self.watched_until.remove(scope);
    }
}

impl Core {
    /// Notes the schema with which all cached objects were read.
    pub(super) fn set_schema(&self, schema: Option<String>) {
        lock(&self.setup).schema = schema;
    }

    /// The schema of a loaded cache.
    pub(super) fn schema(&self) -> Option<String> {
        lock(&self.setup).schema.clone()
    }
}
