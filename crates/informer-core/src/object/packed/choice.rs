//! When a dictionary is worth its memory, and what goes into it.
//!
//! Objects that pack worse than the others cost bytes that a better dictionary would have saved. When those bytes add up to
//! the cost of a dictionary, one is tried on samples of such objects. It is taken if it would have paid off by now. So
//! whatever the objects are, dictionaries never take much more memory than their absence has cost.

use std::sync::{Arc, Weak};

use super::attempt::{Attempt, Outcome};
use super::standing_out::{Ratio, SAMPLES_LEAST, Sample, StandingOut};
use crate::object::frames::{Current, Draft, Family};

/// The approximate size of a dictionary without its content.
const DICTIONARY_COST: u64 = 48 << 10;
/// The expected packed size of the unique part of an object (uid, times), however short the object is.
const OWN_BYTES: u64 = 64;
/// The expected ratio for the rest before anything is known.
const FIRST_GUESS: Ratio = Ratio::new(1, 16);
/// Larger objects do not go into dictionaries: they repeat themselves.
const LONGEST_SAMPLE: u32 = 64 << 10;
/// The content of dictionaries is at most one part in this many of the objects' unpacked size, between these bounds.
const CONTENT_SHARE: u64 = 8;
const CONTENT_LEAST: u64 = 64 << 10;
const CONTENT_MOST: u64 = 4 << 20;
/// The maximum content of one dictionary: packing finds no content farther from the end.
const CONTENT_OF_ONE: u64 = zstd_dictionary::MOST_CONTENT as u64;
/// The maximum number of dictionaries with objects.
const FAMILIES: usize = 4;
/// After a failed attempt the price of the next one doubles, at most this many times.
const FAILURES_MOST: u32 = 12;

/// Statistics of a cache's objects.
pub(super) struct Choice {
    current: Option<Current>,
    draft: Draft,
    /// Dictionaries that only older objects use, and the bytes of their content.
    former: Vec<(Weak<Family>, u64)>,
    /// The packing ratio of objects that the dictionary covers.
    ratio: Ratio,
    /// A recent average of the objects' unpacked size.
    mean_length: u64,
    standing_out: StandingOut,
    failures: u32,
    random: fastrand::Rng,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            current: None,
            draft: Draft::EMPTY,
            former: Vec::new(),
            ratio: FIRST_GUESS,
            mean_length: 0,
            standing_out: StandingOut::default(),
            failures: 0,
            // The sampling must be even, not unpredictable.
            random: fastrand::Rng::with_seed(0),
        }
    }
}

impl Choice {
    pub(super) fn current(&self) -> Option<Current> {
        self.current.clone()
    }

    /// Notes the packed size of an object. Returns whether a better dictionary should be tried.
    pub(super) fn note(&mut self, frame: &[u8], length: u32, family: Option<&Arc<Family>>) -> bool {
        let (packed, unpacked) = (frame.len() as u64, u64::from(length));
        self.mean_length =
            if self.mean_length == 0 { unpacked } else { (63 * self.mean_length + unpacked) / 64 };
        let expected = self.ratio.of(unpacked) + OWN_BYTES;
        if self.current.is_some() {
            // The ratio moves fast towards better values and slowly towards worse ones, so it stays near the best ones.
            let weight = if packed < expected { 16 } else { 1024 };
            self.ratio = self.ratio.moved(Ratio::new(packed.saturating_sub(OWN_BYTES), unpacked), weight);
        }
        self.standing_out.seen += 1;
        if packed <= expected + expected / 2 || length > LONGEST_SAMPLE {
            return false;
        }
        self.standing_out.add(frame, length, family, packed - expected, &mut self.random);
        self.is_due()
    }

    fn is_due(&self) -> bool {
        self.standing_out.excess >= self.price() && self.standing_out.samples.len() >= SAMPLES_LEAST
    }

