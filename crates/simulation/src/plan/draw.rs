//! Draws plans from seeds.

use super::{
    Denial, Ending, Error, Fault, Lie, Mode, Plan, Reading, ServerSetup, Setup, Spoil, Start, Step, Transform,
};
use crate::truth::{KEYS, Key, NAMESPACES};

impl Plan {
    /// The plan of a seed, always the same one.
    pub fn of_seed(seed: u64) -> Self {
        let mut draw = Draw { random: fastrand::Rng::with_seed(seed) };
        let setup = draw.setup();
        let mood = draw.mood();
        let length = draw.random.usize(20..=160);
        let mut steps = Vec::with_capacity(length + 8);
        while steps.len() < length {
            draw.scene(&mood, &setup, &mut steps);
        }
        let mut plan = Self { seed, setup, steps };
        // Their own random numbers, so that the rest of a seed's plan is the same with and without filters and a controller.
        Draw { random: fastrand::Rng::with_seed(seed.swap_bytes()) }.filters(&mut plan);
        Draw { random: fastrand::Rng::with_seed(!seed) }.controller(&mut plan);
        Draw { random: fastrand::Rng::with_seed(!seed.swap_bytes()) }.factory(&mut plan);
        plan
    }
}

struct Draw {
    random: fastrand::Rng,
}

/// How often each kind of scene happens. Each run stresses something else.
struct Mood {
    changes: u32,
    network: u32,
    refusals: u32,
    lies: u32,
    history: u32,
    readers: u32,
    time: u32,
    life: u32,
}

impl Draw {
    fn one_in(&mut self, n: u32) -> bool {
        self.random.u32(..n) == 0
    }

    fn setup(&mut self) -> Setup {
        let by_namespace = self.one_in(3);
        let streaming = self.one_in(3);
        let readers = (0..self.random.u8(0..=3)).map(|_| self.reading()).collect();
        Setup {
            by_namespace,
            // A source that is added later must start with a consistent list (`Store::add_source`).
            first_list_any: !by_namespace && self.one_in(3),
            streaming,
            internal_error_retry: self.one_in(3),
            by_hand: self.one_in(4),
            chunk: self.chunk(),
            packed: self.one_in(6),
            code_by_hand: self.one_in(4),
            changes_at_once: if self.one_in(4) { self.random.u16(1..12) } else { 4096 },
            transform: self.transform(),
            stops_at_once: self.random.bool(),
            queued_operations: if self.random.bool() { self.random.u16(1..12) } else { 4096 },
            server: self.server(),
            readers,
            workers: 0,
            two: false,
            follows: false,
        }
    }

    fn transform(&mut self) -> Transform {
        if !self.one_in(4) {
            return Transform::default();
        }
        Transform {
            drops_some: self.random.bool(),
            fails_for_some: self.random.bool(),
            changes: self.random.bool(),
        }
    }

    fn server(&mut self) -> ServerSetup {
        let versions = [1, 7, 96, 250];
        ServerSetup {
            first_version: versions[self.random.usize(..versions.len())],
            objects: self.random.u8(0..=6),
            streams_lists: !self.one_in(4),
            ignores_initial_events: self.one_in(12),
            pages: self.random.bool(),
            idle_bookmarks: !self.one_in(4),
            late_end: self.one_in(3),
            lag: if self.one_in(3) { self.random.u8(1..=6) } else { 0 },
            too_large_form: self.random.u8(..3),
            custom: self.one_in(4),
            protobuf: self.one_in(3),
            selects: self.one_in(6),
            opaque: self.one_in(8),
            slow: false,
        }
    }

    fn chunk(&mut self) -> u16 {
        match self.random.u8(..4) {
            0 => self.random.u16(7..40),
            1 => self.random.u16(40..400),
            _ => 4096,
        }
    }

    fn mood(&mut self) -> Mood {
        let mut often = |most: u32| if self.random.u8(..3) == 0 { 0 } else { self.random.u32(1..=most) };
        Mood {
            changes: 20 + often(20),
            network: often(16),
            refusals: often(10),
            lies: often(8),
            history: often(6),
            readers: 2 + often(10),
            time: 3 + often(10),
            life: often(5),
        }
    }

