//! The invariants that compare the cache with the history.

use super::World;
use crate::client::Client;
use crate::invariant::{Invariant, Violation};
use crate::render::number;
use crate::stored;
use crate::truth::{Key, State};

impl World<'_> {
    /// The keys that may have another state than the server's.
    pub(super) fn doubted(&self) -> impl Iterator<Item = Key> {
        Key::all().filter(|key| self.mine.clients.iter().any(|client| client.doubts(*key)))
    }

    /// The keys of which a subscription may receive changes that do not follow from each other.
    pub(super) fn doubted_stories(&self) -> impl Iterator<Item = Key> {
        // A namespace that is being removed may still cause changes.
        let is_leaving =
            |key: &Key| self.mine.removing.iter().any(|(namespace, _)| *namespace == key.namespace());
        let is_in_doubt = move |key: &Key| self.mine.clients.iter().any(|client| client.doubts_story(*key));
        Key::all().filter(move |key| is_leaving(key) || is_in_doubt(key))
    }

    /// A source is live only once the cache has its content.
    pub(super) fn check_statuses(&self) -> Result<(), Violation> {
        let early = self.mine.clients.iter().find(|client| Self::is_live(client) && !client.is_confirmed);
        Invariant::Connection
            .holds(early.is_none(), || "a source is live, and the cache does not have its content".to_owned())
    }

    pub(super) fn check(&mut self) -> Result<(), Violation> {
        self.check_upstream()?;
        self.check_begun()?;
        self.check_owed()?;
        self.mine.content.check_wakes()?;
        if self.mine.start.is_some() || self.mine.member.is_none() {
            return Ok(());
        }
        // Changes of running user code may be in the cache before any subscription receives them.
        if self.mine.content.is_lent() {
            return Ok(());
        }
        self.mine.content.check(self.mine.controller.iter().count())?;
        let reached = self.mine.content.cache().resource_version();
        self.check_synced_in_time()?;
        let revision = self.mine.content.cache().snapshot().revision();
        let waits = self.mine.content.engine.deadline().is_some() || self.mine.clients.is_empty();
        Invariant::Connection.holds(waits, || "the engine has no deadline".to_owned())?;
        // The versions of sources cannot be compared while only one of them knows of a restored backup.
        let mixed = self.mine.clients.windows(2).any(|two| matches!(two, [a, b] if a.epoch != b.epoch));
        for which in 0..self.mine.clients.len() {
            let Some(client) = self.mine.clients.get_mut(which) else { break };
            Invariant::Connection.holds(client.waits == client.link.is_none(), || {
                format!("a source is {}; it has a connection: {}", client.status, client.link.is_some())
            })?;
            let version = self.mine.content.source_version(client.namespace);
            client.has_caught_up |= version.is_at_least(&reached);
            Invariant::Progress
                .holds(mixed || !client.has_caught_up || !version.is_older_than(&reached), || {
                    format!("the cache claims {reached:?}, and a source has reached only {version:?}")
                })?;
            let now = Some((revision, number(&version)));
            if std::mem::replace(&mut client.checked, now) != now {
                self.check_content(self.mine.clients.get(which), number(&version))?;
            }
        }
        // Several sources have a common opaque version only once theirs are equal.
        let may_be_unset =
            self.mine.clients.is_empty() || self.setup.server.opaque && self.mine.clients.len() > 1;
        let unset = !may_be_unset && self.mine.content.cache().is_synced() && reached.is_unset();
        Invariant::Progress.holds(!unset, || "the cache is synced and has no version".to_owned())
    }

    pub(super) fn check_content(&self, client: Option<&Client>, version: u64) -> Result<(), Violation> {
        let Some(client) = client else { return Ok(()) };
        for key in Key::all().filter(|key| client.covers(*key)) {
            let cached = self.mine.content.cache().get_str(key.text());
            let truth = (version > 0).then(|| self.server.truth.at(client.epoch, key, version)).flatten();
            let cached = match cached {
                None => None,
                Some(object) => {
                    let changes = self.setup.transform.changes;
                    let is_whole = |(read, _): &(Key, State)| {
                        *read == key && (!changes || stored::is_shortened(&object))
                    };
                    Some(stored::read(&object).filter(is_whole).ok_or_else(|| {
                        Invariant::Content.violated(format!("{object:?} is not as the server wrote it"))
                    })?)
                }
            };
            let state = cached.map(|(_, state)| state);
            let transform = self.setup.transform;
            let fails = truth.is_some_and(|truth| transform.fails(truth.value));
            let expected = truth.filter(|truth| !transform.drops(truth.value) && !fails);
            let may_be = |state: State| {
                let is_kept = !transform.drops(state.value) && !transform.fails(state.value);
                is_kept && self.server.truth.was_ever(key, state)
            };
            // Where the transform fails, the cache keeps the former state, if any.
            let right = state == expected || (fails || client.doubts(key)) && state.is_none_or(may_be);
            Invariant::Content.holds(right, || {
                format!("at {version} the cache has {state:?} of {key}, and the server had {truth:?}")
            })?;
            self.check_quarantine(client, key, version, fails)?;
        }
        Ok(())
    }

    /// A key is in quarantine exactly as long as its newest version is undecodable or fails the transform.
    fn check_quarantine(
        &self,
        client: &Client,
        key: Key,
        version: u64,
        fails: bool,
    ) -> Result<(), Violation> {
        let is_held = self.mine.content.is_quarantined(key);
        let may_be = fails || client.doubts(key) || self.has_failed(client, key);
        Invariant::Quarantine
            .holds(!is_held || may_be, || format!("{key} is in quarantine without a reason"))?;
        let must_be = client.is_confirmed
            && !client.is_deceived
            && (fails && !client.doubts(key) || client.has_held(key, version));
        Invariant::Quarantine
            .holds(is_held || !must_be, || format!("{key} is undecodable, and not in quarantine"))
    }

    /// Whether an incomplete list may have had a version of the key for which the transform fails.
    fn has_failed(&self, client: &Client, key: Key) -> bool {
        let (truth, transform) = (&self.server.truth, self.setup.transform);
        let mut records = (0..=truth.epoch()).flat_map(|epoch| truth.of(epoch, key));
        client.has_other_lists() && records.any(|record| transform.fails(record.state.value))
    }
}
