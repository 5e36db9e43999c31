//! The logic of a candidate: `(now, input) -> command`. It reads no clock and sends nothing.
//!
//! The rules are those of client-go's `leaderelection`, made stricter where two candidates could lead at once there:
//!
//! - A renewal counts from the moment when it was *sent*, because other candidates may see it from then on.
//! - A term ends for good at its deadline. A renewal that is answered later begins no request.
//! - A lease with this candidate's identity that this candidate has not written belongs to somebody else.
//! - A lease that a person has cleared or deleted is free when its former holder's time is over, as far as known.
//!
//! Times in a lease are never compared with a clock: a candidate measures for how long it has seen the same record.

use informer_core::Time;

use super::lease::{Lease, MicroTime, Record};
use super::marks::Marks;
use super::timing::{LONGEST, Timing};
use crate::gate::Loss;

/// The next command to the driver.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    /// Send this, and pass the answer to [`Candidate::answered`].
    Send(Request),
    /// Call [`Candidate::wake`] then.
    Wait(Time),
    /// The term is over.
    Lost(Loss),
    /// Nothing is left to do: the end of a release.
    Done,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    Get,
    Create(Lease),
    /// With the resourceVersion of the lease that was read.
    Update(Lease),
}

impl Request {
    /// The request with these marks on the lease that it writes.
    pub(super) fn with(self, marks: &Marks) -> Self {
        match self {
            Self::Get => Self::Get,
            Self::Create(lease) => Self::Create(lease.marked(marks)),
            Self::Update(lease) => Self::Update(lease.marked(marks)),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// The lease, as the server has it now.
    Lease(Lease),
    NotFound,
    /// The lease has another version, or exists already.
    Conflict,
    /// The request may or may not have been carried out.
    Unknown,
}

/// One candidate of an election.
pub(super) struct Candidate {
    name: String,
    identity: String,
    timing: Timing,
    random: fastrand::Rng,
    /// The last state that the server showed.
    seen: Option<Seen>,
    /// The last record that this candidate has written as a holder, or has tried to write.
    claim: Option<Record>,
    term: Option<Term>,
    purpose: Purpose,
    slow_renewals: u64,
}

/// The lease as it was seen last.
#[derive(Debug)]
struct Seen {
    lease: Lease,
    /// When it may be taken, if it stays as it is.
    free_at: Time,
}

/// The term of this candidate, as long as it lasts.
#[derive(Debug)]
struct Term {
    lease: Lease,
    deadline: Time,
}

/// The purpose of the request under way.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Purpose {
    Look,
    Take,
    Renew,
    /// To find out why a renewal was refused, and to renew once more.
    LookAgain,
    RenewAgain,
    /// To find out whether there is something to release.
    LookToRelease,
    Release,
}

impl Candidate {
    pub(super) fn new(name: &str, identity: &str, timing: Timing, seed: u64) -> Self {
        Self {
            name: name.to_owned(),
            identity: identity.to_owned(),
            timing,
            random: fastrand::Rng::with_seed(seed),
            seen: None,
            claim: None,
            term: None,
            purpose: Purpose::Look,
            slow_renewals: 0,
        }
    }

    /// Until when this candidate leads.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.term.as_ref().map(|term| term.deadline)
    }

    /// The number of the term that was seen last, and its holder.
    pub(super) fn seen(&self) -> Option<(u32, Option<String>)> {
        let record = self.seen.as_ref()?.lease.record();
        Some((record.transitions(), record.holder().map(str::to_owned)))
    }

    /// How many renewals needed a further look at the lease.
    pub(super) fn slow_renewals(&self) -> u64 {
        self.slow_renewals
    }

    /// The wait is over.
    pub(super) fn wake(&mut self, now: Time, wall: MicroTime) -> Command {
        match self.deadline() {
            Some(deadline) if now >= deadline => self.lose(Loss::Expired),
            Some(_) => self.renew(wall, Purpose::Renew),
            None => self.send(Purpose::Look, Request::Get),
        }
    }

