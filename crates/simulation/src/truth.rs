//! The complete history: every state of every object, in every epoch.
//!
//! It is naive, slow, and plainly right. A restored backup begins a new epoch: it has the history of the former one up
//! to the backup, and uses the later versions again for other changes.

use std::fmt;

use informer_core::Scope;

/// The number of namespaces.
pub(crate) const NAMESPACES: u8 = 2;
/// The number of keys.
pub const KEYS: u8 = 8;

/// The keys, as `namespace/name`.
const TEXTS: [&str; KEYS as usize] = ["a/p0", "b/p1", "a/p2", "b/p3", "a/p4", "b/p5", "a/p6", "b/p7"];

/// A key as a small number, so that plans are readable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u8);

/// A state of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    /// The incarnation.
    pub(crate) uid: u32,
    /// Its resourceVersion.
    pub(crate) version: u64,
    /// The content.
    pub(crate) value: u32,
}

/// A change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: Key,
    /// The state, with the version of the change. A deletion has a version of its own, too.
    pub(crate) state: State,
    pub(crate) change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// All epochs.
pub(crate) struct Truth {
    epochs: Vec<Epoch>,
}

/// The changes of each key, in the order of their versions.
#[derive(Clone, Default)]
pub(crate) struct Epoch([Vec<Record>; KEYS as usize]);

impl Key {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..KEYS).map(Key)
    }

    pub(crate) fn namespace(self) -> u8 {
        self.0 % NAMESPACES
    }

    pub(crate) fn text(self) -> &'static str {
        TEXTS.get(usize::from(self.0)).copied().unwrap_or_default()
    }

    pub(crate) fn name(self) -> &'static str {
        self.text().rsplit('/').next().unwrap_or_default()
    }

    /// The key with this text.
    pub(crate) fn of(text: &str) -> Option<Self> {
        Self::all().find(|key| key.text() == text)
    }
}

pub(crate) fn namespace(number: u8) -> &'static str {
    if number.is_multiple_of(NAMESPACES) { "a" } else { "b" }
}

pub(crate) fn scope(number: Option<u8>) -> Scope {
    number.map_or(Scope::All, |number| Scope::Namespace(namespace(number).into()))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Truth {
    pub(crate) fn new() -> Self {
        Self { epochs: vec![Epoch::default()] }
    }

    /// The present epoch.
    pub(crate) fn epoch(&self) -> usize {
        self.epochs.len() - 1
    }

    pub(crate) fn record(&mut self, record: Record) {
        if let Some(epoch) = self.epochs.last_mut() {
            epoch.of_mut(record.key).push(record);
        }
    }

    /// From now on the key has another value at the same version. Returns whether the object exists.
    pub(crate) fn revise(&mut self, key: Key, value: u32) -> bool {
        let Some(records) = self.epochs.last_mut().map(|epoch| epoch.of_mut(key)) else { return false };
        let Some(last) = records.last().copied().filter(|last| last.change != Change::Deleted) else {
            return false;
        };
        records.push(Record { state: State { value, ..last.state }, change: Change::Modified, key });
        true
    }

    /// A copy of the present epoch.
    pub(crate) fn present(&self) -> Epoch {
        self.epochs.last().cloned().unwrap_or_default()
    }

    /// Begins an epoch with this history.
    pub(crate) fn restore(&mut self, past: Epoch) {
        self.epochs.push(past);
    }

    /// The state of the object at a version, if it existed.
    pub(crate) fn at(&self, epoch: usize, key: Key, version: u64) -> Option<State> {
        let records = self.of(epoch, key);
        let last = records.iter().rev().find(|record| record.state.version <= version)?;
        (last.change != Change::Deleted).then_some(last.state)
    }

    /// All changes of a key.
    pub(crate) fn of(&self, epoch: usize, key: Key) -> &[Record] {
        self.epochs.get(epoch).and_then(|epoch| epoch.0.get(usize::from(key.0))).map_or(&[], Vec::as_slice)
    }

    /// All changes after a version, in order.
    pub(crate) fn since(&self, version: u64) -> Vec<Record> {
        let epoch = self.epoch();
        let records = Key::all().flat_map(|key| {
            let records = self.of(epoch, key);
            let old = records.partition_point(|record| record.state.version <= version);
            records.get(old..).unwrap_or_default().iter().copied()
        });
        let mut records: Vec<_> = records.collect();
        records.sort_by_key(|record| record.state.version);
        // A revised object is sent as it is now.
        records.dedup_by(|later, earlier| {
            let is_revision = later.state.version == earlier.state.version;
            if is_revision {
                earlier.state = later.state;
            }
            is_revision
        });
        records
    }

    /// Whether the object was ever in this state, in any epoch.
    pub(crate) fn was_ever(&self, key: Key, state: State) -> bool {
        (0..self.epochs.len()).rev().any(|epoch| {
            let records = self.of(epoch, key);
            let at = records.partition_point(|record| record.state.version < state.version);
            let of_version = records.get(at..).unwrap_or_default().iter();
            of_version
                .take_while(|record| record.state.version == state.version)
                .any(|record| record.state == state)
        })
    }
}

impl Epoch {
    fn of_mut(&mut self, key: Key) -> &mut Vec<Record> {
        &mut self.0[usize::from(key.0 % KEYS)]
    }
}
