//! What a subscription is told, and whether it can have happened.

use std::collections::BTreeMap;

use futures_util::{FutureExt, StreamExt};
use informer::{Change, Changes, Deleted, Informer, Object, ObjectKey, ResourceVersion, Uid, WhenFull};

use crate::within;

/// Reads a subscription and checks its story (contract H1, H3) as it goes.
pub struct Told {
    changes: Changes<Object>,
    story: Story,
}

/// The objects that a subscription knows of, by what it was told.
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
    /// When there is none, or when it does not fit what was told before.
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

    /// The changes up to the end of the first content, in short and sorted, without that end.
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

    /// Reads what waits to be told.
    ///
    /// # Panics
    ///
    /// As [`Told::change`].
    pub fn rest(&mut self) {
        while let Some(change) = self.waiting() {
            self.story.apply(&change).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// Whether nothing waits to be told.
    pub fn is_silent(&mut self) -> bool {
        self.waiting().is_none()
    }

    /// What waits to be told. With a backlog a subscription leaves its turn to others now and then, as if nothing did.
    fn waiting(&mut self) -> Option<Change<Object>> {
        let mut next = || self.changes.next().now_or_never().flatten();
        let first = next();
        first.or_else(next)
    }

    /// What the changes so far amount to.
    pub fn story(&self) -> &Story {
        &self.story
    }
}

impl Story {
    /// Goes on with a change.
    ///
    /// # Errors
    ///
    /// When that cannot have happened after what was told before.
    pub fn apply(&mut self, change: &Change<Object>) -> Result<(), String> {
        match change {
            Change::Added { object, initial, .. } => {
                self.expect(*initial != self.synced, "the first content, and it alone, is marked", change)?;
                let before = self.view.insert(object.key().clone(), version(object));
                self.expect(before.is_none(), "what is added was not there", change)
            }
            Change::Updated { old, new, .. } => {
                self.expect(old.object().key() == new.key(), "an update is about one object", change)?;
                let before = self.view.insert(new.key().clone(), version(new));
                let is_next = before.as_ref() == Some(&version(old.object()));
                self.expect(is_next, "an update's old object is the one told before", change)?;
                let is_newer = before.as_ref().is_some_and(|(_, old)| old.is_older_than(&version(new).1));
                self.expect(is_newer || self.may_go_back, "an update is newer", change)
            }
            Change::Deleted(deleted) => {
                let last = deleted.object();
                let before = self.view.remove(deleted.key());
                let (uid, known) =
                    before.as_ref().ok_or_else(|| format!("{}: it was not there", summary(change)))?;
                self.expect(uid == last.uid(), "who is deleted is who was there", change)?;
                // An event has the version of the deletion; a list can only repeat what was known.
                let fits = last.resource_version().is_at_least(known);
                self.expect(fits, "the last state is not older than the one told before", change)
            }
            Change::Synced => {
                let again = std::mem::replace(&mut self.synced, true);
                self.expect(!again, "the first content has one end", change)
            }
            Change::Resynced(object) => {
                let known = self.view.get(object.key());
                self.expect(known == Some(&version(object)), "a resync is no news", change)
            }
            Change::Lagged(_) | Change::Undecodable(_) => Ok(()),
        }
    }

    fn expect(&self, holds: bool, what: &str, change: &Change<Object>) -> Result<(), String> {
        if holds { Ok(()) } else { Err(format!("{change:?}: not so: {what}")) }
    }

    /// What is there: uid and version by key.
    pub fn view(&self) -> &BTreeMap<ObjectKey, (Uid, ResourceVersion)> {
        &self.view
    }

    /// Whether the first content was complete.
    pub fn is_synced(&self) -> bool {
        self.synced
    }
}

fn version(object: &Object) -> (Uid, ResourceVersion) {
    (object.uid().clone(), object.resource_version().clone())
}

/// A change in two words, as in `added web`; `initial web` for one of the first content, `missed web` for a deletion
/// that nobody saw, `recreated web` for an update to another incarnation.
pub fn summary(change: &Change<Object>) -> String {
    let (what, key) = match change {
        Change::Added { object, initial: true, .. } => ("initial", object.key()),
        Change::Added { object, .. } => ("added", object.key()),
        Change::Updated { old, new, .. } if old.object().uid() != new.uid() => ("recreated", new.key()),
        Change::Updated { new, .. } => ("updated", new.key()),
        Change::Deleted(Deleted::Observed { object, .. }) => ("deleted", object.key()),
        Change::Deleted(Deleted::Missed { key, .. }) => ("missed", key),
        Change::Resynced(object) => ("resynced", object.key()),
        Change::Undecodable(error) => ("undecodable", error.key()),
        Change::Synced => return "synced".to_owned(),
        Change::Lagged(dropped) => return format!("lagged {dropped}"),
    };
    format!("{what} {}", key.name())
}
