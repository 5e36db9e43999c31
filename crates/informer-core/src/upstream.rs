//! The server as all informers of a factory know it: whether it answers, and which schemas it has.
//!
//! Each informer is a [`Member`]. The machine decides when the server is probed, when its index of schemas is read, which
//! informer may send requests, and which one gets news. Like the engine, it has no I/O and no clock: its owner passes inputs
//! with the time, and carries out the commands.
//!
//! ```
//! use std::time::Duration;
//! use informer_core::Time;
//! use informer_core::upstream::{Command, Input, Probe, Upstream};
//!
//! let mut upstream = Upstream::new(7, Duration::from_secs(30));
//! let pods = upstream.join(Time::ZERO, "v1".to_owned(), false);
//! assert_eq!(upstream.poll_command(), Some(Command::Begin(pods)));
//!
//! upstream.handle(Time::ZERO, Input::Unanswered(pods));
//! assert!(upstream.holds(pods));
//! let later = Time::ZERO + Duration::from_secs(2);
//! upstream.handle(later, Input::Tick);
//! assert_eq!(upstream.poll_command(), Some(Command::Probe));
//! upstream.handle(later, Input::Probed(Probe::Answered));
//! assert_eq!(upstream.poll_command(), Some(Command::Release(pods)));
//! assert!(!upstream.holds(pods));
//! ```

mod outage;
mod schemas;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use crate::{Scope, Time};
use outage::{Outage, Output};
use schemas::Schemas;

pub use outage::Member;

/// The first list of a factory waits this long for the schemas.
const PATIENCE: Duration = Duration::from_secs(1);

/// The knowledge that the informers of a factory share of their server.
#[derive(Debug)]
pub struct Upstream {
    outage: Outage,
    schemas: Schemas,
    members: BTreeMap<Member, Informer>,
    commands: VecDeque<Command>,
}

#[derive(Debug)]
struct Informer {
    /// The group and version of its resource, as in `apps/v1`.
    api_version: String,
    /// The fingerprint of the schema that it got last.
    schema: Option<String>,
    /// The latest time at which its first list begins, until that has begun.
    begins_by: Option<Time>,
    /// When the watch of each scope ends by its own timeout.
    watched_until: HashMap<Scope, Time>,
}

/// An input: the closed list of everything that changes what is known of the server.
#[derive(Debug)]
pub enum Input {
    /// The server answered a request of a member, if only with an error status.
    Answered(Member),
    /// A request of a member was not answered.
    Unanswered(Member),
    /// A member requests a watch of a scope, with this timeout.
    WatchBegins(Member, Scope, Duration),
    /// A member does not watch a scope any more.
    ScopeRemoved(Member, Scope),
    /// How the last [`Command::Probe`] ended.
    Probed(Probe),
    /// The answer to [`Command::ReadSchemas`]: the address of each document, which contains its hash, by group and version as
    /// in `apis/apps/v1`. `None` without an answer.
    Schemas(Option<HashMap<String, String>>),
    /// The time of the call is new.
    Tick,
}

/// How a probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// The server answered, if only with an error status.
    Answered,
    /// The server was not reached.
    Failed,
    /// There was neither an answer nor an error in time.
    TimedOut,
}

/// A command to the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Send a cheap request. An answer of any kind ends the outage.
    Probe,
    /// Read the index of the server's schemas.
    ReadSchemas,
    /// Let this member send its first requests.
    Begin(Member),
    /// Let this member send its requests again, and at once.
    Release(Member),
    /// Give this member the fingerprint of its schema, which is another one than before.
    Schema(Member, String),
}

impl Upstream {
    /// A server without informers. `pace` is the shortest time between two requests for its schemas. The same seed gives the
    /// same jitter.
    pub fn new(seed: u64, pace: Duration) -> Self {
        Self {
            outage: Outage::new(seed),
            schemas: Schemas::new(pace),
            members: BTreeMap::new(),
            commands: VecDeque::new(),
        }
    }

    /// Adds an informer of a resource with this group and version. `lists` says whether it has something to list at once: then
    /// its first list waits for the schemas, so that its content belongs to a known one.
    pub fn join(&mut self, now: Time, api_version: String, lists: bool) -> Member {
        let member = self.outage.join();
        self.schemas.wanted(now, lists);
        let waits = lists && !self.schemas.were_read() && !self.outage.lasts();
        let begins_by = Some(if waits { now + PATIENCE } else { now });
        let informer = Informer { api_version, schema: None, begins_by, watched_until: HashMap::new() };
        self.members.insert(member, informer);
        self.handle(now, Input::Tick);
        member
    }