    /// The excess that triggers the next attempt.
    fn price(&self) -> u64 {
        let price = match &self.current {
            None => DICTIONARY_COST,
            // The time that an attempt takes grows with the content.
            Some(_) => (self.draft.len() / 16).max(2 * self.standing_out.mean_length()),
        };
        price << self.failures
    }

    /// An attempt, if it is still due. No further one is due before this one is concluded.
    pub(super) fn attempt(&mut self) -> Option<Attempt> {
        if !self.is_due() {
            return None;
        }
        let standing_out = std::mem::take(&mut self.standing_out);
        self.former.retain(|(family, _)| family.strong_count() > 0);
        let room = self.allowed_content().saturating_sub(self.content());
        let room = room.min(CONTENT_OF_ONE.saturating_sub(self.draft.len()));
        if room >= 2 * self.mean_length {
            let most_content = self.draft.len() + room;
            let base = self.current.as_ref().map(|current| (current.clone(), self.draft.clone()));
            return Some(Attempt { base, standing_out, most_content });
        }
        // The current dictionary stays as long as it covers most objects.
        if self.former.len() + 1 < FAMILIES && 2 * standing_out.count > standing_out.seen {
            return Some(Attempt { base: None, standing_out, most_content: CONTENT_LEAST });
        }
        self.failed();
        None
    }

    fn failed(&mut self) {
        self.failures = (self.failures + 1).min(FAILURES_MOST);
    }

    /// The bytes of all dictionaries' content.
    fn content(&self) -> u64 {
        self.draft.len() + self.former.iter().map(|(_, content)| content).sum::<u64>()
    }

    fn allowed_content(&self) -> u64 {
        let current = self.current.as_ref().map_or(0, |current| Arc::strong_count(&current.family));
        let former: usize = self.former.iter().map(|(family, _)| family.strong_count()).sum();
        let unpacked = (current + former) as u64 * self.mean_length;
        (unpacked / CONTENT_SHARE).clamp(CONTENT_LEAST, CONTENT_MOST)
    }

    pub(super) fn conclude(&mut self, outcome: Option<Outcome>) {
        let Some(Outcome { base, draft, packing, unpacking, ratio }) = outcome else { return self.failed() };
        let family = match base {
            Some(base) => {
                // The current dictionary has changed in the meantime. Frames made with its later form would find other
                // content in a dictionary that grew from the former form.
                if !self.current.as_ref().is_some_and(|current| Arc::ptr_eq(&current.packing, &base.packing))
                {
                    return self.failed();
                }
                base.family.grow(unpacking);
                base.family
            }
            None => {
                self.ratio = ratio;
                let former = self.current.take();
                self.former.extend(former.map(|it| (Arc::downgrade(&it.family), self.draft.len())));
                Arc::new(Family::new(unpacking))
            }
        };
        self.failures = 0;
        self.draft = draft;
        self.current = Some(Current { family, packing });
        // Objects that stood out during the attempt were compared with the former dictionary.
        self.standing_out = StandingOut::default();
    }

    /// The number of dictionaries that objects are packed with.
    pub(super) fn dictionaries(&self) -> usize {
        let former = self.former.iter().filter(|(family, _)| family.strong_count() > 0);
        former.count() + usize::from(self.current.is_some())
    }

    /// The bytes of memory that dictionaries and samples take.
    pub(super) fn held_bytes(&self) -> usize {
        let of_family = |family: &Arc<Family>| size_of::<Family>() + family.held_bytes();
        let former = self.former.iter().filter_map(|(family, _)| family.upgrade());
        let former: usize = former.map(|family| of_family(&family)).sum();
        let current = self.current.as_ref().map_or(0, |it| it.packing.held_bytes() + of_family(&it.family));
        let samples = self.standing_out.samples.iter();
        let samples: usize = samples.map(|sample| size_of::<Sample>() + sample.frame.len()).sum();
        former + current + samples
    }
}
