//! A batch of observations, which is committed at once.

use jiff::Timestamp;

use crate::body::Body;
use crate::record::ChangeRecord;
use crate::report::Scrub;

/// Observations, gaps, positions and notes that are stored together, in the order in which they were put in.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    pub(crate) entries: Vec<Entry>,
    pub(crate) positions: Vec<(String, String)>,
    pub(crate) notes: Vec<(String, String)>,
    pub(crate) scrub: Option<(Scrub, Timestamp, String)>,
    pub(crate) prints: Vec<(Option<String>, Vec<u8>)>,
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
    /// An Event of the cluster, which came, changed or went. It is no change.
    Event,
}

impl Batch {
    /// Adds an observation.
    pub fn observe(&mut self, observation: Observation) {
        self.entries.push(Entry::Observation(Box::new(observation)));
    }

    /// Adds a gap: from when to when, of which resource (all of them without one), and why. A gap of the batch that ends where this one
    /// begins, and is alike, becomes longer instead.
    pub fn gap(&mut self, from: Timestamp, to: Timestamp, resource: Option<&str>, reason: impl Into<String>) {
        let (resource, reason) = (resource.map(str::to_owned), reason.into());
        for entry in &mut self.entries {
            if let Entry::Gap { to: until, resource: of, reason: why, .. } = entry
                && (*until, &*of, &*why) == (from, &resource, &reason)
            {
                *until = to;
                return;
            }
        }
        self.entries.push(Entry::Gap { from, to, resource, reason });
    }

    /// Says that everything of a resource (`deployments.apps`), or of a part of it, up to this resourceVersion is in this batch or
    /// before it. It is a low watermark: where changes do not come in the order of their versions, it is below each one that waits, and
    /// the last one stored may be greater. The version `0` promises nothing.
    pub fn reached(&mut self, resource: impl Into<String>, rv: impl Into<String>) {
        self.positions.push((resource.into(), rv.into()));
    }

    /// Notes something that the writer wants to know after a restart, under a name of its own choice. The last note of a
    /// name counts.
    pub fn note(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.notes.push((name.into(), value.into()));
    }

    /// Keeps the print of a value of this namespace that is hidden in objects: a hash that only the writer's key can make, and whose
    /// form is the writer's choice. Without a namespace, it is not kept any more.
    pub fn print(&mut self, namespace: Option<String>, print: Vec<u8>) {
        self.prints.push((namespace, print));
    }

    /// Records a scrub that has come to its end, and why it was.
    pub fn scrubbed(&mut self, scrub: Scrub, at: Timestamp, cause: impl Into<String>) {
        self.scrub = Some((scrub, at, cause.into()));
    }

    /// Whether nothing was put in.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
            && self.positions.is_empty()
            && self.notes.is_empty()
            && self.prints.is_empty()
            && self.scrub.is_none()
    }

    /// The number of observations and gaps.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}
