//! Random operations on a queue and on the naive model, which must agree after each of them.

use std::time::Duration;

use fuzzing::seeds;
use informer_core::Time;
use informer_core::queue::{Add, Config, Queue};

use super::model::{Key, Model};

fn time(milliseconds: u64) -> Time {
    Time::from_start(Duration::from_millis(milliseconds))
}

/// Both queues, at one time.
struct Both {
    queue: Queue<Key>,
    model: Model,
    now: u64,
    random: fastrand::Rng,
    /// The keys that are drawn: a few that meet often, or many that make tables grow.
    keys: u32,
}

impl Both {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let handicap = [0, 1, 30][random.usize(0..3)];
        let queue = Queue::new(&Config { handicap: Duration::from_millis(handicap) });
        let model = Model::new(handicap);
        let keys = [5, 40, 3_000][random.usize(0..3)];
        Self { queue, model, now: 0, random, keys }
    }

    fn add(&mut self) {
        let key = self.random.u32(0..self.keys);
        let add = Add {
            priority: [0, 0, 0, -1, -2, 3][self.random.usize(0..6)],
            after: (self.random.u8(0..3) == 0).then(|| Duration::from_millis(self.random.u64(0..40))),
            marks: 1 << self.random.u32(0..8),
        };
        self.queue.add(time(self.now), key, add);
        self.model.add(self.now, key, add);
    }

    fn take(&mut self) {
        let taken = self.queue.take(time(self.now)).map(|taken| (taken.key, taken.priority, taken.marks));
        let expected = self.model.take(self.now).map(|item| (item.key, item.priority, item.marks));
        assert_eq!(taken, expected);
    }

    fn done(&mut self) {
        let running = self.model.in_process.len();
        // Now and then a key that nobody has.
        let key = match self.random.usize(0..running + 1) {
            position if position < running => self.model.in_process[position].key,
            _ => self.random.u32(0..self.keys),
        };
        self.queue.done(time(self.now), &key);
        self.model.done(self.now, key);
    }

    fn forget(&mut self) {
        let key = self.random.u32(0..self.keys);
        self.queue.forget(time(self.now), &key);
        self.model.forget(self.now, key);
    }

    fn wait(&mut self) {
        self.now += self.random.u64(0..15);
        if self.random.bool() {
            self.queue.advance(time(self.now));
            self.model.advance(self.now);
        }
    }

    fn compare(&self) {
        let Self { queue, model, now, .. } = self;
        assert_eq!(queue.len(), model.ready.len());
        assert_eq!(queue.next_ready(time(*now)), model.next_ready(*now).map(|at| time(at.max(*now))));
        let metrics = queue.metrics(time(*now));
        let expected = (model.adds, model.retries, model.delayed.len(), model.in_process.len());
        assert_eq!((metrics.adds, metrics.retries, metrics.delayed, metrics.in_process), expected);
        for priority in [0, -1, -2, 3] {
            let depth = metrics.depth.get(&priority).copied().unwrap_or(0);
            assert_eq!(depth, model.depth(*now, priority), "priority {priority}");
        }
        let sums = (metrics.queue_duration.sum(), metrics.work_duration.sum());
        let expected = (Duration::from_millis(model.waited), Duration::from_millis(model.worked));
        let difference = sums.0.abs_diff(expected.0);
        // Some times are kept in four bytes.
        assert!(difference < Duration::from_millis(1), "waited {:?} and not {:?}", sums.0, expected.0);
        assert_eq!(sums.1, expected.1);
    }
}

#[test]
fn q1_q3_q4_q5_random_operations_agree_with_the_model() {
    seeds::each(0..400, |seed| {
        let mut both = Both::new(seed);
        // A burst of adds, then of takes, makes tables grow and shrink.
        let steps = if both.keys > 1_000 { 1_000 } else { 300 };
        for step in 0..steps {
            let adds = if step < steps / 2 { 15 } else { 1 };
            match both.random.u32(0..adds + 6) {
                0 => both.wait(),
                1..=2 => both.take(),
                3..=4 => both.done(),
                5 => both.forget(),
                _ => both.add(),
            }
            both.compare();
        }
    });
}

#[test]
fn q2_random_shutdowns_agree_with_the_model() {
    seeds::each(0..300, |seed| {
        let mut both = Both::new(seed);
        both.keys = both.keys.min(40);
        for _ in 0..100 {
            match both.random.u32(0..9) {
                0 => both.wait(),
                1 => both.take(),
                2 => both.done(),
                _ => both.add(),
            }
        }
        let drain = both.random.bool();
        match drain {
            true => both.queue.shut_down_with_drain(time(both.now)),
            false => both.queue.shut_down(time(both.now)),
        }
        both.model.shut_down(both.now);
        let mut steps = 0;
        while both.queue.next_ready(time(both.now)).is_some() || !both.model.in_process.is_empty() {
            assert_eq!(both.queue.is_drained(), !drain, "after {steps} steps");
            match both.random.u32(0..4) {
                0 => both.wait(),
                1 => both.take(),
                2 => both.done(),
                _ => both.add(),
            }
            both.compare();
            steps += 1;
            assert!(steps < 10_000, "it does not end");
        }
        assert!(both.queue.is_drained());
    });
}
