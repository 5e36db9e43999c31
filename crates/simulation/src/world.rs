//! The world of a run: a server, an informer, and the time.

mod checks;
mod rest;
mod synced;

use std::sync::Arc;
use std::time::Duration;

use informer_core::engine::{Applied, Command, Input, RequestId, Response};
use informer_core::reflector::{FirstList, ReflectorConfig, Status, StreamingList};
use informer_core::wire::ApiStatus;
use informer_core::{PlainStorage, Scope, Storage, Time};

use crate::client::{Around, Client};
use crate::content::Content;
use crate::controller::Controller;
use crate::invariant::{Invariant, Violation};
use crate::network::{Arrival, Head, Link, LinkId};
use crate::plan::{Plan, Setup, Start, Step};
use crate::render::number;
use crate::saving::File;
use crate::server::Server;
use crate::storage;
use crate::trace::Trace;
use crate::truth::{Key, NAMESPACES, scope};

/// The most subscriptions at a time.
const SUBSCRIPTIONS: usize = 8;
/// Something that repeats this often within one moment counts as endless.
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
    storage: Arc<dyn Storage>,
    /// The namespaces whose removal is under way, the oldest removal first, each with the schema of its content.
    removing: Vec<(u8, u64)>,
    /// The number of informers so far. Each has a seed of its own.
    informers: u64,
    /// The cache that was saved last.
    saved: Option<File>,
    controller: Option<Controller>,
    /// The engine commands to say that the cache is synced. What made it so follows.
    is_told_synced: bool,
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
            storage: storage::of(&setup),
            removing: Vec::new(),
            clients: Vec::new(),
            trace,
            informers: 0,
            saved: None,
            controller: None,
            is_told_synced: false,
            setup,
        };
        world.start(Start::Fresh)?;
        world.settle()?;
        Ok(world)
    }

    /// The number of cached objects.
    pub fn cached(&self) -> usize {
        self.content.cache().len()
    }

    /// Starts a new informer.
    fn start(&mut self, start: Start) -> Result<(), Violation> {
        self.controller = None;
        self.content = Content::new(self.storage.clone());
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
        for namespace in &namespaces {
            self.clients.push(Client::new(*namespace, beginnings.next()));
        }
        if self.setup.workers > 0 {
            self.controller = Controller::new(&self.content.engine, self.setup.workers);
        }
        self.content.check(self.controller.iter().count())?;
        for client in &self.clients {
            self.check_content(Some(client), number(&self.content.source_version(client.namespace)))?;
        }
        self.informers += 1;
        let setup = &self.setup;
        let mut start = Content::start(namespaces.into_iter().map(scope));
        start.seed = self.seed.wrapping_mul(1_000_003).wrapping_add(self.informers);
        start.transform = self.content.transform(setup.transform);
        start.changes_at_once = setup.changes_at_once.into();
        start.queued_operations = setup.queued_operations.into();
        start.reflector = ReflectorConfig {
            first_list: if setup.first_list_any { FirstList::Any } else { FirstList::Consistent },
            streaming_list: if setup.streaming { StreamingList::Preferred } else { StreamingList::Never },
            page_size: 2,
            internal_error_retry: Duration::from_secs(if setup.internal_error_retry { 30 } else { 0 }),
            ..ReflectorConfig::default()
        };
        self.input(Input::Schema(&self.server.schema.to_string()))?;
        self.input(Input::Start(Box::new(start)))
    }

    /// Gives the engine an input, and does what it commands.
    fn input(&mut self, input: Input<'_>) -> Result<(), Violation> {
        self.trace.line(|| format!("       <- {}", shown(&input)));
        self.content.look_before();
        self.content.engine.handle(self.now, input);
        for _ in 0..TURNS {
            while let Some(command) = self.content.engine.poll_command() {
                self.command(command)?;
            }
            self.check_synced()?;
            let doubts = self.doubted_stories().collect();
            self.content.are_in_doubt(doubts);
            if !self.content.engine.has_work() {
                return self.check_statuses();
            }
            // The readers have their turn.
            self.content.listen();
            self.read_by_themselves()?;
            self.content.engine.handle(self.now, Input::Tick);
        }
        Err(Invariant::Pace.violated("the engine always has work"))
    }

    fn command(&mut self, command: Command) -> Result<(), Violation> {
        match command {
            Command::Send { id, request, scope, .. } => {
                let which = self.of_scope(&scope);
                Invariant::Stop.holds(which != usize::MAX, || {
                    format!("{request} is sent for {scope:?}, which is removed")
                })?;
                self.with_client(which, |client, around| client.send(around, id, &request))
            }
            Command::Cancel(id) => {
                let which = self.clients.iter().position(|client| client.request == Some(id));
                self.with_client(which.unwrap_or(usize::MAX), |client, around| {
                    client.hang_up(around.server);
                    Ok(())
                })
            }
            Command::Compute(compute) => {
                self.content.lend(compute);
                Ok(())
            }
            Command::SourceStatus(scope, status) => {
                let which = self.of_scope(&scope);
                self.with_client(which, |client, around| client.status(around, status))
            }
            Command::Report(scope, report) => {
                let which = self.of_scope(&scope);
                self.with_client(which, |client, around| {
                    client.report(around, &report);
                    Ok(())
                })
            }
            Command::Applied { source: _, request, applied } => {
                self.applied(request, applied)?;
                self.check_synced()
            }
            Command::Listing(is_listing) => {
                self.content.is_listing = is_listing;
                Ok(())
            }
            Command::Status(status) => {
                self.content.status = status;
                Ok(())
            }
            Command::ScopeRemoved(scope) => self.scope_removed(&scope),
            Command::Synced => {
                self.content.listen();
                self.is_told_synced = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn applied(&mut self, request: RequestId, applied: Applied) -> Result<(), Violation> {
        self.content.listen();
        for which in 0..self.clients.len() {
            if self.clients.get(which).is_some_and(|client| client.has_asked(request)) {
                return self.with_client(which, |client, around| client.applied(around, request, applied));
            }
        }
        Ok(())
    }

    /// The engine says once that a removed namespace has no object any more.
    fn scope_removed(&mut self, removed: &Scope) -> Result<(), Violation> {
        let asked = self.removing.iter().position(|(namespace, _)| scope(Some(*namespace)) == *removed);
        let Some(asked) = asked else {
            return Err(
                Invariant::Stop.violated(format!("{removed:?} is removed, though no step asked for that"))
            );
        };
        let (namespace, _) = self.removing.remove(asked);
        // The namespace may have been added again.
        if self.clients.iter().any(|client| client.namespace == Some(namespace)) {
            return Ok(());
        }
        let mut keys = Key::all().filter(|key| key.namespace() == namespace);
        let left = keys.find(|key| {
            self.content.cache().get_str(key.text()).is_some() || self.content.is_quarantined(*key)
        });
        Invariant::Content.holds(left.is_none(), || format!("{left:?} is left of a removed namespace"))
    }

    fn of_scope(&self, of: &Scope) -> usize {
        self.clients.iter().position(|client| scope(client.namespace) == *of).unwrap_or(usize::MAX)
    }

    /// Gives the engine what arrives next, at most this many bytes. Returns whether something arrived.
    fn receive(&mut self, which: usize, most: usize) -> Result<bool, Violation> {
        let Some(client) = self.clients.get(which) else { return Ok(false) };
        let (Some(link), Some(id)) = (client.link, client.request) else { return Ok(false) };
        if !self.content.engine.takes_bytes() {
            return Ok(false);
        }
        let Some(arrival) = self.server.take(link, most) else { return Ok(false) };
        self.with_client(which, |client, around| {
            client.note_damage(around);
            Ok(())
        })?;
        let protobuf = self.server.speaks_protobuf();
        let status;
        let response = match &arrival {
            Arrival::Head(Head::Accepted) => Response::Accepted { protobuf },
            Arrival::Head(Head::Unreachable) => Response::Unreachable("refused".into()),
            Arrival::Head(Head::Refused { code, retry_after, body }) => {
                let mut refusal = ApiStatus::from_body(*code, body.as_bytes());
                refusal.retry_after = refusal.retry_after.max(retry_after.map(Duration::from_secs));
                status = refusal;
                Response::Refused(status)
            }
            Arrival::Bytes(bytes) => Response::Bytes(bytes),
            Arrival::End => Response::End,
            Arrival::Broken => Response::Broken("reset".into()),
        };
        let is_bad_end = self.server.link(link).is_some_and(|link| link.ends_with_last_word());
        let goes_on = matches!(arrival, Arrival::End)
            && self.was_served(which)
            && !self.content.is_lent()
            && !is_bad_end;
        let is_over = !matches!(arrival, Arrival::Head(Head::Accepted) | Arrival::Bytes(_));
        if is_over {
            self.server.close(link);
            self.clients
                .iter_mut()
                .filter(|client| client.link == Some(link))
                .for_each(|client| client.link = None);
        }
        let events = self.events();
        self.input(Input::Response(id, response))?;
        let heard = self.events().saturating_sub(events);
        let now = self.now;
        if let Some(client) = self.clients.get_mut(which) {
            if client.request == Some(id)
                && let Some(watch) = &mut client.watch
            {
                watch.heard(heard);
                if matches!(arrival, Arrival::Head(Head::Accepted)) {
                    watch.was_accepted(now);
                }
            }
            Invariant::Request.holds(!goes_on || client.watch.is_some_and(|watch| watch.is_new()), || {
                format!("a served watch ended, and no watch follows: {}", client.status)
            })?;
        }
        Ok(true)
    }

    fn was_served(&self, which: usize) -> bool {
        let watch = self.clients.get(which).and_then(|client| client.watch);
        watch.is_some_and(|watch| watch.is_enough(self.now))
    }

    /// The number of events that the engine has decoded.
    fn events(&self) -> u32 {
        let counts = self.content.engine.counters().events();
        let count = counts.added + counts.modified + counts.deleted + counts.bookmarks;
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Runs waiting user code, or returns its result. Returns whether there was any.
    fn run_code(&mut self) -> Result<bool, Violation> {
        if !self.content.has_code() {
            return Ok(false);
        }
        if let Some(computed) = self.content.run_code() {
            self.input(Input::Computed(computed))?;
        }
        Ok(true)
    }

    fn with_client(
        &mut self,
        which: usize,
        act: impl FnOnce(&mut Client, &mut Around<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let Self { clients, server, content, trace, now, setup, .. } = self;
        let Some(client) = clients.get_mut(which) else { return Ok(()) };
        let transform = setup.transform;
        act(client, &mut Around { now: *now, server, content, trace, transform })
    }

    /// Does one step, and everything that follows from it at once.
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
            Step::End(client) => self.change_link(client, Link::cut_short),
            Step::Cut(client) => self.change_link(client, Link::break_off),
            Step::Mute(client) => self.change_link(client, |link| link.is_dead = true),
            Step::Stall(client) => self.change_link(client, |link| link.flows = false),
            Step::Flow(client) => self.change_link(client, |link| link.flows = true),
            Step::Deliver(client, bytes) => {
                let which = self.which(client);
                self.receive(which, bytes.into())?;
                // Twice, so that bytes follow the head of a response.
                self.receive(which, bytes.into())?;
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
            Step::Resync(which) => {
                let count = self.content.subscriptions.len().max(1);
                self.content.resync(usize::from(which) % count);
            }
            Step::Wake => return self.wake(),
            Step::SchemaChanged => {
                self.server.schema += 1;
                return self.input(Input::Schema(&self.server.schema.to_string()));
            }
            Step::Revise(key) => {
                if self.server.revise(key) {
                    let version = self.server.version;
                    for client in &mut self.clients {
                        client.revised(&mut self.content, key, version);
                    }
                    if let Some(file) = &mut self.saved {
                        file.revised(key, version);
                    }
                }
            }
            Step::Code => drop(self.run_code()?),
            Step::Save => {
                if let Some(file) = File::of(&self.content, &self.clients, &self.removing)? {
                    self.saved = Some(file);
                }
            }
            Step::Restart(start) => {
                self.stop()?;
                return self.start(start);
            }
            Step::AddNamespace(namespace) => return self.add_namespace(namespace),
            Step::RemoveNamespace(namespace) => return self.remove_namespace(namespace),
            Step::Reconciled(which, ending) => {
                if let Some(controller) = &mut self.controller {
                    controller.end(self.now, which, ending, &mut self.server);
                }
            }
            Step::Pause => self.controller.iter_mut().for_each(Controller::pause),
            Step::Resume => self.controller.iter_mut().for_each(Controller::resume),
            Step::Snapshot => self.content.keep_snapshot(),
            Step::Index => self.content.toggle_index(),
            Step::Forget => self.server.forget(),
        }
        Ok(())
    }

    fn which(&self, client: u8) -> usize {
        usize::from(client) % self.clients.len().max(1)
    }

    fn on_link(&mut self, client: u8, act: impl FnOnce(&mut Server, LinkId)) {
        if let Some(id) = self.clients.get(self.which(client)).and_then(|client| client.link) {
            act(&mut self.server, id);
        }
    }

    fn change_link(&mut self, client: u8, change: impl FnOnce(&mut Link)) {
        self.on_link(client, |server, id| {
            if let Some(link) = server.link(id) {
                change(link);
            }
        });
    }

    fn add_namespace(&mut self, namespace: u8) -> Result<(), Violation> {
        let is_there = self.clients.iter().any(|client| client.namespace == Some(namespace));
        if !self.setup.by_namespace || is_there {
            return Ok(());
        }
        // The engine may still be removing the namespace. It does both in turn.
        self.clients.push(Client::new(Some(namespace), None));
        self.input(Input::AddScope(scope(Some(namespace))))
    }

    fn wake(&mut self) -> Result<(), Violation> {
        let before = self.content.engine.deadline();
        let waits = self.clients.iter().any(|client| client.waits);
        self.clients.iter_mut().for_each(|client| client.woken(self.now));
        self.input(Input::Wake)?;
        Invariant::Connection.holds(waits || self.content.engine.deadline() == before, || {
            "a wake gave a request more time".to_owned()
        })
    }

    fn remove_namespace(&mut self, namespace: u8) -> Result<(), Violation> {
        let Some(which) = self.clients.iter().position(|client| client.namespace == Some(namespace)) else {
            return Ok(());
        };
        self.content.removed = true;
        let schema = self.clients.get(which).map_or(0, |client| client.schema);
        self.removing.push((namespace, schema));
        self.input(Input::RemoveScope(scope(Some(namespace))))?;
        let mut client = self.clients.remove(which);
        Invariant::Stop.holds(client.link.is_none(), || "a removed namespace has a connection".to_owned())?;
        client.hang_up(&mut self.server);
        let is_done = self.content.is_lent() || self.removing.is_empty();
        Invariant::Stop.holds(is_done, || {
            "the engine does not finish the removal of a namespace, though no user code runs".to_owned()
        })
    }

    /// Stops the informer. Subscriptions still receive their backlog.
    pub(crate) fn stop(&mut self) -> Result<(), Violation> {
        while !self.setup.stops_at_once && self.run_code()? {}
        // The changes of user code that runs at the stop reach the cache, but no subscription.
        let was_lent = self.content.is_lent();
        self.input(Input::Stop)?;
        while self.run_code()? {}
        // The clients do not know what the user code applied. Across a restore the oracle cannot judge such a file.
        if self.setup.stops_at_once && (!was_lent || self.server.truth.epoch() == 0) {
            let file = File::of(&self.content, &self.clients, &self.removing)?;
            self.saved = file.or_else(|| self.saved.take());
        }
        let is_back = self.content.engine.checkpoint().is_ok();
        Invariant::Saved.holds(is_back, || "after the stop there is no checkpoint".to_owned())?;
        let later = self.now + Duration::from_secs(3600);
        for input in [Input::Wake, Input::Tick] {
            self.content.engine.handle(later, input);
        }
        let more = self.content.engine.poll_command();
        let deadline = self.content.engine.deadline();
        Invariant::Stop.holds(more.is_none() && deadline.is_none(), || {
            format!("after the stop the engine commands {more:?} and has the deadline {deadline:?}")
        })?;
        for client in &self.clients {
            Invariant::Stop.holds(client.asked == 0 || client.status == Status::Stopped, || {
                format!("after the stop a source is {}", client.status)
            })?;
        }
        Invariant::Stop
            .holds(!self.server.has_links(), || "after the stop a connection is open".to_owned())?;
        self.removing.clear();
        if was_lent {
            return Ok(());
        }
        self.content.read_all(&self.server.truth, self.trace)?;
        self.content.check_nothing_lost()
    }

    /// Lets time pass, and stops at each deadline.
    pub(crate) fn pass(&mut self, duration: Duration) -> Result<(), Violation> {
        let until = self.now + duration;
        let asked: Vec<_> = self.clients.iter().map(|client| client.asked).collect();
        for _ in 0..TURNS {
            let deadlines = self.content.engine.deadline().into_iter().chain(self.server.deadline());
            let of_controller = self.controller.as_ref().and_then(|controller| controller.deadline(self.now));
            let deadlines = deadlines.chain(of_controller);
            let next = deadlines.min().filter(|deadline| *deadline <= until);
            let Some(next) = next else {
                self.now = until;
                return self.check_requests(&asked, duration);
            };
            self.now = self.now.max(next);
            self.server.tick(self.now);
            if self.content.engine.deadline().is_some_and(|deadline| deadline <= self.now) {
                self.input(Input::Tick)?;
                // The first tick may confirm a load, whose next deadline may be due, too.
                if self.content.engine.deadline().is_some_and(|deadline| deadline <= self.now) {
                    self.input(Input::Tick)?;
                }
                let next = self.content.engine.deadline();
                Invariant::Pace.holds(next.is_none_or(|next| next > self.now), || {
                    format!("after its tick the next deadline is {next:?}, at {:?}", self.now)
                })?;
            }
            self.flow()?;
            self.reconcile()?;
            self.check()?;
        }
        Err(Invariant::Pace.violated("time does not pass"))
    }

    /// The backoff allows few requests in a given time.
    fn check_requests(&self, before: &[u32], duration: Duration) -> Result<(), Violation> {
        let most = 16 + u32::try_from(duration.as_secs() / 10).unwrap_or(u32::MAX);
        for (client, before) in self.clients.iter().zip(before) {
            let asked = client.asked - before;
            Invariant::Pace.holds(asked <= most, || format!("{asked} requests within {duration:?}"))?;
        }
        Ok(())
    }

    /// Lets bytes arrive and readers read, and checks the invariants.
    fn settle(&mut self) -> Result<(), Violation> {
        self.flow()?;
        self.read_by_themselves()?;
        self.check()
    }

    fn read_by_themselves(&mut self) -> Result<(), Violation> {
        self.reconcile()?;
        for which in 0..self.content.subscriptions.len() {
            let pace =
                self.content.subscriptions.get(which).map_or(0, |subscription| subscription.reading.pace);
            if pace > 0 {
                self.content.read(which, pace.into(), &self.server.truth, self.trace)?;
            }
        }
        Ok(())
    }

    /// Lets the controller take changes and start reconciliations.
    fn reconcile(&mut self) -> Result<(), Violation> {
        let Some(controller) = &mut self.controller else { return Ok(()) };
        controller.listen(self.now);
        controller.advance(self.now, &self.content, &self.server, self.trace)
    }

    fn flow(&mut self) -> Result<(), Violation> {
        let chunk = usize::from(self.setup.chunk);
        for _ in 0..TURNS {
            let mut moved = false;
            for which in 0..self.clients.len() {
                let link = self.clients.get(which).and_then(|client| client.link);
                if link.and_then(|link| self.server.link(link)).is_some_and(|link| link.flows) {
                    moved |= self.receive(which, chunk)?;
                }
            }
            if !self.setup.code_by_hand {
                moved |= self.run_code()?;
            }
            if !moved {
                return Ok(());
            }
        }
        Err(Invariant::Pace.violated("there are always more bytes"))
    }

    fn is_live(client: &Client) -> bool {
        matches!(client.status, Status::Live { .. })
    }
}

fn shown(input: &Input<'_>) -> String {
    match input {
        Input::Response(id, Response::Bytes(bytes)) => format!("{} bytes of {id:?}", bytes.len()),
        other => format!("{other:?}"),
    }
}
