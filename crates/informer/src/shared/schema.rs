//! The schema that an informer's content was read with (L14).

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

/// What a driver knows of the schema of its resource.
pub(super) struct Schema {
    server: Arc<Server>,
    news: BoxStream<'static, String>,
    /// The fingerprint that the server has told last; of a loaded cache that of its file, until then.
    last: Option<String>,
    /// When the watch of each scope ends by itself.
    watched_until: HashMap<Scope, Instant>,
}

impl Schema {
    /// `known`: the fingerprint of a loaded cache.
    pub(super) fn new(server: Arc<Server>, resource: ResourceType, known: Option<String>) -> Self {
        let news = server.schemas(resource, known.clone());
        Self { server, news, last: known, watched_until: HashMap::new() }
    }

    pub(super) fn last(&self) -> Option<&String> {
        self.last.as_ref()
    }

    /// Waits until the server tells another fingerprint. Whether the cache may have content that was read with the former
    /// one: the first one of all is that of the list under way.
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

    /// Notes that a watch begins. One that follows another one before its time may be due to a changed definition.
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
    /// Notes the schema that the whole content was read with.
    pub(super) fn set_schema(&self, schema: Option<String>) {
        lock(&self.setup).schema = schema;
    }

    /// The schema of a loaded content.
    pub(super) fn schema(&self) -> Option<String> {
        lock(&self.setup).schema.clone()
    }
}
