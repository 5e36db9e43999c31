//! Reads what has changed in the server, in the order of the changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serve::{Change as Kind, CollectionError, Event, Events, Resource};
use testapi::Api;

use crate::history::{Author, Change};

/// A position in the server's changes.
#[derive(Default)]
pub(crate) struct Recorder {
    /// The resources that are followed; those that changed last come first.
    followed: Vec<Followed>,
    revision: u64,
    /// The revision of each change.
    revisions: Vec<u64>,
    counts: BTreeMap<Arc<str>, u64>,
}

struct Followed {
    resource: Arc<Resource>,
    name: Arc<str>,
    events: Box<dyn Events>,
}

impl Recorder {
    /// The changes since the last call. The first one is by `by`, and so are others of the same resource; the rest are
    /// consequences, which the server's controllers have carried out.
    pub(crate) fn take(&mut self, api: &Api, at: Duration, by: Author) -> Vec<Change> {
        let newest = api.revision();
        if newest == self.revision {
            return Vec::new();
        }
        let count = newest - self.revision;
        let mut found = self.read(count);
        if (found.len() as u64) < count {
            // A resource that is served since the last call.
            self.follow(api);
            found.extend(self.read(count));
        }
        found.sort_by_key(|(_, _, event)| event.object.revision);
        self.revision = newest;
        let first = found.first().map(|(name, ..)| name.clone());
        let changes: Vec<_> = found
            .into_iter()
            .map(|(name, resource, event)| {
                let resource = &resource;
                let is_its_own =
                    Some(&name) == first.as_ref() || (by == Author::World && event.change == Kind::Added);
                let by = if is_its_own { by } else { Author::Cluster };
                let revision = event.object.revision;
                let before = event.previous.as_ref().map(|object| api.typed(resource, object));
                let after = (event.change != Kind::Deleted).then(|| api.typed(resource, &event.object));
                Change { at, by, resource: name, revision, before, after }
            })
            .collect();
        self.revisions.extend(changes.iter().map(|change| change.revision));
        changes
    }

    /// Counts a change: the number of it among all, and among those of its resource.
    pub(crate) fn count(&mut self, resource: &Arc<str>) -> (u64, u64) {
        let of_resource = self.counts.entry(resource.clone()).or_default();
        *of_resource += 1;
        let of_resource = *of_resource;
        (self.changes(), of_resource)
    }

    /// How many changes were counted.
    pub(crate) fn changes(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The revision that lacks this many of the last changes.
    pub(crate) fn revision_before(&self, changes: u64) -> u64 {
        let back = usize::try_from(changes).unwrap_or(usize::MAX).saturating_add(1);
        let at = self.revisions.len().saturating_sub(back);
        self.revisions.get(at).copied().unwrap_or(self.revision)
    }

    /// Reads at least this many events, or all that there are.
    fn read(&mut self, count: u64) -> Vec<(Arc<str>, Arc<Resource>, Event)> {
        let mut found = Vec::new();
        for place in 0..self.followed.len() {
            let Some(followed) = self.followed.get_mut(place) else { break };
            if let Some(Ok(batch)) = followed.events.next().now_or_never() {
                let of = |event| (followed.name.clone(), followed.resource.clone(), event);
                found.extend(batch.events.into_iter().map(of));
                self.followed.swap(0, place);
            }
            if found.len() as u64 >= count {
                break;
            }
        }
        found
    }

    fn follow(&mut self, api: &Api) {
        let catalog = api.catalog();
        for resource in catalog.resources().iter() {
            let name = qualified(resource);
            if self.followed.iter().any(|followed| *followed.name == *name) {
                continue;
            }
            let Some(collection) = catalog.collection(resource) else { continue };
            let events = match collection.events(self.revision.min(collection.revision())) {
                // The history of a resource begins when it is served.
                Err(CollectionError::Expired { oldest }) => collection.events(oldest),
                events => events,
            };
            let Ok(events) = events else { continue };
            self.followed.push(Followed { resource: resource.clone(), name: name.into(), events });
        }
    }
}

/// `secrets`, `deployments.apps`.
pub(crate) fn qualified(resource: &Resource) -> String {
    named(&resource.plural, &resource.group)
}

pub(crate) fn named(plural: &str, group: &str) -> String {
    match group {
        "" => plural.to_owned(),
        group => format!("{plural}.{group}"),
    }
}
