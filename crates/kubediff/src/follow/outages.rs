//! When something was not watched: several resources that are lost for one reason are one gap.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::model::gap::Gap;
use crate::model::targets::Target;

/// Why something is not watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// The server cannot be reached, or does not answer as it should.
    Lost,
    /// The server answers with this code.
    Denied(u16),
}

/// The outages that last.
#[derive(Debug, Default)]
pub(super) struct Outages(BTreeMap<Reason, Outage>);

#[derive(Debug)]
struct Outage {
    from: Timestamp,
    cause: String,
    /// The targets that were lost in it, and watched before.
    lost: BTreeSet<Target>,
    /// The targets that have not come back.
    left: BTreeSet<Target>,
}

impl Outages {
    /// Notes that the target is lost. It `counts` if the loss makes a gap. Returns whether an outage begins.
    pub(super) fn lost(
        &mut self,
        target: &Target,
        reason: Reason,
        cause: &str,
        counts: bool,
        now: Timestamp,
    ) -> bool {
        let begins = !self.0.contains_key(&reason);
        let outage = self.0.entry(reason).or_insert_with(|| Outage {
            from: now,
            cause: cause.to_owned(),
            lost: BTreeSet::new(),
            left: BTreeSet::new(),
        });
        // The first thing to fail is often a response that breaks off; the last says why nothing works.
        cause.clone_into(&mut outage.cause);
        if counts {
            if outage.lost.is_empty() {
                outage.from = now;
            }
            outage.lost.insert(target.clone());
        }
        outage.left.insert(target.clone());
        begins
    }

    /// The target is watched again. The gaps that end with it.
    pub(super) fn back(&mut self, target: &Target, now: Timestamp) -> Vec<Gap> {
        let mut ended = Vec::new();
        self.0.retain(|_, outage| {
            let was_left = outage.left.remove(target);
            // A target that was never watched keeps no gap open.
            let is_back = was_left && outage.left.is_disjoint(&outage.lost);
            if is_back && !outage.lost.is_empty() {
                ended.push(outage.gap().until(now));
                outage.lost.clear();
            }
            !(was_left && outage.left.is_empty())
        });
        ended
    }

    /// The target is lost for another reason than before: the gaps of others that end with it, and since when it is lost.
    pub(super) fn moved(&mut self, target: &Target, now: Timestamp) -> (Vec<Gap>, Timestamp) {
        let of_target = |outage: &&mut Outage| outage.left.contains(target) && outage.lost.contains(target);
        let since = self.0.values_mut().find(of_target).map(|outage| {
            outage.lost.remove(target);
            outage.from
        });
        (self.back(target, now), since.unwrap_or(now))
    }

    /// The target is not wanted any more.
    pub(super) fn forget(&mut self, target: &Target) {
        self.0.retain(|_, outage| {
            outage.lost.remove(target);
            outage.left.remove(target);
            !outage.left.is_empty()
        });
    }

    /// Whether the target is lost for this reason.
    pub(super) fn has(&self, target: &Target, reason: Reason) -> bool {
        self.0.get(&reason).is_some_and(|outage| outage.left.contains(target))
    }

    /// Why the server is not reached, as far as known.
    pub(super) fn cause(&self) -> Option<&str> {
        self.0.get(&Reason::Lost).map(|outage| outage.cause.as_str())
    }

    /// The outages at the end, as gaps that last; without those of what was never watched.
    pub(super) fn lasting(&self, watched: impl Fn(&Target) -> bool) -> Vec<Gap> {
        let outages = self.0.values().filter(|outage| outage.lost.iter().any(&watched));
        outages.map(Outage::gap).collect()
    }
}

impl Outage {
    fn gap(&self) -> Gap {
        Gap::since(self.from, self.lost.iter().map(Target::text).collect(), self.cause.clone())
    }
}
