//! The caches that a controller reads, and whether they reflect what it wrote.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use informer::kube::core::params::ListParams;
use informer::kube::{Client, client};
use informer::share::ShareBy;
use informer::{
    Index, Informer, Labels, NotReached, Object, ObjectKey, ResourceType, ResourceVersion, Snapshot, Status,
    Uid, View,
};
use informer_core::control::{CacheStates, Found, OwnWrite};
use tokio::time::Instant;

use crate::request;
use crate::source::Watched;

/// The informers of a controller, each once.
#[derive(Default)]
pub(crate) struct Caches {
    informers: Vec<Informer<Object>>,
    /// The numbers of those whose objects are of another cluster: they reflect no write.
    elsewhere: HashSet<usize>,
    /// For the cache of that number, its objects by the uid of the owner that controls them.
    by_owner: Vec<(usize, Index<Object, Uid>)>,
    probes: tokio::sync::Mutex<Probes>,
}

/// Whether caches reflect what a controller wrote. The worst of several is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reflected {
    Yes,
    /// Not yet.
    No,
    /// Only the server knows, and it did not answer a request.
    Unanswered,
}

/// The newest version of the server, by the number of the cache for whose resource it was asked, and when.
type Probes = HashMap<usize, (Instant, ResourceVersion)>;

impl Caches {
    /// Adds an informer, unless its cache is there, and returns the number of the cache.
    pub(crate) fn add<U: View>(&mut self, informer: &Informer<U>) -> usize {
        self.number(informer).unwrap_or_else(|| {
            self.informers.push(informer.cast());
            self.informers.len() - 1
        })
    }

    /// Adds the informer of a source.
    pub(crate) fn add_watched<U: View>(&mut self, watched: &Watched<U>) -> usize {
        let number = self.add(&watched.informer);
        if watched.is_elsewhere {
            self.elsewhere.insert(number);
        }
        number
    }

    /// Adds an informer whose objects are looked up by the uid of the owner that controls them.
    pub(crate) fn add_owned<U: View>(&mut self, watched: &Watched<U>) {
        let number = self.add_watched(watched);
        if self.by_owner.iter().all(|(of, _)| *of != number) {
            self.by_owner.push((number, watched.informer.cast().add_controller_index()));
        }
    }

    pub(crate) fn by_owner<U: View>(&self, informer: &Informer<U>) -> Option<&Index<Object, Uid>> {
        let number = self.number(informer)?;
        self.by_owner.iter().find(|(of, _)| *of == number).map(|(_, index)| index)
    }

    pub(crate) fn number<U: View>(&self, informer: &Informer<U>) -> Option<usize> {
        self.informers.iter().position(|one| one.shares_cache_with(informer))
    }

    pub(crate) fn informers(&self) -> &[Informer<Object>] {
        &self.informers
    }