    /// Draws a step, or a few steps that belong together.
    fn scene(&mut self, mood: &Mood, setup: &Setup, steps: &mut Vec<Step>) {
        let weights = [
            mood.changes,
            mood.network,
            mood.refusals,
            mood.lies,
            mood.history,
            mood.readers,
            mood.time,
            mood.life,
            if setup.by_hand { 20 } else { 0 },
            if setup.code_by_hand { 15 } else { 0 },
        ];
        let mut at = self.random.u32(..weights.iter().sum::<u32>());
        let scene = weights.iter().position(|&weight| {
            let hit = at < weight;
            at = at.saturating_sub(weight);
            hit
        });
        match scene {
            Some(0) => steps.push(self.change()),
            Some(1) => self.network(steps),
            Some(2) => self.refusal(steps),
            Some(3) => self.lie(steps),
            Some(4) => self.history(steps),
            Some(5) => steps.push(self.reader()),
            Some(6) => steps.push(self.time()),
            Some(7) => self.life(setup, steps),
            Some(8) => steps.push(self.delivery()),
            _ => steps.push(Step::Code),
        }
    }

    /// Gives a filter to some subscriptions.
    fn filters(&mut self, plan: &mut Plan) {
        let joining = plan.steps.iter_mut().filter_map(|step| match step {
            Step::Join(reading) => Some(reading),
            _ => None,
        });
        for reading in plan.setup.readers.iter_mut().chain(joining) {
            reading.filters = self.one_in(3);
        }
    }

    /// Adds a controller to some runs, whose reconciliations end at random moments.
    fn controller(&mut self, plan: &mut Plan) {
        if !self.one_in(3) {
            return;
        }
        plan.setup.workers = [1, 1, 2, 8][self.random.usize(..4)];
        for _ in 0..self.random.usize(..2 * plan.steps.len()) {
            let step = match self.random.u8(..20) {
                0 => Step::Pause,
                1..=2 => Step::Resume,
                _ => Step::Reconciled(self.random.u8(..8), self.ending()),
            };
            plan.steps.insert(self.random.usize(..=plan.steps.len()), step);
        }
    }

    /// Adds another informer to some runs, and lets some follow their resource.
    fn factory(&mut self, plan: &mut Plan) {
        plan.setup.server.slow = self.one_in(3);
        plan.setup.two = self.one_in(3);
        // Objects in protobuf are of the core group, which has one version.
        plan.setup.follows = !plan.setup.server.protobuf && self.one_in(3);
        for _ in 0..self.random.usize(..=plan.steps.len() / 8) {
            let step = match self.random.u8(..8) {
                0..=1 => Step::Ask,
                2..=3 if plan.setup.two => Step::Turn,
                4..=5 if plan.setup.follows => Step::Serve,
                6 if plan.setup.follows => Step::Undefine,
                7 if plan.setup.follows => Step::Define,
                _ => continue,
            };
            plan.steps.insert(self.random.usize(..=plan.steps.len()), step);
        }
    }

    fn ending(&mut self) -> Ending {
        match self.random.u8(..16) {
            0..=4 => Ending::Done,
            5..=6 => Ending::Again,
            7..=8 => Ending::Writes(self.key()),
            9..=10 => Ending::Deletes(self.key()),
            11 => Ending::WritesAndFails(self.key()),
            12 => Ending::Fails,
            13..=14 => Ending::Unanswered {
                key: self.key(),
                deletes: self.random.bool(),
                arrives: self.random.bool(),
            },
            _ => Ending::Interrupted(self.key()),
        }
    }

    fn key(&mut self) -> Key {
        Key(self.random.u8(..KEYS))
    }

    fn client(&mut self) -> u8 {
        self.random.u8(..2)
    }

