//! The end of the initial list, derived from the history: it is told once each source has its content in the cache, when the
//! readers have been told of that content, and not later.

use informer_core::reflector::Status;

use super::World;
use crate::client::Client;
use crate::invariant::{Invariant, Violation};
use crate::stored;
use crate::truth::Key;

impl World<'_> {
    /// Compares the first view that the engine told of as complete with what the server had. It is called for the first
    /// operation after the engine's word, because later ones of the same moment may list anew.
    pub(super) fn check_synced(&mut self) -> Result<(), Violation> {
        let (is_told, transform) = (std::mem::take(&mut self.mine.is_told_synced), self.setup.transform);
        let Some(first) = self.mine.content.first.take_if(|_| is_told) else { return Ok(()) };
        // A source that is added meanwhile has not asked yet, and one that is removed has stopped.
        let begun = |client: &&Client| client.asked > 0 && client.status != Status::Stopped;
        for client in self.mine.clients.iter().filter(begun) {
            Invariant::Synced.holds(client.is_confirmed, || {
                format!("synced, though the cache has no content of source {}", client.name())
            })?;
            let listed_at = client.listed_at;
            for key in Key::all().filter(|key| client.covers(*key) && !client.doubts(*key)) {
                let truth = self.server.truth.at(client.epoch, key, listed_at);
                let later = self.server.truth.of(client.epoch, key).last();
                let has_changed = later.is_some_and(|record| record.state.version > listed_at);
                if has_changed || truth.is_some_and(|truth| transform.fails(truth.value)) {
                    continue;
                }
                let expected = truth.filter(|truth| !transform.drops(truth.value));
                let object = first.values().find(|object| object.key().as_str() == key.text());
                let told = object.and_then(|object| stored::read(object)).map(|(_, state)| state);
                Invariant::Synced.holds(told == expected, || {
                    format!("synced with {told:?} of {key}, and the server had {expected:?} at {listed_at}")
                })?;
            }
        }
        Ok(())
    }

    /// Once each source has its content, the end of the initial list is told at once, to readers and to the owner.
    pub(super) fn check_synced_in_time(&self) -> Result<(), Violation> {
        let is_due = self.mine.clients.iter().all(|client| client.is_confirmed);
        let right = self.mine.content.first.is_none() && (self.mine.content.synced || !is_due);
        Invariant::Synced.holds(right, || "the cache is synced, and somebody was not told".to_owned())
    }
}