    /// The request that was sent at `sent` is answered.
    pub(super) fn answered(&mut self, sent: Time, now: Time, wall: MicroTime, answer: Answer) -> Command {
        match self.deadline() {
            Some(deadline) if now >= deadline => self.lose(Loss::Expired),
            _ => match self.purpose {
                Purpose::Look | Purpose::Take => self.follow(sent, now, wall, answer),
                Purpose::Renew | Purpose::LookAgain | Purpose::RenewAgain => {
                    self.lead(sent, now, wall, answer)
                }
                Purpose::LookToRelease | Purpose::Release => self.leave(now, wall, answer),
            },
        }
    }

    /// The deadline has passed, or the driver has closed the gate for another reason.
    pub(super) fn lose(&mut self, loss: Loss) -> Command {
        self.term = None;
        Command::Lost(loss)
    }

    /// Ends the term, if there is one, and gives the lease up. A request under way is forgotten.
    pub(super) fn release(&mut self, wall: MicroTime) -> Command {
        let may_have_taken = self.purpose == Purpose::Take;
        match self.term.take() {
            Some(term) => self.give_up(&term.lease, wall),
            None if may_have_taken => self.send(Purpose::LookToRelease, Request::Get),
            None => Command::Done,
        }
    }

    /// Without a term: takes the lease when it is free.
    fn follow(&mut self, sent: Time, now: Time, wall: MicroTime, answer: Answer) -> Command {
        match (self.purpose, answer) {
            (Purpose::Take, Answer::Lease(lease)) => {
                self.observe(now, &lease);
                let deadline = sent + self.timing.renew_deadline;
                if now < deadline {
                    self.term = Some(Term { lease, deadline });
                    return Command::Wait(self.next_renewal(sent, now));
                }
                // It is this candidate's, but too old to lead with.
                self.send(Purpose::Look, Request::Get)
            }
            (_, Answer::Lease(lease)) => {
                self.observe(now, &lease);
                if self.free_at() <= now { self.take(&lease, wall) } else { self.wait_to_look(now) }
            }
            (Purpose::Look, Answer::NotFound) if self.free_at() <= now => {
                self.take(&Lease::new(&self.name), wall)
            }
            // After an unanswered attempt to take it, the purpose says so until the next look.
            (_, Answer::NotFound | Answer::Conflict | Answer::Unknown) => self.wait_to_look(now),
        }
    }

    /// With a term: keeps it.
    fn lead(&mut self, sent: Time, now: Time, wall: MicroTime, answer: Answer) -> Command {
        let Some(term) = &mut self.term else { return self.wait_to_look(now) };
        match (self.purpose, answer) {
            (Purpose::LookAgain, Answer::Lease(lease)) => {
                if !lease.record().is_same_term(&term.lease.record()) {
                    self.observe(now, &lease);
                    return self.lose(Loss::Taken);
                }
                // Somebody has changed another field, or the answer to a renewal was lost.
                term.lease = lease;
                self.slow_renewals += 1;
                self.renew(wall, Purpose::RenewAgain)
            }
            (_, Answer::Lease(lease)) => {
                term.deadline = term.deadline.max(sent + self.timing.renew_deadline);
                term.lease = lease.clone();
                self.observe(now, &lease);
                Command::Wait(self.next_renewal(sent, now))
            }
            (Purpose::Renew, Answer::Conflict) => self.send(Purpose::LookAgain, Request::Get),
            (_, Answer::NotFound) => self.lose(Loss::Deleted),
            (_, Answer::Conflict | Answer::Unknown) => Command::Wait(self.next_renewal(sent, now)),
        }
    }