    /// Resolves when one of the informers has stopped.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let all = self.informers.iter().map(|informer| {
            let mut statuses = informer.status_changes();
            Box::pin(async move { while statuses.next().await.is_some() {} })
        });
        let first = futures_util::future::select_all(all);
        async move { drop(first.await) }
    }

    /// Whether one of the informers has stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        self.informers.iter().any(Informer::is_stopped)
    }

    /// The state of each cache, taken one after another.
    pub(crate) fn snapshots(&self) -> Vec<Snapshot<Object>> {
        self.informers.iter().map(Informer::snapshot).collect()
    }

    /// The caches that an object with this key and these labels may concern: those that select it, as far as labels say, and those
    /// that hold a version of it, which get an event when it leaves their selection.
    pub(crate) fn holding(
        &self,
        resource: &ResourceType,
        key: Option<&ObjectKey>,
        labels: &Labels,
    ) -> impl Iterator<Item = usize> {
        self.of(resource).filter(move |number| {
            let informer = &self.informers[*number];
            let selection = informer.selection();
            let holds = |key: &ObjectKey| matches!(informer.lister().get(key.as_str()), Ok(Some(_)));
            selection.labels().matches(labels) || key.is_some_and(holds)
        })
    }

    /// Whether a cache gets the events of an object that has these hashes: the object is in the cache's share, or leaves it.
    pub(crate) fn is_told(
        &self,
        number: usize,
        key: &ObjectKey,
        hash: impl FnOnce(ShareBy) -> Option<u64>,
    ) -> bool {
        let informer = &self.informers[number];
        let Some(share) = informer.selection().share() else { return true };
        hash(share.by()).is_some_and(|hash| share.ranges().contains(hash))
            || matches!(informer.lister().get(key.as_str()), Ok(Some(_)))
    }

    /// The caches of a resource in the cluster that the controller writes to, whatever their selections and versions.
    pub(crate) fn of(&self, resource: &ResourceType) -> impl Iterator<Item = usize> {
        self.informers.iter().enumerate().filter_map(move |(number, informer)| {
            let of = informer.resource();
            let is_it = of.group == resource.group && of.plural == resource.plural;
            (is_it && !self.elsewhere.contains(&number)).then_some(number)
        })
    }

    fn selects_fields(&self, cache: usize) -> bool {
        !self.informers[cache].selection().fields().is_everything()
    }

    /// `waits until its cache has its write of secrets shop/a`
    pub(crate) fn wait_for(&self, write: &OwnWrite) -> String {
        let (cache, until, object) = match write {
            OwnWrite::Written { cache, key, .. }
            | OwnWrite::Gone { cache, key, .. }
            | OwnWrite::Absent { cache, key, .. } => (cache, "its cache has its write", key.to_string()),
            OwnWrite::Uncertain { cache, name, .. } => {
                (cache, "the server tells the fate of its write", name.clone().unwrap_or_default())
            }
        };
        format!("waits until {until} of {} {object}", self.informers[*cache].resource().plural)
    }

    /// Waits until a cache reflects a write, for `limit` at most.
    pub(crate) async fn reflected(&self, write: &OwnWrite, client: &Client, limit: Duration) -> Reflected {
        let asked = match write {
            // Only the server knows whether the cache's fields select the object.
            OwnWrite::Written { cache, key, .. } if self.selects_fields(*cache) => OwnWrite::Uncertain {
                cache: *cache,
                namespace: key.namespace().map(str::to_owned),
                name: Some(key.name().to_owned()),
            },
            write => write.clone(),
        };
        let OwnWrite::Uncertain { cache, namespace, name } = &asked else {
            return self.arrives(write, client, limit).await;
        };
        if !self.informers[*cache].selects_namespace(namespace.as_deref()) {
            return Reflected::Yes;
        }
        if matches!(self.informers[*cache].status(), Status::Retrying { .. }) {
            // The server is away, and the informer finds out when it is back.
            return Reflected::No;
        }
        let found = self.found(*cache, namespace.as_deref(), name.as_deref(), client);
        let (found, at) = match tokio::time::timeout(limit, found).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(client::Error::Api(refusal))) if refusal.code == 403 => {
                if asked != *write {
                    return self.arrives(write, client, limit).await;
                }
                tracing::warn!(%refusal, "a write got no answer, and the server does not tell its result");
                return Reflected::Yes;
            }
            _ => return Reflected::Unanswered,
        };
        let writes = asked.resolve(&found, &at);
        let all = writes.iter().map(|write| self.arrives(write, client, limit));
        futures_util::future::join_all(all).await.into_iter().max().unwrap_or(Reflected::Yes)
    }

    /// The same for a write that was answered.
    async fn arrives(&self, write: &OwnWrite, client: &Client, limit: Duration) -> Reflected {
        let reached = match write {
            OwnWrite::Written { cache, key, version } => match key.namespace() {
                Some(namespace) => self.informers[*cache].at_least_in(namespace, version, limit).await,
                None => self.informers[*cache].at_least(version, limit).await,
            },
            OwnWrite::Gone { cache, key, uid } => self.informers[*cache].gone(key, uid, limit).await,
            OwnWrite::Absent { cache, key, .. } => self.left(write, *cache, key, limit).await,
            OwnWrite::Uncertain { .. } => return Reflected::No,
        };
        match reached {
            Ok(()) => Reflected::Yes,
            // An informer never sees an object that it does not select.
            Err(error) if error.is_not_selected() => Reflected::Yes,
            Err(error) if error.is_timeout() && self.is_moot(write, client, limit).await => Reflected::Yes,
            Err(_) => Reflected::No,
        }
    }

    /// Waits until an object has left a cache. Several incarnations may go one after the other.
    async fn left(
        &self,
        write: &OwnWrite,
        cache: usize,
        key: &ObjectKey,
        limit: Duration,
    ) -> Result<(), NotReached> {
        let until = Instant::now() + limit;
        while let Some(object) = self.object(cache, key).filter(|_| !write.is_reflected(self)) {
            let left = until.saturating_duration_since(Instant::now());
            self.informers[cache].gone(key, object.uid(), left).await?;
        }
        Ok(())
    }

    /// The objects that a request without an answer may have written and that the cache selects, as the server has them now, and its
    /// version. Needs the permission to list, which informers need as well.
    async fn found(
        &self,
        cache: usize,
        namespace: Option<&str>,
        name: Option<&str>,
        client: &Client,
    ) -> Result<(Vec<Found>, ResourceVersion), client::Error> {
        let informer = &self.informers[cache];
        let selection = informer.selection();
        let by_name = name.map(|name| format!("metadata.name={name}"));
        let fields = Some(selection.fields().to_string()).filter(|fields| !fields.is_empty());
        let fields: Vec<_> = by_name.into_iter().chain(fields).collect();
        let parameters =
            ListParams::default().labels(&selection.labels().to_string()).fields(&fields.join(","));
        request::found(client, &informer.resource(), namespace, &parameters).await
    }

    /// Whether the server says that a write is never reflected.
    async fn is_moot(&self, write: &OwnWrite, client: &Client, limit: Duration) -> bool {
        match write {
            OwnWrite::Written { cache, key, .. } => {
                let current = self.newest(*cache, key, client, limit).await;
                current.is_some_and(|current| write.is_moot(&current, &[], self))
            }
            OwnWrite::Gone { cache, key, .. } | OwnWrite::Absent { cache, key, .. } => {
                let found = self.found(*cache, key.namespace(), Some(key.name()), client);
                let found = tokio::time::timeout(limit, found).await;
                found.is_ok_and(|answer| answer.is_ok_and(|(found, at)| write.is_moot(&at, &found, self)))
            }
            OwnWrite::Uncertain { .. } => false,
        }
    }

    /// The newest version of the server. The answer to one question serves all writes that wait.
    async fn newest(
        &self,
        cache: usize,
        key: &ObjectKey,
        client: &Client,
        limit: Duration,
    ) -> Option<ResourceVersion> {
        let mut probes = self.probes.lock().await;
        if probes.get(&cache).is_none_or(|(at, _)| at.elapsed() >= PROBE) {
            let resource = self.informers[cache].resource();
            let asked = request::current_version(client, &resource, key.namespace());
            let Ok(Ok(current)) = tokio::time::timeout(limit, asked).await else { return None };
            probes.insert(cache, (Instant::now(), current));
        }
        probes.get(&cache).map(|(_, current)| current.clone())
    }
}

impl CacheStates for Caches {
    fn object(&self, cache: usize, key: &ObjectKey) -> Option<Arc<Object>> {
        let item = self.informers[cache].lister().get(key.as_str()).ok().flatten();
        item.map(|item| item.object().clone())
    }

    fn version(&self, cache: usize) -> ResourceVersion {
        self.informers[cache].resource_version()
    }
}

/// How long the answer to a probe is used.
const PROBE: Duration = Duration::from_secs(5);
