//! The caches that a controller reads, and whether they reflect what it wrote.

use std::time::Duration;

use futures_util::StreamExt;
use informer::kube::{Client, client};
use informer::{
    Index, Informer, Labels, NotReached, Object, ObjectKey, ResourceType, ResourceVersion, Snapshot, Uid,
    View,
};

use crate::owned::Owned;
use crate::request;

/// The informers of a controller, each once.
#[derive(Default)]
pub(crate) struct Caches {
    informers: Vec<Informer<Object>>,
    /// For the cache of that number, its objects by the uid of the owner that controls them.
    by_owner: Vec<(usize, Index<Owned, Uid>)>,
}

/// A write of a reconciliation that the next one of the same object has to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnWrite {
    /// The object has this version, or a later one.
    Written { cache: usize, key: ObjectKey, version: ResourceVersion },
    /// This incarnation of the object is gone.
    Gone { cache: usize, key: ObjectKey, uid: Uid },
    /// A request without an answer: the server may have carried it out. It has no name if the server was to generate one.
    Uncertain { cache: usize, namespace: Option<String>, name: Option<String> },
}

impl Caches {
    /// Adds an informer, unless its cache is there, and returns the number of the cache.
    pub(crate) fn add<U: View>(&mut self, informer: &Informer<U>) -> usize {
        self.number(informer).unwrap_or_else(|| {
            self.informers.push(informer.cast());
            self.informers.len() - 1
        })
    }

    /// Adds an informer whose objects are looked up by the uid of the owner that controls them.
    pub(crate) fn add_owned<U: View>(&mut self, informer: &Informer<U>) {
        let number = self.add(informer);
        if self.by_owner.iter().all(|(of, _)| *of != number) {
            let index = informer.cast::<Owned>().add_index(|object| object.controller());
            self.by_owner.push((number, index));
        }
    }

    pub(crate) fn by_owner<U: View>(&self, informer: &Informer<U>) -> Option<&Index<Owned, Uid>> {
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

    /// The state of each cache, taken together.
    pub(crate) fn snapshots(&self) -> Vec<Snapshot<Object>> {
        self.informers.iter().map(Informer::snapshot).collect()
    }

    /// The caches that an object with this key and these labels concerns: those that select it, and those that hold a version
    /// of it, which will be told when it leaves their selection.
    pub(crate) fn holding(
        &self,
        resource: &ResourceType,
        key: Option<&ObjectKey>,
        labels: &Labels,
    ) -> impl Iterator<Item = usize> {
        self.of(resource).filter(move |number| {
            let informer = &self.informers[*number];
            let holds = |key: &ObjectKey| matches!(informer.lister().get(key.as_str()), Ok(Some(_)));
            informer.selection().labels().matches(labels) || key.is_some_and(holds)
        })
    }

    /// The caches of a resource, whatever their selections and versions.
    pub(crate) fn of(&self, resource: &ResourceType) -> impl Iterator<Item = usize> {
        self.informers.iter().enumerate().filter_map(move |(number, informer)| {
            let of = informer.resource();
            (of.group == resource.group && of.plural == resource.plural).then_some(number)
        })
    }

    /// Whether a cache reflects a write. Asks nobody.
    pub(crate) fn reflect(&self, write: &OwnWrite) -> bool {
        match write {
            OwnWrite::Written { cache, key, version } => {
                let informer = &self.informers[*cache];
                let cached = informer.lister().get(key.as_str()).ok().flatten();
                let has_it = cached.is_some_and(|object| reaches(object.resource_version(), version));
                has_it || reaches(&informer.resource_version(), version)
            }
            OwnWrite::Gone { cache, key, uid } => {
                let cached = self.informers[*cache].lister().get(key.as_str()).ok().flatten();
                cached.is_none_or(|object| object.uid() != uid)
            }
            OwnWrite::Uncertain { .. } => false,
        }
    }

    /// Waits until a cache reflects a write. Returns whether it does within `limit`.
    pub(crate) async fn reflected(&self, write: &OwnWrite, client: &Client, limit: Duration) -> bool {
        let reached = match write {
            OwnWrite::Written { cache, key, version } => {
                let informer = &self.informers[*cache];
                match at_least(informer, key, version, limit).await {
                    Err(error) if error.is_timeout() => {
                        return was_restored(client, &informer.resource(), version).await;
                    }
                    reached => reached,
                }
            }
            OwnWrite::Gone { cache, key, uid } => self.informers[*cache].gone(key, uid, limit).await,
            OwnWrite::Uncertain { cache, namespace, name } => {
                let found = self.found(*cache, namespace.as_deref(), name.as_deref(), client);
                let Ok(Ok(found)) = tokio::time::timeout(limit, found).await else { return false };
                let informer = &self.informers[*cache];
                let all = found.iter().map(|(key, version)| at_least(informer, key, version, limit));
                futures_util::future::join_all(all).await.into_iter().collect()
            }
        };
        // What an informer does not select, it never sees.
        reached.is_ok() || reached.is_err_and(|error| error.is_not_selected())
    }

    /// The objects that a request without an answer may have written, as the server has them now.
    async fn found(
        &self,
        cache: usize,
        namespace: Option<&str>,
        name: Option<&str>,
        client: &Client,
    ) -> Result<Vec<(ObjectKey, ResourceVersion)>, client::Error> {
        let informer = &self.informers[cache];
        match name {
            Some(name) => request::version_of(client, &informer.resource(), namespace, name).await,
            None => {
                let labels = informer.selection().labels().to_string();
                request::versions(client, &informer.resource(), namespace, &labels).await
            }
        }
    }
}

async fn at_least(
    informer: &Informer<Object>,
    key: &ObjectKey,
    version: &ResourceVersion,
    limit: Duration,
) -> Result<(), NotReached> {
    match key.namespace() {
        Some(namespace) => informer.at_least_in(namespace, version, limit).await,
        None => informer.at_least(version, limit).await,
    }
}

/// Whether the server is older than a version that it has returned: it was restored from a backup, which voids the write.
async fn was_restored(client: &Client, resource: &ResourceType, version: &ResourceVersion) -> bool {
    let current = request::current_version(client, resource).await;
    current.is_ok_and(|current| current.is_older_than(version))
}

/// Versions that cannot be compared never block, as in Kubernetes' own controllers (KEP-5504 makes all comparable).
fn reaches(current: &ResourceVersion, version: &ResourceVersion) -> bool {
    !current.is_unset() && (current.is_at_least(version) || current.compare(version).is_none())
}
