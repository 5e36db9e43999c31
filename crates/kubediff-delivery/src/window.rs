//! The records between the position and the newest one that was read: which of them may be sent now.

use std::collections::{HashSet, VecDeque};
use std::time::Instant;

/// A record of the log, as much of it as a delivery needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the log. Numbers rise; there may be holes.
    pub number: u64,
    /// Its object. Two objects with the same number here wait for each other, and nothing worse.
    pub object: u64,
    /// Its size in a batch, in bytes.
    pub bytes: usize,
}

/// The records that were read do not come after those that were read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("record {number} was read after record {after}: records must be read in their order")]
pub struct Disorder {
    /// The record.
    pub number: u64,
    /// The newest number that was read before.
    pub after: u64,
}

#[derive(Debug)]
pub(crate) struct Window {
    /// The records that are not settled.
    slots: VecDeque<Slot>,
    bytes: usize,
    /// Everything up to here was read.
    through: u64,
}

#[derive(Debug)]
struct Slot {
    entry: Entry,
    /// How often the sink refused the record when it was alone, if ever.
    refusals: Option<Refusals>,
    /// The largest batch that it may be in: batches that were refused are halved.
    largest_batch: usize,
    not_before: Option<Instant>,
}

/// The refusals of a record that was alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusals {
    pub(crate) times: u32,
    /// The time of the first one.
    pub(crate) since: Instant,
    /// How often the sink had accepted something until then.
    pub(crate) accepted_before: u64,
}

impl Slot {
    fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|time| time <= now)
    }
}

impl Window {
    pub(crate) fn new(position: u64) -> Self {
        Self { slots: VecDeque::new(), bytes: 0, through: position }
    }

    /// Everything up to here was read.
    pub(crate) fn through(&self) -> u64 {
        self.through
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Everything up to here is settled.
    pub(crate) fn position(&self) -> u64 {
        self.slots.front().map_or(self.through, |slot| slot.entry.number - 1)
    }

    /// Takes records in, which come after those that it has, and all of those up to `through`.
    pub(crate) fn add(
        &mut self,
        entries: impl IntoIterator<Item = Entry>,
        through: u64,
    ) -> Result<(), Disorder> {
        for entry in entries {
            if entry.number <= self.through {
                return Err(Disorder { number: entry.number, after: self.through });
            }
            self.through = entry.number;
            self.bytes += entry.bytes;
            self.slots.push_back(Slot { entry, refusals: None, largest_batch: usize::MAX, not_before: None });
        }
        self.through = self.through.max(through);
        Ok(())
    }

    /// The first records that may be sent together now, none of these objects.
    pub(crate) fn batch(&self, most: usize, bytes: usize, now: Instant, without: &HashSet<u64>) -> Vec<u64> {
        let (mut most, mut bytes_left) = (most, bytes);
        let mut blocked = without.clone();
        let mut batch = Vec::new();
        for slot in &self.slots {
            let Entry { number, object, bytes } = slot.entry;
            if blocked.contains(&object) {
                continue;
            }
            if !slot.is_due(now) {
                blocked.insert(object);
                continue;
            }
            most = most.min(slot.largest_batch);
            if batch.len() >= most || (bytes > bytes_left && !batch.is_empty()) {
                break;
            }
            bytes_left = bytes_left.saturating_sub(bytes);
            batch.push(number);
        }
        batch
    }

    /// When a record that waits may be sent.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.slots.iter().filter_map(|slot| slot.not_before).min()
    }

    pub(crate) fn object(&self, number: u64) -> Option<u64> {
        Some(self.slots.get(self.find(number)?)?.entry.object)
    }

    pub(crate) fn objects(&self, numbers: &[u64]) -> HashSet<u64> {
        numbers.iter().filter_map(|number| self.object(*number)).collect()
    }

    pub(crate) fn settle(&mut self, number: u64) {
        let slot = self.find(number).and_then(|index| self.slots.remove(index));
        self.bytes -= slot.map_or(0, |slot| slot.entry.bytes);
    }

    /// Lets the record be in batches up to this size only.
    pub(crate) fn limit_batch(&mut self, number: u64, most: usize) {
        if let Some(slot) = self.get_mut(number) {
            slot.largest_batch = slot.largest_batch.min(most);
        }
    }

    /// Counts a refusal of the record by a sink that has accepted something so often.
    pub(crate) fn refused(&mut self, number: u64, accepted: u64, now: Instant) -> Option<Refusals> {
        let slot = self.get_mut(number)?;
        let before = slot.refusals.unwrap_or(Refusals { times: 0, since: now, accepted_before: accepted });
        slot.refusals = Some(Refusals { times: before.times + 1, ..before });
        slot.refusals
    }

    /// Of the first record of each object, the one that was refused least.
    pub(crate) fn least_refused(&self) -> Option<u64> {
        let mut objects = HashSet::new();
        let first = self.slots.iter().filter(|slot| objects.insert(slot.entry.object));
        let least = first.min_by_key(|slot| slot.refusals.map_or(0, |refusals| refusals.times));
        least.map(|slot| slot.entry.number)
    }

    /// No record waits any more.
    pub(crate) fn try_all(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.not_before = None);
    }

    pub(crate) fn set_aside(&mut self, number: u64, until: Instant) {
        if let Some(slot) = self.get_mut(number) {
            slot.not_before = Some(until);
        }
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Slot> {
        let index = self.find(number)?;
        self.slots.get_mut(index)
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.slots.binary_search_by_key(&number, |slot| slot.entry.number).ok()
    }
}
