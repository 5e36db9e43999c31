//! The world of a run: a server, one or two informers, and the time.

mod answers;
mod checks;
mod rest;
mod synced;
mod time;

use std::sync::Arc;
use std::time::Duration;

use informer_core::engine::{Applied, Command, Input, Question, QuestionId, RequestId, Response};
use informer_core::reflector::{FirstList, ReflectorConfig, Request, Status, StreamingList};
use informer_core::upstream::{self, Upstream};
use informer_core::wire::ApiStatus;
use informer_core::{PlainStorage, Scope, Storage, Time};

use crate::client::{Around, Client};
use crate::content::Content;
use crate::controller::Controller;
use crate::informer::Informer;
use crate::invariant::{Invariant, Violation};
use crate::network::{Arrival, Head, Link, LinkId};
use crate::plan::{Plan, Setup, Start, Step};
use crate::render::number;
use crate::saving::File;
use crate::server::Server;
use crate::storage;
use crate::trace::Trace;
use crate::truth::{Key, NAMESPACES, scope};
use answers::Answer;

/// The most subscriptions at a time.
const SUBSCRIPTIONS: usize = 8;
/// Something that repeats this often within one moment counts as endless.
const TURNS: u32 = 10_000;

/// The shortest time between two requests for the schemas.
const SCHEMA_PACE: Duration = Duration::from_secs(30);

