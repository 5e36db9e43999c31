//! Counts what is not shown.

use std::collections::BTreeMap;

use serde::Serialize;

/// How many differences of one change each rule left out.
pub(crate) type Dropped = BTreeMap<String, u32>;

/// The rules for what changes with every write.
pub(crate) const TRACES: &[&str] = &["generation", "managed-fields", "resource-version"];

/// The counts of noise, since counting began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Differences left out, by rule: of changes that were shown, and of changes that were not.
    pub differences: BTreeMap<String, u64>,
    /// Changes not shown because nothing else was in them, by the rule that says most about why.
    pub changes: BTreeMap<String, u64>,
    /// Old and new were equal: a resync, or a re-list.
    pub unchanged: u64,
}

impl Tally {
    pub(crate) fn left_out(&mut self, dropped: &Dropped) {
        for (rule, count) in dropped {
            *self.differences.entry(rule.clone()).or_default() += u64::from(*count);
        }
    }

    /// Adds what another one counted.
    pub(crate) fn add(&mut self, other: &Self) {
        for (rule, count) in &other.differences {
            *self.differences.entry(rule.clone()).or_default() += count;
        }
        for (rule, count) in &other.changes {
            *self.changes.entry(rule.clone()).or_default() += count;
        }
        self.unchanged += other.unchanged;
    }

    /// Whether each change that was not shown had a reason besides the traces that every write leaves.
    pub(crate) fn is_explained(&self) -> bool {
        self.unchanged == 0 && !self.changes.keys().any(|rule| TRACES.contains(&rule.as_str()))
    }

    pub(crate) fn not_shown(&mut self, rule: &str, changes: u32) {
        *self.changes.entry(rule.to_owned()).or_default() += u64::from(changes);
    }

    /// Changes not shown because of more than the traces that every write leaves, by rule.
    pub(crate) fn beyond_traces(&self) -> impl Iterator<Item = (&str, u64)> {
        let changes = self.changes.iter().map(|(rule, count)| (rule.as_str(), *count));
        changes.filter(|(rule, _)| !TRACES.contains(rule))
    }

    /// How many changes were not shown.
    pub fn hidden(&self) -> u64 {
        self.changes.values().sum()
    }
}
