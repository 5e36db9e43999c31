//! How much happened in a time: counts for each part of it, and for kinds, namespaces and managers.

use jiff::Timestamp;

use crate::filter::KindName;

/// The number of changes in each part of a time, and their most frequent kinds, namespaces and managers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// For each part of the time.
    pub parts: Vec<Counts>,
    /// Kinds, the most frequent first.
    pub kinds: Vec<(KindName, u64)>,
    /// Namespaces, the most frequent first; `""` stands for cluster-scoped objects.
    pub namespaces: Vec<(String, u64)>,
    /// Managers, the most frequent first. A change may have several. Empty where counting them would take long.
    pub managers: Vec<(String, u64)>,
    /// Since when changes are counted one by one, where not all are. Of earlier parts a survey of everything has the totals alone, and any
    /// other one nothing.
    pub counted_since: Option<Timestamp>,
}

/// The number of changes in a part of a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects that came.
    pub added: u64,
    /// Other states, and other incarnations whose predecessors' deletions were not seen.
    pub updated: u64,
    /// Objects that went.
    pub deleted: u64,
    /// Changes of which only the number is known, at most this many.
    pub others: u64,
}

impl Counts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.added + self.updated + self.deleted + self.others
    }
}
