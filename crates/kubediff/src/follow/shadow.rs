//! What a standby keeps: the changes that the leader may not have recorded.
//!
//! Each watch has a trail of changes. It is torn where the standby missed something: before its first list, in an outage, after a list. It is
//! whole again once the leader has recorded something that the watch delivered later. A whole trail goes on where the leader's ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use informer::ResourceVersion;
use jiff::Timestamp;

use super::item::{InboxItem, RawChange, Synced};
use super::missed::SILENT;
use super::watermark::{Watermark, is_number};
use crate::Origin;

/// How far a leader has recorded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorded {
    /// By watch, the version up to which everything is recorded.
    pub(crate) positions: BTreeMap<String, ResourceVersion>,
    /// The watches of which more is recorded than that.
    pub(crate) ahead: BTreeSet<String>,
    /// The targets that the leader follows.
    pub(crate) followed: BTreeSet<String>,
    /// Those of them that it has lost, or has not listed.
    pub(crate) lost: BTreeSet<String>,
    /// The number of the last record.
    pub(crate) last: u64,
    /// Everything else was watched until then, and is recorded.
    pub(crate) watched_until: Option<Timestamp>,
    /// Whether it looks elsewhere than this process does.
    pub(crate) is_elsewhere: bool,
}

impl Recorded {
    /// The version up to which a watch is recorded, if that is known.
    fn version(&self, watch: &str) -> Option<&ResourceVersion> {
        self.positions.get(watch).filter(|version| is_number(version))
    }

    /// Whether all that had happened to a target by then is recorded: a watch that says nothing for so long is broken.
    fn is_after(&self, target: &str, time: Timestamp) -> bool {
        let is_watched = self.followed.contains(target) && !self.lost.contains(target);
        let until = self.watched_until.filter(|_| is_watched);
        until.is_some_and(|until| until.duration_since(time) >= SILENT)
    }
}

/// What a standby goes on with when it leads.
#[derive(Default)]
pub(crate) struct Led {
    /// What is to be recorded now.
    pub(super) items: Vec<InboxItem>,
    /// The targets whose trails are whole. All others are to be listed again.
    pub(crate) whole: BTreeSet<String>,
    /// Whether the history lacks records that it had while this process stood by.
    pub(crate) went_back: bool,
    /// When the first of what is to be recorded was seen.
    pub(crate) since: Option<Timestamp>,
}

/// The trails of all watches.
pub(super) struct Shadow {
    bound: usize,
    bytes: usize,
    arrivals: u64,
    /// The number of the last record, when the standby looked last.
    recorded: u64,
    /// Whether the history lacks records that it had.
    went_back: bool,
    targets: BTreeMap<String, Followed>,
    /// The kinds that were asked for by name.
    asked: Vec<InboxItem>,
}

/// A target whose first list is complete.
struct Followed {
    synced: Synced,
    trails: Vec<Trail>,
    is_lost: bool,
}

/// The changes of one watch, in order.
struct Trail {
    watermark: Arc<Watermark>,
    torn: Option<Tear>,
    kept: VecDeque<(u64, RawChange)>,
    /// Up to where it was recorded when the leader had not lost it.
    reached: Option<ResourceVersion>,
    /// The greatest version that was listed or delivered.
    last: Option<ResourceVersion>,
}

/// Something was missed by this time, and the watch has delivered this version first after it.
struct Tear {
    at: Timestamp,
    then: Option<ResourceVersion>,
}

impl Shadow {
    pub(super) fn new(bound: usize) -> Self {
        let (targets, asked) = Default::default();
        Self { bound, bytes: 0, arrivals: 0, recorded: 0, went_back: false, targets, asked }
    }

    /// How many changes it keeps.
    pub(super) fn len(&self) -> usize {
        self.trails().map(|trail| trail.kept.len()).sum()
    }

    /// How many targets have a trail that is torn.
    pub(super) fn torn(&self) -> usize {
        let is_torn = |followed: &&Followed| followed.trails.iter().any(|trail| trail.torn.is_some());
        self.targets.values().filter(is_torn).count()
    }

    pub(super) fn push(&mut self, item: InboxItem) {
        match item {
            InboxItem::Change(raw) => self.change(raw),
            InboxItem::Synced(synced) => {
                let trail = |watermark: &Arc<Watermark>| Trail {
                    watermark: watermark.clone(),
                    torn: Some(Tear { at: synced.at, then: None }),
                    kept: VecDeque::new(),
                    reached: None,
                    last: watermark.version(),
                };
                let trails = synced.watermarks.iter().map(trail).collect();
                let followed = Followed { synced, trails, is_lost: false };
                if let Some(former) = self.targets.insert(followed.synced.target_text(), followed) {
                    self.bytes -= former.trails.iter().map(Trail::bytes).sum::<usize>();
                }
            }
            InboxItem::Lost(target, at, _) => self.miss(&target, at, true),
            InboxItem::Gap(gap) => {
                let at = gap.to.unwrap_or_else(Timestamp::now);
                gap.resources.iter().for_each(|target| self.miss(target, at, false));
            }
            InboxItem::Resources(resources) => {
                let names: BTreeSet<String> = resources.names.into_iter().collect();
                self.targets.retain(|target, _| names.contains(target));
                self.bytes = self.trails().map(Trail::bytes).sum();
            }
            InboxItem::Asked(_) => self.asked.push(item),
            // Whoever leads looks at all objects of a target that is not whole.
            InboxItem::First(_) | InboxItem::Alive(_) => {}
        }
    }

