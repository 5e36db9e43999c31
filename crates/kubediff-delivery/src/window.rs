//! The records between the position and the newest one that was read: which of them may be sent now.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Instant;

/// A record of the log, as much of it as a delivery needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the log. Numbers rise; there may be holes.
    pub number: u64,
    /// Its object. Two objects with the same number here wait for each other, and nothing worse.
    pub object: u64,
    /// Its object's namespace: a record of one namespace that the sink does not take does not hold up other namespaces. Objects of no namespace
    /// share a number.
    pub namespace: u64,
    /// Its size in a batch, in bytes.
    pub bytes: usize,
}

impl Entry {
    /// As if there were one object.
    pub(crate) fn of_one(self) -> Self {
        Self { object: 0, namespace: 0, ..self }
    }
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
    /// The suspect namespaces: the sink did not take a record of each, and has accepted none since. Their values are the turns in which a
    /// record of them was last tried alone.
    suspects: HashMap<u64, u64>,
    /// By namespace that had to make room: its records to be read again. The last number stands for all from there on.
    again: HashMap<u64, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Slot {
    entry: Entry,
    /// How often the sink refused the record when it was alone, if ever.
    refusals: Option<Refusals>,
    /// How often the sink failed with the record when it was alone.
    failures: u32,
    /// The turn in which it was last tried alone.
    tried: u64,
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
    fn new(entry: Entry) -> Self {
        Self { entry, refusals: None, failures: 0, tried: 0, largest_batch: usize::MAX, not_before: None }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|time| time <= now)
    }
}

impl Window {
    pub(crate) fn new(position: u64) -> Self {
        let (suspects, again) = (HashMap::new(), HashMap::new());
        Self { slots: VecDeque::new(), bytes: 0, through: position, suspects, again }
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
        let first = self.slots.front().map_or(self.through, |slot| slot.entry.number - 1);
        self.again.values().filter_map(BTreeSet::first).fold(first, |first, number| first.min(number - 1))
    }

    /// Takes records in, which come after those that it has, and all of those between `after` and `through`.
    pub(crate) fn add(
        &mut self,
        entries: impl IntoIterator<Item = Entry>,
        after: u64,
        through: u64,
    ) -> Result<(), Disorder> {
        let hungry = self.hungry(after);
        let (mut last, mut disorder) = (after, Ok(()));
        for entry in entries {
            if entry.number <= last {
                disorder = Err(Disorder { number: entry.number, after: last });
                break;
            }
            last = entry.number;
            let is_wanted = match self.again.get(&entry.namespace) {
                None => entry.number > self.through,
                Some(again) if again.last() > Some(&entry.number) && !again.contains(&entry.number) => false,
                Some(_) => hungry.contains(&entry.namespace),
            };
            if is_wanted {
                self.bytes += entry.bytes;
                let place = self.slots.partition_point(|slot| slot.entry.number < entry.number);
                self.slots.insert(place, Slot::new(entry));
            }
        }
        let through = if disorder.is_ok() { last.max(through) } else { last };
        self.through = self.through.max(through);
        for (_, again) in self.again.iter_mut().filter(|(name, _)| hungry.contains(name)) {
            *again = again.split_off(&(through + 1));
            if again.is_empty() {
                again.insert(through + 1);
            }
        }
        self.again.retain(|_, again| again.first() <= Some(&self.through));
        disorder
    }

    /// The namespaces to be read again after this number: a suspect one only when nothing of it is in memory, so that it leaves room.
    fn hungry(&self, after: u64) -> HashSet<u64> {
        let held: HashSet<u64> = self.slots.iter().map(|slot| slot.entry.namespace).collect();
        let is_hungry = |name: &u64| !self.suspects.contains_key(name) || !held.contains(name);
        let again = self.again.iter().filter(|(_, again)| again.first() > Some(&after));
        again.map(|(name, _)| *name).filter(is_hungry).collect()
    }

    /// After which number to read again.
    pub(crate) fn catch_up(&self) -> Option<u64> {
        let hungry = self.hungry(0);
        let again = hungry.iter().filter_map(|name| self.again.get(name)?.first()).min();
        again.map(|number| number - 1)
    }

    /// Keeps so much, without the youngest records of the namespaces that take most. They will be read again.
    pub(crate) fn make_room(&mut self, records: usize, bytes: usize) {
        while self.slots.len() > records || self.bytes > bytes {
            let mut shares = HashMap::new();
            for Slot { entry, .. } in &self.slots {
                *shares.entry(entry.namespace).or_insert(0) += entry.bytes;
            }
            let Some((most, _)) = shares.into_iter().max_by_key(|(_, bytes)| *bytes) else { return };
            let Some(place) = self.slots.iter().rposition(|slot| slot.entry.namespace == most) else {
                return;
            };
            let Some(Slot { entry, .. }) = self.slots.remove(place) else { return };
            self.bytes -= entry.bytes;
            self.again.entry(most).or_insert_with(|| BTreeSet::from([self.through + 1])).insert(entry.number);
        }
    }

