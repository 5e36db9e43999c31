//! A batch of observations, which is committed at once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::body::Body;
use crate::record::{Manager, ObjectId, Origin, Verb};

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
    /// The object. Its uid must not be empty.
    pub object: ObjectId,
    /// Its resourceVersion.
    pub rv: String,
    /// When it was seen.
    pub observed_at: Timestamp,
    /// How it was seen.
    pub origin: Origin,
    /// The content; of a deleted object, its last state.
    pub body: Body,
    /// Its meaning.
    pub what: What,
}

/// The meaning of a version: the caller compares and decides.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a batch keeps observations in boxes")]
pub enum What {
    /// The object existed before the history began: no change.
    Known,
    /// Only noise differs: this replaces the current state, and is no change.
    Noise,
    /// A change.
    Change(Change),
}

/// A change, as the caller sees it.
#[derive(Debug, Clone)]
pub struct Change {
    /// The kind of change.
    pub verb: Verb,
    /// Of a recreated object, the uid of the incarnation before.
    pub replaces: Option<String>,
    /// Version of the state before.
    pub rv_before: Option<String>,
    /// The managers that made it.
    pub managers: Vec<Manager>,
    /// The managers that owned what was removed, where it is unknown who removed it.
    pub owners: Vec<Manager>,
    /// Where it differs: each path as kubediff prints it, such as `spec.containers[web].image`.
    pub paths: Vec<String>,
    /// How it differs, in any form. It comes back as it is.
    pub diff: Value,
    /// The change in a few words.
    pub summary: String,
    /// How many differences each noise rule left out of `diff`.
    pub dropped: BTreeMap<String, u32>,
    /// The id of the key of the hashes in it, if it may have some.
    pub key: Option<String>,
    /// How many changes it stands for: one, or more when they were merged.
    pub merged: u32,
}

/// An update of which nothing is known.
impl Default for Change {
    fn default() -> Self {
        Self {
            verb: Verb::Updated,
            replaces: None,
            rv_before: None,
            managers: Vec::new(),
            owners: Vec::new(),
            paths: Vec::new(),
            diff: Value::Null,
            summary: String::new(),
            dropped: BTreeMap::new(),
            key: None,
            merged: 1,
        }
    }
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
