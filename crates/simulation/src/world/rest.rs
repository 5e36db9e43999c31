//! The end of each run: nothing fails any more, and the informer must become live and current.

use std::time::Duration;

use informer_core::reflector::Status;

use super::World;
use crate::client::Client;
use crate::informer::{Informer, PATIENCE};
use crate::invariant::{Invariant, Violation};
use crate::plan::{Ending, Mode, Reading};
use crate::render::number;
use crate::stored;
use crate::truth::{Key, NAMESPACES};

/// Enough for the longest wait that a server asks for (90 s), two silences with their probes (130 s and 60 s), a
/// denial (60 s), and the backoff in between.
const ROUNDS: u32 = 40;
const ROUND: Duration = Duration::from_secs(30);

impl World<'_> {
    /// Ends the run. Returns whether the whole cache could be compared with the server.
    pub(crate) fn rest(&mut self) -> Result<bool, Violation> {
        self.trace.line(|| "rest".to_owned());
        self.setup.code_by_hand = false;
        self.server.heal();
        let mut compared = true;
        self.each(|world| {
            compared &= world.rest_of_one()?;
            Ok(())
        })?;
        Ok(compared)
    }

    fn rest_of_one(&mut self) -> Result<bool, Violation> {
        self.pass(PATIENCE)?;
        self.settle()?;
        for namespace in (0..NAMESPACES).filter(|_| self.mine.clients.is_empty()).collect::<Vec<_>>() {
            self.add_namespace(namespace)?;
        }
        self.come_to_rest()?;
        // Only a list ends the mixture after a backup that was restored unnoticeably.
        let epoch = self.server.truth.epoch();
        let is_mixed = self.mine.clients.iter().any(|client| client.is_deceived || client.epoch != epoch);
        if is_mixed || self.seed.is_multiple_of(2) && self.doubted().next().is_some() {
            self.list_anew()?;
        }
        // The next version of a damaged object ends its doubt, too.
        self.show_doubted()?;
        // The cache may have an object of another epoch at the same opaque version. The version after it differs.
        if self.setup.server.opaque {
            self.show_doubted()?;
        }
        let compared = self.check_rest()?;
        let reading =
            Reading { mode: Mode::Latest, split: false, pace: 0, slow_to_join: false, filters: false };
        self.mine.content.subscribe(reading);
        self.mine.content.read_all(&self.server.truth, self.trace)?;
        self.mine.content.check_nothing_lost()?;
        self.mine.content.check_resyncs()?;
        self.reconcile_everything()?;
        self.stop()?;
        Ok(compared)
    }

    /// Ends every reconciliation well, until nothing is left to reconcile.
    fn reconcile_everything(&mut self) -> Result<(), Violation> {
        self.mine.controller.iter_mut().for_each(|it| it.resume(self.now));
        for _ in 0..ROUNDS {
            self.settle()?;
            let Some(controller) = &mut self.mine.controller else { return Ok(()) };
            if controller.is_at_rest(self.now) {
                return controller.check_rest(self.mine.content.cache());
            }
            controller.end(self.now, 0, Ending::Done, &mut self.server);
            // The rounds are longer than the longest backoff.
            self.pass(Duration::from_secs(2))?;
        }
        Err(Invariant::Reconcile.violated("the controller does not come to rest"))
    }

    fn show_doubted(&mut self) -> Result<(), Violation> {
        let transform = self.setup.transform;
        for key in self.doubted().collect::<Vec<_>>() {
            self.server.show(key, |state| !transform.fails(state.value));
        }
        self.come_to_rest()
    }

    /// Compacts the history beyond every source, so that each of them lists.
    fn list_anew(&mut self) -> Result<(), Violation> {
        let reached = self
            .mine
            .clients
            .iter()
            .map(|client| number(&self.mine.content.source_version(client.namespace)));
        let furthest = reached.max().unwrap_or_default();
        self.server.pass(furthest);
        self.server.compact();
        self.server.restart();
        self.come_to_rest()
    }

    fn come_to_rest(&mut self) -> Result<(), Violation> {
        for _ in 0..ROUNDS {
            self.pass(Duration::from_secs(1))?;
            self.settle()?;
            if self.is_at_rest() {
                return Ok(());
            }
            self.pass(ROUND)?;
            self.server.bookmark();
            self.settle()?;
        }
        let statuses: Vec<_> = self.mine.clients.iter().map(|client| client.status.to_string()).collect();
        let reached: Vec<_> = self
            .mine
            .clients
            .iter()
            .map(|client| self.mine.content.source_version(client.namespace))
            .collect();
        let schemas: Vec<_> = self.mine.clients.iter().map(|client| client.schema).collect();
        Err(Invariant::Rest.violated(format!(
            "after {:?} without faults: {statuses:?} at {reached:?}, the server at {}; listed with the schemas \
             {schemas:?}, the server's is {}",
            ROUND * ROUNDS,
            self.server.version,
            self.server.schema
        )))
    }

    fn is_at_rest(&mut self) -> bool {
        let Self { mine, server, .. } = self;
        let Informer { clients, content, .. } = mine;
        mine.start.is_none()
            && clients.iter().all(|client| {
                let open = client.link.and_then(|link| server.link(link)).is_some_and(|link| link.is_open());
                let reached = number(&content.source_version(client.namespace));
                // Each changed schema obliges to one list, whatever happens meanwhile (L14).
                open && Self::is_live(client)
                    && (client.is_deceived || reached == server.version)
                    && client.schema == server.schema
            })
    }

    fn check_rest(&self) -> Result<bool, Violation> {
        let epoch = self.server.truth.epoch();
        // A restored server at exactly its former version goes unnoticed without sending anything.
        let deceived = self.mine.clients.iter().any(|client| client.is_deceived || client.epoch != epoch);
        if deceived || self.mine.clients.is_empty() {
            return Ok(false);
        }
        Invariant::Rest
            .holds(self.mine.removing.is_empty(), || "the removal of a namespace does not end".to_owned())?;
        let (status, is_listing) = (&self.mine.content.status, self.mine.content.is_listing);
        Invariant::Rest.holds(matches!(status, Status::Live { .. }) && !is_listing, || {
            format!("the informer {status}; a list is under way: {is_listing}")
        })?;
        let version = number(&self.mine.content.cache().resource_version());
        Invariant::Rest.holds(version == self.server.version, || {
            format!("the cache claims {version}, the server is at {}", self.server.version)
        })?;
        let doubted = self.mine.clients.iter().flat_map(|client| client.doubts.iter()).next();
        Invariant::Rest
            .holds(doubted.is_none(), || format!("{doubted:?} is left, though the object changed"))?;
        self.mine.clients.iter().try_for_each(|client: &Client| self.check_content(Some(client), version))?;
        // A transform may write any version.
        let served = self.server.discovered().filter(|_| !self.setup.transform.changes);
        let mut cached = Key::all().filter_map(|key| self.mine.content.cache().get_str(key.text()));
        let other = cached.find(|object| served.is_some_and(|served| served != stored::resource(object)));
        Invariant::Rest.holds(other.is_none() || self.setup.server.protobuf, || {
            format!("{other:?} is not of the served version {served:?}")
        })?;
        Ok(true)
    }
}
