//! Stages for the pace of a response: small chunks, or slow ones.

use std::collections::VecDeque;
use std::time::Duration;

use crate::faults::flow::{Stage, Step};
use crate::faults::rule::Hit;

/// Sends chunks of random sizes.
pub(super) struct Chunks {
    random: fastrand::Rng,
    max: usize,
    hit: Hit,
}

impl Chunks {
    pub(super) fn new(seed: u64, max: usize, hit: Hit) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), max: max.max(1), hit }
    }
}

impl Stage for Chunks {
    fn take(&mut self, step: Step, out: &mut VecDeque<Step>) {
        split(step, || self.random.usize(1..=self.max), Duration::ZERO, &self.hit, out);
    }
}

/// How many times per second a slow response sends bytes.
const BEATS: u32 = 20;

/// Sends a number of bytes per second.
pub(super) struct Slow {
    per_beat: usize,
    beat: Duration,
    hit: Hit,
}

impl Slow {
    pub(super) fn new(bytes_per_second: u32, hit: Hit) -> Self {
        let beats = BEATS.min(bytes_per_second).max(1);
        let per_beat = usize::try_from(bytes_per_second / beats).unwrap_or(usize::MAX).max(1);
        Self { per_beat, beat: Duration::from_secs(1) / beats, hit }
    }
}

impl Stage for Slow {
    fn take(&mut self, step: Step, out: &mut VecDeque<Step>) {
        split(step, || self.per_beat, self.beat, &self.hit, out);
    }
}

/// Splits bytes into chunks of these sizes, with a pause after each.
fn split(step: Step, mut size: impl FnMut() -> usize, pause: Duration, hit: &Hit, out: &mut VecDeque<Step>) {
    let Step::Bytes(mut bytes) = step else {
        out.push_back(step);
        return;
    };
    hit.fire();
    while !bytes.is_empty() {
        out.push_back(Step::Bytes(bytes.split_to(size().min(bytes.len()))));
        out.push_back(Step::Wait(pause));
    }
}
