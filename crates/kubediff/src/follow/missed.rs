//! What a watch has missed while nobody noticed: it fell behind, or broke for a moment, and the server had forgotten by then
//! what came next. A list finds what came of it, and the time in between is a gap.

use informer::{Change as Told, Object, Origin, Status};
use jiff::Timestamp;

use crate::gap::Gap;
use crate::targets::Target;

/// Why there is such a gap.
const CAUSE: &str = "the watch fell behind, and the server had forgotten what came next; of what happened, a list shows the result";

/// When a target was heard of last, and whether an outage explains what a list finds.
#[derive(Debug)]
pub(super) struct Missed {
    heard: Timestamp,
    explained: bool,
}

impl Missed {
    pub(super) fn since(now: Timestamp) -> Self {
        Self { heard: now, explained: false }
    }

    /// A change was told. The gap that it reveals, if this is the first of a list that no outage explains.
    pub(super) fn told(&mut self, told: &Told<Object>, target: &Target, now: Timestamp) -> Option<Gap> {
        let origin = match told {
            Told::Added { initial: true, .. } => return None,
            Told::Added { origin, .. } | Told::Updated { origin, .. } => *origin,
            Told::Deleted(deleted) => deleted.origin(),
            _ => return None,
        };
        let from = std::mem::replace(&mut self.heard, now);
        match origin {
            Origin::Watch => {
                self.explained = false;
                None
            }
            Origin::List if !std::mem::replace(&mut self.explained, true) => {
                Some(Gap::since(from, vec![target.text()], CAUSE.to_owned()).until(now))
            }
            Origin::List | Origin::Scope => None,
        }
    }

    /// Where the target stands now.
    pub(super) fn status(&mut self, status: &Status, now: Timestamp) {
        match status {
            // It has a gap of its own, which ends when the target is watched again.
            Status::Retrying { .. } | Status::Denied { .. } => self.explained = true,
            Status::Live { .. } => self.heard = now,
            _ => {}
        }
    }
}
