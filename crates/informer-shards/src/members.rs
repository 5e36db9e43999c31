//! Which members are live, and what they have acknowledged, as this observer knows it.
//!
//! Times in a lease are never compared with a clock. A member is live until its record has stayed the same for the lease's
//! duration, by the observer's clock; the look that shows this was sent after that time, so a renewal that it did not see
//! was too late for the member itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use informer::share::Ranges;
use informer_controller::internals::{LONGEST, Record, Time, Timing};

use crate::map::MapId;

/// The lease of an expired member is deleted after so many further durations.
const FORGOTTEN: u32 = 10;

/// The lease of one member, as a look found it.
#[derive(Debug, Clone)]
pub(crate) struct FoundMember {
    pub(crate) record: Record,
    /// The map outside of which it does nothing.
    pub(crate) acknowledged: Option<MapId>,
    /// Whether it wants no hashes any more.
    pub(crate) leaving: bool,
}

/// The members that were seen, this one included.
#[derive(Debug)]
pub(crate) struct Members {
    timing: Timing,
    seen: BTreeMap<String, Seen>,
    has_looked: bool,
}

#[derive(Debug)]
struct Seen {
    /// `None`: the lease is not there.
    found: Option<FoundMember>,
    /// It counts as live until then, if its record stays the same.
    until: Time,
    is_live: bool,
    /// Whether it was seen to come or to renew: a lease may be left over from a member of former times.
    is_proven: bool,
}

impl Members {
    pub(crate) fn new(timing: Timing) -> Self {
        Self { timing, seen: BTreeMap::new(), has_looked: false }
    }

    /// Takes note of what a look found that was sent at `sent`. `mapped` are the members of the map.
    pub(crate) fn looked(
        &mut self,
        sent: Time,
        now: Time,
        found: &BTreeMap<String, FoundMember>,
        mapped: &BTreeMap<String, Ranges>,
    ) {
        for (member, found) in found {
            match self.seen.get_mut(member) {
                Some(seen) => seen.again(sent, now, found, self.timing.lease_duration),
                None => {
                    let seen = Seen::first(now, found, self.has_looked, self.timing.lease_duration);
                    self.seen.insert(member.clone(), seen);
                }
            }
        }
        // Somebody has deleted its lease, which it may not know yet.
        for member in mapped.keys() {
            let until = now + self.timing.lease_duration;
            let unknown = Seen { found: None, until, is_live: true, is_proven: false };
            self.seen.entry(member.clone()).or_insert(unknown);
        }
        self.seen.retain(|member, seen| {
            if !found.contains_key(member) {
                seen.found = None;
                seen.is_live &= sent < seen.until;
            }
            // One in the map stays, or it would be taken for one that was never seen.
            seen.is_live || seen.found.is_some() || mapped.contains_key(member)
        });
        self.has_looked = true;
    }

    /// The members that may act, or have leases that say so.
    pub(crate) fn live(&self) -> impl Iterator<Item = (&String, Option<MapId>)> {
        let live = self.seen.iter().filter(|(_, seen)| seen.is_live);
        live.map(|(member, seen)| (member, seen.found.as_ref().and_then(|found| found.acknowledged)))
    }

    /// The members to divide the hashes among. A member that is not in the map yet must have renewed its lease.
    pub(crate) fn eligible(&self, is_mapped: impl Fn(&String) -> bool) -> BTreeSet<String> {
        let is_eligible = |(member, seen): &(&String, &Seen)| {
            let stays = |found: &FoundMember| !found.leaving && found.record.holder().is_some();
            // A lease that somebody deleted or cleared comes back, or expires.
            let stays = seen.found.as_ref().map_or_else(|| is_mapped(member), stays);
            seen.is_live && stays && (seen.is_proven || is_mapped(member))
        };
        self.seen.iter().filter(is_eligible).map(|(member, _)| member.clone()).collect()
    }

    /// A member that expired long ago, and whose lease nobody needs.
    pub(crate) fn forgotten(&self, sent: Time) -> Option<&String> {
        let after = self.timing.lease_duration * FORGOTTEN;
        self.seen
            .iter()
            .find(|(_, seen)| !seen.is_live && sent >= seen.until + after)
            .map(|(member, _)| member)
    }
}

impl Seen {
    fn first(now: Time, found: &FoundMember, is_proven: bool, duration: Duration) -> Self {
        let until = now + lasts(&found.record, duration);
        let is_live = !found.record.is_released();
        Self { found: Some(found.clone()), until, is_live, is_proven }
    }

    fn again(&mut self, sent: Time, now: Time, found: &FoundMember, duration: Duration) {
        let is_same = self.found.as_ref().is_some_and(|before| before.record == found.record);
        if is_same {
            self.is_live &= sent < self.until;
        } else if found.record.is_released() {
            (self.is_live, self.until) = (false, now);
        } else if found.record.holder().is_some() {
            (self.is_live, self.is_proven) = (true, true);
            self.until = now + lasts(&found.record, duration);
        } else {
            // Cleared by hand: the member may not know it yet.
            let stated = found.record.duration().unwrap_or_default().min(LONGEST);
            self.until = self.until.max(now + stated);
            self.is_live &= sent < self.until;
        }
        self.found = Some(found.clone());
    }
}

fn lasts(record: &Record, own: Duration) -> Duration {
    record.duration().unwrap_or(own).min(LONGEST)
}
