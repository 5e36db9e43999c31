//! Tries a dictionary on samples.

use std::sync::Arc;

use zstd_dictionary::{Packing, Unpacking};

use super::standing_out::{Ratio, Sample, StandingOut};
use crate::object::frames::{Current, Draft, pack, unpack};

/// How many bytes are added before the uncovered samples are determined again.
const ADDED_AT_ONCE: u64 = 4 << 10;
const ROUNDS: usize = 4;

/// A dictionary to be tried.
pub(super) struct Attempt {
    /// The dictionary that it grows from.
    pub(super) base: Option<(Current, Draft)>,
    pub(super) standing_out: StandingOut,
    pub(super) most_content: u64,
}

/// A dictionary that is worth its memory.
pub(super) struct Outcome {
    /// The dictionary that it has grown from.
    pub(super) base: Option<Current>,
    pub(super) draft: Draft,
    pub(super) packing: Arc<Packing>,
    pub(super) unpacking: Unpacking,
    /// The ratio of the sample that packs best, which is the estimate for the objects that the dictionary covers.
    pub(super) ratio: Ratio,
}

struct Tried {
    bytes: Vec<u8>,
    packed: u64,
}

impl Attempt {
    /// Adds the samples from which the others gain. Takes up to 25 ms of CPU: each round copies and digests the content
    /// and tries it on at most all samples.
    pub(super) fn run(self) -> Option<Outcome> {
        let Self { base, standing_out: StandingOut { count, samples, .. }, most_content } = self;
        let (base, mut draft) = base.map_or((None, Draft::EMPTY), |(current, draft)| (Some(current), draft));
        let all: Vec<Vec<u8>> = samples.iter().filter_map(bytes_of).collect();
        let mut rest: Vec<Tried> = samples.iter().filter_map(tried).collect();
        let mut packing = None;
        for _ in 0..ROUNDS {
            // Nothing is covered before content was added.
            let covered = packing.as_ref().and_then(|_| rest.iter().map(Tried::ratio).min());
            let room = most_content.saturating_sub(draft.len());
            let added = take_uncovered(&mut rest, covered, room);
            if added.is_empty() || rest.is_empty() {
                break;
            }
            let longer = draft.with(&added)?;
            let longer_packing = Arc::new(longer.packing()?);
            let packed: Vec<u64> = rest.iter().map(|sample| sample.packed_with(&longer_packing)).collect();
            let gain: u64 =
                rest.iter().zip(&packed).map(|(sample, now)| sample.packed.saturating_sub(*now)).sum();
            // The gain of the samples, extrapolated to all objects that stood out, has to exceed the bytes added.
            if gain * count / rest.len() as u64 >= added.iter().map(|bytes| bytes.len() as u64).sum() {
                rest.iter_mut().zip(packed).for_each(|(sample, packed)| sample.packed = packed);
                (draft, packing) = (longer, Some(longer_packing));
            }
        }
        let mut packing = packing?;
        if base.is_none() {
            draft = draft.finalized(&all);
            packing = Arc::new(draft.packing()?);
            rest.iter_mut().for_each(|sample| sample.packed = sample.packed_with(&packing));
        }
        let unpacking = draft.unpacking()?;
        let ratio = rest.iter().map(Tried::ratio).min()?;
        Some(Outcome { base, draft, packing, unpacking, ratio })
    }
}

fn bytes_of(sample: &Sample) -> Option<Vec<u8>> {
    unpack(&sample.frame, sample.length as usize, sample.family.as_ref()).ok()
}

fn tried(sample: &Sample) -> Option<Tried> {
    Some(Tried { bytes: bytes_of(sample)?, packed: sample.frame.len() as u64 })
}

/// Takes some of the samples that pack worse than covered ones. It takes them in the order in which they were drawn, since
/// the most common kind likely comes first. Samples that no dictionary helps are left out.
fn take_uncovered(rest: &mut Vec<Tried>, covered: Option<Ratio>, room: u64) -> Vec<Vec<u8>> {
    let mut added = Vec::new();
    let mut bytes = 0;
    rest.retain_mut(|sample| {
        let length = sample.bytes.len() as u64;
        let is_covered = covered.is_some_and(|covered| !sample.ratio().stands_out(covered));
        let fits = bytes + length <= if added.is_empty() { room } else { room.min(ADDED_AT_ONCE) };
        if is_covered || !fits {
            return true;
        }
        bytes += length;
        added.push(std::mem::take(&mut sample.bytes));
        false
    });
    added
}

impl Tried {
    fn ratio(&self) -> Ratio {
        Ratio::new(self.packed, self.bytes.len() as u64)
    }

    fn packed_with(&self, packing: &Packing) -> u64 {
        pack(&self.bytes, Some(packing)).map_or(self.packed, |frame| frame.len() as u64)
    }
}
