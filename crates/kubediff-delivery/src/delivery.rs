//! The state machine: what to do next, and what an answer means.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

use fastrand::Rng;

use crate::answer::Answer;
use crate::policy::Policy;
use crate::window::{Disorder, Entry, Window};

/// The longest wait for the turn of a namespace that was not tried since the sink accepted something, in first waits.
const UNTRIED: u32 = 4;

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
    /// The sink's [tail](crate::Sink::tail), which the driver adds.
    pub tail: Option<Box<str>>,
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
    /// The number after which records are being read.
    reading: Option<u64>,
    flight: Option<Flight>,
    late: VecDeque<Late>,
    /// The outcome to be stored, and the position that was stored last.
    settled: Settled,
    stored: u64,
    /// By object: the dead letters since its last delivery.
    missing: HashMap<u64, Vec<u64>>,
    /// How many dead letters there are.
    dead: u64,
    /// Nothing is sent before, and nothing of suspect namespaces.
    closed_until: Option<Instant>,
    suspects_until: Option<Instant>,
    trouble: Option<Trouble>,
    /// How often the sink has failed since it accepted something.
    failed: u32,
    /// How often a record was sent alone, and when a dead letter was.
    turn: u64,
    late_turn: u64,
    /// The turn at which the sink accepted something last.
    accepted_turn: u64,
    /// Whether a suspect namespace has its turn: the sink has accepted a batch of others.
    is_turn_of_suspects: bool,
    /// How often the sink has accepted something, and of which namespace last.
    accepted: u64,
    accepted_last: Option<u64>,
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
    /// A record of a suspect namespace, to see whether the sink takes it.
    Alone,
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