/// The state of a run.
pub struct World<'a> {
    setup: Setup,
    seed: u64,
    pub(crate) now: Time,
    pub(crate) server: Server,
    upstream: Upstream,
    /// The informer that steps act on.
    pub(crate) mine: Informer,
    /// Another informer of the same server.
    other: Option<Informer>,
    answers: Vec<Answer>,
    /// A server has ended a watch before its timeout at this time, and the schemas were not read since.
    early_end: Option<Time>,
    trace: &'a mut Trace,
    storage: Arc<dyn Storage>,
    /// The number of informers so far. Each has a seed of its own.
    informers: u64,
    questions: u64,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &Plan, trace: &'a mut Trace) -> Result<Self, Violation> {
        let setup = plan.setup.clone();
        let server = Server::new(setup.server.clone(), !setup.by_hand);
        let informer = || Informer::new(Content::new(Arc::new(PlainStorage)));
        let mut world = Self {
            seed: plan.seed,
            now: Time::ZERO,
            server,
            upstream: Upstream::new(plan.seed, SCHEMA_PACE),
            mine: informer(),
            other: setup.two.then(informer),
            answers: Vec::new(),
            early_end: None,
            storage: storage::of(&setup),
            trace,
            informers: 0,
            questions: 0,
            setup,
        };
        world.each(|world| world.start(Start::Fresh))?;
        world.settle()?;
        Ok(world)
    }

    /// From here on steps act on the other informer.
    fn turn(&mut self) {
        if let Some(other) = &mut self.other {
            std::mem::swap(&mut self.mine, other);
        }
    }

    /// Does the same for each informer.
    fn each(&mut self, mut act: impl FnMut(&mut Self) -> Result<(), Violation>) -> Result<(), Violation> {
        act(self)?;
        if self.other.is_none() {
            return Ok(());
        }
        self.turn();
        let done = act(self);
        self.turn();
        done
    }

    /// Does something for the informer of a member, unless that has stopped.
    fn with_member(
        &mut self,
        member: upstream::Member,
        act: impl FnOnce(&mut Self) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        if self.mine.member == Some(member) {
            return act(self);
        }
        if self.other.as_ref().is_none_or(|other| other.member != Some(member)) {
            return Ok(());
        }
        self.turn();
        let done = act(self);
        self.turn();
        done
    }

    /// The number of cached objects.
    pub fn cached(&self) -> usize {
        self.mine.content.cache().len()
    }

    /// Starts a new informer.
    fn start(&mut self, start: Start) -> Result<(), Violation> {
        self.mine.controller = None;
        self.mine.content = Content::new(self.storage.clone());
        self.mine.clients.clear();
        for reading in self.setup.readers.clone() {
            self.mine.content.subscribe(reading);
        }
        let namespaces: Vec<_> = match self.setup.by_namespace {
            true => (0..NAMESPACES).map(Some).collect(),
            false => vec![None],
        };
        let served = self.server.discovered().unwrap_or(self.mine.first_version);
        let file = self.mine.saved.as_ref().filter(|file| start == Start::Saved && file.version == served);
        let mut beginnings = match file {
            None => Vec::new(),
            Some(file) => {
                self.mine.content.look_before_loading();
                file.load(&mut self.mine.content, &namespaces)?
            }
        }
        .into_iter();
        for namespace in &namespaces {
            self.mine.clients.push(Client::new(*namespace, beginnings.next()));
        }
        if self.setup.workers > 0 {
            self.mine.controller = Controller::new(&self.mine.content.engine, self.setup.workers);
        }
        self.mine.content.check(self.mine.controller.iter().count())?;
        for client in &self.mine.clients {
            self.check_content(Some(client), number(&self.mine.content.source_version(client.namespace)))?;
        }
        self.informers += 1;
        let setup = &self.setup;
        let mut start = Content::start(namespaces.into_iter().map(scope));
        start.seed = self.seed.wrapping_mul(1_000_003).wrapping_add(self.informers);
        start.transform = self.mine.content.transform(setup.transform);
        start.changes_at_once = setup.changes_at_once.into();
        start.queued_operations = setup.queued_operations.into();
        start.reflector = ReflectorConfig {
            first_list: if setup.first_list_any { FirstList::Any } else { FirstList::Consistent },
            streaming_list: if setup.streaming { StreamingList::Preferred } else { StreamingList::Never },
            page_size: 2,
            internal_error_retry: Duration::from_secs(if setup.internal_error_retry { 30 } else { 0 }),
            ..ReflectorConfig::default()
        };
        let version = self.server.discovered().unwrap_or(self.mine.first_version);
        (self.mine.version, self.mine.first_version) = (version, version);
        (self.mine.is_lost, self.mine.awaits_discovery) = (false, false);
        start.api_version = format!("v{version}");
        start.expected.api_version.clone_from(&start.api_version);
        let member = self.upstream.join(self.now, start.api_version.clone(), !start.scopes.is_empty());
        self.mine.member = Some(member);
        self.mine.start = Some((self.now, Box::new(start)));
        self.follow_upstream()
    }

    /// Gives the engine an input, and does what it commands.
    fn input(&mut self, input: Input<'_>) -> Result<(), Violation> {
        self.trace.line(|| format!("       <- {}", shown(&input)));
        self.mine.content.look_before();
        self.mine.content.engine.handle(self.now, input);
        (self.mine.content.heard, self.mine.content.steps) = (0, 0);
        for _ in 0..TURNS {
            while let Some(command) = self.mine.content.engine.poll_command() {
                self.command(command)?;
            }
            self.check_synced()?;
            self.check_cost()?;
            let doubts = self.doubted_stories().collect();
            self.mine.content.are_in_doubt(doubts);
            if !self.mine.content.engine.has_work() {
                return self.check_statuses();
            }
            // The readers have their turn.
            self.mine.content.listen();
            self.read_by_themselves()?;
            self.mine.content.engine.handle(self.now, Input::Tick);
            (self.mine.content.heard, self.mine.content.steps) = (0, 0);
        }
        Err(Invariant::Pace.violated("the engine always has work"))
    }

    /// One input may not keep the other informers of the thread waiting. Each change in a mailbox takes time, so each operation
    /// puts at most a slice of its changes there.
    fn check_cost(&mut self) -> Result<(), Violation> {
        self.mine.content.listen();
        let Content { engine, heard, steps, .. } = &self.mine.content;
        let slice = (usize::from(self.setup.changes_at_once) / engine.fanout().len().max(1)).max(1);
        Invariant::Cost.holds(*heard <= slice * (steps + 2), || {
            format!("{steps} operations put {heard} changes into each mailbox, and a slice has {slice}")
        })
    }

    fn command(&mut self, command: Command) -> Result<(), Violation> {
        match command {
            Command::Send { id, request, scope, .. } => {
                let which = self.of_scope(&scope);
                Invariant::Stop.holds(which != usize::MAX, || {
                    format!("{request} is sent for {scope:?}, which is removed")
                })?;
                Invariant::Request.holds(!self.mine.is_lost, || {
                    format!("{request} is sent, though the resource is lost")
                })?;
                let held = self.mine.member.is_some_and(|member| self.upstream.holds(member));
                if let (Request::Watch(watch), Some(member)) = (&request, self.mine.member) {
                    let timeout = Duration::from_secs(watch.timeout_seconds);
                    self.watch_begins(which, member, scope, timeout);
                }
                let version = self.mine.version;
                self.with_client(which, |client, around| client.send(around, id, &request, version, held))
            }
            Command::Cancel(id) => {
                let which = self.mine.clients.iter().position(|client| client.request == Some(id));
                let link = which.and_then(|which| self.mine.clients.get(which)?.link);
                let now = self.now;
                if link.and_then(|link| self.server.link(link)).is_some_and(|link| link.is_unanswered(now)) {
                    self.unanswered();
                }
                self.with_client(which.unwrap_or(usize::MAX), |client, around| {
                    client.hang_up(around.server);
                    Ok(())
                })
            }
            Command::Compute(compute) => {
                self.mine.content.lend(compute);
                Ok(())
            }
            Command::SourceStatus(scope, status) => {
                let which = self.of_scope(&scope);
                let is_missing = matches!(&status, Status::Denied { status } if status.is_not_found());
                self.mine.is_lost |= self.setup.follows && is_missing;
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
                self.mine.content.steps += 1;
                self.applied(request, applied)?;
                self.check_synced()
            }
            Command::Listing(is_listing) => {
                self.mine.content.is_listing = is_listing;
                Ok(())
            }
            Command::Status(status) => {
                self.mine.content.status = status;
                Ok(())
            }
            Command::ScopeRemoved(scope) => self.scope_removed(&scope),
            Command::Synced => {
                self.mine.content.listen();
                self.mine.is_told_synced = true;
                Ok(())
            }
            Command::Wake(wakers) => {
                wakers.into_iter().for_each(std::task::Waker::wake);
                Ok(())
            }
            Command::Discover => {
                self.discover();
                Ok(())
            }
            Command::Answer(id, _) => {
                let was_asked = self.mine.asked.remove(&id);
                Invariant::Connection.holds(was_asked, || format!("{id:?} is answered, and nobody asks"))
            }
            Command::IndexFailed(report) => {
                self.mine.content.index_failed(&report);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn applied(&mut self, request: RequestId, applied: Applied) -> Result<(), Violation> {
        self.mine.content.listen();
        for which in 0..self.mine.clients.len() {
            if self.mine.clients.get(which).is_some_and(|client| client.has_asked(request)) {
                return self.with_client(which, |client, around| client.applied(around, request, applied));
            }
        }
        Ok(())
    }

    /// The engine says once that a removed namespace has no object any more.
    fn scope_removed(&mut self, removed: &Scope) -> Result<(), Violation> {
        let asked = self.mine.removing.iter().position(|(namespace, _)| scope(Some(*namespace)) == *removed);
        let Some(asked) = asked else {
            return Err(
                Invariant::Stop.violated(format!("{removed:?} is removed, though no step asked for that"))
            );
        };
        let (namespace, _) = self.mine.removing.remove(asked);
        if let Some(member) = self.mine.member {
            self.upstream.handle(self.now, upstream::Input::ScopeRemoved(member, removed.clone()));
        }
        // The namespace may have been added again.
        if self.mine.clients.iter().any(|client| client.namespace == Some(namespace)) {
            return Ok(());
        }
        let mut keys = Key::all().filter(|key| key.namespace() == namespace);
        let left = keys.find(|key| {
            self.mine.content.cache().get_str(key.text()).is_some() || self.mine.content.is_quarantined(*key)
        });
        Invariant::Content.holds(left.is_none(), || format!("{left:?} is left of a removed namespace"))
    }

    fn of_scope(&self, of: &Scope) -> usize {
        self.mine.clients.iter().position(|client| scope(client.namespace) == *of).unwrap_or(usize::MAX)
    }

    /// Gives the engine what arrives next, at most this many bytes. Returns whether something arrived.
    fn receive(&mut self, which: usize, most: usize) -> Result<bool, Violation> {
        let Some(client) = self.mine.clients.get(which) else { return Ok(false) };
        let (Some(link), Some(id)) = (client.link, client.request) else { return Ok(false) };
        if !self.mine.content.engine.takes_bytes() {
            return Ok(false);
        }
        let was_parked = self.server.link(link).is_some_and(|link| link.has_given_up);
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
            && !self.mine.content.is_lent()
            && !is_bad_end;
        let is_over = !matches!(arrival, Arrival::Head(Head::Accepted) | Arrival::Bytes(_));
        if is_over {
            self.server.close(link);
            self.mine
                .clients
                .iter_mut()
                .filter(|client| client.link == Some(link))
                .for_each(|client| client.link = None);
        }
        let events = self.events();
        if let (Arrival::Head(head), Some(member), false) = (&arrival, self.mine.member, was_parked) {
            let input = match head {
                Head::Unreachable => upstream::Input::Unanswered(member),
                Head::Accepted | Head::Refused { .. } => upstream::Input::Answered(member),
            };
            self.upstream.handle(self.now, input);
        }
        self.input(Input::Response(id, response))?;
        let heard = self.events().saturating_sub(events);
        let now = self.now;
        if let Some(client) = self.mine.clients.get_mut(which) {
            if client.request == Some(id)
                && let Some(watch) = &mut client.watch
            {
                watch.heard(heard);
                if matches!(arrival, Arrival::Head(Head::Accepted)) {
                    watch.was_accepted(now);
                }
            }
            let goes_on = goes_on && !self.mine.is_lost;
            Invariant::Request.holds(!goes_on || client.watch.is_some_and(|watch| watch.is_new()), || {
                format!("a served watch ended, and no watch follows: {}", client.status)
            })?;
        }
        Ok(true)
    }

    fn was_served(&self, which: usize) -> bool {
        let watch = self.mine.clients.get(which).and_then(|client| client.watch);
        watch.is_some_and(|watch| watch.is_enough(self.now))
    }

    /// The number of events that the engine has decoded.
    fn events(&self) -> u32 {
        let counts = self.mine.content.engine.counters().events();
        let count = counts.added + counts.modified + counts.deleted + counts.bookmarks;
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Runs waiting user code, or returns its result. Returns whether there was any.
    fn run_code(&mut self) -> Result<bool, Violation> {
        if !self.mine.content.has_code() {
            return Ok(false);
        }
        if let Some(computed) = self.mine.content.run_code() {
            self.input(Input::Computed(computed))?;
        }
        Ok(true)
    }

    fn with_client(
        &mut self,
        which: usize,
        act: impl FnOnce(&mut Client, &mut Around<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let Self { mine, server, trace, now, setup, .. } = self;
        let Informer { clients, content, .. } = mine;
        let Some(client) = clients.get_mut(which) else { return Ok(()) };
        let transform = setup.transform;
        act(client, &mut Around { now: *now, server, content, trace, transform })
    }

    /// Does one step, and everything that follows from it at once.
    pub(crate) fn step(&mut self, number: usize, step: Step) -> Result<(), Violation> {
        let now = self.now.since(Time::ZERO).as_secs_f64();
        self.trace.line(|| format!("{number:4} {now:9.3}s  {step:?}"));
        self.each(|world| {
            world.mine.clients.iter_mut().for_each(Client::another_moment);
            Ok(())
        })?;
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
                if self.mine.content.subscriptions.len() < SUBSCRIPTIONS {
                    self.mine.content.subscribe(reading);
                }
            }
            Step::Leave(which) => {
                let count = self.mine.content.subscriptions.len();
                if count > 0 {
                    self.mine.content.subscriptions.remove(usize::from(which) % count);
                }
            }
            Step::Read(which, notices) => {
                let count = self.mine.content.subscriptions.len().max(1);
                let which = usize::from(which) % count;
                return self.mine.content.read(which, notices.into(), &self.server.truth, self.trace);
            }
            Step::Resync(which) => {
                let count = self.mine.content.subscriptions.len().max(1);
                self.mine.content.resync(usize::from(which) % count);
            }
            Step::Wake => return self.wake(Input::Wake),
            Step::SchemaChanged => {
                self.server.change_schema();
            }
            Step::Revise(key) => {
                if self.server.revise(key) {
                    self.revised(key);
                }
            }
            Step::Turn => self.turn(),
            Step::Ask => {
                self.questions += 1;
                let id = QuestionId(self.questions);
                let namespace = self.mine.clients.first().and_then(|client| client.namespace);
                self.mine.asked.insert(id);
                return self.input(Input::Ask(id, Question::Reach(scope(namespace))));
            }
            Step::Serve => {
                self.server.serve_another_version();
                Key::all().for_each(|key| self.revised(key));
            }
            Step::Undefine => self.server.undefine(),
            Step::Define => self.server.define(),
            Step::Code => drop(self.run_code()?),
            Step::Save => self.save()?,
            Step::Restart(start) => {
                self.stop()?;
                return self.start(start);
            }
            Step::AddNamespace(namespace) => return self.add_namespace(namespace),
            Step::RemoveNamespace(namespace) => return self.remove_namespace(namespace),
            Step::Reconciled(which, ending) => {
                if let Some(controller) = &mut self.mine.controller {
                    controller.end(self.now, which, ending, &mut self.server);
                }
            }
            Step::Pause => self.mine.controller.iter_mut().for_each(Controller::pause),
            Step::Resume => self.mine.controller.iter_mut().for_each(|it| it.resume(self.now)),
            Step::Snapshot => self.mine.content.keep_snapshot(),
            Step::Index => self.mine.content.toggle_index(),
            Step::Forget => self.server.forget(),
        }
        Ok(())
    }

    fn revised(&mut self, key: Key) {
        let version = self.server.version;
        [Some(&mut self.mine), self.other.as_mut()]
            .into_iter()
            .flatten()
            .for_each(|informer| informer.revised(key, version));
    }

    /// Saves the cache, unless it is of another version of the resource than the informer was made for.
    fn save(&mut self) -> Result<(), Violation> {
        let Informer { content, clients, removing, version, .. } = &self.mine;
        if self.mine.version == self.mine.first_version
            && let Some(file) = File::of(content, clients, removing, *version)?
        {
            self.mine.saved = Some(file);
        }
        Ok(())
    }

    /// A request of this informer was not answered.
    fn unanswered(&mut self) {
        if let Some(member) = self.mine.member {
            self.upstream.handle(self.now, upstream::Input::Unanswered(member));
        }
    }

    fn which(&self, client: u8) -> usize {
        usize::from(client) % self.mine.clients.len().max(1)
    }

    fn on_link(&mut self, client: u8, act: impl FnOnce(&mut Server, LinkId)) {
        if let Some(id) = self.mine.clients.get(self.which(client)).and_then(|client| client.link) {
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
        let is_there = self.mine.clients.iter().any(|client| client.namespace == Some(namespace));
        if !self.setup.by_namespace || is_there || self.mine.start.is_some() {
            return Ok(());
        }
        // The engine may still be removing the namespace. It does both in turn.
        self.mine.clients.push(Client::new(Some(namespace), None));
        self.input(Input::AddScope(scope(Some(namespace))))
    }

    /// Requests are to be sent: all that wait, or those that were not answered.
    fn wake(&mut self, input: Input<'_>) -> Result<(), Violation> {
        let before = self.mine.content.engine.deadline();
        let waits = self.mine.clients.iter().any(|client| client.waits);
        let now = self.now;
        let all = matches!(input, Input::Wake);
        self.mine.awaits_discovery |= self.mine.is_lost && all;
        // While the resource is lost, requests are refused without being sent.
        let is_lost = self.mine.is_lost;
        let woken = |client: &&mut Client| all || client.is_unreached() && !is_lost;
        self.mine.clients.iter_mut().filter(woken).for_each(|client| client.woken(now));
        self.input(input)?;
        Invariant::Connection.holds(waits || self.mine.content.engine.deadline() == before, || {
            "a wake gave a request more time".to_owned()
        })
    }

    fn remove_namespace(&mut self, namespace: u8) -> Result<(), Violation> {
        let which = self.mine.clients.iter().position(|client| client.namespace == Some(namespace));
        let Some(which) = which.filter(|_| self.mine.start.is_none()) else { return Ok(()) };
        self.mine.content.removed = true;
        let schema = self.mine.clients.get(which).map_or(0, |client| client.schema);
        self.mine.removing.push((namespace, schema));
        self.input(Input::RemoveScope(scope(Some(namespace))))?;
        let mut client = self.mine.clients.remove(which);
        Invariant::Stop.holds(client.link.is_none(), || "a removed namespace has a connection".to_owned())?;
        client.hang_up(&mut self.server);
        let is_done = self.mine.content.is_lent() || self.mine.removing.is_empty();
        Invariant::Stop.holds(is_done, || {
            "the engine does not finish the removal of a namespace, though no user code runs".to_owned()
        })
    }

    /// Stops the informer. Subscriptions still receive their backlog.
    pub(crate) fn stop(&mut self) -> Result<(), Violation> {
        while !self.setup.stops_at_once && self.run_code()? {}
        // The changes of user code that runs at the stop reach the cache, but no subscription.
        let was_lent = self.mine.content.is_lent();
        self.input(Input::Stop)?;
        while self.run_code()? {}
        self.mine.asked.clear();
        self.mine.start = None;
        if let Some(member) = self.mine.member.take() {
            self.upstream.leave(member);
        }
        // The clients do not know what the user code applied. Across a restore the oracle cannot judge such a file.
        if self.setup.stops_at_once && (!was_lent || self.server.truth.epoch() == 0) {
            self.save()?;
        }
        let is_back = self.mine.content.engine.checkpoint().is_ok();
        Invariant::Saved.holds(is_back, || "after the stop there is no checkpoint".to_owned())?;
        let later = self.now + Duration::from_secs(3600);
        for input in [Input::Wake, Input::Released, Input::Tick] {
            self.mine.content.engine.handle(later, input);
        }
        let more = self.mine.content.engine.poll_command();
        let deadline = self.mine.content.engine.deadline();
        Invariant::Stop.holds(more.is_none() && deadline.is_none(), || {
            format!("after the stop the engine commands {more:?} and has the deadline {deadline:?}")
        })?;
        for client in &self.mine.clients {
            Invariant::Stop.holds(client.asked == 0 || client.status == Status::Stopped, || {
                format!("after the stop a source is {}", client.status)
            })?;
        }
        let is_open = self.mine.clients.iter().any(|client| client.link.is_some());
        Invariant::Stop.holds(!is_open, || "after the stop a connection is open".to_owned())?;
        self.mine.removing.clear();
        if was_lent {
            return Ok(());
        }
        self.mine.content.read_all(&self.server.truth, self.trace)?;
        self.mine.content.check_nothing_lost()
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
