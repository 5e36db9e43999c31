//! The state machine: what to do next, and what an answer means.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::answer::Answer;
use crate::policy::Policy;
use crate::window::{Disorder, Entry, Window};

/// The next step of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Store this, all in one transaction. Until it is stored, a restart sends these records again.
    Store(Settled),
    /// Read the records after this number and pass them to [`Delivery::read`]: no more than so many of them and so many bytes in
    /// all, but at least one if there is one.
    Read {
        /// The number.
        after: u64,
        /// The most records.
        records: usize,
        /// The most bytes.
        bytes: usize,
    },
    /// Send this, and pass what came of it to [`Delivery::answered`].
    Send(Batch),
    /// Ask again at this time, or when there is something new: an answer, records.
    Wait {
        /// The time; `None` if there is none.
        until: Option<Instant>,
    },
}

/// Records to send together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The numbers of the records, in order.
    pub numbers: Vec<u64>,
    /// Whether to send one summary that names each of them, because too many wait.
    pub is_digest: bool,
    /// Whether this is a dead letter that is sent again: later records of its object may have been delivered.
    pub is_late: bool,
    /// For each record of an object with dead letters since the object's last delivery: its number, and theirs.
    pub missing: Vec<(u64, Vec<u64>)>,
}

/// The outcome of deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// All records up to this number were accepted or are dead letters.
    pub position: u64,
    /// New dead letters.
    pub dead: Vec<DeadLetter>,
    /// Dead letters that were sent again, and accepted.
    pub resent: Vec<u64>,
}

/// A record that the sink does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its number.
    pub number: u64,
    /// Its object.
    pub object: u64,
    /// Why, for people.
    pub reason: Box<str>,
}

/// The delivery of a log to one sink. One batch is under way at a time.
#[derive(Debug)]
pub struct Delivery {
    policy: Policy,
    random: Rng,
    window: Window,
    /// The newest record of the log.
    newest: u64,
    is_reading: bool,
    flight: Option<Flight>,
    late: VecDeque<Late>,
    /// The outcome to be stored, and the position that was stored last.
    settled: Settled,
    stored: u64,
    /// By object: the dead letters since its last delivery.
    missing: HashMap<u64, Vec<u64>>,
    /// How many dead letters there are.
    dead: u64,
    /// Nothing is sent before.
    closed_until: Option<Instant>,
    trouble: Option<Trouble>,
    suspicion: Suspicion,
    /// How often the sink has accepted something.
    accepted: u64,
    /// How often it has refused a record that was alone since then. Perhaps it refuses everything.
    refused: u32,
    /// The record that it was each time.
    only: Option<u64>,
    /// Whether no record was given up since then.
    is_fresh: bool,
    /// When a record was given up although the sink had accepted no other one.
    given_up: Option<Instant>,
}

#[derive(Debug)]
struct Flight {
    numbers: Vec<u64>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Usual,
    /// To see whether the sink fails with everything, or with one batch.
    Probe,
    Late,
}

/// A dead letter that is sent again.
#[derive(Debug)]
struct Late {
    entry: Entry,
    failures: u32,
    not_before: Option<Instant>,
}

/// Failures in a row.
#[derive(Debug)]
struct Trouble {
    times: u32,
    reason: Box<str>,
}

/// Failures since the sink accepted something, perhaps because of a record in the batch.
#[derive(Debug, Default)]
struct Suspicion {
    /// The last batch that it failed with.
    numbers: Vec<u64>,
    times: u32,
}

impl Delivery {
    /// A delivery that begins after this position. The seed is of the waits' randomness.
    #[must_use]
    pub fn new(policy: Policy, seed: u64, position: u64) -> Self {
        Self {
            policy,
            random: Rng::with_seed(seed),
            window: Window::new(position),
            newest: position,
            is_reading: false,
            flight: None,
            late: VecDeque::new(),
            settled: Settled { position, ..Settled::default() },
            stored: position,
            missing: HashMap::new(),
            dead: 0,
            closed_until: None,
            trouble: None,
            suspicion: Suspicion::default(),
            accepted: 0,
            refused: 0,
            only: None,
            is_fresh: false,
            given_up: None,
        }
    }