    fn change(&mut self) -> Step {
        match self.random.u8(..12) {
            0..=6 => Step::Put(self.key()),
            7..=9 => Step::Delete(self.key()),
            10 => Step::Recreate(self.key()),
            _ => Step::Elsewhere(self.random.u8(1..=12)),
        }
    }

    fn delivery(&mut self) -> Step {
        let client = self.client();
        match self.random.u8(..4) {
            0 => Step::Flow(client),
            _ => Step::Deliver(client, self.bytes()),
        }
    }

    fn bytes(&mut self) -> u16 {
        match self.random.u8(..3) {
            0 => self.random.u16(0..20),
            _ => self.random.u16(20..900),
        }
    }

    fn network(&mut self, steps: &mut Vec<Step>) {
        let client = self.client();
        let end = match self.random.u8(..8) {
            0..=2 => Step::Cut(client),
            3..=5 => Step::End(client),
            6 => Step::Mute(client),
            _ => Step::ServerRestart,
        };
        // Half of the time in the middle of a response.
        if self.random.bool() {
            steps.push(Step::Stall(client));
            for _ in 0..self.random.u8(0..4) {
                steps.push(self.change());
            }
            if self.random.bool() {
                // The next response ends in the middle, too.
                steps.push(Step::Cut(client));
                steps.push(self.time());
            }
            steps.push(Step::Deliver(client, self.bytes()));
        }
        steps.push(end);
    }

    fn refusal(&mut self, steps: &mut Vec<Step>) {
        let fault = match self.random.u8(..16) {
            0..=1 => Fault::Unreachable,
            2 => Fault::Silent,
            3..=8 => {
                let codes = [400, 401, 403, 404, 410, 422, 429, 429, 500, 503, 504];
                let code = codes[self.random.usize(..codes.len())];
                let retry_after = if self.random.bool() { self.random.u8(1..=90) } else { 0 };
                Fault::Refused { code, retry_after }
            }
            9..=10 => Fault::TooLarge,
            11 => Fault::Page,
            12 => Fault::Nonsense(self.random.u8(..5)),
            13..=14 => Fault::Stale(self.random.u8(1..=8)),
            _ => Fault::NoEnd,
        };
        if self.one_in(6) {
            let denials = [
                Denial::Unauthorized,
                Denial::Forbidden,
                Denial::NotFound,
                Denial::Unavailable,
                Denial::Down,
            ];
            let denial = denials[self.random.usize(..denials.len())];
            let namespace = self.random.bool().then(|| self.random.u8(..NAMESPACES));
            steps.push(Step::Deny(denial, namespace));
        } else {
            let times = if self.one_in(5) { self.random.u8(2..=8) } else { 1 };
            steps.push(Step::Fault(fault, times));
        }
        match self.random.u8(..6) {
            0..=2 => steps.push(Step::Cut(self.client())),
            3 => steps.push(Step::Error(self.client(), Error::Expired)),
            _ => {}
        }
        if self.random.bool() {
            steps.push(self.time());
        }
        if self.one_in(6) {
            steps.push(Step::Allow);
        }
    }

    fn lie(&mut self, steps: &mut Vec<Step>) {
        let client = self.client();
        steps.push(match self.random.u8(..10) {
            0..=2 => {
                let spoils = [Spoil::Version, Spoil::Kind, Spoil::Nameless, Spoil::Type, Spoil::Half];
                Step::Spoil(spoils[self.random.usize(..spoils.len())])
            }
            3 => Step::Lie(client, Lie::Twice),
            4..=5 => Step::Lie(client, Lie::Old(self.key(), self.random.u8(1..4))),
            6 => Step::Lie(client, Lie::OldBookmark(self.random.u8(1..20))),
            _ => {
                let errors = [
                    Error::Expired,
                    Error::Gone,
                    Error::Internal,
                    Error::StoreRead,
                    Error::TooManyRequests,
                    Error::Timeout,
                    Error::Nonsense,
                ];
                Step::Error(client, errors[self.random.usize(..errors.len())])
            }
        });
        steps.push(if self.random.bool() { self.change() } else { self.time() });
    }

