//! How the bytes come: in small pieces, or slowly.

use std::collections::VecDeque;
use std::time::Duration;

use crate::faults::flow::{Stage, Step};
use crate::faults::rule::Hit;

/// Pieces of odd sizes, each sent by itself.
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
        let Step::Bytes(mut bytes) = step else {
            out.push_back(step);
            return;
        };
        self.hit.fire();
        while !bytes.is_empty() {
            let size = self.random.usize(1..=self.max).min(bytes.len());
            out.push_back(Step::Bytes(bytes.split_to(size)));
            out.push_back(Step::Wait(Duration::ZERO));
        }
    }
}

/// So often per second a slow answer goes on.
const BEATS: u32 = 20;

/// So many bytes in each second.
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
        let Step::Bytes(mut bytes) = step else {
            out.push_back(step);
            return;
        };
        self.hit.fire();
        while !bytes.is_empty() {
            let size = self.per_beat.min(bytes.len());
            out.push_back(Step::Bytes(bytes.split_to(size)));
            out.push_back(Step::Wait(self.beat));
        }
    }
}