impl Delivery {
    /// A delivery that begins after this position. The seed is of the waits' randomness.
    #[must_use]
    pub fn new(policy: Policy, seed: u64, position: u64) -> Self {
        Self {
            policy,
            random: Rng::with_seed(seed),
            window: Window::new(position),
            newest: position,
            reading: None,
            flight: None,
            late: VecDeque::new(),
            settled: Settled { position, ..Settled::default() },
            stored: position,
            missing: HashMap::new(),
            dead: 0,
            closed_until: None,
            suspects_until: None,
            trouble: None,
            failed: 0,
            turn: 0,
            late_turn: 0,
            accepted_turn: 0,
            is_turn_of_suspects: false,
            accepted: 0,
            accepted_last: None,
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
        let object = if self.policy.in_order { 0 } else { object };
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
        let after = self.reading.take().unwrap_or(self.window.through());
        self.grown(through);
        let in_order = self.policy.in_order;
        let entries = entries.into_iter().map(|entry| if in_order { entry.of_one() } else { entry });
        let read = self.window.add(entries, after, through);
        self.settled.position = self.window.position();
        read
    }

    /// Whether it has this record. A record that it was given may have to make room for records of other namespaces, and is then read again.
    #[must_use]
    pub fn holds(&self, number: u64) -> bool {
        self.window.entry(number).is_some() || self.late.iter().any(|late| late.entry.number == number)
    }

    /// Sends a dead letter again, between other records. It is a dead letter again if the sink, which accepts others, refuses it, or
    /// fails with it [as often](Policy::refusals) as it may refuse a record.
    pub fn resend(&mut self, entry: Entry) {
        if self.late.iter().any(|late| late.entry.number == entry.number) {
            return;
        }
        let entry = if self.policy.in_order { entry.of_one() } else { entry };
        self.late.push_back(Late { entry, failures: 0, not_before: None });
    }

    /// The sink has lost what it had accepted after this number: all of it is sent again. The position that is stored stays until
    /// the delivery is past it. Returns whether it had come further.
    pub fn go_back(&mut self, position: u64) -> bool {
        let goes_back = position < self.window.position();
        if goes_back {
            (self.window, self.reading, self.flight) = (Window::new(position), None, None);
            self.settled.position = position;
        }
        goes_back
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

    /// Why the sink does not take records at the moment, for people.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| &*trouble.reason)
    }

    /// Whether the sink refuses every record, so that none is to blame: those of several namespaces, or of the one that it accepted last.
    #[must_use]
    pub fn refuses_all(&self) -> bool {
        self.takes_nothing() && self.window.suspects(self.accepted_last)
    }

    /// Whether it has only refused for so long that suspect namespaces wait ever longer.
    fn takes_nothing(&self) -> bool {
        self.refused >= self.policy.refusals
    }

    /// The next step at this time.
    pub fn next(&mut self, now: Instant) -> Action {
        if self.settled.position > self.stored
            || !self.settled.dead.is_empty()
            || !self.settled.resent.is_empty()
        {
            self.stored = self.stored.max(self.settled.position);
            self.settled.position = self.stored;
            let fresh = Settled { position: self.stored, ..Settled::default() };
            return Action::Store(std::mem::replace(&mut self.settled, fresh));
        }
        if let Some(read) = self.read_next(now) {
            return read;
        }
        if self.flight.is_some() {
            return Action::Wait { until: None };
        }
        let closed_until = self.closed_until.filter(|until| *until > now);
        let batch = if closed_until.is_some() { None } else { self.send_next(now) };
        if let Some(batch) = batch {
            return Action::Send(batch);
        }
        let catch_up = self.window.catch_up();
        if let Some(read) = catch_up.and_then(|after| self.read_after(after)) {
            return read;
        }
        let suspects_until = self.suspects_until.filter(|until| *until > now);
        let late = self.late.front().map(|late| late.not_before.max(suspects_until));
        let due = self.window.next_due(suspects_until, self.refuses_all());
        Action::Wait { until: due.into_iter().chain(late).min().flatten().max(closed_until) }
    }

    fn read_next(&mut self, now: Instant) -> Option<Action> {
        let after = self.window.through();
        if after >= self.newest {
            return None;
        }
        if !self.has_room() && self.flight.is_none() && self.window.batch(1, 0, now, false).is_empty() {
            // Perhaps the sink takes what comes next.
            self.window.make_room(self.policy.window / 2, self.policy.window_bytes / 2);
        }
        self.read_after(after)
    }

    /// In halves: not one read for each record that is settled.
    fn has_room(&self) -> bool {
        let records = self.policy.window.saturating_sub(self.window.len());
        let bytes = self.policy.window_bytes.saturating_sub(self.window.bytes());
        records * 2 >= self.policy.window && bytes * 2 >= self.policy.window_bytes
    }

    fn read_after(&mut self, after: u64) -> Option<Action> {
        let wants = self.reading.is_none() && self.has_room();
        wants.then(|| {
            self.reading = Some(after);
            let records = self.policy.window.saturating_sub(self.window.len());
            let bytes = self.policy.window_bytes.saturating_sub(self.window.bytes());
            Action::Read { after, records, bytes }
        })
    }

    fn send_next(&mut self, now: Instant) -> Option<Batch> {
        // One try between two batches of the others.
        let may_try = self.suspects_until.is_none_or(|until| until <= now);
        if std::mem::take(&mut self.is_turn_of_suspects)
            && may_try
            && let Some(batch) = self.send_alone(now)
        {
            return Some(batch);
        }
        if let Some(batch) = self.send_usual(false, now) {
            return Some(batch);
        }
        if !may_try {
            return None;
        }
        // Of one namespace a batch again; if the sink fails with it, a record of each object in turn.
        let in_turn = self.failed >= self.policy.failures || self.window.has_several_namespaces();
        if in_turn || self.takes_nothing() || !self.late.is_empty() {
            let batch = self.send_alone(now);
            if batch.is_some() || in_turn || self.takes_nothing() {
                return batch;
            }
        }
        self.send_usual(true, now)
    }

    /// Sends a record of a suspect namespace, or a dead letter, in turn.
    fn send_alone(&mut self, now: Instant) -> Option<Batch> {
        let refuses_all = self.refuses_all();
        let suspect = self.window.next_suspect((!refuses_all).then_some(now));
        // Dead letters show nothing about a sink that refuses everything: it may refuse them for good.
        let is_due = |late: &&Late| late.not_before.is_none_or(|time| time <= now);
        let late = self.late.front().filter(is_due).map(|late| late.entry.number);
        match (suspect, late) {
            (Some((number, turn)), late) if refuses_all || late.is_none() || turn < self.late_turn => {
                Some(self.batch(vec![number], Kind::Alone, false, now))
            }
            (_, Some(number)) => {
                self.begin(&[number], Kind::Late, now);
                self.late_turn = self.turn;
                Some(Batch { numbers: vec![number], is_digest: false, is_late: true, missing: Vec::new() })
            }
            _ => None,
        }
    }

    fn send_usual(&mut self, with_suspects: bool, now: Instant) -> Option<Batch> {
        let unread = self.newest.saturating_sub(self.window.through());
        let waiting =
            unread + if with_suspects { self.window.len() } else { self.window.unsuspected() } as u64;
        let is_digest = self.policy.digest_beyond.is_some_and(|most| waiting > most as u64);
        let most = if is_digest { self.policy.digest } else { self.policy.batch }.max(1);
        let numbers = self.window.batch(most, self.policy.batch_bytes, now, with_suspects);
        (!numbers.is_empty()).then(|| self.batch(numbers, Kind::Usual, is_digest, now))
    }

    fn batch(&mut self, numbers: Vec<u64>, kind: Kind, is_digest: bool, now: Instant) -> Batch {
        self.begin(&numbers, kind, now);
        let mut missing = Vec::new();
        if !self.missing.is_empty() {
            let mut named = HashSet::new();
            for number in &numbers {
                let Some(Entry { object, .. }) = self.window.entry(*number) else { continue };
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
        if let [number] = *numbers {
            self.turn += 1;
            self.window.tried(number, self.turn);
        }
    }

    /// Takes what came of the batch that is under way. Without one, there is nothing to answer.
    pub fn answered(&mut self, answer: Answer, now: Instant) {
        let Some(flight) = self.flight.take() else { return };
        match answer {
            Answer::Accepted => self.accepted(flight, now),
            Answer::Partly { accepted, rest } => self.partly(flight, accepted, *rest, now),
            Answer::Refused { reason } if self.policy.in_order && flight.kind != Kind::Late => {
                if let Some(first) = flight.numbers.first() {
                    self.give_up(*first, &reason);
                }
            }
            Answer::Refused { reason } => {
                let before = self.trouble.take();
                let was_alone = flight.numbers.len() == 1 && flight.kind != Kind::Late;
                if !self.refused(&flight, &reason, self.accepted, now) && was_alone {
                    let number = flight.numbers.first().copied();
                    self.only = number.filter(|_| self.refused == 0 || self.only == number);
                    self.refused += 1;
                    if self.takes_nothing() {
                        self.trouble = before.filter(|_| self.refused > self.policy.refusals);
                        let what = if self.refuses_all() { "every record" } else { "some records" };
                        self.suspects_until =
                            Some(self.fail(format!("it refuses {what}: {reason}").into(), now));
                    } else {
                        let reason = format!("it refuses a record: {reason}").into();
                        self.trouble = Some(Trouble { times: 0, reason });
                    }
                }
            }
            Answer::Busy { wait } => {
                let until = self.fail("the sink asks to wait".into(), now);
                let asked = wait.map(|wait| now + wait.min(self.policy.longest_asked_wait));
                self.closed_until = self.closed_until.max(Some(asked.unwrap_or(until)));
            }
            Answer::Unavailable { reason } => {
                self.suspect(&flight, &reason, now);
                let until = self.fail(reason, now);
                // A namespace that has had no turn yet does not wait ever longer for those that fail.
                let suspect = self.window.next_suspect(None);
                let is_untried = suspect.is_some_and(|(_, turn)| turn <= self.accepted_turn);
                let soon = now + self.policy.first_wait.saturating_mul(UNTRIED);
                let until = if is_untried { until.min(soon) } else { until };
                self.suspects_until = Some(until);
                // Records of namespaces that are not suspect show best whether the sink fails with everything.
                if flight.kind == Kind::Usual {
                    let soon = until.min(now + self.policy.first_wait);
                    self.closed_until = self.closed_until.max(Some(soon));
                }
            }
        }
        self.settled.position = self.window.position();
    }

    fn partly(&mut self, mut flight: Flight, accepted: usize, answer: Answer, now: Instant) {
        let rest = flight.numbers.split_off(accepted.min(flight.numbers.len()));
        let kind = flight.kind;
        if !flight.numbers.is_empty() {
            self.accepted(flight, now);
        }
        if !rest.is_empty() {
            self.flight = Some(Flight { numbers: rest, kind });
            self.answered(answer, now);
        }
    }

    /// The sink failed, with this batch or with everything.
    fn suspect(&mut self, flight: &Flight, reason: &str, now: Instant) {
        if flight.kind != Kind::Late {
            self.failed += 1;
            self.window.failed(&flight.numbers);
        } else if let Some(late) = self.late.front_mut() {
            late.failures += 1;
            if late.failures >= self.policy.refusals {
                self.refused(flight, reason, self.accepted, now);
            }
        }
    }

    fn accepted(&mut self, flight: Flight, now: Instant) {
        // Each of these is blamed, or not, while the sink is known to accept others.
        if self.refuses_all() {
            self.window.try_all();
        }
        self.late.iter_mut().for_each(|late| late.not_before = None);
        let before = self.accepted;
        (self.accepted, self.refused, self.is_fresh, self.given_up) = (before + 1, 0, true, None);
        let reason = self.trouble.take().map(|trouble| trouble.reason).unwrap_or_default();
        (self.failed, self.accepted_turn) = (0, self.turn);
        self.is_turn_of_suspects = flight.kind == Kind::Usual;
        let soon = self.is_turn_of_suspects.then(|| now + self.policy.first_wait);
        self.suspects_until = self.suspects_until.min(soon);
        if flight.kind == Kind::Late {
            if let Some(Late { entry, .. }) = self.late.pop_front() {
                self.trust(entry.namespace);
                if let Some(missing) = self.missing.get_mut(&entry.object) {
                    missing.retain(|number| *number != entry.number);
                    if missing.is_empty() {
                        self.missing.remove(&entry.object);
                    }
                }
            }
            self.dead = self.dead.saturating_sub(1);
            self.settled.resent.extend(flight.numbers);
        } else {
            for number in &flight.numbers {
                let Some(entry) = self.window.settle(*number) else { continue };
                self.trust(entry.namespace);
                self.missing.remove(&entry.object);
            }
        }
        for (number, times) in self.window.take_failed(self.policy.failures) {
            let failed = Flight { numbers: vec![number], kind: Kind::Alone };
            self.refused(&failed, &format!("{reason}, {times} times in a row"), before, now);
        }
    }

    /// The sink has accepted something of the namespace.
    fn trust(&mut self, namespace: u64) {
        self.window.trust(namespace);
        self.accepted_last = Some(namespace);
    }

    /// Halves a batch; sets a record that was alone aside, or gives it up. Returns whether a record was given up. The sink had accepted
    /// something so often before.
    fn refused(&mut self, flight: &Flight, reason: &str, accepted: u64, now: Instant) -> bool {
        if flight.kind == Kind::Late {
            return self.refused_late(reason, now);
        }
        self.failed = 0;
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
        let namespace = self.give_up(number, reason);
        if let (true, Some(namespace)) = (takes_others, namespace) {
            // This record was to blame.
            self.window.trust(namespace);
        }
        true
    }

    /// Makes a dead letter of the record, and returns its namespace.
    fn give_up(&mut self, number: u64, reason: &str) -> Option<u64> {
        let Entry { object, namespace, .. } = self.window.settle(number)?;
        self.remember_missing(object, number);
        self.dead += 1;
        self.bury(number, object, reason);
        Some(namespace)
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

    /// There is trouble. Returns until when to wait: ever longer.
    fn fail(&mut self, reason: Box<str>, now: Instant) -> Instant {
        let times = self.trouble.as_ref().map_or(1, |trouble| trouble.times.saturating_add(1));
        self.trouble = Some(Trouble { times, reason });
        now + self.policy.wait(times, &mut self.random)
    }
}
