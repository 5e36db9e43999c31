//! Recovery after an outage: while no request reaches the server, one prober sends probes on behalf of all reflectors.
//!
//! If each reflector waited for its own backoff, they would send many requests to a server that is down, and notice its
//! return up to a minute late. Instead they are held, and a probe is sent about once a second. The first response, to the
//! probe or to any other request, ends the outage. The held reflectors are then released one after the other, so that a
//! server which has just started gets their requests spread over a second.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::Time;

/// The state of one server's outage, and the members that send requests to the server.
#[derive(Debug)]
pub(super) struct Outage {
    members: BTreeMap<Member, Standing>,
    /// The number of the next member.
    next: u64,
    /// When the next probe is due, while the outage lasts.
    next_probe: Option<Time>,
    /// After the outage: the times at which the held members are woken.
    releases: BTreeSet<(Time, Member)>,
    random: fastrand::Rng,
}

/// A sender of requests, one at a time: a reflector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(u64);

/// A command for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// Send a cheap request. A response of any kind ends the outage.
    Probe,
    /// Let this member send its request.
    Wake(Member),
}

#[derive(Debug, Default)]
struct Standing {
    /// The time since which it has been held.
    held: Option<Time>,
    /// How often it was woken since one of its requests was last answered.
    woken_in_vain: u32,
}

/// The time between probes, without jitter.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// The time before the first probe. It is shorter, because most outages are short.
const FIRST_PROBE: Duration = Duration::from_millis(250);
/// Members are released this far apart, ...
const RELEASE_STEP: Duration = Duration::from_millis(10);
/// ... but all of them within this time.
const RELEASE_TIME: Duration = Duration::from_secs(1);
/// A member whose requests keep failing while others succeed waits longer each time. This is its first extra wait, which
/// doubles.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest extra wait of a member after the end of an outage.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

impl Outage {
    /// A state without an outage and without members. The same seed gives the same jitter.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            members: BTreeMap::new(),
            next: 0,
            next_probe: None,
            releases: BTreeSet::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Adds a member.
    pub(super) fn join(&mut self) -> Member {
        let member = Member(self.next);
        self.next += 1;
        self.members.insert(member, Standing::default());
        member
    }

    /// Removes a member. If it was the last one held, the outage ends.
    pub(super) fn leave(&mut self, member: Member) {
        self.members.remove(&member);
        self.releases.retain(|(_, other)| *other != member);
        if !self.is_awaited() {
            self.next_probe = None;
        }
    }

    /// A request of a member failed before the server answered it. An error status is an answer.
    pub(super) fn failed(&mut self, now: Time, member: Member) {
        let Some(standing) = self.members.get_mut(&member) else { return };
        standing.held.get_or_insert(now);
        // The server may have gone away again before all members were released.
        self.releases.clear();
        if self.next_probe.is_none() {
            self.next_probe = Some(now + self.with_jitter(FIRST_PROBE));
        }
    }

    /// The server answered a request of a member, or the probe. This ends an outage.
    pub(super) fn answered(&mut self, now: Time, member: Option<Member>) {
        if let Some(standing) = member.and_then(|member| self.members.get_mut(&member)) {
            *standing = Standing::default();
            self.releases.retain(|(_, other)| Some(*other) != member);
        }
        if self.next_probe.take().is_some() {
            self.release(now);
        }
    }

    /// The probe got neither a response nor an error in time. The server may be slow rather than unreachable, so the member
    /// that has been held longest may try its own request.
    pub(super) fn probe_timed_out(&mut self, now: Time) {
        if self.lasts()
            && self.releases.is_empty()
            && let Some(member) = self.held().first()
        {
            self.releases.insert((now, *member));
        }
    }

    /// Whether a member has to wait for [`Output::Wake`].
    pub(super) fn holds(&self, member: Member) -> bool {
        self.members.get(&member).is_some_and(|standing| standing.held.is_some())
    }

    /// Whether the server is being probed.
    pub(super) fn lasts(&self) -> bool {
        self.next_probe.is_some()
    }

    /// The next command that is due at `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<Output> {
        if let Some((at, member)) = self.releases.first().copied().filter(|(at, _)| *at <= now) {
            self.releases.remove(&(at, member));
            let standing = self.members.get_mut(&member)?;
            standing.held = None;
            standing.woken_in_vain = standing.woken_in_vain.saturating_add(1);
            return Some(Output::Wake(member));
        }
        if self.next_probe.is_none_or(|at| now < at) {
            return None;
        }
        self.next_probe = self.is_awaited().then(|| now + self.with_jitter(PROBE_INTERVAL));
        self.next_probe.map(|_| Output::Probe)
    }

    /// When [`Outage::poll`] will have a command, if nothing happens before.
    pub(super) fn deadline(&self) -> Option<Time> {
        let release = self.releases.first().map(|(at, _)| *at);
        [release, self.next_probe].into_iter().flatten().min()
    }

    /// Plans when each held member is woken.
    fn release(&mut self, now: Time) {
        let held = self.held();
        let count = u32::try_from(held.len()).unwrap_or(u32::MAX).max(1);
        let step = RELEASE_STEP.min(RELEASE_TIME / count);
        let mut turn = now;
        self.releases.clear();
        for member in held {
            let delay = self.members.get(&member).map(Standing::delay).unwrap_or_default();
            self.releases.insert((turn + delay, member));
            turn = turn + step;
        }
    }

    /// The held members, the one that has been held longest first.
    fn held(&self) -> Vec<Member> {
        let since = |(member, standing): (&Member, &Standing)| Some((standing.held?, *member));
        let mut held: Vec<_> = self.members.iter().filter_map(since).collect();
        held.sort();
        held.into_iter().map(|(_, member)| member).collect()
    }

    fn is_awaited(&self) -> bool {
        self.members.values().any(|standing| standing.held.is_some())
    }

    fn with_jitter(&mut self, pause: Duration) -> Duration {
        pause.mul_f64(0.75 + 0.5 * self.random.f64())
    }
}

impl Standing {
    /// The extra wait beyond its turn.
    fn delay(&self) -> Duration {
        let doublings = self.woken_in_vain.checked_sub(1);
        let delay = doublings.map(|doublings| FIRST_DELAY.saturating_mul(1 << doublings.min(10)));
        delay.unwrap_or_default().min(LONGEST_DELAY)
    }
}