    fn history(&mut self, steps: &mut Vec<Step>) {
        match self.random.u8(..8) {
            6 => {
                steps.push(Step::Revise(self.key()));
                if self.random.bool() {
                    steps.push(Step::SchemaChanged);
                    steps.push(self.time());
                }
            }
            7 => steps.push(Step::Revise(self.key())),
            0 => {
                // The watch's version expires before it resumes.
                let client = self.client();
                steps.push(Step::Stall(client));
                steps.push(self.change());
                steps.push(self.change());
                steps.push(Step::Compact);
                steps.push(Step::Cut(client));
                steps.push(Step::Flow(client));
            }
            1 => steps.push(Step::Compact),
            2 => steps.push(Step::Bookmark),
            3 => steps.push(Step::Backup),
            4 => {
                steps.push(Step::Backup);
                for _ in 0..self.random.u8(1..6) {
                    steps.push(self.change());
                }
                steps.push(Step::Restore);
                for _ in 0..self.random.u8(0..4) {
                    steps.push(self.change());
                }
            }
            _ => steps.push(Step::Restore),
        }
    }

    fn reading(&mut self) -> Reading {
        let mode = match self.random.u8(..6) {
            0..=2 => Mode::Latest,
            3 => Mode::Merged([1, 3, 10_000][self.random.usize(..3)]),
            4 => Mode::Merged(10_000),
            _ => Mode::Dropped([1, 4, 10_000][self.random.usize(..3)]),
        };
        let pace = match self.random.u8(..4) {
            0 => 0,
            1 => 1,
            _ => 200,
        };
        Reading { mode, split: self.one_in(3), pace, slow_to_join: self.one_in(3), filters: false }
    }

    fn reader(&mut self) -> Step {
        match self.random.u8(..9) {
            0..=1 => Step::Join(self.reading()),
            2 => Step::Leave(self.random.u8(..6)),
            3 => Step::Snapshot,
            4 => Step::Index,
            5 => Step::Resync(self.random.u8(..6)),
            _ => Step::Read(self.random.u8(..6), self.random.u8(1..12)),
        }
    }

    fn time(&mut self) -> Step {
        Step::Pass(match self.random.u8(..8) {
            0..=1 => self.random.u32(1..1_000),
            2..=4 => self.random.u32(1_000..10_000),
            5..=6 => self.random.u32(10_000..100_000),
            _ => self.random.u32(100_000..900_000),
        })
    }

    fn life(&mut self, setup: &Setup, steps: &mut Vec<Step>) {
        steps.push(match self.random.u8(..12) {
            0..=2 => Step::Wake,
            3 => Step::Restart(Start::Fresh),
            4..=5 if setup.by_namespace => Step::AddNamespace(self.random.u8(..NAMESPACES)),
            6 if setup.by_namespace => return self.namespaces(steps),
            7 => Step::Save,
            8 => Step::Restart(Start::Saved),
            9..=10 => return self.absence(steps),
            _ => Step::Allow,
        });
    }

    /// Removes a namespace, perhaps adds and removes it again, perhaps before the engine has removed it.
    fn namespaces(&mut self, steps: &mut Vec<Step>) {
        let namespace = self.random.u8(..NAMESPACES);
        if self.random.bool() {
            steps.push(self.change());
        }
        let turns = self.random.usize(1..=3);
        let both = [Step::RemoveNamespace(namespace), Step::AddNamespace(namespace)];
        steps.extend(both.into_iter().cycle().take(turns));
    }

    /// Saves, changes the server, and restarts from the save. For the next informer the changes happened while none
    /// ran.
    fn absence(&mut self, steps: &mut Vec<Step>) {
        steps.push(Step::Save);
        for _ in 0..self.random.u8(0..8) {
            steps.push(self.change());
        }
        match self.random.u8(..8) {
            0..=1 => steps.push(Step::Compact),
            2 => steps.push(Step::Restore),
            3 => steps.push(Step::ServerRestart),
            4 => self.refusal(steps),
            _ => {}
        }
        steps.push(Step::Restart(Start::Saved));
    }
}
