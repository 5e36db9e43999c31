//! A change as an informer tells it, before it is compared; and what else waits in the inbox.

use std::collections::BTreeSet;
use std::sync::Arc;

use informer::{
    Change as CacheChange, Object, ObjectKey, Origin as CacheOrigin, ResourceType, ResourceVersion,
};
use jiff::Timestamp;
use kubediff_history::ObjectId;

use super::watermark::{Arrival, Hold, Watches, Watermark};
use crate::backlog::Item;
use crate::model::gap::Gap;
use crate::{Gvk, Origin, Sighting};

/// An entry of the inbox.
pub(crate) enum InboxItem {
    /// A change.
    Change(RawChange),
    /// An object of the first list of its resource. This variant and the next four, up to `Alive`, are sent only if a history is
    /// written.
    First(RawChange),
    /// The first list of a resource is complete.
    Synced(Synced),
    /// The set of followed resources has changed.
    Resources(Resources),
    /// A target that was watched is not watched any more, since then and for this reason. When it is watched again, a gap
    /// follows.
    Lost(String, Timestamp, String),
    /// Everything was watched until this time, as far as the server lets us.
    Alive(Timestamp),
    /// Time in which something was not watched.
    Gap(Gap),
    /// Objects of this kind were asked for by name: a rule that hides the kind as a whole does not count.
    Asked(Gvk),
}

/// The first list of a target is complete.
pub(crate) struct Synced {
    pub(crate) kind: Arc<Kind>,
    /// The name of the one object, if it is one.
    pub(crate) name: Option<String>,
    pub(crate) at: Timestamp,
    /// Those of its watches.
    pub(crate) watermarks: Vec<Arc<Watermark>>,
    /// Whether the resource appeared while others were watched: its objects were told as changes.
    pub(crate) is_new: bool,
    /// Whether the history has everything up to the watermarks, and the changes after them follow: this process stood by.
    pub(crate) continues: bool,
}

impl Synced {
    /// As [`RawChange::target_text`].
    pub(crate) fn target_text(&self) -> String {
        target_text(&self.kind, self.name.as_deref())
    }
}

/// The followed resources.
pub(crate) struct Resources {
    /// As `deployments.apps`, or `deployments.apps/cart` for one object.
    pub(crate) names: Vec<String>,
    /// The resources of the server, as `deployments.apps`.
    pub(crate) served: BTreeSet<String>,
    /// Whether that is all: then a resource that is not served is gone.
    pub(crate) complete: bool,
}

/// A resource, by its two names.
pub(crate) struct Kind {
    pub(crate) resource: ResourceType,
    pub(crate) gvk: Gvk,
}

impl Kind {
    pub(super) fn new(resource: ResourceType) -> Self {
        Self { gvk: Gvk::new(&resource.api_version(), &resource.kind), resource }
    }

    /// A sighting of an object of this kind.
    pub(crate) fn sighting<'a>(
        &'a self,
        cluster: Option<&'a str>,
        observed_at: Timestamp,
        origin: Origin,
    ) -> Sighting<'a> {
        Sighting { cluster, gvk: &self.gvk, resource: &self.resource.plural, observed_at, origin }
    }

    /// That of an object in a history.
    pub(crate) fn stored(object: &ObjectId) -> Self {
        let resource = ResourceType {
            group: object.gvk.group.clone(),
            version: object.gvk.version.clone(),
            plural: object.resource.clone(),
            kind: object.gvk.kind.clone(),
            namespaced: object.namespace.is_some(),
        };
        Self { gvk: object.gvk.clone(), resource }
    }
}

/// A change of an object, or several that were merged: from the state before the first to the state after the last.
pub(crate) struct RawChange {
    pub(crate) kind: Arc<Kind>,
    /// The name of the one object that is followed of this kind, if it is one.
    pub(crate) target: Option<Arc<str>>,
    pub(crate) key: ObjectKey,
    pub(crate) at: Timestamp,
    pub(crate) origin: Origin,
    /// How many changes it stands for.
    pub(crate) merged: u32,
    old: Option<Arc<Object>>,
    new: Option<Arc<Object>>,
    /// The last state known of an object that is gone.
    last: Option<Arc<Object>>,
    /// Of several changes that were merged, that of the first.
    hold: Option<Hold>,
}

impl RawChange {
    /// The change, unless it is none of the cluster's.
    pub(super) fn of(
        kind: &Arc<Kind>,
        target: Option<&str>,
        told: CacheChange<Object>,
        at: Timestamp,
    ) -> Option<Self> {
        let key = told.key()?.clone();
        let (old, new, last, seen) = match told {
            CacheChange::Added { new, origin, .. } => (None, Some(new.object().clone()), None, origin),
            CacheChange::Updated { old, new, origin } => {
                (Some(old.object().clone()), Some(new.object().clone()), None, origin)
            }
            CacheChange::Deleted(deleted) => {
                let last = deleted.last().object().clone();
                (Some(last.clone()), None, Some(last), deleted.origin())
            }
            _ => return None,
        };
        let origin = match seen {
            CacheOrigin::Watch => Origin::Watch,
            CacheOrigin::List => Origin::List,
            // We do not look there any more: nothing has happened to it.
            CacheOrigin::Scope => return None,
        };
        let target = target.map(Arc::from);
        let kind = kind.clone();
        Some(Self { kind, target, key, at, origin, merged: 1, old, new, last, hold: None })
    }

