//! Changes that a watch missed without an outage: it fell behind, or broke for a moment, and the server had forgotten by then
//! what came next. A list finds the result, and the time in between is a gap.

use informer::{Change as CacheChange, Object, Origin, Status};
use jiff::{SignedDuration, Timestamp};

use crate::model::gap::Gap;
use crate::model::targets::Target;

/// A connection without a sign of life is broken after 60 s, and its end is noticed a moment later.
const SILENT: SignedDuration = SignedDuration::from_secs(75);

/// Why there is such a gap.
const CAUSE: &str = "the watch missed changes that the server had forgotten; a list shows their result, not the states in between";

/// Why there is one before the first list of a new resource.
const NEW: &str = "the definition is new; a list shows what there was by then, not what had come and gone";

/// When a target was heard of last, and whether an outage explains what a list finds.
#[derive(Debug)]
pub(super) struct Missed {
    heard: Timestamp,
    /// Since when an outage, or a list, explains what a list finds.
    explained: Option<Timestamp>,
}

impl Missed {
    pub(super) fn since(now: Timestamp) -> Self {
        Self { heard: now, explained: None }
    }

    /// The first list of a resource that is new to the server is complete. The gap until then.
    pub(super) fn begun(&self, target: &Target, now: Timestamp) -> Gap {
        Gap::since(self.heard, vec![target.text()], NEW.to_owned()).until(now)
    }

    /// A change was told. The gap that it reveals, if this is the first of a list that no outage explains.
    pub(super) fn told(
        &mut self,
        told: &CacheChange<Object>,
        target: &Target,
        now: Timestamp,
    ) -> Option<Gap> {
        let origin = match told {
            CacheChange::Added { initial: true, .. } => return None,
            // The server shows the same version in another form, as after a change of the schema.
            CacheChange::Updated { old, new, .. } if old.resource_version() == new.resource_version() => {
                return None;
            }
            CacheChange::Added { origin, .. } | CacheChange::Updated { origin, .. } => *origin,
            CacheChange::Deleted(deleted) => deleted.origin(),
            _ => return None,
        };
        let from = std::mem::replace(&mut self.heard, now);
        match origin {
            Origin::Watch => {
                self.explained = None;
                None
            }
            Origin::List => {
                let is_outage = self.explained.is_some();
                let to = *self.explained.get_or_insert(now);
                // An outage begins when it is noticed.
                let from = if is_outage { from.max(to.checked_sub(SILENT).unwrap_or(from)) } else { from };
                (from < to).then(|| Gap::since(from, vec![target.text()], CAUSE.to_owned()).until(to))
            }
            Origin::Scope => None,
        }
    }

    /// Where the target stands now.
    pub(super) fn status(&mut self, status: &Status, now: Timestamp) {
        match status {
            // It has a gap of its own, which ends when the target is watched again.
            Status::Retrying { .. } | Status::Denied { .. } => {
                self.explained.get_or_insert(now);
            }
            Status::Live { .. } => self.heard = now,
            _ => {}
        }
    }
}