    /// There are so many dead letters from before the start.
    pub fn remember_dead(&mut self, dead: u64) {
        self.dead = dead;
    }

    /// The object has this dead letter from before the start: its next record will name it.
    pub fn remember_missing(&mut self, object: u64, number: u64) {
        // A courtesy with a bound: the store has all of them.
        if self.missing.len() < self.policy.window || self.missing.contains_key(&object) {
            self.missing.entry(object).or_default().push(number);
        }
    }

    /// The log has records up to this number.
    pub fn grown(&mut self, newest: u64) {
        self.newest = self.newest.max(newest);
    }

    /// Takes the answer to [`Action::Read`]: the records that this sink wants of those up to `through`.
    ///
    /// # Errors
    ///
    /// If the numbers do not rise. Records before the one that the error names are taken.
    pub fn read(&mut self, entries: impl IntoIterator<Item = Entry>, through: u64) -> Result<(), Disorder> {
        self.is_reading = false;
        self.grown(through);
        let read = self.window.add(entries, through);
        self.settled.position = self.window.position();
        read
    }

    /// Sends a dead letter again, before other records. It is a dead letter again if the sink, which accepts others, refuses it, or
    /// fails with it [as often](Policy::refusals) as it may refuse a record.
    pub fn resend(&mut self, entry: Entry) {
        if self.late.iter().any(|late| late.entry.number == entry.number) {
            return;
        }
        self.late.push_back(Late { entry, failures: 0, not_before: None });
    }

