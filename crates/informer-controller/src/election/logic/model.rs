//! Several candidates and a naive server under random delays, lost answers, frozen candidates, releases and deletions,
//! from seeds: never are two gates open at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use fastrand::Rng;

use super::*;

const CANDIDATES: usize = 4;
/// Milliseconds of one run.
const LENGTH: u64 = 300_000;

/// The events of the model, in the order of their times.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake(usize),
    /// A request reaches the server. The numbers are those of `World::requests`.
    Arrive(usize),
    /// Its answer reaches the candidate, or its time limit has passed.
    Answer(usize),
    /// The candidate stops for a while.
    Freeze(usize),
    Release(usize),
    Edit,
}

struct Sent {
    from: usize,
    at: u64,
    request: Request,
    answer: Answer,
    is_answered: bool,
}

struct One {
    candidate: Candidate,
    /// It does nothing before.
    frozen_until: u64,
    /// The request that it waits for.
    waits_for: Option<usize>,
    /// Its gate is open until then.
    open_until: u64,
    releasing: bool,
}

struct World {
    random: Rng,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    requests: Vec<Sent>,
    candidates: Vec<One>,
    lease: Option<Lease>,
    version: u64,
    terms: u64,
    /// Whether people delete the lease too.
    with_edits: bool,
}

fn time(millis: u64) -> Time {
    Time::from_start(Duration::from_millis(millis))
}