    /// During a release. Tries again only if the lease has another version.
    fn leave(&mut self, now: Time, wall: MicroTime, answer: Answer) -> Command {
        match (self.purpose, answer) {
            (Purpose::LookToRelease, Answer::Lease(lease)) if self.is_own(&lease.record()) => {
                self.give_up(&lease, wall)
            }
            (Purpose::Release, Answer::Conflict) => self.send(Purpose::LookToRelease, Request::Get),
            (purpose, answer) => {
                if let (Purpose::Release, Answer::Lease(lease)) = (purpose, answer) {
                    self.observe(now, &lease);
                }
                self.purpose = Purpose::Look;
                Command::Done
            }
        }
    }

    fn send(&mut self, purpose: Purpose, request: Request) -> Command {
        self.purpose = purpose;
        Command::Send(request)
    }

    /// Begins a term of its own, if the server agrees.
    fn take(&mut self, lease: &Lease, wall: MicroTime) -> Command {
        let at = self.later_than_before(wall);
        // A lease that was deleted has forgotten its number.
        let before = self.seen.as_ref().map(|seen| seen.lease.record().transitions());
        let transitions = before.map_or(0, |before| (before + 1) % (1 << 31));
        let record = Record::held(&self.identity, self.timing.lease_seconds(), at, transitions);
        self.claim = Some(record.clone());
        let taken = lease.with(record);
        let request = if lease.exists() { Request::Update(taken) } else { Request::Create(taken) };
        self.send(Purpose::Take, request)
    }

    fn renew(&mut self, wall: MicroTime, purpose: Purpose) -> Command {
        let at = self.later_than_before(wall);
        let Some(term) = &self.term else { return Command::Done };
        let record = term.lease.record().renewed(at);
        let lease = term.lease.with(record.clone());
        self.claim = Some(record);
        self.send(purpose, Request::Update(lease))
    }

    fn give_up(&mut self, lease: &Lease, wall: MicroTime) -> Command {
        let record = lease.record().released(self.later_than_before(wall));
        self.send(Purpose::Release, Request::Update(lease.with(record)))
    }

    /// The time to write. It rises with each write, also if the wall clock goes back or stands still: other candidates
    /// must see a changed record, and a server does not store an unchanged object.
    fn later_than_before(&self, wall: MicroTime) -> MicroTime {
        let before = self.claim.as_ref().and_then(Record::renew_time);
        before.map_or(wall, |before| wall.max(before.next()))
    }

    /// Takes note of the lease that the server has, and of how long it is to be left alone.
    fn observe(&mut self, now: Time, lease: &Lease) {
        let record = lease.record();
        let same = self.seen.as_ref().filter(|seen| seen.lease.record() == record);
        let free_at = match same {
            Some(seen) => seen.free_at,
            None if self.is_own(&record) || record.is_released() => now,
            None if record.holder().is_some() => {
                now + record.duration().unwrap_or(self.timing.lease_duration).min(LONGEST)
            }
            // Cleared by hand: the former holder may not know it yet.
            None => (now + record.duration().unwrap_or_default().min(LONGEST)).max(self.free_at()),
        };
        self.seen = Some(Seen { lease: lease.clone(), free_at });
    }

    /// When the lease may be taken, as far as known. Also counts for a lease that has been deleted since.
    fn free_at(&self) -> Time {
        self.seen.as_ref().map_or(Time::ZERO, |seen| seen.free_at)
    }

    /// Whether this very candidate has written it, in whichever term. Another process may have the same identity.
    fn is_own(&self, record: &Record) -> bool {
        record.holder() == Some(&self.identity)
            && self.claim.as_ref().is_some_and(|claim| claim.is_same_term(record))
    }

    fn next_renewal(&self, sent: Time, now: Time) -> Time {
        now.max(sent + self.timing.retry_period)
    }

    /// After a random wait, or when the lease becomes free.
    fn wait_to_look(&mut self, now: Time) -> Command {
        let at = now + self.timing.look_period(&mut self.random);
        let free_at = self.free_at();
        Command::Wait(if now < free_at { at.min(free_at) } else { at })
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
