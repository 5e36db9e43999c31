//! What a history says of the run that wrote it last.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kubediff_history::{Error, Reader, Scope};

use crate::KeyId;
use crate::follow::Within;
use crate::notes::{KEY, LEFT, MIXED, NAMES, OPEN, SELECTORS, WATCHED_UNTIL};

/// What the former run has left.
pub(super) struct Past {
    pub(super) key: Option<KeyId>,
    pub(super) watched_until: Option<Timestamp>,
    /// What was followed.
    pub(super) names: BTreeSet<String>,
    selectors: Option<String>,
    positions: BTreeMap<String, String>,
    left: BTreeMap<String, Timestamp>,
    open: BTreeMap<String, (Timestamp, String)>,
}

impl Past {
    pub(super) fn read(reader: &mut Reader) -> Result<Self, Error> {
        let notes = reader.notes()?;
        let left = notes
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(LEFT)?.to_owned(), value.parse().ok()?)));
        let open = notes.iter().filter_map(|(name, value)| {
            let (since, reason) = value.split_once(' ')?;
            Some((name.strip_prefix(OPEN)?.to_owned(), (since.parse().ok()?, reason.to_owned())))
        });
        let names = notes.get(NAMES).map(|names| names.lines().map(str::to_owned).collect());
        Ok(Self {
            key: notes.get(KEY).and_then(|id| id.parse().ok()),
            watched_until: notes.get(WATCHED_UNTIL).and_then(|time| time.parse().ok()),
            names: names.unwrap_or_default(),
            selectors: notes.get(SELECTORS).cloned(),
            positions: reader.positions()?,
            left: left.collect(),
            open: open.collect(),
        })
    }

    /// Whether the history has followed this before.
    pub(super) fn has(&self, target: &str) -> bool {
        self.positions.contains_key(target)
    }

    /// Since when this is not followed any more.
    pub(super) fn left(&self, target: &str) -> Option<Timestamp> {
        if self.names.contains(target) { None } else { self.left.get(target).copied() }
    }

    /// The gap of this target that had begun when the former run ended.
    pub(super) fn open(&self, target: &str) -> Option<(Timestamp, String)> {
        self.open.get(target).cloned()
    }

    /// Whether an object that is not seen has been deleted: all runs have looked at the same objects.
    pub(super) fn knows_deletions(&self, within: &Within) -> bool {
        within.selectors.is_empty() || self.selectors.as_ref() == Some(&within.selectors)
    }

    /// What to note of the selectors of this run.
    pub(super) fn selectors_to_note(&self, within: &Within) -> String {
        match &self.selectors {
            Some(former) if *former != within.selectors => MIXED.to_owned(),
            _ => within.selectors.clone(),
        }
    }
}

/// The objects of `deployments.apps`, or the one of `deployments.apps/cart`.
pub(super) fn scope_of(target: &str) -> Scope {
    let (resource, name) = match target.split_once('/') {
        Some((resource, name)) => (resource, Some(name.to_owned())),
        None => (target, None),
    };
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    Scope { group: Some(group.to_owned()), resource: Some(plural.to_owned()), name, ..Scope::default() }
}