    fn change(&mut self, raw: RawChange) {
        // Before the end of the first list, a change is a part of it.
        let Some(followed) = self.targets.get_mut(&raw.target_text()) else { return };
        let Some((watch, version)) = raw.place().map(|(watch, version)| (watch, version.clone())) else {
            return;
        };
        let Some(trail) = followed.trails.iter_mut().find(|trail| trail.watermark.name() == watch) else {
            return;
        };
        let is_next = trail.last.as_ref().is_none_or(|last| last.is_older_than(&version));
        if raw.origin != Origin::Watch || !is_number(&version) || !is_next {
            self.bytes -= trail.tear(raw.at);
            trail.last = None;
            return;
        }
        // Some deletions have the version of the last state.
        if let Some(torn) = trail.torn.as_mut().filter(|_| raw.now().is_some()) {
            torn.then.get_or_insert_with(|| version.clone());
        }
        trail.last = Some(version);
        self.arrivals += 1;
        self.bytes += raw.bytes();
        trail.kept.push_back((self.arrivals, raw));
        while self.bytes > self.bound {
            let oldest = |trail: &&mut Trail| trail.kept.front().map_or(u64::MAX, |(arrival, _)| *arrival);
            let trails = self.targets.values_mut().flat_map(|followed| &mut followed.trails);
            let Some(trail) = trails.min_by_key(oldest) else { return };
            self.bytes -= trail.tear(Timestamp::now());
        }
    }

    /// A target was not watched up to this time, and is not if it is lost.
    fn miss(&mut self, target: &str, at: Timestamp, is_lost: bool) {
        let Some(followed) = self.targets.get_mut(target) else { return };
        followed.is_lost = is_lost;
        self.bytes -= followed.trails.iter_mut().map(|trail| trail.tear(at)).sum::<usize>();
    }

    /// Forgets what the leader has recorded.
    pub(super) fn recorded(&mut self, recorded: &Recorded) {
        if recorded.last < self.recorded {
            // This process has forgotten the changes that the history lacks.
            self.went_back = true;
            for trail in self.targets.values_mut().flat_map(|followed| &mut followed.trails) {
                trail.tear(Timestamp::now());
            }
        }
        self.recorded = recorded.last;
        for (target, followed) in &mut self.targets {
            let is_lost = followed.is_lost;
            for trail in &mut followed.trails {
                trail.recorded(target, recorded, is_lost);
            }
        }
        self.bytes = self.trails().map(Trail::bytes).sum();
    }

    /// Goes on where the leader has ended.
    pub(super) fn lead(mut self, recorded: &Recorded) -> Led {
        self.recorded(recorded);
        let went_back = self.went_back;
        let (mut items, mut changes, mut whole) = (self.asked, Vec::new(), BTreeSet::new());
        for (target, mut followed) in self.targets {
            let goes_on = |trail: &Trail| trail.goes_on(recorded);
            let is_followed = recorded.followed.contains(&target) && !followed.is_lost;
            if recorded.is_elsewhere || !is_followed || !followed.trails.iter().all(goes_on) {
                continue;
            }
            for trail in followed.trails {
                if let Some(version) = recorded.version(trail.watermark.name()) {
                    trail.watermark.go_on(version);
                }
                changes.extend(trail.kept);
            }
            (followed.synced.continues, followed.synced.at) = (true, Timestamp::now());
            items.push(InboxItem::Synced(followed.synced));
            whole.insert(target);
        }
        changes.sort_unstable_by_key(|(arrival, _)| *arrival);
        let since = changes.first().map(|(_, raw)| raw.at);
        items.extend(changes.into_iter().map(|(_, raw)| InboxItem::Change(raw)));
        Led { items, whole, went_back, since }
    }

    fn trails(&self) -> impl Iterator<Item = &Trail> {
        self.targets.values().flat_map(|followed| &followed.trails)
    }
}

impl Trail {
    /// Something was missed. Returns how many bytes were kept, which are of no use any more.
    fn tear(&mut self, at: Timestamp) -> usize {
        let kept = self.bytes();
        self.kept = VecDeque::new();
        self.torn = Some(Tear { at, then: None });
        kept
    }

    fn bytes(&self) -> usize {
        self.kept.iter().map(|(_, raw)| raw.bytes()).sum()
    }

    fn recorded(&mut self, target: &str, recorded: &Recorded, is_lost: bool) {
        let reached = recorded.version(self.watermark.name());
        let is_lost = is_lost || recorded.lost.contains(target);
        if !recorded.lost.contains(target) {
            self.reached = reached.cloned();
        } else if reached != self.reached.as_ref() {
            // The leader has recorded what came after the loss, and its gap not yet.
            self.tear(Timestamp::now());
        }
        let is_recorded = |raw: &RawChange| match (reached, raw.place()) {
            (Some(reached), Some((_, version))) => reached.is_at_least(version),
            _ => recorded.is_after(target, raw.at),
        };
        while self.kept.front().is_some_and(|(_, raw)| is_recorded(raw)) {
            self.kept.pop_front();
        }
        let Some(torn) = &self.torn else { return };
        let is_whole = match (&torn.then, reached) {
            (Some(then), Some(reached)) => reached.is_at_least(then),
            _ => recorded.is_after(target, torn.at),
        };
        if is_whole && !is_lost {
            self.torn = None;
        }
    }

    /// Whether nothing is missing, and nothing twice, where its changes follow what is recorded.
    fn goes_on(&self, recorded: &Recorded) -> bool {
        let name = self.watermark.name();
        let follows = match recorded.version(name) {
            Some(_) => true,
            // There was never anything. Otherwise nobody knows what of that on the way is recorded.
            None => self.kept.is_empty() && self.last.is_none(),
        };
        self.torn.is_none() && follows && !recorded.ahead.contains(name)
    }
}
