//! The traces of the run that wrote a history last.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use informer::ResourceVersion;
use jiff::Timestamp;
use kubediff_history::{Error, KindName, Reader, Scope};

use crate::KeyId;
use crate::follow::Within;
use crate::history::notes::{KEY, LEFT, LEFT_OUT, MIXED, NAMES, OPEN, SELECTORS, WATCHED_UNTIL, WITHIN};
use crate::model::position;

/// Watches lost within this time share one gap.
const TOGETHER: Duration = Duration::from_secs(5);

/// The traces of the former run.
pub(super) struct Past {
    pub(super) key: Option<KeyId>,
    pub(super) watched_until: Option<Timestamp>,
    /// The resources that it followed.
    pub(super) names: BTreeSet<String>,
    selectors: Option<String>,
    /// Where the former run looked.
    within: Option<Within>,
    /// Where runs before it looked, and it did not: since when.
    left_out: Option<(Timestamp, Within)>,
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
            within: notes.get(WITHIN).and_then(|within| serde_json::from_str(within).ok()),
            left_out: notes.get(LEFT_OUT).and_then(|note| {
                let (since, within) = note.split_once(' ')?;
                Some((since.parse().ok()?, serde_json::from_str(within).ok()?))
            }),
            positions: reader.positions()?,
            left: left.collect(),
            open: open.collect(),
        })
    }

    /// Whether the history has followed anything before.
    pub(super) fn has_any(&self) -> bool {
        !self.positions.is_empty()
    }

    /// Whether the history has followed this before.
    pub(super) fn has(&self, target: &str) -> bool {
        self.positions.contains_key(target)
    }

    /// Whether the history is not known to have this watch recorded as far as to this version.
    pub(super) fn is_before(&self, watch: &str, version: &ResourceVersion) -> bool {
        let position = self.positions.get(watch).map(|position| ResourceVersion::new(position));
        position.is_none_or(|position| !position.is_at_least(version))
    }

    /// From now on it is followed.
    pub(super) fn followed(&mut self, target: &str) {
        self.positions.insert(target.to_owned(), position::NOTHING.to_owned());
        self.names.insert(target.to_owned());
    }

    /// From now on it is not followed.
    pub(super) fn forget(&mut self, target: &str, since: Timestamp) {
        self.names.remove(target);
        self.left.insert(target.to_owned(), since);
    }

    /// Whether it was followed before, and then not any more.
    pub(super) fn has_left(&self, target: &str) -> bool {
        self.left.contains_key(target)
    }

    /// Since when this is not followed any more. Says so once.
    pub(super) fn take_left(&mut self, target: &str) -> Option<Timestamp> {
        let left = self.left.remove(target);
        left.filter(|_| !self.names.contains(target))
    }

    /// Whether a gap of this target had begun when the former run ended.
    pub(super) fn has_open(&self, target: &str) -> bool {
        self.open.contains_key(target)
    }

    /// The gap of this target that had begun when the former run ended. Says so once.
    pub(super) fn take_open(&mut self, target: &str) -> Option<(Timestamp, String)> {
        self.open.remove(target)
    }

    /// Since when nothing was watched, and why, if all that was followed was lost together.
    pub(super) fn all_open(&self) -> Option<(Timestamp, String)> {
        let mut gaps = self.names.iter().map(|name| self.open.get(name));
        let (from, reason) = gaps.next()??.clone();
        let is_near = |gap: Option<&(Timestamp, String)>| {
            gap.is_some_and(|(since, _)| since.duration_since(from).unsigned_abs() < TOGETHER)
        };
        (self.names.len() > 1 && gaps.all(is_near)).then_some((from, reason))
    }

    /// All gaps that had begun are recorded.
    pub(super) fn close_all(&mut self) -> Vec<String> {
        std::mem::take(&mut self.open).into_keys().collect()
    }

    /// Where former runs looked, and this one does not, and since when.
    pub(super) fn left_out_by(&self, within: &Within) -> Option<(Timestamp, Within)> {
        let last = self.watched_until.zip(self.within.clone());
        self.left_out.clone().or(last).filter(|(_, former)| !within.covers(former))
    }

    /// The gap of the objects that this run looks at, and the run before did not.
    pub(super) fn left_out_until(&self, within: &Within) -> Option<(Timestamp, String)> {
        let (since, _) = self.left_out.as_ref()?;
        let last = self.within.as_ref().filter(|last| !last.covers(within))?;
        Some((*since, format!("only {} watched", last.in_words())))
    }

    /// Whether former runs looked at objects of this namespace as this one does.
    pub(super) fn saw(&self, namespace: Option<&str>, within: &Within) -> bool {
        let saw = |former: &Within| former.has(namespace) && former.selectors == within.selectors;
        // A file of an older version says nothing of it.
        self.within.as_ref().is_none_or(saw) || self.left_out.as_ref().is_some_and(|(_, former)| saw(former))
    }

    /// Whether an object that is not seen has been deleted: all runs have looked at the same objects.
    pub(super) fn knows_deletions(&self, within: &Within) -> bool {
        within.selectors.is_empty() || self.selectors.as_ref() == Some(&within.selectors)
    }

    /// The notes about the selectors of this run.
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
    let kind = KindName { group: Some(group.to_owned()), resource: plural.to_owned() };
    Scope { kinds: vec![kind], name, ..Scope::default() }
}

#[cfg(test)]
mod tests {
    use kubediff_history::{Batch, Cluster, History, Settings};

    use super::*;

    #[test]
    fn k1_the_position_of_a_former_program_says_what_was_followed_and_not_how_far() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster { uid: "1".to_owned(), name: None };
        let mut history =
            History::open(folder.path().join("history.db"), &cluster, &Settings::default()).unwrap();
        let mut past = |name: &str| {
            let mut batch = Batch::default();
            batch.reached(name, "100");
            history.commit(&batch).unwrap();
            Past::read(&mut history.reader().unwrap()).unwrap()
        };
        let is_before = |past: &Past| {
            ["99", "100", "101"].map(|rv| past.is_before("configmaps@*", &ResourceVersion::new(rv)))
        };
        let former = past("configmaps");
        assert_eq!((former.has("configmaps"), is_before(&former)), (true, [true; 3]));
        assert_eq!(is_before(&past("configmaps@*")), [false, false, true]);
    }
}
