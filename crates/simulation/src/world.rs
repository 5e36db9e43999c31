//! Everything in one place and one thread: a server, an informer, and the time.

mod rest;

use std::sync::Arc;
use std::time::Duration;

use informer_core::reflector::Status;
use informer_core::{PlainStorage, Time};

use crate::client::{Around, Client, number};
use crate::fanout::Content;
use crate::invariant::{Invariant, Violation};
use crate::plan::{Plan, Setup, Start, Step};
use crate::render;
use crate::saving::{Beginning, File};
use crate::server::Server;
use crate::storage;
use crate::trace::Trace;
use crate::truth::{Key, NAMESPACES};

/// More than any run has of them at once.
const SUBSCRIPTIONS: usize = 8;
/// How often something may happen within one moment before it is taken for endless.
const TURNS: u32 = 10_000;

/// The state of a run.
pub struct World<'a> {
    setup: Setup,
    seed: u64,
    pub(crate) now: Time,
    pub(crate) server: Server,
    pub(crate) content: Content,
    pub(crate) clients: Vec<Client>,
    trace: &'a mut Trace,
    /// Reflectors so far: each has a seed of its own.
    reflectors: u64,
    /// The cache that was saved last.
    saved: Option<File>,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &Plan, trace: &'a mut Trace) -> Result<Self, Violation> {
        let setup = plan.setup.clone();
        let server = Server::new(setup.server.clone(), !setup.by_hand);
        let mut world = Self {
            seed: plan.seed,
            now: Time::ZERO,
            server,
            content: Content::new(Arc::new(PlainStorage)),
            clients: Vec::new(),
            trace,
            reflectors: 0,
            saved: None,
            setup,
        };
        world.start(Start::Fresh)?;
        world.settle()?;
        Ok(world)
    }

    /// Objects that the cache has.
    pub fn cached(&self) -> usize {
        self.content.cache.len()
    }

    /// A new informer.
    fn start(&mut self, start: Start) -> Result<(), Violation> {
        self.content = Content::new(storage::of(&self.setup));
        self.clients.clear();
        for reading in self.setup.readers.clone() {
            self.content.subscribe(reading);
        }
        let namespaces: Vec<_> = match self.setup.by_namespace {
            true => (0..NAMESPACES).map(Some).collect(),
            false => vec![None],
        };
        let file = self.saved.as_ref().filter(|_| start == Start::Saved);
        let mut beginnings = match file {
            None => Vec::new(),
            Some(file) => {
                self.content.look_before_loading();
                file.load(&mut self.content, &namespaces)?
            }
        }
        .into_iter();
        for namespace in namespaces {
            self.add_client(namespace, beginnings.next());
        }
        self.content.check()?;
        for client in &self.clients {
            self.check_content(Some(client), number(&self.content.store.source_version(client.source)))?;
        }
        for which in 0..self.clients.len() {
            self.with_client(which, Client::start)?;
        }
        Ok(())
    }

    fn add_client(&mut self, namespace: Option<u8>, beginning: Option<Beginning>) {
        self.reflectors += 1;
        let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(self.reflectors);
        self.clients.push(Client::new(&self.setup, seed, namespace, &mut self.content, beginning));
    }

    fn with_client(
        &mut self,
        which: usize,
        act: impl FnOnce(&mut Client, &mut Around<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let Self { clients, server, content, trace, now, .. } = self;
        let Some(client) = clients.get_mut(which) else { return Ok(()) };
        act(client, &mut Around { now: *now, server, content, trace })
    }

    /// Does one step and whatever follows from it at once.
    pub(crate) fn step(&mut self, number: usize, step: Step) -> Result<(), Violation> {
        let now = self.now.since(Time::ZERO).as_secs_f64();
        self.trace.line(|| format!("{number:4} {now:9.3}s  {step:?}"));
        self.clients.iter_mut().for_each(Client::another_moment);
        self.act(step)?;
        self.settle()
    }

    fn act(&mut self, step: Step) -> Result<(), Violation> {
        match step {
            Step::Put(key) => self.server.put(key),
            Step::Delete(key) => self.server.delete(key),
            Step::Recreate(key) => {
                self.server.delete(key);
                self.server.put(key);
            }
            Step::Elsewhere(versions) => self.server.elsewhere(versions),
            Step::Compact => self.server.compact(),
            Step::Backup => self.server.back_up(),
            Step::Restore => self.server.restore(),
            Step::ServerRestart => self.server.restart(),
            Step::Bookmark => self.server.bookmark(),
            Step::Fault(fault, times) => self.server.fault(fault, times),
            Step::Deny(denial, namespace) => self.server.deny(denial, namespace),
            Step::Allow => self.server.allow(),
            Step::Spoil(spoil) => self.server.spoil(spoil),
            Step::Lie(client, lie) => self.on_link(client, |server, id| server.lie(id, lie)),
            Step::Error(client, error) => self.on_link(client, |server, id| server.error(id, error)),
            Step::End(client) => self.on_link(client, |server, id| {
                server.link(id).into_iter().for_each(crate::network::Link::cut_short);
            }),
            Step::Cut(client) => self.on_link(client, |server, id| {
                server.link(id).into_iter().for_each(crate::network::Link::break_off);
            }),
            Step::Mute(client) => self.on_link(client, |server, id| {
                server.link(id).into_iter().for_each(|link| link.is_dead = true);
            }),
            Step::Stall(client) => self.on_link(client, |server, id| {
                server.link(id).into_iter().for_each(|link| link.flows = false);
            }),
            Step::Flow(client) => self.on_link(client, |server, id| {
                server.link(id).into_iter().for_each(|link| link.flows = true);
            }),
            Step::Deliver(client, bytes) => {
                let which = self.which(client);
                self.with_client(which, |client, around| client.receive(around, bytes.into()).map(|_| ()))?;
                // With the answer's head comes what follows it.
                return self
                    .with_client(which, |client, around| client.receive(around, bytes.into()).map(|_| ()));
            }
            Step::Pass(millis) => return self.pass(Duration::from_millis(millis.into())),
            Step::Join(reading) => {
                if self.content.subscriptions.len() < SUBSCRIPTIONS {
                    self.content.subscribe(reading);
                }
            }
            Step::Leave(which) => {
                let count = self.content.subscriptions.len();
                if count > 0 {
                    self.content.subscriptions.remove(usize::from(which) % count);
                }
            }
            Step::Read(which, notices) => {
                let count = self.content.subscriptions.len().max(1);
                let which = usize::from(which) % count;
                return self.content.read(which, notices.into(), &self.server.truth, self.trace);
            }
            Step::Wake => {
                for which in 0..self.clients.len() {
                    self.with_client(which, Client::wake)?;
                }
            }
            Step::Save => {
                if let Some(file) = File::of(&self.content, &self.clients)? {
                    self.saved = Some(file);
                }
            }
            Step::Restart(start) => {
                self.stop()?;
                return self.start(start);
            }
            Step::AddNamespace(namespace) => return self.add_namespace(namespace),
            Step::RemoveNamespace(namespace) => return self.remove_namespace(namespace),
            Step::Snapshot => self.content.keep_snapshot(),
            Step::Index => self.content.toggle_index(),
            Step::Forget => self.server.forget(),
        }
        Ok(())
    }

    fn which(&self, client: u8) -> usize {
        usize::from(client) % self.clients.len().max(1)
    }

    fn on_link(&mut self, client: u8, act: impl FnOnce(&mut Server, crate::network::LinkId)) {
        if let Some(id) = self.clients.get(self.which(client)).and_then(|client| client.link) {
            act(&mut self.server, id);
        }
    }

    fn add_namespace(&mut self, namespace: u8) -> Result<(), Violation> {
        let is_there = self.clients.iter().any(|client| client.namespace == Some(namespace));
        if !self.setup.by_namespace || is_there {
            return Ok(());
        }
        self.add_client(Some(namespace), None);
        self.with_client(self.clients.len() - 1, Client::start)
    }

    fn remove_namespace(&mut self, namespace: u8) -> Result<(), Violation> {
        let Some(which) = self.clients.iter().position(|client| client.namespace == Some(namespace)) else {
            return Ok(());
        };
        self.with_client(which, Client::stop)?;
        let source = self.clients.remove(which).source;
        self.content.removed = true;
        self.content.change(|store| Ok(store.remove_source(source)))?;
        let left = Key::all()
            .find(|key| key.namespace() == namespace && self.content.cache.get_str(key.text()).is_some());
        Invariant::Content
            .holds(left.is_none(), || format!("{left:?} is left of a namespace that was removed"))
    }

    /// Ends all that runs. Everybody still hears what was pending.
    pub(crate) fn stop(&mut self) -> Result<(), Violation> {
        for which in 0..self.clients.len() {
            self.with_client(which, Client::stop)?;
        }
        Invariant::Stop
            .holds(!self.server.has_links(), || "connections are left after the stop".to_owned())?;
        self.content.read_all(&self.server.truth, self.trace)?;
        self.content.check_nothing_lost()
    }

    /// Lets time pass, stopping wherever somebody waits for.
    pub(crate) fn pass(&mut self, duration: Duration) -> Result<(), Violation> {
        let until = self.now + duration;
        let asked: Vec<_> = self.clients.iter().map(|client| client.asked).collect();
        for _ in 0..TURNS {
            let deadlines = self.clients.iter().filter_map(Client::deadline).chain(self.server.deadline());
            let next = deadlines.min().filter(|deadline| *deadline <= until);
            let Some(next) = next else {
                self.now = until;
                return self.check_requests(&asked, duration);
            };
            self.now = self.now.max(next);
            self.server.tick(self.now);
            for which in 0..self.clients.len() {
                let deadline = self.clients.get(which).and_then(Client::deadline);
                if deadline.is_some_and(|deadline| deadline <= self.now) {
                    self.with_client(which, Client::tick)?;
                }
            }
            self.flow()?;
            self.check()?;
        }
        Err(Invariant::Pace.violated("time does not pass"))
    }

    /// A wait that doubles lets few requests through.
    fn check_requests(&self, before: &[u32], duration: Duration) -> Result<(), Violation> {
        let most = 16 + u32::try_from(duration.as_secs() / 10).unwrap_or(u32::MAX);
        for (client, before) in self.clients.iter().zip(before) {
            let asked = client.asked - before;
            Invariant::Pace.holds(asked <= most, || format!("{asked} requests within {duration:?}"))?;
        }
        Ok(())
    }

    /// Whatever happens without anybody's doing: bytes arrive, readers read. Then everything has to be right.
    fn settle(&mut self) -> Result<(), Violation> {
        self.flow()?;
        for which in 0..self.content.subscriptions.len() {
            let pace =
                self.content.subscriptions.get(which).map_or(0, |subscription| subscription.reading.pace);
            if pace > 0 {
                self.content.read(which, pace.into(), &self.server.truth, self.trace)?;
            }
        }
        self.check()
    }

    fn flow(&mut self) -> Result<(), Violation> {
        let chunk = usize::from(self.setup.chunk);
        for _ in 0..TURNS {
            let mut moved = false;
            for which in 0..self.clients.len() {
                let link = self.clients.get(which).and_then(|client| client.link);
                if link.and_then(|link| self.server.link(link)).is_some_and(|link| link.flows) {
                    self.with_client(which, |client, around| {
                        moved |= client.receive(around, chunk)?;
                        Ok(())
                    })?;
                }
            }
            if !moved {
                return Ok(());
            }
        }
        Err(Invariant::Pace.violated("bytes never end"))
    }

    fn check(&mut self) -> Result<(), Violation> {
        self.content.check()?;
        let reached = self.content.cache.resource_version();
        let revision = self.content.store.revision();
        // As long as one source does not know yet that the server was restored, versions cannot be compared.
        let mixed = self.clients.windows(2).any(|two| matches!(two, [a, b] if a.epoch != b.epoch));
        for which in 0..self.clients.len() {
            let Some(client) = self.clients.get_mut(which) else { break };
            Invariant::Connection.holds(client.waits == client.link.is_none(), || {
                format!("{} with a connection: {}", client.status, client.link.is_some())
            })?;
            Invariant::Connection.holds(client.deadline().is_some(), || "it waits for ever".to_owned())?;
            let version = self.content.store.source_version(client.source);
            client.has_caught_up |= version.is_at_least(&reached);
            Invariant::Progress
                .holds(mixed || !client.has_caught_up || !version.is_older_than(&reached), || {
                    format!("the cache claims {reached:?}, and a source has only {version:?}")
                })?;
            let now = Some((revision, number(&version)));
            if std::mem::replace(&mut client.checked, now) != now {
                self.check_content(self.clients.get(which), number(&version))?;
            }
        }
        let unset = !self.clients.is_empty() && self.content.store.is_synced() && reached.is_unset();
        Invariant::Progress.holds(!unset, || "the cache is synced and claims no version".to_owned())
    }

    fn check_content(&self, client: Option<&Client>, version: u64) -> Result<(), Violation> {
        let Some(client) = client else { return Ok(()) };
        for key in Key::all().filter(|key| client.covers(*key)) {
            let cached = self.content.cache.get_str(key.text());
            let truth = (version > 0).then(|| self.server.truth.at(client.epoch, key, version)).flatten();
            let cached = match cached {
                None => None,
                Some(object) => {
                    Some(render::read(&object).filter(|(read, _)| *read == key).ok_or_else(|| {
                        Invariant::Content.violated(format!("{object:?} is not as the server wrote it"))
                    })?)
                }
            };
            let state = cached.map(|(_, state)| state);
            let doubted = client.is_deceived || client.doubts.keys().any(|(doubted, _)| *doubted == key);
            let right =
                state == truth || doubted && state.is_none_or(|state| self.server.truth.was_ever(key, state));
            Invariant::Content.holds(right, || {
                format!("at {version} the cache has {state:?} of {key}, and the server had {truth:?}")
            })?;
        }
        Ok(())
    }

    fn is_live(client: &Client) -> bool {
        matches!(client.status, Status::Live { .. })
    }
}
