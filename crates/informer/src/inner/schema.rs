//! The schemas of an informer's resource (L14).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use informer_core::Scope;
use informer_core::reflector::WatchRequest;
use tokio::time::Instant;

use crate::options::resource::ResourceType;
use crate::server::Server;

/// The schemas of a driver's resource, as the server reports them.
pub(super) struct Schema {
    server: Arc<Server>,
    news: BoxStream<'static, String>,
    /// When the watch of each scope ends by its own timeout.
    watched_until: HashMap<Scope, Instant>,
}

impl Schema {
    pub(super) fn new(server: Arc<Server>, resource: ResourceType) -> Self {
        let news = server.schemas(resource);
        Self { server, news, watched_until: HashMap::new() }
    }

    /// Waits for the fingerprint of the schema, and then for each other one.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn next(&mut self) -> String {
        match self.news.next().await {
            Some(fingerprint) => fingerprint,
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