    /// The first records that may be sent together now; those of suspect namespaces only if `with_suspects`.
    pub(crate) fn batch(&self, most: usize, bytes: usize, now: Instant, with_suspects: bool) -> Vec<u64> {
        let (mut most, mut bytes_left) = (most, bytes);
        let mut blocked = HashSet::new();
        let mut batch = Vec::new();
        for slot in &self.slots {
            let Entry { number, object, bytes, .. } = slot.entry;
            if blocked.contains(&object) || (!with_suspects && self.is_suspect(slot)) {
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

    /// The first record of each object.
    fn first(&self) -> impl Iterator<Item = &Slot> {
        let mut objects = HashSet::new();
        self.slots.iter().filter(move |slot| objects.insert(slot.entry.object))
    }

    /// The record to try alone, and the last turn of its namespace: of the suspect namespace, and in it the record, that was not
    /// tried for longest. With a time, of those that may be sent then.
    pub(crate) fn next_suspect(&self, now: Option<Instant>) -> Option<(u64, u64)> {
        let may_be = |slot: &&Slot| self.is_suspect(slot) && now.is_none_or(|now| slot.is_due(now));
        let turn = |slot: &Slot| self.suspects.get(&slot.entry.namespace).copied().unwrap_or_default();
        let next = self.first().filter(may_be).min_by_key(|slot| (turn(slot), slot.tried))?;
        Some((next.entry.number, turn(next)))
    }

    /// When a record may be sent, if those of suspect namespaces wait until then, and only for that if `refuses_all`. `None` if
    /// one need not wait, or there is none.
    pub(crate) fn next_due(
        &self,
        suspects_until: Option<Instant>,
        refuses_all: bool,
    ) -> Option<Option<Instant>> {
        let due = |slot: &Slot| match self.is_suspect(slot) {
            true if refuses_all => suspects_until,
            true => slot.not_before.max(suspects_until),
            false => slot.not_before,
        };
        self.first().map(due).min()
    }

    fn is_suspect(&self, slot: &Slot) -> bool {
        self.suspects.contains_key(&slot.entry.namespace)
    }

    /// Whether records of several namespaces wait.
    pub(crate) fn has_several_namespaces(&self) -> bool {
        let mut names = self.slots.iter().map(|slot| slot.entry.namespace);
        names.next().is_some_and(|first| names.any(|name| name != first))
    }

    /// How many records wait that the sink has no reason not to take.
    pub(crate) fn unsuspected(&self) -> usize {
        self.slots.iter().filter(|slot| !self.is_suspect(slot)).count()
    }

    /// Whether this namespace is suspect, or several are. Without one, yes.
    pub(crate) fn suspects(&self, namespace: Option<u64>) -> bool {
        self.suspects.len() > 1 || namespace.is_none_or(|name| self.suspects.contains_key(&name))
    }

    /// The namespace is no longer suspect.
    pub(crate) fn trust(&mut self, namespace: u64) {
        self.suspects.remove(&namespace);
    }

    pub(crate) fn entry(&self, number: u64) -> Option<Entry> {
        Some(self.slots.get(self.find(number)?)?.entry)
    }

    pub(crate) fn settle(&mut self, number: u64) -> Option<Entry> {
        let slot = self.find(number).and_then(|index| self.slots.remove(index))?;
        self.bytes -= slot.entry.bytes;
        Some(slot.entry)
    }

    /// The record is tried alone.
    pub(crate) fn tried(&mut self, number: u64, turn: u64) {
        let Some(slot) = self.get_mut(number) else { return };
        slot.tried = turn;
        let namespace = slot.entry.namespace;
        self.suspects.entry(namespace).and_modify(|last| *last = turn);
    }

    /// The sink failed with these records. A record that was alone stays alone, so that it takes no others with it.
    pub(crate) fn failed(&mut self, numbers: &[u64]) {
        for number in numbers {
            let Some(slot) = self.get_mut(*number) else { continue };
            let (namespace, turn) = (slot.entry.namespace, slot.tried);
            if numbers.len() == 1 {
                slot.failures += 1;
                slot.largest_batch = 1;
            }
            self.suspects.entry(namespace).or_insert(turn);
        }
    }

    /// The records with which the sink failed so often when they were alone, and how often. The count begins anew.
    pub(crate) fn take_failed(&mut self, failures: u32) -> Vec<(u64, u32)> {
        let often = self.slots.iter_mut().filter(|slot| slot.failures >= failures.max(1));
        often.map(|slot| (slot.entry.number, std::mem::take(&mut slot.failures))).collect()
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
        let refusals = Refusals { times: before.times + 1, ..before };
        slot.refusals = Some(refusals);
        let (namespace, turn) = (slot.entry.namespace, slot.tried);
        self.suspects.entry(namespace).or_insert(turn);
        Some(refusals)
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