    /// Removes an informer. If it was the last one held, the outage ends.
    pub fn leave(&mut self, member: Member) {
        self.members.remove(&member);
        self.outage.leave(member);
    }

    /// The informer requests another version of its resource from now on. Returns the fingerprint of that one's schema; empty
    /// while it is unknown.
    pub fn serves(&mut self, member: Member, api_version: &str) -> String {
        let schema = self.schemas.fingerprint(api_version);
        if let Some(informer) = self.members.get_mut(&member) {
            (informer.api_version, informer.schema) = (api_version.to_owned(), schema.clone());
            informer.watched_until.clear();
        }
        schema.unwrap_or_default()
    }

    /// Handles one input. Time must not go back from one call to the next.
    pub fn handle(&mut self, now: Time, input: Input) {
        let may_be_news = matches!(input, Input::Schemas(_) | Input::Tick);
        match input {
            Input::Answered(member) => self.answered(now, member),
            Input::Unanswered(member) => self.outage.failed(now, member),
            Input::WatchBegins(member, scope, timeout) => self.watch_begins(now, member, scope, timeout),
            Input::ScopeRemoved(member, scope) => {
                if let Some(informer) = self.members.get_mut(&member) {
                    informer.watched_until.remove(&scope);
                }
            }
            Input::Probed(Probe::Answered) => self.outage.answered(now, None),
            Input::Probed(Probe::TimedOut) => self.outage.probe_timed_out(now),
            // The outage has planned the next probe already.
            Input::Probed(Probe::Failed) => {}
            Input::Schemas(addresses) => self.schemas.read(now, addresses),
            Input::Tick => {}
        }
        self.go_on(now);
        if may_be_news {
            self.notify(now);
        }
    }

    /// The next command.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When to call [`Upstream::handle`] with [`Input::Tick`] if nothing happens before.
    pub fn deadline(&self) -> Option<Time> {
        let begins = self.members.values().filter_map(|informer| informer.begins_by);
        begins.chain(self.outage.deadline()).chain(self.schemas.deadline()).min()
    }

    /// Whether a member has to wait for [`Command::Release`].
    pub fn holds(&self, member: Member) -> bool {
        self.outage.holds(member)
    }

    /// Whether the server is being probed, because a request was not answered.
    pub fn is_outage(&self) -> bool {
        self.outage.lasts()
    }

    /// Other requests of a held member may wait for this.
    fn answered(&mut self, now: Time, member: Member) {
        let was_held = self.holds(member);
        self.outage.answered(now, Some(member));
        if was_held && !self.holds(member) {
            self.commands.push_back(Command::Release(member));
        }
    }

    /// A watch that begins before the former one's timeout shows that the server ended that one. A changed definition is one
    /// reason for it.
    fn watch_begins(&mut self, now: Time, member: Member, scope: Scope, timeout: Duration) {
        let Some(informer) = self.members.get_mut(&member) else { return };
        let former = informer.watched_until.insert(scope, now + timeout);
        if former.is_some_and(|until| now < until) {
            self.schemas.read_soon(now);
        }
    }

    fn go_on(&mut self, now: Time) {
        while let Some(output) = self.outage.poll(now) {
            self.commands.push_back(match output {
                Output::Probe => Command::Probe,
                Output::Wake(member) => Command::Release(member),
            });
        }
        // In an outage only its probes are sent.
        if self.schemas.is_due(now, self.outage.lasts()) {
            self.commands.push_back(Command::ReadSchemas);
        }
    }

    /// Gives each member its schema, where that changed, and lets the first lists begin.
    fn notify(&mut self, now: Time) {
        for (member, informer) in &mut self.members {
            let schema = self.schemas.fingerprint(&informer.api_version);
            if schema.is_some() && schema != informer.schema {
                informer.schema.clone_from(&schema);
                self.commands.extend(schema.map(|schema| Command::Schema(*member, schema)));
            }
            if informer.begins_by.is_some_and(|by| by <= now || self.schemas.were_read()) {
                informer.begins_by = None;
                self.commands.push_back(Command::Begin(*member));
            }
        }
    }
}
