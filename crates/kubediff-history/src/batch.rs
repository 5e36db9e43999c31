//! A batch of observations, which is committed at once.

use jiff::Timestamp;

use crate::body::Body;
use crate::record::ChangeRecord;

/// Observations, gaps, positions and notes that are stored together, in the order in which they were put in.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    pub(crate) entries: Vec<Entry>,
    pub(crate) positions: Vec<(String, String)>,
    pub(crate) notes: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Observation(Box<Observation>),
    Gap { from: Timestamp, to: Timestamp, resource: Option<String>, reason: String },
}

/// One observed version of one incarnation.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The object, whose uid must not be empty, its version, and when and how it was seen; of a change, the rest besides.
    pub record: ChangeRecord,
    /// The content; of a deleted object, its last state.
    pub body: Body,
    /// Its meaning.
    pub what: What,
    /// Of a recreated object, the uid of the incarnation before.
    pub replaces: Option<String>,
}

/// The meaning of a version: the caller compares and decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The object existed before the history began: no change.
    Known,
    /// Only noise differs: this replaces the current state, and is no change.
    Noise,
    /// A change.
    Change,
}

impl Batch {
    /// Adds an observation.
    pub fn observe(&mut self, observation: Observation) {
        self.entries.push(Entry::Observation(Box::new(observation)));
    }

    /// Adds a gap: from when to when, of which resource (all of them without one), and why.
    pub fn gap(&mut self, from: Timestamp, to: Timestamp, resource: Option<&str>, reason: impl Into<String>) {
        let resource = resource.map(str::to_owned);
        self.entries.push(Entry::Gap { from, to, resource, reason: reason.into() });
    }

    /// Says that everything of a resource (`deployments.apps`) up to this resourceVersion is in this batch or before it.
    pub fn reached(&mut self, resource: impl Into<String>, rv: impl Into<String>) {
        self.positions.push((resource.into(), rv.into()));
    }

    /// Notes something that the writer wants to know after a restart, under a name of its own choice. The last note of a
    /// name counts.
    pub fn note(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.notes.push((name.into(), value.into()));
    }

    /// Whether nothing was put in.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.positions.is_empty() && self.notes.is_empty()
    }

    /// The number of observations and gaps.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}
