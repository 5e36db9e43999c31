//! The notifications of a subscription, and whether they are possible.

use std::collections::BTreeMap;

use futures_util::{FutureExt, StreamExt};
use informer::{Change, Changes, DeleteReason, Informer, Object, ObjectKey, ResourceVersion, Uid, WhenFull};

use crate::within;

/// Reads a subscription and checks its story (contract H1, H3) as it goes.
pub struct Told {
    changes: Changes<Object>,
    story: Story,
}

/// The objects of a subscription, according to its notifications.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Story {
    view: BTreeMap<ObjectKey, (Uid, ResourceVersion)>,
    synced: bool,
    /// The server may go back to an older state.
    may_go_back: bool,
}

impl Told {
    /// Reads from now on.
    pub fn new(changes: Changes<Object>) -> Self {
        Self { changes, story: Story::default() }
    }

    /// Takes it that the server is restored from a backup, so that an update may lead to an older state.
    #[must_use]
    pub fn of_a_restored_server(mut self) -> Self {
        self.story.may_go_back = true;
        self
    }

    /// Reads every change of an informer from now on.
    ///
    /// # Panics
    ///
    /// When the informer has stopped.
    pub fn every(informer: &Informer<Object>) -> Self {
        let subscription = informer.subscribe().every_change(100_000, WhenFull::Coalesce);
        Self::new(subscription.changes().expect("a running informer"))
    }

    /// The next change.
    ///
    /// # Panics
    ///
    /// When no change comes, or when it contradicts earlier ones.
    pub async fn change(&mut self) -> Change<Object> {
        let change = within("a change", self.changes.next()).await.expect("the informer runs");
        self.story.apply(&change).unwrap_or_else(|error| panic!("{error}"));
        change
    }

    /// The next changes, in short: see [`summary`].
    ///
    /// # Panics
    ///
    /// As [`Told::change`].
    pub async fn next<const N: usize>(&mut self) -> [String; N] {
        let mut summaries = [const { String::new() }; N];
        for next in &mut summaries {
            *next = summary(&self.change().await);
        }
        summaries
    }

    /// The next changes, as many as there are to be, in short.
    ///
    /// # Panics
    ///
    /// As [`Told::change`].
    pub async fn summaries(&mut self, count: usize) -> Vec<String> {
        let mut summaries = Vec::with_capacity(count);
        while summaries.len() < count {
            summaries.push(summary(&self.change().await));
        }
        summaries
    }

    /// The changes of the initial list, abbreviated and sorted, without its end.
    ///
    /// # Panics
    ///
    /// As [`Told::change`].
    pub async fn first_content(&mut self) -> Vec<String> {
        let mut first = Vec::new();
        while !self.story.synced {
            first.push(summary(&self.change().await));
        }
        first.pop();
        first.sort();
        first
    }

    /// Reads the pending changes.
    ///
    /// # Panics
    ///
    /// As [`Told::change`].
    pub fn rest(&mut self) {
        while let Some(change) = self.waiting() {
            self.story.apply(&change).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// Whether no change is pending.
    pub fn is_silent(&mut self) -> bool {
        self.waiting().is_none()
    }

    /// The next pending change. With a backlog a subscription yields to others occasionally and looks empty.
    fn waiting(&mut self) -> Option<Change<Object>> {
        let mut next = || self.changes.next().now_or_never().flatten();
        let first = next();
        first.or_else(next)
    }

    /// The result of the changes so far.
    pub fn story(&self) -> &Story {
        &self.story
    }
}

impl Story {
    /// Goes on with a change.
    ///
    /// # Errors
    ///
    /// When the change contradicts earlier ones.
    pub fn apply(&mut self, change: &Change<Object>) -> Result<(), String> {
        match change {
            Change::Added { new: object, initial, .. } => {
                self.expect(*initial != self.synced, "the initial list, and it alone, is marked", change)?;
                let before = self.view.insert(object.key().clone(), version(object));
                self.expect(before.is_none(), "an added object was missing before", change)
            }
            Change::Updated { old, new, .. } => {
                self.expect(old.object().key() == new.key(), "an update is about one object", change)?;
                let before = self.view.insert(new.key().clone(), version(new));
                let is_next = before.as_ref() == Some(&version(old.object()));
                self.expect(is_next, "an update's old object is the one notified before", change)?;
                let is_newer = before.as_ref().is_some_and(|(_, old)| old.is_older_than(&version(new).1));
                self.expect(is_newer || self.may_go_back, "an update is newer", change)
            }
            Change::Deleted(deleted) => {
                let last = deleted.last();
                let before = self.view.remove(deleted.key());
                let (uid, known) =
                    before.as_ref().ok_or_else(|| format!("{}: it was not there", summary(change)))?;
                self.expect(uid == last.uid(), "who is deleted is who was there", change)?;
                // An event has the version of the deletion; a list can only repeat the known one.
                let fits = last.resource_version().is_at_least(known);
                self.expect(fits, "the last state is not older than the one notified before", change)
            }
            Change::Synced => {
                let again = std::mem::replace(&mut self.synced, true);
                self.expect(!again, "the initial list has one end", change)
            }
            Change::Resynced(object) => {
                let known = self.view.get(object.key());
                self.expect(known == Some(&version(object)), "a resync is no news", change)
            }
            _ => Ok(()),
        }
    }

    fn expect(&self, holds: bool, what: &str, change: &Change<Object>) -> Result<(), String> {
        if holds { Ok(()) } else { Err(format!("{change:?}: not so: {what}")) }
    }

    /// The current objects: uid and version by key.
    pub fn view(&self) -> &BTreeMap<ObjectKey, (Uid, ResourceVersion)> {
        &self.view
    }

    /// Whether the initial list was complete.
    pub fn is_synced(&self) -> bool {
        self.synced
    }
}

fn version(object: &Object) -> (Uid, ResourceVersion) {
    (object.uid().clone(), object.resource_version().clone())
}

/// A change in two words, as in `added web`; `initial web` in the initial list, `missed web` for a missed deletion, `left web`
/// for an object that left the view, `unclear web` for one that was deleted or deselected, `recreated web` for an update to
/// another incarnation.
pub fn summary(change: &Change<Object>) -> String {
    let (what, key) = match change {
        Change::Added { new: object, initial: true, .. } => ("initial", object.key()),
        Change::Added { new: object, .. } => ("added", object.key()),
        Change::Updated { old, new, .. } if old.object().uid() != new.uid() => ("recreated", new.key()),
        Change::Updated { new, .. } => ("updated", new.key()),
        Change::Deleted(deleted) => (verb(deleted.reason()), deleted.key()),
        Change::Resynced(object) => ("resynced", object.key()),
        Change::Undecodable(error) => ("undecodable", error.key()),
        Change::Synced => return "synced".to_owned(),
        Change::Lagged(dropped) => return format!("lagged {dropped}"),
        _ => return format!("{change:?}"),
    };
    format!("{what} {}", key.name())
}

fn verb(reason: DeleteReason) -> &'static str {
    match reason {
        DeleteReason::Observed => "deleted",
        DeleteReason::Missed => "missed",
        DeleteReason::LeftView => "left",
        DeleteReason::DeletedOrDeselected => "unclear",
    }
}
