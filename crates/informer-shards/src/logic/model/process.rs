//! A process of the model: a member with its lease, its gate and what runs in it.

use informer_controller::internals::{MicroTime, Record};

use super::*;

pub(super) struct Process {
    index: usize,
    pub(super) name: String,
    /// Milliseconds of its clock per second.
    rate: u64,
    pub(super) life: u64,
    pub(super) is_alive: bool,
    pub(super) frozen_until: u64,
    pub(super) logic: Logic,
    pub(super) plan: Plan,
    /// The ranges that may run.
    pub(super) acting: Ranges,
    /// How often it was restricted, and how many controllers were prepared.
    pub(super) restricted: u64,
    pub(super) prepared: u64,
    pub(super) ending: bool,
    /// Until when its gate is open, by its clock.
    deadline: Option<Time>,
    /// When its current term began; its record.
    term: u64,
    order: u64,
    /// The requests under way, and whether the lease has to be written again.
    pub(super) writes: Option<usize>,
    pub(super) looks: Option<usize>,
    pub(super) is_dirty: bool,
}

fn idle() -> Plan {
    Plan { accept: Ranges::none(), prepare: None, step: Step::GoOn, acknowledge: None }
}

impl Process {
    pub(super) fn new(index: usize, random: &mut Rng) -> Self {
        let name = format!("m{index}");
        Self {
            index,
            logic: Logic::new(&name, ShareBy::Uid, Timing::default(), random.u64(..)),
            name,
            // The fastest to the slowest is less than lease duration to renew deadline.
            rate: random.u64(820..=1180),
            life: 0,
            is_alive: false,
            frozen_until: 0,
            plan: idle(),
            acting: Ranges::none(),
            restricted: 0,
            prepared: 0,
            ending: false,
            deadline: None,
            term: 0,
            order: 0,
            writes: None,
            looks: None,
            is_dirty: false,
        }
    }

    pub(super) fn local(&self, now: u64) -> Time {
        time(now * self.rate / 1_000)
    }

    /// The milliseconds of a duration by its clock; a bit more.
    pub(super) fn real(&self, duration: Duration) -> u64 {
        u64::try_from(duration.as_millis()).unwrap() * 1_000 / self.rate + 1
    }

    pub(super) fn is_open(&self, now: u64) -> bool {
        self.deadline.is_some_and(|deadline| self.local(now) < deadline)
    }

    /// The hashes for which a request may start now. A frozen process may go on at any moment.
    pub(super) fn acts_on(&self, now: u64) -> Ranges {
        if self.is_open(now) { self.acting.clone() } else { Ranges::none() }
    }

    /// The hashes for which it would begin something now.
    pub(super) fn serves(&self, now: u64) -> Ranges {
        let is_up = self.is_alive && !self.ending && self.frozen_until <= now;
        if is_up { self.acts_on(now).intersection(&self.plan.accept) } else { Ranges::none() }
    }

    /// A new life, sometimes under another name.
    pub(super) fn start(&mut self, random: &mut Rng) {
        self.life += 1;
        self.is_alive = true;
        self.frozen_until = 0;
        if random.bool() {
            self.name = format!("m{}-{}", self.index, self.life);
            self.order = 0;
        }
        self.logic = Logic::new(&self.name, ShareBy::Uid, Timing::default(), random.u64(..));
        self.forget();
    }

    pub(super) fn crash(&mut self) {
        self.is_alive = false;
        self.forget();
    }

    fn forget(&mut self) {
        self.plan = idle();
        self.acting = Ranges::none();
        (self.deadline, self.writes, self.looks) = (None, None, None);
        (self.ending, self.is_dirty) = (false, false);
        self.term = 0;
    }

    /// As the driver when the gate has closed: everything is dropped.
    pub(super) fn lose_in_time(&mut self, now: u64) -> bool {
        if self.deadline.is_none() || self.is_open(now) {
            return false;
        }
        self.lose();
        true
    }

    fn lose(&mut self) {
        self.forget();
        self.logic.lost();
        // Synced and drained events of the lost term are not for the next one.
        self.prepared += 1;
        self.restricted += 1;
    }

    /// The next write of its lease: a renewal, or the beginning of a term.
    pub(super) fn write(&mut self) -> Request {
        let takes = self.deadline.is_none();
        self.order += 1;
        if takes {
            self.term = self.order;
        }
        let at = |number: u64| {
            let millis = 1_800_000_000_000 + i64::try_from(number).unwrap();
            MicroTime::new(jiff::Timestamp::from_millisecond(millis).unwrap())
        };
        let record = Record::held(&self.name, 15, at(self.term), 0).renewed(at(self.order));
        let acknowledged = if takes { None } else { self.plan.acknowledge };
        let found = FoundMember { record, acknowledged, leaving: self.logic.is_leaving() };
        Request::Lease { of: self.name.clone(), order: self.order, found, takes }
    }

    /// A write of the lease is answered. Returns whether the gate is open.
    pub(super) fn wrote(&mut self, sent: Time, now: u64, response: Option<Response>) -> bool {
        self.writes = None;
        match response {
            Some(Response::Done) => {
                let deadline = sent + Timing::default().renew_deadline;
                if self.deadline.is_some() || self.local(now) < deadline {
                    self.deadline = self.deadline.max(Some(deadline));
                }
            }
            // Somebody has changed or deleted it. It is free after a while.
            Some(Response::Conflict(order)) => {
                self.lose();
                self.order = self.order.max(order);
            }
            Some(Response::NotFound) => self.lose(),
            Some(Response::Leases { .. }) | None => {}
        }
        self.is_open(now)
    }

    /// Gives the lease up, as the last act of this life.
    pub(super) fn release(&mut self) -> Request {
        let Request::Lease { of, order, mut found, takes } = self.write() else { unreachable!() };
        assert!(self.acting.is_empty(), "it leaves and acts");
        found.record = found.record.released(MicroTime::new(jiff::Timestamp::UNIX_EPOCH));
        self.crash();
        Request::Lease { of, order, found, takes }
    }
}