    /// All records up to this one are settled. It may be ahead of what was stored.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.window.position()
    }

    /// The newest number of the log that is known.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// How many numbers of the log lie behind the position.
    #[must_use]
    pub fn behind(&self) -> u64 {
        self.newest.saturating_sub(self.position())
    }

    /// How many dead letters the sink has.
    #[must_use]
    pub fn dead(&self) -> u64 {
        self.dead
    }

    /// Why the sink does not take records at the moment, for people, and when it is tried again.
    #[must_use]
    pub fn trouble(&self) -> Option<(&str, Option<Instant>)> {
        self.trouble.as_ref().map(|trouble| (&*trouble.reason, self.closed_until))
    }

    /// Whether the sink refuses every record, so that none is to blame.
    #[must_use]
    pub fn refuses_all(&self) -> bool {
        self.refused >= self.policy.refusals
    }

    /// The next step at this time.
    pub fn next(&mut self, now: Instant) -> Action {
        if self.settled.position > self.stored
            || !self.settled.dead.is_empty()
            || !self.settled.resent.is_empty()
        {
            self.stored = self.settled.position;
            let fresh = Settled { position: self.stored, ..Settled::default() };
            return Action::Store(std::mem::replace(&mut self.settled, fresh));
        }
        if let Some(read) = self.read_next() {
            return read;
        }
        if self.flight.is_some() {
            return Action::Wait { until: None };
        }
        if let Some(until) = self.closed_until.filter(|until| *until > now) {
            return Action::Wait { until: Some(until) };
        }
        match self.send_next(now) {
            Some(batch) => Action::Send(batch),
            None => {
                let late = self.late.front().and_then(|late| late.not_before);
                Action::Wait { until: self.window.next_due().into_iter().chain(late).min() }
            }
        }
    }

    fn read_next(&mut self) -> Option<Action> {
        let after = self.window.through();
        let records = self.policy.window.saturating_sub(self.window.len());
        let bytes = self.policy.window_bytes.saturating_sub(self.window.bytes());
        // In halves: not one read for each record that is settled.
        let has_room = records * 2 >= self.policy.window && bytes * 2 >= self.policy.window_bytes;
        let wants = !self.is_reading && after < self.newest && has_room;
        wants.then(|| {
            self.is_reading = true;
            Action::Read { after, records, bytes }
        })
    }

    fn send_next(&mut self, now: Instant) -> Option<Batch> {
        // Dead letters show nothing about a sink that refuses everything: it may refuse them for good.
        if self.refuses_all()
            && let Some(number) = self.window.least_refused()
        {
            return Some(self.batch(vec![number], Kind::Usual, false, now));
        }
        let is_due = |late: &&Late| late.not_before.is_none_or(|time| time <= now);
        if let Some(late) = self.late.front().filter(is_due) {
            let numbers = vec![late.entry.number];
            self.begin(&numbers, Kind::Late, now);
            return Some(Batch { numbers, is_digest: false, is_late: true, missing: Vec::new() });
        }
        let mut most = usize::MAX;
        if self.suspicion.times >= self.policy.failures {
            // First the batch's first record alone; if the sink fails with that too, a record of another object.
            most = 1;
            if self.suspicion.numbers.len() == 1 {
                let suspects = self.window.objects(&self.suspicion.numbers);
                let numbers = self.window.batch(1, usize::MAX, now, &suspects);
                if !numbers.is_empty() {
                    return Some(self.batch(numbers, Kind::Probe, false, now));
                }
            }
        }
        self.send_usual(most, now)
    }

    fn send_usual(&mut self, most: usize, now: Instant) -> Option<Batch> {
        let waiting = usize::try_from(self.behind()).unwrap_or(usize::MAX);
        let is_digest = self.policy.digest_beyond.is_some_and(|most| waiting > most);
        let most = most.min(if is_digest { self.policy.digest } else { self.policy.batch }.max(1));
        let numbers = self.window.batch(most, self.policy.batch_bytes, now, &HashSet::new());
        (!numbers.is_empty()).then(|| self.batch(numbers, Kind::Usual, is_digest, now))
    }

    fn batch(&mut self, numbers: Vec<u64>, kind: Kind, is_digest: bool, now: Instant) -> Batch {
        self.begin(&numbers, kind, now);
        let mut missing = Vec::new();
        if !self.missing.is_empty() {
            let mut named = HashSet::new();
            for number in &numbers {
                let Some(object) = self.window.object(*number) else { continue };
                if let (Some(dead), true) = (self.missing.get(&object), named.insert(object)) {
                    missing.push((*number, dead.clone()));
                }
            }
        }
        let is_digest = is_digest && numbers.len() > 1;
        Batch { numbers, is_digest, is_late: false, missing }
    }

    fn begin(&mut self, numbers: &[u64], kind: Kind, now: Instant) {
        self.flight = Some(Flight { numbers: numbers.to_vec(), kind });
        self.closed_until = Some(now + self.policy.pace);
    }

    /// Takes what came of the batch that is under way. Without one, there is nothing to answer.
    pub fn answered(&mut self, answer: Answer, now: Instant) {
        let Some(flight) = self.flight.take() else { return };
        match answer {
            Answer::Accepted => self.accepted(flight, now),
            Answer::Refused { reason } => {
                let before = self.trouble.take();
                let was_alone = flight.numbers.len() == 1 && flight.kind != Kind::Late;
                if !self.refused(&flight, &reason, self.accepted, now) && was_alone {
                    let number = flight.numbers.first().copied();
                    self.only = number.filter(|_| self.refused == 0 || self.only == number);
                    self.refused += 1;
                    if self.refuses_all() {
                        self.trouble = before.filter(|_| self.refused > self.policy.refusals);
                        self.fail(format!("it refuses every record: {reason}").into(), None, now);
                    } else {
                        let reason = format!("it refuses a record: {reason}").into();
                        self.trouble = Some(Trouble { times: 0, reason });
                    }
                }
            }
            Answer::Busy { wait } => {
                let asked = wait.map(|wait| wait.min(self.policy.longest_asked_wait));
                self.fail("the sink asks to wait".into(), asked, now);
            }
            Answer::Closed { reason } => self.fail(reason, None, now),
            Answer::Unavailable { reason } => {
                self.suspect(flight, &reason, now);
                self.fail(reason, None, now);
            }
        }
        self.settled.position = self.window.position();
    }

    /// The sink failed, with this batch or with everything.
    fn suspect(&mut self, flight: Flight, reason: &str, now: Instant) {
        match flight.kind {
            Kind::Probe => self.suspicion = Suspicion::default(),
            Kind::Usual => {
                let times = self.suspicion.times + 1;
                self.suspicion = Suspicion { numbers: flight.numbers, times };
            }
            Kind::Late => {
                let Some(late) = self.late.front_mut() else { return };
                late.failures += 1;
                if late.failures >= self.policy.refusals {
                    self.refused(&flight, reason, self.accepted, now);
                }
            }
        }
    }

    fn accepted(&mut self, flight: Flight, now: Instant) {
        let reason = self.trouble.take().map(|trouble| trouble.reason);
        // Each of these is blamed, or not, while the sink is known to accept others.
        if self.refuses_all() {
            self.window.try_all();
        }
        self.late.iter_mut().for_each(|late| late.not_before = None);
        let before = self.accepted;
        (self.accepted, self.refused, self.is_fresh, self.given_up) = (before + 1, 0, true, None);
        if flight.kind == Kind::Late {
            if let Some(Late { entry, .. }) = self.late.pop_front()
                && let Some(missing) = self.missing.get_mut(&entry.object)
            {
                missing.retain(|number| *number != entry.number);
                if missing.is_empty() {
                    self.missing.remove(&entry.object);
                }
            }
            self.dead = self.dead.saturating_sub(1);
            self.settled.resent.extend(flight.numbers);
            return;
        }
        for number in &flight.numbers {
            if let Some(object) = self.window.object(*number) {
                self.missing.remove(&object);
            }
            self.window.settle(*number);
        }
        let suspicion = std::mem::take(&mut self.suspicion);
        if flight.kind == Kind::Probe {
            let reason = reason.unwrap_or_default();
            let suspects = Flight { numbers: suspicion.numbers, kind: Kind::Usual };
            self.refused(&suspects, &format!("{reason}, {} times in a row", suspicion.times), before, now);
        }
    }

    /// Halves a batch; sets a record that was alone aside, or gives it up. Returns whether a record was given up. The sink had accepted
    /// something so often before.
    fn refused(&mut self, flight: &Flight, reason: &str, accepted: u64, now: Instant) -> bool {
        if flight.kind == Kind::Late {
            return self.refused_late(reason, now);
        }
        self.suspicion = Suspicion::default();
        let [number] = flight.numbers[..] else {
            for number in &flight.numbers {
                self.window.limit_batch(*number, flight.numbers.len().div_ceil(2));
            }
            return false;
        };
        let Some(refusals) = self.window.refused(number, accepted, now) else { return false };
        // A record is to blame when the sink takes others. If it takes none for long, one is given up.
        let is_only = self.refused == 0 || self.only == Some(number);
        let takes_others = self.accepted > refusals.accepted_before && self.is_fresh && is_only;
        let since = self.given_up.map_or(refusals.since, |at| at.max(refusals.since));
        let is_over = takes_others || now >= since + self.policy.longest_refusal;
        if refusals.times < self.policy.refusals || !is_over {
            let wait = self.policy.wait(refusals.times, &mut self.random);
            self.window.set_aside(number, now + wait);
            return false;
        }
        self.is_fresh = false;
        if !takes_others {
            self.given_up = Some(now);
        }
        if let Some(object) = self.window.object(number) {
            self.window.settle(number);
            self.remember_missing(object, number);
            self.dead += 1;
            self.bury(number, object, reason);
        }
        true
    }

    /// A sink that has accepted nothing until now may refuse everything.
    fn refused_late(&mut self, reason: &str, now: Instant) -> bool {
        let takes_others = self.accepted > 0 && self.refused == 0;
        let Some(late) = self.late.front_mut() else { return false };
        if takes_others {
            let Entry { number, object, .. } = late.entry;
            self.late.pop_front();
            self.bury(number, object, reason);
            return true;
        }
        late.failures += 1;
        late.not_before = Some(now + self.policy.wait(late.failures, &mut self.random));
        false
    }

    fn bury(&mut self, number: u64, object: u64, reason: &str) {
        self.settled.dead.push(DeadLetter { number, object, reason: reason.into() });
    }

    /// Sends nothing for as long as the sink asked, or ever longer.
    fn fail(&mut self, reason: Box<str>, asked: Option<Duration>, now: Instant) {
        let times = self.trouble.as_ref().map_or(1, |trouble| trouble.times.saturating_add(1));
        let wait = asked.unwrap_or_else(|| self.policy.wait(times, &mut self.random));
        self.closed_until = Some((now + wait).max(self.closed_until.unwrap_or(now)));
        self.trouble = Some(Trouble { times, reason });
    }
}