    /// A change between these states. The last state of an object that is gone is the one before.
    #[cfg(test)]
    pub(crate) fn seen(
        kind: &Arc<Kind>,
        key: ObjectKey,
        origin: Origin,
        states: [Option<Arc<Object>>; 2],
    ) -> Self {
        let ([old, new], kind, at) = (states, kind.clone(), Timestamp::now());
        let last = old.clone().filter(|_| new.is_none());
        Self { kind, target: None, key, at, origin, merged: 1, old, new, last, hold: None }
    }

    /// The version that the object has now, or had last.
    #[cfg(test)]
    pub(crate) fn last_version(&self) -> u64 {
        let state = self.new.as_ref().or(self.last.as_ref()).unwrap();
        state.resource_version().to_string().parse().unwrap()
    }

    /// The version that it had before, if there was one.
    #[cfg(test)]
    pub(crate) fn first_version(&self) -> Option<u64> {
        Some(self.old.as_ref()?.resource_version().to_string().parse().unwrap())
    }

    /// The change of an object that is gone, with this last state.
    #[cfg(test)]
    pub(crate) fn of_last(self, last: Option<Arc<Object>>) -> Self {
        Self { last, ..self }
    }

    /// The object as one of the first list of its watch.
    pub(crate) fn listed(self, watches: &Watches) -> Self {
        if let Some(object) = &self.new {
            watches.first(&self.key, object.resource_version());
        }
        self
    }

    /// The change as one that keeps the low watermark of its watch below it; `None` when another process has recorded it.
    pub(crate) fn holding(mut self, watches: &Watches) -> Option<Self> {
        if let Some(state) = self.new.as_ref().or(self.last.as_ref()) {
            let (version, is_gone) = (state.resource_version(), self.new.is_none());
            match watches.change(&self.key, version, self.origin, is_gone) {
                Arrival::New(hold) => self.hold = hold,
                Arrival::Recorded => return None,
            }
        }
        Some(self)
    }

    /// The name of its watch, and the version that the object has now, or had last.
    pub(super) fn place(&self) -> Option<(&str, &ResourceVersion)> {
        let state = self.new.as_ref().or(self.last.as_ref())?;
        Some((self.hold.as_ref()?.watch(), state.resource_version()))
    }

    /// Its memory in bytes. Objects count as they are read, although those that wait for long are packed.
    pub(super) fn bytes(&self) -> usize {
        let objects = self.old.iter().chain(&self.new).chain(&self.last);
        OVERHEAD + objects.map(|object| object.size()).sum::<usize>()
    }

    /// The target that it is of: `deployments.apps`, or `deployments.apps/cart` where one object is followed.
    pub(crate) fn target_text(&self) -> String {
        target_text(&self.kind, self.target.as_deref())
    }

    /// The object as it is now, unless it is gone.
    pub(crate) fn now(&self) -> Option<&Arc<Object>> {
        self.new.as_ref()
    }

    /// The states to compare.
    pub(crate) fn states(&self) -> (Option<&Arc<Object>>, Option<&Arc<Object>>) {
        match &self.new {
            Some(new) => (self.old.as_ref(), Some(new)),
            None => {
                // Of several changes that were merged, the last incarnation may be another one than the first.
                let same = |last: &&Arc<Object>| self.old.as_ref().is_none_or(|old| old.uid() == last.uid());
                (self.last.as_ref().filter(same).or(self.old.as_ref()), None)
            }
        }
    }
}

fn target_text(kind: &Kind, name: Option<&str>) -> String {
    let resource = kind.resource.qualified_name();
    name.map_or_else(|| resource.clone(), |name| format!("{resource}/{name}"))
}

/// The overhead of a waiting change besides the objects, in bytes.
const OVERHEAD: usize = 256;

impl Item for InboxItem {
    type Key = (ResourceType, ObjectKey);

    fn key(&self) -> Option<Self::Key> {
        match self {
            Self::Change(raw) => Some((raw.kind.resource.clone(), raw.key.clone())),
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Change(raw) => raw.bytes(),
            // Objects that are listed first are in the cache, too.
            _ => OVERHEAD,
        }
    }

    fn merge(&mut self, next: Self) {
        let (Self::Change(first), Self::Change(next)) = (self, next) else { return };
        // The time stays that of the first: the entries that wait behind it came later.
        first.merged += next.merged;
        first.new = next.new;
        first.last = next.last;
        if next.origin == Origin::List {
            first.origin = Origin::List;
        }
    }
}
