//! Several members and a naive server under random delays, lost answers, frozen and crashed members, clocks of different
//! speeds, and people who edit, from seeds: never do two members act on one hash, and when it is quiet, each hash has an owner
//! soon.

mod pauses;
mod process;
mod server;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fastrand::Rng;

use super::*;
use pauses::Pauses;
use process::Process;
use server::{Request, Response, Server};

/// Milliseconds of the turbulent part of a run.
const TURBULENT: u64 = 120_000;
/// After so many further ones each hash has an owner again: late requests come for 20 s, then leases expire.
const QUIET: u64 = 90_000;
/// A member waits for an answer for so long.
const PATIENCE: u64 = 5_000;

/// The events of the model. The first number is that of a process, the second one that of its life.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start(usize),
    Renew(usize, u64),
    Look(usize, u64),
    /// A request reaches the server. The numbers are those of `World::requests`.
    Arrive(usize),
    /// Its answer reaches the member, or its time limit has passed.
    Answer(usize),
    /// The gate of a term may have closed.
    Deadline(usize, u64),
    /// The prepared controller of that number is synced.
    Synced(usize, u64, u64),
    /// Reconciliations outside of the accepted hashes of that restriction have ended.
    Drained(usize, u64, u64),
    Ended(usize, u64),
    Freeze(usize),
    Crash(usize),
    Leave(usize),
    Edit,
    /// In a calm world: what happens next.
    Disturb(u64),
}

struct Sent {
    from: usize,
    life: u64,
    /// By the clock of the sender.
    at: Time,
    request: Request,
    response: Option<Response>,
    is_answered: bool,
}

struct World {
    random: Rng,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    requests: Vec<Sent>,
    processes: Vec<Process>,
    server: Server,
    /// Whether people edit the leases.
    with_edits: bool,
    begun: u64,
    /// In a calm world: how long hashes had no owner.
    pauses: Option<Pauses>,
}

fn time(millis: u64) -> Time {
    Time::from_start(Duration::from_millis(millis))
}

impl World {
    fn new(seed: u64, with_edits: bool) -> Self {
        let mut random = Rng::with_seed(seed);
        let processes = (0..random.usize(3..=8)).map(|index| Process::new(index, &mut random)).collect();
        let mut world = Self {
            with_edits,
            random,
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            requests: Vec::new(),
            processes,
            server: Server::default(),
            begun: 0,
            pauses: None,
        };
        for index in 0..world.processes.len() {
            let start = world.random.u64(..30_000);
            world.after(start, Event::Start(index));
            for event in [Event::Freeze(index), Event::Crash(index), Event::Leave(index)] {
                let first = world.random.u64(5_000..120_000);
                world.after(first, event);
            }
        }
        world.after(20_000, Event::Edit);
        world
    }

