//! Objects that pack worse than the others, and samples of them.

use std::sync::Arc;

use crate::object::frames::Family;

/// The limits of the samples, in bytes and in number.
const SAMPLE_BYTES: u64 = 64 << 10;
pub(super) const SAMPLES_LEAST: usize = 8;
const SAMPLES_MOST: usize = 64;

/// The ratio of packed bytes to unpacked ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ratio(u64);

/// The objects that stood out since a dictionary was last tried.
#[derive(Default)]
pub(super) struct StandingOut {
    /// The number of objects that were packed since then.
    pub(super) seen: u64,
    pub(super) count: u64,
    /// By how many bytes they exceeded the expectation.
    pub(super) excess: u64,
    /// Some of them, drawn evenly.
    pub(super) samples: Vec<Sample>,
    sample_bytes: u64,
}

pub(super) struct Sample {
    pub(super) frame: Box<[u8]>,
    pub(super) length: u32,
    pub(super) family: Option<Arc<Family>>,
}

impl Ratio {
    const SCALE: u64 = 1 << 20;

    pub(super) const fn new(packed: u64, unpacked: u64) -> Self {
        Self(packed * Self::SCALE / if unpacked == 0 { 1 } else { unpacked })
    }

    pub(super) fn of(self, unpacked: u64) -> u64 {
        self.0 * unpacked / Self::SCALE
    }

    /// Whether this ratio is much worse.
    pub(super) fn stands_out(self, from: Self) -> bool {
        self.0 > from.0 + from.0 / 2
    }

    pub(super) fn moved(self, towards: Self, weight: u64) -> Self {
        Self((self.0 * (weight - 1) + towards.0) / weight)
    }
}

impl StandingOut {
    pub(super) fn add(
        &mut self,
        frame: &[u8],
        length: u32,
        family: Option<&Arc<Family>>,
        excess: u64,
        random: &mut fastrand::Rng,
    ) {
        self.count += 1;
        self.excess += excess;
        let sample = || Sample { frame: frame.into(), length, family: family.cloned() };
        let has_room = self.sample_bytes < SAMPLE_BYTES && self.samples.len() < SAMPLES_MOST;
        if has_room || self.samples.len() < SAMPLES_LEAST {
            self.sample_bytes += u64::from(length);
            self.samples.push(sample());
            return;
        }
        // Each object ends up in the samples with the same probability.
        let place = usize::try_from(random.u64(..self.count)).unwrap_or(usize::MAX);
        if let Some(place) = self.samples.get_mut(place) {
            let sample = sample();
            self.sample_bytes = self.sample_bytes + u64::from(length) - u64::from(place.length);
            *place = sample;
        }
    }

    pub(super) fn mean_length(&self) -> u64 {
        self.sample_bytes / (self.samples.len() as u64).max(1)
    }
}
