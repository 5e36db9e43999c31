//! Batches that were sent, and are known again when they come once more.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use jiff::Timestamp;

use crate::batch::{Batch, Entry};

/// A batch that was sent.
pub(super) struct Attempt {
    pub(super) id: String,
    pub(super) entries: usize,
    /// A hash of the entries.
    print: u64,
    pub(super) scrub: Option<Timestamp>,
}

impl Attempt {
    pub(super) fn new(id: String, batch: &Batch) -> Self {
        let scrub = batch.scrub.as_ref().map(|(_, at, _)| *at);
        Self { id, entries: batch.entries.len(), print: print(&batch.entries), scrub }
    }

    /// Whether this batch is the one that was sent, with more behind it.
    pub(super) fn is_of(&self, batch: &Batch) -> bool {
        let is_same = |entries: &[Entry]| print(entries) == self.print;
        self.scrub == batch.scrub.as_ref().map(|(_, at, _)| *at)
            && batch.entries.get(..self.entries).is_some_and(is_same)
    }
}

/// A hash by which entries are known again. A gap may have become longer.
fn print(entries: &[Entry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in entries {
        match entry {
            Entry::Observation(it) => {
                let record = &it.record;
                (&record.object.uid, &record.rv, record.observed_at, it.body.bytes()).hash(&mut hasher);
            }
            Entry::Gap { from, resource, reason, .. } => (from, resource, reason).hash(&mut hasher),
        }
    }
    hasher.finish()
}

pub(super) fn random_uuid() -> String {
    // The version and the variant of RFC 9562.
    let bits = (u128::from(fastrand::u64(..)) << 64) | u128::from(fastrand::u64(..));
    let bits = bits & !(0xf000 << 64) & !(0xc0 << 56) | (0x4000 << 64) | (0x80 << 56);
    let hex = format!("{bits:032x}");
    let part = |range: Range<usize>| hex.get(range).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0..8), part(8..12), part(12..16), part(16..20), part(20..32))
}
