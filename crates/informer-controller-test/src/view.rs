//! The server as one process reads it: its lists and watches show what the replica's [sight](crate::sight) allows.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serve::{
    Batch, Catalog, Collection, CollectionError, Events, Listing, Object, Protobuf, Range, Resource,
    Resources, ServerVersion,
};

use crate::cluster::Cluster;
use crate::history::Seen;
use crate::process::Process;
use crate::recorder::qualified;
use crate::sight::Sight;

/// The states that a list or a watch has read for an answer, and that have not arrived at the program.
#[derive(Clone, Default)]
pub(crate) struct Sent(Arc<Mutex<Vec<Seen>>>);

impl Sent {
    fn add(&self, seen: Seen) {
        self.0.lock().push(seen);
    }

    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A catalog for [`serve::Serve`], of one request.
pub(crate) struct View {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) process: Arc<Process>,
    /// Whether requests demand the newest state, which no cache of a server may withhold.
    pub(crate) consistent: bool,
    /// The collection and its selectors.
    pub(crate) scope: Arc<str>,
    pub(crate) sent: Sent,
}

impl Catalog for View {
    fn resources(&self) -> Arc<Resources> {
        self.cluster.api.catalog().resources()
    }

    fn collection(&self, resource: &Resource) -> Option<Arc<dyn Collection>> {
        let inner = self.cluster.api.catalog().collection(resource)?;
        Some(Arc::new(Seeing {
            inner,
            cluster: self.cluster.clone(),
            process: self.process.clone(),
            resource: qualified(resource).into(),
            consistent: self.consistent,
            scope: self.scope.clone(),
            sent: self.sent.clone(),
        }))
    }

    fn version(&self) -> ServerVersion {
        self.cluster.api.catalog().version()
    }

    fn protobuf(&self, _: &str, _: &str) -> Option<Arc<dyn Protobuf>> {
        None
    }
}

struct Seeing {
    inner: Arc<dyn Collection>,
    cluster: Arc<Cluster>,
    process: Arc<Process>,
    resource: Arc<str>,
    consistent: bool,
    scope: Arc<str>,
    sent: Sent,
}

impl Seeing {
    fn sight(&self) -> Option<&Sight> {
        self.cluster.sights.get(self.process.instance.replica as usize)
    }

    fn frozen(&self) -> Option<u64> {
        self.sight().and_then(Sight::frozen).filter(|_| !self.consistent)
    }
}

impl Collection for Seeing {
    fn revision(&self) -> u64 {
        self.frozen().unwrap_or_else(|| self.inner.revision())
    }

    fn get<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, CollectionError>> {
        self.inner.get(namespace, name, at)
    }

    fn list<'a>(
        &'a self,
        range: &'a Range,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Listing, CollectionError>> {
        async move {
            let listing = self.inner.list(range, at.or(self.frozen())).await?;
            self.sent.add(Seen {
                resource: self.resource.clone(),
                scope: self.scope.clone(),
                upto: listing.revision,
                by_list: true,
            });
            Ok(listing)
        }
        .boxed()
    }

    fn events(&self, after: u64) -> Result<Box<dyn Events>, CollectionError> {
        let Some(sight) = self.sight() else { return self.inner.events(after) };
        let forgotten = sight.forgotten(&self.resource);
        if after < forgotten {
            return Err(CollectionError::Expired { oldest: forgotten });
        }
        let events = self.inner.events(after)?;
        Ok(Box::new(Held {
            events,
            cluster: self.cluster.clone(),
            process: self.process.clone(),
            resource: self.resource.clone(),
            scope: self.scope.clone(),
            sent: self.sent.clone(),
        }))
    }
}

/// The events of a watch, which stand still while the sight holds the resource.
struct Held {
    events: Box<dyn Events>,
    cluster: Arc<Cluster>,
    process: Arc<Process>,
    resource: Arc<str>,
    scope: Arc<str>,
    sent: Sent,
}

impl Held {
    /// Whether the server has forgotten an event that this watch has not sent.
    fn has_lost(&self) -> bool {
        let sight = self.cluster.sights.get(self.process.instance.replica as usize);
        let forgotten = sight.map_or(0, |sight| sight.forgotten(&self.resource));
        // With all events sent, the revision is the newest.
        self.events.revision() < forgotten
    }
}

impl Events for Held {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, CollectionError>> {
        async move {
            let cluster = self.cluster.clone();
            let Some(sight) = cluster.sights.get(self.process.instance.replica as usize) else {
                return self.events.next().await;
            };
            loop {
                sight.until(&self.resource, false).await;
                if self.has_lost() {
                    return Err(CollectionError::Expired { oldest: 0 });
                }
                tokio::select! {
                    biased;
                    () = sight.until(&self.resource, true) => {}
                    batch = self.events.next() => {
                        let batch = batch?;
                        if let Some(last) = batch.events.last() {
                            let upto = last.object.revision;
                            let (resource, scope) = (self.resource.clone(), self.scope.clone());
                            self.sent.add(Seen { resource, scope, upto, by_list: false });
                        }
                        return Ok(batch);
                    }
                }
            }
        }
        .boxed()
    }

    fn revision(&self) -> u64 {
        self.events.revision()
    }
}