    fn after(&mut self, millis: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + millis, self.count, event)));
    }

    /// The same after a time by the clock of a process.
    fn after_local(&mut self, index: usize, duration: Duration, event: Event) {
        let millis = self.processes[index].real(duration);
        self.after(millis, event);
    }

    fn is_quiet(&self) -> bool {
        self.now >= TURBULENT || self.is_calm()
    }

    fn is_calm(&self) -> bool {
        self.pauses.is_some()
    }

    fn run(&mut self) {
        while let Some(Reverse((at, count, event))) = self.events.pop() {
            let end = if self.is_calm() { (pauses::SLOTS + 1) * pauses::SLOT } else { TURBULENT + QUIET };
            if at > end || self.is_over() {
                break;
            }
            self.now = at;
            // A frozen process does nothing until it goes on.
            let acts = match &event {
                Event::Renew(index, _)
                | Event::Look(index, _)
                | Event::Deadline(index, _)
                | Event::Synced(index, ..)
                | Event::Drained(index, ..)
                | Event::Ended(index, _)
                | Event::Leave(index) => Some(*index),
                Event::Answer(number) => Some(self.requests[*number].from),
                Event::Start(_)
                | Event::Arrive(_)
                | Event::Freeze(_)
                | Event::Crash(_)
                | Event::Edit
                | Event::Disturb(_) => None,
            };
            if let Some(until) =
                acts.map(|index| self.processes[index].frozen_until).filter(|&until| until > at)
            {
                self.events.push(Reverse((until, count, event)));
                continue;
            }
            self.happen(event);
            self.account();
        }
        let owned = self.owned();
        assert!(owned.is_all(), "nobody acts on {}", Ranges::all().minus(&owned));
    }

    fn owned(&self) -> Ranges {
        self.processes.iter().fold(Ranges::none(), |all, one| all.union(&one.acts_on(self.now)))
    }

    /// Whether it has been quiet for long, and all is well.
    fn is_over(&self) -> bool {
        !self.is_calm() && self.now > TURBULENT + QUIET / 2 && self.owned().is_all()
    }

    /// The oracle: what each process may act on, as long as its gate is open. Called whenever this may have become more.
    fn check(&self) {
        let mut all = Ranges::none();
        for one in &self.processes {
            let own = one.acts_on(self.now);
            assert!(
                !all.intersects(&own),
                "at {} ms {} acts on what another one acts on: {own}",
                self.now,
                one.name
            );
            all = all.union(&own);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start(index) => self.start(index),
            Event::Renew(index, life) if self.lives(index, life) => self.renew(index),
            Event::Look(index, life) if self.lives(index, life) => self.look(index),
            Event::Deadline(index, life) if self.lives(index, life) => self.lose_in_time(index),
            Event::Synced(index, life, number) if self.lives(index, life) => {
                let one = &mut self.processes[index];
                if let Some(ranges) = one.plan.prepare.clone().filter(|_| one.prepared == number) {
                    one.logic.synced(ranges);
                    self.obey(index);
                }
            }
            Event::Drained(index, life, number) if self.lives(index, life) => {
                let one = &mut self.processes[index];
                if one.restricted == number {
                    one.acting = one.acting.intersection(&one.plan.accept);
                    one.logic.drained(&one.plan.accept);
                    self.obey(index);
                }
            }
            Event::Ended(index, life) if self.lives(index, life) => {
                let one = &mut self.processes[index];
                if std::mem::take(&mut one.ending) {
                    one.acting = Ranges::none();
                    one.logic.ended();
                    self.obey(index);
                }
            }
            Event::Arrive(number) => self.serve(number),
            Event::Answer(number) => self.answer(number),
            Event::Freeze(index) if !self.is_quiet() => {
                let until = (self.now + self.random.u64(..40_000)).min(TURBULENT);
                self.processes[index].frozen_until = until;
                let next = self.random.u64(5_000..120_000);
                self.after(next, Event::Freeze(index));
            }
            Event::Crash(index) if !self.is_quiet() => {
                self.processes[index].crash();
                let (next, again) = (self.random.u64(..20_000), self.random.u64(20_000..150_000));
                self.after(next, Event::Start(index));
                self.after(again, Event::Crash(index));
            }
            Event::Leave(index) if !self.is_quiet() && self.processes[index].is_alive => {
                self.leave(index);
                let again = self.random.u64(20_000..150_000);
                self.after(again, Event::Leave(index));
            }
            Event::Edit => {
                if self.with_edits && !self.is_quiet() {
                    let names: Vec<_> = self.processes.iter().map(|one| one.name.clone()).collect();
                    self.server.edit(&mut self.random, &names);
                    let next = self.random.u64(1_000..40_000);
                    self.after(next, Event::Edit);
                } else {
                    self.server.forget_foreign();
                }
            }
            Event::Disturb(slot) => self.disturb(slot),
            // Of a former life.
            _ => {}
        }
    }

    fn leave(&mut self, index: usize) {
        let one = &mut self.processes[index];
        let now = one.local(self.now);
        one.logic.leave(now, Timing::default().lease_duration);
        let life = one.life;
        self.after(0, Event::Look(index, life));
        self.after(0, Event::Renew(index, life));
    }

    fn lives(&self, index: usize, life: u64) -> bool {
        let one = &self.processes[index];
        one.is_alive && one.life == life
    }

    fn start(&mut self, index: usize) {
        let one = &mut self.processes[index];
        if one.is_alive {
            return;
        }
        one.start(&mut self.random);
        let life = one.life;
        // Its own lease of a former life has to expire.
        let held = self.server.is_held(&one.name);
        let wait = if held { Timing::default().lease_duration } else { Duration::ZERO };
        self.after_local(index, wait, Event::Renew(index, life));
    }

    fn renew(&mut self, index: usize) {
        self.lose_in_time(index);
        if self.processes[index].writes.is_none() {
            let write = self.processes[index].write();
            let number = self.send(index, write);
            self.processes[index].writes = Some(number);
        } else {
            self.processes[index].is_dirty = true;
        }
    }

    fn look(&mut self, index: usize) {
        let one = &self.processes[index];
        if one.looks.is_none() && one.is_open(self.now) {
            let number = self.send(index, Request::Look);
            self.processes[index].looks = Some(number);
        }
    }

    fn lose_in_time(&mut self, index: usize) {
        if self.processes[index].lose_in_time(self.now) {
            let life = self.processes[index].life;
            self.after(0, Event::Renew(index, life));
        }
    }

    fn send(&mut self, index: usize, request: Request) -> usize {
        let number = self.requests.len();
        let one = &self.processes[index];
        let sent = Sent {
            from: index,
            life: one.life,
            at: one.local(self.now),
            request,
            response: None,
            is_answered: false,
        };
        self.requests.push(sent);
        // Some requests arrive after the member has stopped waiting for them.
        let is_slow = !self.is_quiet() && self.random.u8(..10) == 0;
        let delay = self.random.u64(..if is_slow { 20_000 } else { 200 });
        self.after(delay, Event::Arrive(number));
        self.after(PATIENCE, Event::Answer(number));
        number
    }

    fn serve(&mut self, number: usize) {
        let response = self.server.serve(&self.requests[number].request);
        let is_quiet = self.is_quiet();
        let is_lost = !is_quiet && self.random.u8(..12) == 0;
        let is_slow = !is_quiet && self.random.u8(..8) == 0;
        let delay = self.random.u64(..if is_slow { 6_000 } else { 200 });
        if !is_lost {
            self.requests[number].response = Some(response);
            self.after(delay, Event::Answer(number));
        }
    }

    fn answer(&mut self, number: usize) {
        let sent = &mut self.requests[number];
        if std::mem::replace(&mut sent.is_answered, true) {
            return;
        }
        let (index, life, at, response) = (sent.from, sent.life, sent.at, sent.response.take());
        if !self.lives(index, life) {
            return;
        }
        self.lose_in_time(index);
        if self.processes[index].writes == Some(number) {
            self.wrote(index, at, response);
        } else if self.processes[index].looks == Some(number) {
            self.looked(index, at, response);
        }
    }

    /// The lease of a process is written, or not.
    fn wrote(&mut self, index: usize, at: Time, response: Option<Response>) {
        let life = self.processes[index].life;
        let was_open = self.processes[index].is_open(self.now);
        let is_open = self.processes[index].wrote(at, self.now, response);
        if is_open && !was_open {
            self.after(0, Event::Look(index, life));
        }
        if is_open {
            self.check();
            self.after_local(index, Timing::default().renew_deadline, Event::Deadline(index, life));
        }
        let is_dirty = std::mem::take(&mut self.processes[index].is_dirty);
        let wait = if is_dirty { Duration::ZERO } else { Timing::default().retry_period };
        self.after_local(index, wait, Event::Renew(index, life));
    }

    fn looked(&mut self, index: usize, at: Time, response: Option<Response>) {
        let one = &mut self.processes[index];
        one.looks = None;
        if !one.is_open(self.now) {
            return;
        }
        let (now, life) = (one.local(self.now), one.life);
        let mut next = now + Timing::default().retry_period;
        if let Some(Response::Leases { look, version }) = response {
            let map = one.logic.looked(at, now, &look);
            next = one.logic.look_at(now);
            if let Some(map) = map {
                let number = self.send(index, Request::Map { text: map.text, version });
                // Its answer leads to a look.
                self.processes[index].looks = Some(number);
            }
        } else if matches!(response, Some(Response::Done)) {
            next = now;
        }
        self.after_local(index, next.since(now), Event::Look(index, life));
        self.obey(index);
    }

    /// As the driver: does what the logic plans.
    fn obey(&mut self, index: usize) {
        let life = self.processes[index].life;
        loop {
            let one = &mut self.processes[index];
            let before = std::mem::replace(&mut one.plan, one.logic.plan());
            let plan = one.plan.clone();
            if plan.accept != before.accept {
                one.restricted += 1;
                let number = one.restricted;
                let wait = self.random.u64(..3_000);
                self.after(wait, Event::Drained(index, life, number));
            }
            if plan.prepare != before.prepare {
                let one = &mut self.processes[index];
                one.prepared += 1;
                let number = one.prepared;
                let wait = self.random.u64(..4_000);
                self.after(wait, Event::Synced(index, life, number));
            }
            if plan.acknowledge != before.acknowledge {
                self.after(0, Event::Renew(index, life));
            }
            match plan.step {
                Step::GoOn => return,
                Step::End => {
                    if !std::mem::replace(&mut self.processes[index].ending, true) {
                        let wait = self.random.u64(..3_000);
                        self.after(wait, Event::Ended(index, life));
                    }
                    return;
                }
                Step::Begin => {
                    let one = &mut self.processes[index];
                    assert!(one.acting.is_empty(), "the former controller still runs");
                    one.logic.begun();
                    one.plan.accept = one.logic.accepted().clone();
                    one.acting = one.plan.accept.clone();
                    self.begun += 1;
                    self.check();
                }
                Step::Leave => {
                    let release = self.processes[index].release();
                    self.send(index, release);
                    let wait = if self.is_calm() { pauses::SLOT } else { self.random.u64(..20_000) };
                    self.after(wait, Event::Start(index));
                    return;
                }
            }
        }
    }
}

/// A failure names its seed.
fn run_all(with_edits: bool) {
    let (mut begun, mut maps) = (0, 0);
    let seeds = 1_000;
    for seed in 0..seeds {
        let mut world = World::new(seed, with_edits);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
        assert!(ran.is_ok(), "seed {seed}");
        begun += world.begun;
        maps += world.server.maps();
    }
    // Else this would say nothing.
    assert!(begun > seeds * 5 && maps > seeds * 5, "only {begun} beginnings and {maps} maps");
}

#[test]
fn q9_never_do_two_members_act_on_one_hash_and_all_hashes_have_owners_again() {
    run_all(false);
}

#[test]
fn q9_never_do_two_members_act_on_one_hash_although_people_edit() {
    run_all(true);
}
