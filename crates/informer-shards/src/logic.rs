//! The logic of a member: it gets the result of each LIST and the local events, and plans. It reads no clock and sends
//! nothing.
//!
//! A member that has acknowledged a map acts only inside its ranges of that map, until it acknowledges a newer one. A member
//! begins with its ranges in a map when it has seen, in one look, that every live member has acknowledged this very map,
//! itself included: so whatever the others do, they do it elsewhere. A look is one consistent LIST, which shows the map and
//! all leases at one moment.
//!
//! That holds as long as this member acknowledges nothing else, also if somebody has written another map since: nobody can
//! begin with that one before this member has acknowledged it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use informer::share::{Ranges, ShareBy};
use informer_controller::internals::{Time, Timing};

use crate::map::{Found, Map, MapId};
use crate::members::{FoundMember, Members};

/// The result of one LIST of the leases.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) map: Found,
    pub(crate) members: BTreeMap<String, FoundMember>,
}

/// The driver's task until the next plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// The running controller begins nothing outside of these, and ends what runs outside. When nothing does any more, call
    /// [`Logic::drained`].
    pub(crate) accept: Ranges,
    /// A controller for these is made and synced, beside the one that runs: then call [`Logic::synced`]. Any other is
    /// dropped.
    pub(crate) prepare: Option<Ranges>,
    pub(crate) step: Step,
    /// The acknowledged map in this member's lease.
    pub(crate) acknowledge: Option<MapId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The running controller goes on, if there is one.
    GoOn,
    /// The running controller ends: then call [`Logic::ended`].
    End,
    /// The prepared controller begins: it is the running one now. Call [`Logic::begun`] before.
    Begin,
    /// This member has nothing left to do, and leaves.
    Leave,
}

/// The map to write after a LIST, under the condition that the stored map is still the one that the LIST has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NextMap {
    pub(crate) text: String,
    pub(crate) generation: u64,
}

/// One member.
pub(crate) struct Logic {
    me: String,
    by: ShareBy,
    timing: Timing,
    random: fastrand::Rng,
    members: Members,
    /// The map that was found last; while none is found, the one before.
    map: Option<Map>,
    /// Whether the map is not the next one after those that members have acknowledged. Nobody acknowledges it then, so that
    /// everybody sees it until a next one is written.
    is_set_back: bool,
    /// Why the map cannot be followed.
    foreign: Option<String>,
    /// The greatest generation that was found.
    greatest: u64,
    /// Whether every live member has acknowledged the map.
    in_force: bool,
    /// The ranges that this member should act on, as far as it may.
    target: Ranges,
    /// Whether a controller runs.
    runs: bool,
    /// The ranges that it still accepts.
    accept: Ranges,
    /// Whether nothing runs outside of them.
    drained: bool,
    /// The hashes of a controller that is synced and waits.
    synced: Option<Ranges>,
    acknowledged: Option<MapId>,
    /// When the next map is written, if one is needed.
    write_at: Option<Time>,
    leaving: Leaving,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    /// Goes on until a map without this member is found, at most until then.
    Announced(Time),
    /// Does nothing any more.
    Now,
}

impl Logic {
    pub(crate) fn new(me: &str, by: ShareBy, timing: Timing, seed: u64) -> Self {
        Self {
            me: me.to_owned(),
            by,
            timing,
            random: fastrand::Rng::with_seed(seed),
            members: Members::new(timing),
            map: None,
            is_set_back: false,
            foreign: None,
            greatest: 0,
            in_force: false,
            target: Ranges::none(),
            runs: false,
            accept: Ranges::none(),
            drained: true,
            synced: None,
            acknowledged: None,
            write_at: None,
            leaving: Leaving::No,
        }
    }

    /// A look that was sent at `sent` is answered. Returns the next map, if this member is to write it.
    pub(crate) fn looked(&mut self, sent: Time, now: Time, look: &Look) -> Option<NextMap> {
        let found = match &look.map {
            Found::Map(map) => Some(map),
            Found::Nothing | Found::Foreign(_) => None,
        };
        let nobody = BTreeMap::new();
        self.members.looked(sent, now, &look.members, found.map_or(&nobody, Map::members));
        self.foreign = None;
        match &look.map {
            Found::Map(map) => self.follow(map),
            // Running reconciliations go on: no other member begins before there is a map again, and this member has acknowledged it.
            Found::Nothing => {}
            Found::Foreign(reason) => {
                self.foreign = Some(reason.clone());
                self.aim(Ranges::none());
            }
        }
        self.leave_in_time(now, found);
        self.write(now, found)
    }

    /// The prepared controller is synced.
    pub(crate) fn synced(&mut self, ranges: Ranges) {
        self.synced = Some(ranges);
    }

    /// Nothing runs outside of these any more.
    pub(crate) fn drained(&mut self, ranges: &Ranges) {
        self.drained |= *ranges == self.accept;
    }

    /// Whether nothing runs outside of the accepted hashes.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    /// The running controller has ended.
    pub(crate) fn ended(&mut self) {
        self.runs = false;
        self.accept = Ranges::none();
        self.drained = true;
    }

    /// The prepared controller begins.
    pub(crate) fn begun(&mut self) {
        self.runs = true;
        self.accept = self.target.clone();
        self.synced = None;
    }

    /// The lease is lost: nothing runs any more, and the member comes again as a new one.
    pub(crate) fn lost(&mut self) {
        self.ended();
        self.synced = None;
        self.acknowledged = None;
        self.in_force = false;
        self.write_at = None;
    }

