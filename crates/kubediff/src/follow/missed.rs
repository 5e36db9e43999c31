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

/// When a target was heard of last, and what explains the changes that a list finds.
#[derive(Debug)]
pub(super) struct Missed {
    heard: Timestamp,
    explained: Option<Explained>,
}

/// An outage that was noticed, or a list that was not expected.
#[derive(Debug)]
struct Explained {
    /// When the target was heard of last before; the same as `to` once the gap is told.
    from: Timestamp,
    to: Timestamp,
    /// Whether the target is watched again. The list's changes may come after that news.
    is_over: bool,
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
        let heard = std::mem::replace(&mut self.heard, now);
        match origin {
            Origin::Watch => {
                self.explained = None;
                None
            }
            Origin::List => {
                let (from, to) = self.listed(heard, now)?;
                Some(Gap::since(from, vec![target.text()], CAUSE.to_owned()).until(to))
            }
            Origin::Scope => None,
        }
    }

    /// A list has found a change. From when to when others may have been missed, if that was not told.
    fn listed(&mut self, heard: Timestamp, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let (from, to) = match &mut self.explained {
            Some(Explained { from, to, .. }) => {
                // An outage begins when it is noticed.
                let begin = std::mem::replace(from, *to);
                (begin.max(to.checked_sub(SILENT).unwrap_or(begin)), *to)
            }
            None => {
                self.explained = Some(Explained { from: now, to: now, is_over: true });
                (heard, now)
            }
        };
        (from < to).then_some((from, to))
    }

    /// Where the target stands now.
    pub(super) fn status(&mut self, status: &Status, now: Timestamp) {
        match status {
            // It has a gap of its own, which ends when the target is watched again.
            Status::Retrying { .. } | Status::Denied { .. } => self.lost(now),
            Status::Live { .. } => self.live(now),
            _ => {}
        }
    }

    fn lost(&mut self, now: Timestamp) {
        if self.explained.as_ref().is_none_or(|it| it.is_over) {
            self.explained = Some(Explained { from: self.heard, to: now, is_over: false });
        }
    }

    fn live(&mut self, now: Timestamp) {
        self.heard = now;
        if let Some(explained) = &mut self.explained {
            explained.is_over = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn k1_the_changes_of_a_list_may_come_after_the_news_that_the_watch_is_live() {
        for is_live_first in [true, false] {
            let mut missed = Missed::since(at(10));
            missed.lost(at(20));
            missed.lost(at(21));
            let told = |missed: &mut Missed, second| {
                let heard = std::mem::replace(&mut missed.heard, at(second));
                missed.listed(heard, at(second))
            };
            if is_live_first {
                missed.live(at(25));
            }
            assert_eq!(told(&mut missed, 26), Some((at(10), at(20))));
            assert_eq!(told(&mut missed, 27), None);
            if !is_live_first {
                missed.live(at(28));
            }
            // Nobody has changed anything meanwhile, and the next outage is another one.
            missed.lost(at(60));
            let heard = if is_live_first { 27 } else { 28 };
            assert_eq!(told(&mut missed, 70), Some((at(heard), at(60))));
        }
    }
}
