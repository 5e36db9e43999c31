//! A change as an informer tells it, before it is compared; and what else waits to be shown.

use std::sync::Arc;

use informer::{Change as Told, Object, ObjectKey, Origin as Seen, ResourceType};
use jiff::Timestamp;

use crate::backlog::Item;
use crate::gap::Gap;
use crate::{Gvk, Origin};

/// What waits to be shown.
pub(super) enum Waiting {
    /// A change.
    Change(Raw),
    /// Time in which something was not watched.
    Gap(Gap),
    /// Objects of this kind were asked for by name: a rule that hides the kind as a whole does not count.
    Asked(Gvk),
}

/// A resource, by its two names.
pub(super) struct Kind {
    pub(super) resource: ResourceType,
    pub(super) gvk: Gvk,
}

impl Kind {
    pub(super) fn new(resource: ResourceType) -> Self {
        Self { gvk: Gvk::new(&resource.api_version(), &resource.kind), resource }
    }
}

/// A change of an object, or several that were merged: from the state before the first to the state after the last.
pub(super) struct Raw {
    pub(super) kind: Arc<Kind>,
    key: ObjectKey,
    pub(super) at: Timestamp,
    pub(super) origin: Origin,
    /// How many changes it stands for.
    pub(super) merged: u32,
    old: Option<Arc<Object>>,
    new: Option<Arc<Object>>,
    /// The last state known of an object that is gone.
    last: Option<Arc<Object>>,
}

impl Raw {
    /// The change, unless it is none of the cluster's.
    pub(super) fn of(kind: &Arc<Kind>, told: Told<Object>, at: Timestamp) -> Option<Self> {
        let key = told.key()?.clone();
        let (old, new, last, seen) = match told {
            Told::Added { new, origin, .. } => (None, Some(new.object().clone()), None, origin),
            Told::Updated { old, new, origin } => {
                (Some(old.object().clone()), Some(new.object().clone()), None, origin)
            }
            Told::Deleted(deleted) => {
                let last = deleted.last().object().clone();
                (Some(last.clone()), None, Some(last), deleted.origin())
            }
            _ => return None,
        };
        let origin = match seen {
            Seen::Watch => Origin::Watch,
            Seen::List => Origin::List,
            // We do not look there any more: nothing has happened to it.
            Seen::Scope => return None,
        };
        Some(Self { kind: kind.clone(), key, at, origin, merged: 1, old, new, last })
    }

    /// The states to compare.
    pub(super) fn states(&self) -> (Option<&Arc<Object>>, Option<&Arc<Object>>) {
        match &self.new {
            Some(new) => (self.old.as_ref(), Some(new)),
            None => (self.last.as_ref().or(self.old.as_ref()), None),
        }
    }
}

/// What a waiting change takes besides the objects.
const OVERHEAD: usize = 256;

impl Item for Waiting {
    type Key = (ResourceType, ObjectKey);

    fn key(&self) -> Option<Self::Key> {
        match self {
            Self::Change(raw) => Some((raw.kind.resource.clone(), raw.key.clone())),
            Self::Gap(_) | Self::Asked(_) => None,
        }
    }

    /// Objects count as they are read, although those that wait for long are packed.
    fn bytes(&self) -> usize {
        match self {
            Self::Change(raw) => {
                let objects = raw.old.iter().chain(&raw.new).chain(&raw.last);
                OVERHEAD + objects.map(|object| object.size()).sum::<usize>()
            }
            Self::Gap(_) | Self::Asked(_) => OVERHEAD,
        }
    }

    fn merge(&mut self, next: Self) {
        let (Self::Change(first), Self::Change(next)) = (self, next) else { return };
        first.merged += next.merged;
        first.at = next.at;
        first.new = next.new;
        first.last = next.last;
        if next.origin == Origin::List {
            first.origin = Origin::List;
        }
    }
}