    /// This member is to leave, after so long at the latest.
    pub(crate) fn leave(&mut self, now: Time, limit: Duration) {
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Announced(now + limit);
        }
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving != Leaving::No
    }

    /// The plan for now.
    pub(crate) fn plan(&mut self) -> Plan {
        let is_idle = !self.runs;
        // A controller may have more in its caches. It does not know what it has missed outside of what it accepts.
        let has_target = !is_idle && self.accept == self.target;
        let is_settled = if self.target.is_empty() { is_idle } else { has_target };
        let is_ours = self.foreign.is_none() && !self.is_set_back;
        if is_ours && self.drained && self.target.covers(&self.accept) {
            self.acknowledged = self.map.as_ref().map(Map::id);
        }
        let may_begin = self.in_force && self.synced.as_ref() == Some(&self.target);
        let step = match self.leaving {
            Leaving::Now if is_idle => Step::Leave,
            _ if is_settled => Step::GoOn,
            _ if self.target.is_empty() => Step::End,
            _ if may_begin && is_idle => Step::Begin,
            _ if may_begin => Step::End,
            _ => Step::GoOn,
        };
        let prepare = (!is_settled && !self.target.is_empty()).then(|| self.target.clone());
        Plan { accept: self.accept.clone(), prepare, step, acknowledge: self.acknowledged }
    }

    /// When to look at the latest.
    pub(crate) fn look_at(&self, now: Time) -> Time {
        let regular = now + self.timing.retry_period;
        let end = match self.leaving {
            Leaving::Announced(until) => Some(until),
            Leaving::No | Leaving::Now => None,
        };
        [self.write_at, end].into_iter().flatten().fold(regular, Time::min).max(now)
    }

    /// Takes a map as the one to act on.
    fn follow(&mut self, map: &Map) {
        self.greatest = self.greatest.max(map.id().generation);
        self.is_set_back = self.was_set_back(map);
        let has_own = self.members.live().any(|(member, _)| *member == self.me);
        self.in_force =
            has_own && self.members.live().all(|(_, acknowledged)| acknowledged == Some(map.id()));
        let mine = map.of(&self.me);
        self.map = Some(map.clone());
        self.aim(mine);
    }

    /// Acts on nothing outside of these from now on, and inside of them as soon as it may.
    fn aim(&mut self, target: Ranges) {
        let target = if self.leaving == Leaving::Now { Ranges::none() } else { target };
        if self.target != target {
            self.target = target;
            self.synced = None;
        }
        if !self.target.covers(&self.accept) {
            self.accept = self.accept.intersection(&self.target);
            self.drained = !self.runs;
        }
    }

    fn leave_in_time(&mut self, now: Time, found: Option<&Map>) {
        let Leaving::Announced(until) = self.leaving else { return };
        let is_out = found.is_some_and(|map| !map.members().contains_key(&self.me));
        if is_out || now >= until || self.wanted(found).is_empty() {
            self.leaving = Leaving::Now;
            self.aim(Ranges::none());
        }
    }

    /// The members that the map should have.
    fn wanted(&self, found: Option<&Map>) -> BTreeSet<String> {
        // Without a map no member knows the leftovers of former maps.
        let is_mapped = |member: &String| found.is_none_or(|map| map.members().contains_key(member));
        let mut wanted = self.members.eligible(is_mapped);
        if self.is_leaving() {
            wanted.remove(&self.me);
        } else {
            wanted.insert(self.me.clone());
        }
        wanted
    }

    /// A member that sees an outdated map writes the next one, after a random wait in which other members may join or be faster.
    fn write(&mut self, now: Time, found: Option<&Map>) -> Option<NextMap> {
        let wanted = self.wanted(found);
        let fits = found.is_some_and(|map| map.members().keys().eq(&wanted) && !self.is_set_back);
        if fits || self.foreign.is_some() || self.is_leaving() {
            self.write_at = None;
            return None;
        }
        let wait = self.timing.retry_period.mul_f64(0.25 + 0.75 * self.random.f64());
        if now < *self.write_at.get_or_insert(now + wait) {
            return None;
        }
        self.write_at = None;
        // Above all that any live member knows.
        let acknowledged = self.members.live().filter_map(|(_, acknowledged)| acknowledged);
        let generation = acknowledged.map(|id| id.generation).fold(self.greatest, u64::max) + 1;
        // If the map is gone, what this member remembers of it spares a move of everything.
        let text = Map::next(self.by, generation, found.or(self.map.as_ref()), &wanted);
        Some(NextMap { text, generation })
    }

    /// Whether somebody has acknowledged a map that is newer, or another one of the same generation: a person has edited it,
    /// or has deleted it.
    fn was_set_back(&self, map: &Map) -> bool {
        let id = map.id();
        let others = self.members.live().filter_map(|(_, acknowledged)| acknowledged);
        id.generation < self.greatest || others.into_iter().any(|of| of != id && !of.is_before(id))
    }
}

/// The views for observers.
impl Logic {
    pub(crate) fn map(&self) -> Option<&Map> {
        self.map.as_ref()
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.foreign.as_deref()
    }

    pub(crate) fn accepted(&self) -> &Ranges {
        &self.accept
    }

    /// The live members that have not acknowledged the map.
    pub(crate) fn waiting_for(&self) -> impl Iterator<Item = &String> {
        let id = self.map.as_ref().map(Map::id);
        self.members.live().filter(move |(_, acknowledged)| *acknowledged != id).map(|(member, _)| member)
    }

    /// A member whose lease can be deleted.
    pub(crate) fn forgotten(&self, sent: Time) -> Option<&String> {
        let is_mapped =
            |member: &String| self.map.as_ref().is_some_and(|map| map.members().contains_key(member));
        self.members.forgotten(sent).filter(|member| !is_mapped(member))
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod set_back;
