//! Changes that a watch missed without an outage: it fell behind, or broke for a moment, and the server had forgotten by then
//! what came next. A list finds the result, and the time in between is a gap.

use informer::{Change as CacheChange, Object, Origin, Status};
use jiff::{SignedDuration, Timestamp};

use crate::model::gap::Gap;
use crate::model::targets::Target;

/// A connection without a sign of life is broken after 60 s, and its end is noticed a moment later.
pub(super) const SILENT: SignedDuration = SignedDuration::from_secs(75);

/// Why there is such a gap.
const CAUSE: &str = "the watch missed changes that the server had forgotten; a list shows their result, not the states in between";

/// Why there is one before the first list of a new resource.
const NEW: &str = "the definition is new; a list shows what there was by then, not what had come and gone";

/// News of the state and the changes of a list come on two ways: those of one list are at most so far apart.
const APART: SignedDuration = SignedDuration::from_secs(10);

/// When a target was heard of last, and what explains the changes that a list finds.
#[derive(Debug)]
pub(super) struct Missed {
    heard: Timestamp,
    /// The news that the target is watched, while the changes of the list before it may still come.
    live: Option<Live>,
    explained: Option<Explained>,
}

#[derive(Debug)]
struct Live {
    at: Timestamp,
    /// When the target was heard of last before.
    before: Timestamp,
}

/// An outage that was noticed, or a list that was not expected.
#[derive(Debug)]
struct Explained {
    /// When the target was heard of last before; the same as `to` once the gap is told.
    from: Timestamp,
    to: Timestamp,
    /// The news that the target is watched again, or the last change of the list.
    over: Option<Timestamp>,
}

impl Missed {
    pub(super) fn since(now: Timestamp) -> Self {
        Self { heard: now, live: None, explained: None }
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
        let heard = self.heard(now);
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

    /// The last sign of life before a change.
    fn heard(&mut self, now: Timestamp) -> Timestamp {
        let before = self.before(now);
        (self.heard, self.live) = (now, None);
        before
    }

    /// The last sign of life before what happens now. The news that the target is watched may be of this list.
    fn before(&self, now: Timestamp) -> Timestamp {
        let live = self.live.as_ref().filter(|live| now.duration_since(live.at) <= APART);
        live.map_or(self.heard, |live| live.before)
    }

    /// A list has found a change. From when to when others may have been missed, if that was not told.
    fn listed(&mut self, heard: Timestamp, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let (from, to) = match &mut self.explained {
            Some(explained) if !explained.is_past(now) => {
                explained.over = explained.over.map(|_| now);
                let (begin, to) = (std::mem::replace(&mut explained.from, explained.to), explained.to);
                // An outage begins when it is noticed.
                (begin.max(to.checked_sub(SILENT).unwrap_or(begin)), to)
            }
            _ => {
                self.explained = Some(Explained { from: now, to: now, over: Some(now) });
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
        match &mut self.explained {
            Some(explained) if explained.over.is_none() => {}
            // The changes of the list before may still come.
            Some(explained) if !explained.is_past(now) && explained.from < explained.to => {
                (explained.to, explained.over) = (now, None);
            }
            _ => self.explained = Some(Explained { from: self.before(now), to: now, over: None }),
        }
    }

    fn live(&mut self, now: Timestamp) {
        self.live = Some(Live { at: now, before: self.before(now) });
        self.heard = now;
        if let Some(explained) = &mut self.explained {
            explained.over.get_or_insert(now);
        }
    }
}

impl Explained {
    /// Whether its list has no change any more that comes now.
    fn is_past(&self, now: Timestamp) -> bool {
        self.over.is_some_and(|over| now.duration_since(over) > APART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    impl Missed {
        /// A list finds a change. The seconds from and to which a gap is told.
        fn finds(&mut self, second: i64) -> Option<(i64, i64)> {
            let heard = self.heard(at(second));
            let (from, to) = self.listed(heard, at(second))?;
            Some((from.as_second(), to.as_second()))
        }
    }

    #[test]
    fn k1_the_changes_of_a_list_come_before_or_after_the_news_that_the_watch_is_live() {
        for is_live_first in [true, false] {
            let mut missed = Missed::since(at(10));
            missed.lost(at(20));
            missed.lost(at(21));
            if is_live_first {
                missed.live(at(25));
            }
            assert_eq!(missed.finds(26), Some((10, 20)));
            assert_eq!(missed.finds(27), None);
            if !is_live_first {
                missed.live(at(28));
            }
            assert_eq!(missed.finds(30), None);
            // The next outage is another one.
            missed.lost(at(60));
            missed.live(at(65));
            assert_eq!(missed.finds(66), Some((30, 60)));
        }
    }

    #[test]
    fn k1_a_list_that_nobody_expected_is_a_gap_from_the_last_sign_of_life() {
        for is_live_first in [true, false] {
            let mut missed = Missed::since(at(10));
            missed.live(at(1_000));
            if is_live_first {
                missed.live(at(2_000));
            }
            assert_eq!(missed.finds(2_001), Some((1_000, 2_001)));
            assert_eq!(missed.finds(2_002), None);
            if !is_live_first {
                missed.live(at(2_003));
            }
            let last = if is_live_first { 2_002 } else { 2_003 };
            assert_eq!(missed.finds(3_000), Some((last, 3_000)));
        }
    }

    #[test]
    fn k1_an_outage_in_which_nothing_changed_explains_no_later_list() {
        let mut missed = Missed::since(at(10));
        missed.lost(at(20));
        missed.live(at(25));
        assert_eq!(missed.finds(3_000), Some((25, 3_000)));
    }

    #[test]
    fn k1_an_outage_right_after_another_has_the_gap_of_both() {
        let mut missed = Missed::since(at(10));
        missed.lost(at(20));
        missed.live(at(25));
        missed.lost(at(26));
        assert_eq!(missed.finds(27), Some((10, 26)));
        missed.live(at(28));
        assert_eq!(missed.finds(29), None);
    }
}
