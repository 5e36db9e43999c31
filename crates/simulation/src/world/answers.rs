//! The machine that the informers of one server share, and the answers to its questions and to those of the engines.

use std::time::Duration;

use informer_core::engine::{self, Discovered};
use informer_core::reader::Expected;
use informer_core::upstream::{Command, Input, Member, Probe};
use informer_core::{Scope, Time};

use super::{SCHEMA_PACE, World};
use crate::client::Client;
use crate::informer::PATIENCE;
use crate::invariant::{Invariant, Violation};

/// How long a slow server takes for an answer. It is longer than the first lists wait for it.
const SLOW: Duration = Duration::from_secs(3);

/// An answer that is on its way.
pub(super) struct Answer {
    pub(super) at: Time,
    pub(super) of: Of,
}

pub(super) enum Of {
    Upstream(Input),
    /// How the resource of an informer is served; `None` if discovery does not know it.
    Discovery(Option<Member>, Option<u8>),
}

impl World<'_> {
    pub(super) fn upstream(&mut self, input: Input) -> Result<(), Violation> {
        self.upstream.handle(self.now, input);
        self.follow_upstream()
    }

    /// Carries out the commands.
    pub(super) fn follow_upstream(&mut self) -> Result<(), Violation> {
        while let Some(command) = self.upstream.poll_command() {
            self.trace.line(|| format!("       upstream: {command:?}"));
            let can_answer = self.server.can_answer();
            Invariant::Pace.holds(command != Command::ReadSchemas || !self.upstream.is_outage(), || {
                "the schemas are read in an outage".to_owned()
            })?;
            match command {
                Command::Probe if can_answer => {
                    self.answer_later(Of::Upstream(Input::Probed(Probe::Answered)))
                }
                Command::Probe => self.answer_later(Of::Upstream(Input::Probed(Probe::Failed))),
                Command::ReadSchemas => {
                    self.early_end = None;
                    let schemas = can_answer.then(|| self.server.schemas());
                    self.answer_later(Of::Upstream(Input::Schemas(schemas)));
                }
                Command::Begin(member) => self.with_member(member, Self::begin)?,
                Command::Release(member) => self.with_member(member, Self::released)?,
                Command::Schema(member, schema) => {
                    self.with_member(member, |world| world.input(engine::Input::Schema(&schema)))?;
                }
            }
        }
        Ok(())
    }

    /// The server answers now, or after a while.
    fn answer_later(&mut self, of: Of) {
        let wait = if self.setup.server.slow { SLOW } else { Duration::ZERO };
        self.answers.push(Answer { at: self.now + wait, of });
    }

    /// Passes the answers on that have arrived.
    pub(super) fn take_answers(&mut self) -> Result<bool, Violation> {
        let Some(at) = self.answers.iter().position(|answer| answer.at <= self.now) else { return Ok(false) };
        match self.answers.remove(at).of {
            Of::Upstream(input) => self.upstream(input)?,
            Of::Discovery(Some(member), served) => {
                self.with_member(member, |world| world.discovered(member, served))?;
            }
            Of::Discovery(None, _) => {}
        }
        Ok(true)
    }

    pub(super) fn discover(&mut self) {
        let served = self.server.discovered();
        self.answer_later(Of::Discovery(self.mine.member, served));
    }

    fn discovered(&mut self, member: Member, served: Option<u8>) -> Result<(), Violation> {
        let now = self.now;
        let is_awaited =
            std::mem::replace(&mut self.mine.awaits_discovery, self.mine.is_lost && served.is_none());
        let discovered = match served {
            None => Discovered::Unknown,
            Some(served) if served == self.mine.version => {
                self.mine.is_lost = false;
                if is_awaited {
                    self.mine.clients.iter_mut().for_each(|client| client.woken(now));
                }
                Discovered::Unchanged
            }
            Some(served) => {
                self.mine.is_lost = false;
                self.mine.version = served;
                for client in &mut self.mine.clients {
                    client.woken(now);
                    client.watched_until = None;
                }
                let api_version = format!("v{served}");
                Discovered::As {
                    schema: self.upstream.serves(member, &api_version),
                    expected: Expected {
                        api_version: api_version.clone(),
                        kind: "Pod".into(),
                        or_kind: None,
                    },
                    api_version,
                    is_other: false,
                }
            }
        };
        self.input(engine::Input::Discovered(discovered))
    }

    fn begin(&mut self) -> Result<(), Violation> {
        let Some((_, start)) = self.mine.start.take() else { return Ok(()) };
        self.input(engine::Input::Start(start))?;
        if self.setup.follows { self.input(engine::Input::Follow) } else { Ok(()) }
    }

    /// The outage is over for this informer: requests that waited for that are sent.
    fn released(&mut self) -> Result<(), Violation> {
        for which in 0..self.mine.clients.len() {
            self.with_client(which, |client, around| {
                client.released(around);
                Ok(())
            })?;
        }
        self.wake(engine::Input::Released)
    }

    /// Notes that a source watches. One whose former watch the server has ended may have another schema.
    pub(super) fn watch_begins(&mut self, which: usize, member: Member, scope: Scope, timeout: Duration) {
        let now = self.now;
        if let Some(client) = self.mine.clients.get_mut(which)
            && client.watched_until.replace(now + timeout).is_some_and(|until| now < until)
        {
            self.early_end.get_or_insert(now);
        }
        self.upstream.handle(now, Input::WatchBegins(member, scope, timeout));
    }

    /// The schemas are read soon after a watch has ended early, and no request is held after an outage.
    pub(super) fn check_upstream(&mut self) -> Result<(), Violation> {
        self.early_end = self.early_end.filter(|_| !self.upstream.is_outage());
        let late = self.early_end.filter(|since| self.now.since(*since) > SCHEMA_PACE * 2);
        Invariant::Pace.holds(late.is_none(), || {
            format!("a watch ended early at {late:?}, and the schemas were not read since")
        })?;
        let is_held = self.mine.member.is_none_or(|member| self.upstream.holds(member));
        let mut links = self.mine.clients.iter().filter_map(|client| client.link);
        let parked =
            links.any(|link| self.server.link(link).is_some_and(|link| link.gives_up_at().is_some()));
        Invariant::Connection
            .holds(is_held || !parked, || "a request is held, though the outage is over".to_owned())
    }

    /// A start waits for the schemas, but not for long.
    pub(super) fn check_begun(&self) -> Result<(), Violation> {
        let late = self.mine.start.as_ref().filter(|(since, _)| self.now.since(*since) > PATIENCE);
        Invariant::Pace.holds(late.is_none(), || "the first list waits for the schemas".to_owned())
    }

    /// A wake is owed until its source has sent a request, or the resource is lost.
    pub(super) fn check_owed(&self) -> Result<(), Violation> {
        let owes = |client: &&Client| client.owes_request && !self.mine.is_lost;
        let owed = self.mine.clients.iter().find(owes).filter(|_| !self.mine.content.is_lent());
        Invariant::Connection
            .holds(owed.is_none(), || "a source was woken, and sent no request".to_owned())?;
        let unanswered = self.mine.asked.iter().next().filter(|_| !self.mine.content.is_lent());
        Invariant::Connection
            .holds(unanswered.is_none(), || format!("{unanswered:?} has no answer, though no user code runs"))
    }
}