fn millis(time: Time) -> u64 {
    u64::try_from(time.since(Time::ZERO).as_millis()).unwrap()
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let candidate = |index: usize, random: &mut Rng| One {
            candidate: Candidate::new("cart", &format!("c{index}"), Timing::default(), random.u64(..)),
            frozen_until: 0,
            waits_for: None,
            open_until: 0,
            releasing: false,
        };
        let candidates = (0..CANDIDATES).map(|index| candidate(index, &mut random)).collect();
        let mut world = Self {
            with_edits: random.bool(),
            random,
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            requests: Vec::new(),
            candidates,
            lease: None,
            version: 1,
            terms: 0,
        };
        for index in 0..CANDIDATES {
            world.after(0, Event::Wake(index));
            let freeze = world.random.u64(1_000..60_000);
            world.after(freeze, Event::Freeze(index));
        }
        world.after(20_000, Event::Edit);
        world
    }

    fn after(&mut self, millis: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + millis, self.count, event)));
    }

    /// The wall clock of a candidate: wrong by a constant, and sometimes by a jump.
    fn wall(&mut self, index: usize) -> MicroTime {
        let jump = if self.random.u8(..10) == 0 { self.random.u64(..50_000) } else { 0 };
        let millis = 1_800_000_000_000 + self.now / 2 + 10_000 * index as u64 - jump;
        MicroTime::new(jiff::Timestamp::from_millisecond(i64::try_from(millis).unwrap()).unwrap())
    }

    fn run(&mut self) {
        while let Some(Reverse((at, count, event))) = self.events.pop() {
            if at > LENGTH {
                return;
            }
            self.now = at;
            // A frozen candidate does nothing until it goes on.
            let acts = match &event {
                Event::Wake(index) | Event::Release(index) => Some(*index),
                Event::Answer(number) => Some(self.requests[*number].from),
                Event::Arrive(_) | Event::Freeze(_) | Event::Edit => None,
            };
            if let Some(until) =
                acts.map(|index| self.candidates[index].frozen_until).filter(|&until| until > at)
            {
                self.events.push(Reverse((until, count, event)));
                continue;
            }
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake(index) => {
                let wall = self.wall(index);
                let command = self.candidates[index].candidate.wake(time(self.now), wall);
                self.obey(index, command);
            }
            Event::Arrive(number) => self.serve(number),
            Event::Answer(number) => {
                let sent = &mut self.requests[number];
                if std::mem::replace(&mut sent.is_answered, true) {
                    return;
                }
                let (index, at, answer) = (sent.from, sent.at, sent.answer.clone());
                if self.candidates[index].waits_for == Some(number) {
                    let wall = self.wall(index);
                    let one = &mut self.candidates[index].candidate;
                    let command = one.answered(time(at), time(self.now), wall, answer);
                    self.obey(index, command);
                }
            }
            Event::Freeze(index) => {
                self.candidates[index].frozen_until = self.now + self.random.u64(..40_000);
                let next = self.random.u64(5_000..80_000);
                self.after(next, Event::Freeze(index));
            }
            Event::Release(index) => {
                // The driver closes the gate first.
                self.candidates[index].open_until = 0;
                self.candidates[index].releasing = true;
                let wall = self.wall(index);
                let command = self.candidates[index].candidate.release(wall);
                self.obey(index, command);
            }
            Event::Edit => {
                if self.with_edits && self.all_have_seen_it() {
                    self.lease = None;
                }
                let next = self.random.u64(10_000..60_000);
                self.after(next, Event::Edit);
            }
        }
    }

    /// A candidate that has not seen the lease cannot know that it was deleted under a leader: that is not promised.
    fn all_have_seen_it(&self) -> bool {
        let Some(lease) = &self.lease else { return false };
        let seen =
            |one: &One| one.candidate.seen.as_ref().is_some_and(|seen| seen.lease.record() == lease.record());
        self.candidates.iter().all(seen)
    }

    /// The server: one object, with versions as preconditions. It may be slow, and answers may be lost.
    fn serve(&mut self, number: usize) {
        let sent = &self.requests[number];
        let answer = match (&sent.request, &self.lease) {
            (Request::Get, Some(lease)) => Answer::Lease(lease.clone()),
            (Request::Get | Request::Update(_), None) => Answer::NotFound,
            (Request::Create(_), Some(_)) => Answer::Conflict,
            (Request::Update(new), Some(old)) if new.version() != old.version() => Answer::Conflict,
            (Request::Create(new) | Request::Update(new), _) => {
                self.version += 1;
                let stored = new.with_version(self.version);
                self.lease = Some(stored.clone());
                Answer::Lease(stored)
            }
        };
        let is_lost = self.random.u8(..10) == 0;
        let slow = if self.random.u8(..8) == 0 { 6_000 } else { 200 };
        let delay = self.random.u64(..slow);
        if !is_lost {
            self.requests[number].answer = answer;
            self.after(delay, Event::Answer(number));
        }
    }

    fn obey(&mut self, index: usize, command: Command) {
        self.candidates[index].waits_for = None;
        match command {
            Command::Send(request) => {
                let number = self.requests.len();
                let sent =
                    Sent { from: index, at: self.now, request, answer: Answer::Unknown, is_answered: false };
                self.requests.push(sent);
                self.candidates[index].waits_for = Some(number);
                // Some requests arrive after the candidate has stopped waiting for them.
                let slow = if self.random.u8(..8) == 0 { 20_000 } else { 200 };
                let delay = self.random.u64(..slow);
                self.after(delay, Event::Arrive(number));
                self.after(5_000, Event::Answer(number));
            }
            Command::Wait(until) => self.after(millis(until).saturating_sub(self.now), Event::Wake(index)),
            Command::Lost(_) | Command::Done => {
                self.candidates[index].releasing = false;
                self.after(0, Event::Wake(index));
            }
        }
        self.move_gate(index);
    }

    /// As the driver: opens the gate, or extends it; it closes by itself.
    fn move_gate(&mut self, index: usize) {
        let (now, one) = (self.now, &mut self.candidates[index]);
        match one.candidate.deadline() {
            Some(deadline) => {
                if one.open_until <= now {
                    self.terms += 1;
                    if self.random.u8(..4) == 0 {
                        let release = self.random.u64(..30_000);
                        self.after(release, Event::Release(index));
                    }
                }
                self.candidates[index].open_until = millis(deadline);
            }
            None => one.open_until = 0,
        }
        let open: Vec<_> = (0..CANDIDATES).filter(|&index| self.candidates[index].open_until > now).collect();
        assert!(open.len() <= 1, "at {now} ms the gates of {open:?} are open");
    }
}

#[test]
fn q8_never_are_two_gates_open_at_once() {
    let mut terms = 0;
    for seed in 0..400 {
        let mut world = World::new(seed);
        // A failure names its seed.
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
        assert!(ran.is_ok(), "seed {seed}");
        terms += world.terms;
    }
    // Else this would say nothing.
    assert!(terms > 400 * 5, "only {terms} terms");
}
