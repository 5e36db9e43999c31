//! One list and watch: the real reflector and decoders, driven as `crates/informer/src/shared/driver.rs` drives them, and
//! watched while it asks and waits.

use std::collections::BTreeMap;
use std::time::Duration;

use informer_core::reader::{Answer, Reading, To};
use informer_core::reflector::{
    FirstList, Input, Output, Reflector, ReflectorConfig, Report, Request, Status, StoreOperation,
    StreamingList,
};
use informer_core::store::Replace;
use informer_core::wire::{ApiStatus, Limits};
use informer_core::{ResourceVersion, SourceId, Time};

use crate::fanout::Content;
use crate::invariant::{Invariant, Violation};
use crate::network::{Arrival, Cause, Doubt, Head, LinkId};
use crate::plan::Setup;
use crate::saving::{self, Beginning};
use crate::served::Served;
use crate::server::Server;
use crate::trace::Trace;
use crate::truth::{Key, namespace};

/// How many requests one moment may have: a list that expires at each of its forms, a refused stream, and the watch.
const REQUESTS_AT_ONCE: u32 = 8;
const LONGEST_WAIT: Duration = Duration::from_secs(660);
const SHORTEST_WAIT: Duration = Duration::from_millis(800);

/// What a client acts upon.
pub(crate) struct Around<'a> {
    pub(crate) now: Time,
    pub(crate) server: &'a mut Server,
    pub(crate) content: &'a mut Content,
    pub(crate) trace: &'a mut Trace,
}

pub(crate) struct Client {
    pub(crate) source: SourceId,
    /// The namespace that is looked at; all if none.
    pub(crate) namespace: Option<u8>,
    reflector: Reflector,
    pub(crate) link: Option<LinkId>,
    answer: Option<Answer>,
    staging: Option<Replace>,
    pub(crate) status: Status,
    /// The last request has failed, and the next one waits for its time.
    pub(crate) waits: bool,
    /// Nothing may be asked for before.
    not_before: Time,
    /// How many requests there were.
    pub(crate) asked: u32,
    asked_now: (Time, u32),
    /// Whether the last request named a version.
    names_version: bool,
    /// The watch under way, if that is what was asked for last.
    watch: Option<Served>,
    /// The past that its content is of.
    pub(crate) epoch: usize,
    /// It has a content.
    is_synced: bool,
    /// States of different pasts are mixed, and it cannot know.
    pub(crate) is_deceived: bool,
    /// It has been as far as the cache: one that is added later may be behind at first (`Cache::resource_version`).
    pub(crate) has_caught_up: bool,
    /// The cache's revision and the source's version at the last check of its content.
    pub(crate) checked: Option<(u64, u64)>,
    /// Keys whose state is in doubt, until a good version of at least this; for each cause by itself, since a cause that is none
    /// any more takes no other with it.
    pub(crate) doubts: BTreeMap<(Key, Cause), Doubt>,
    /// Those of the list under way.
    doubts_of_list: Vec<(Key, Doubt)>,
    /// Something could not be read since the last list, as far as the state machine said.
    pub(crate) has_unread: bool,
    /// The same for the list that is staged.
    list_has_unread: bool,
    /// Whether the list under way believes equal versions.
    trusts: bool,
}

impl Client {
    pub(crate) fn new(
        setup: &Setup,
        seed: u64,
        namespace: Option<u8>,
        content: &mut Content,
        beginning: Option<Beginning>,
    ) -> Self {
        let beginning = beginning.unwrap_or_else(|| {
            let source = content.store.add_source(saving::scope(namespace));
            Beginning { source, resume: None, past: None }
        });
        let past = beginning.past.filter(|_| beginning.resume.is_some());
        let config = ReflectorConfig {
            first_list: if setup.first_list_any { FirstList::Any } else { FirstList::Consistent },
            streaming_list: if setup.streaming { StreamingList::Preferred } else { StreamingList::Never },
            page_size: 2,
            internal_error_retry: Duration::from_secs(if setup.internal_error_retry { 30 } else { 0 }),
            ..ReflectorConfig::default()
        };
        Self {
            source: beginning.source,
            namespace,
            is_synced: beginning.resume.is_some(),
            reflector: match beginning.resume {
                None => Reflector::new(config, seed),
                Some(resume) => Reflector::resuming(config, seed, resume),
            },
            link: None,
            answer: None,
            staging: None,
            status: Status::Connecting,
            waits: false,
            not_before: Time::ZERO,
            asked: 0,
            asked_now: (Time::ZERO, 0),
            names_version: false,
            watch: None,
            epoch: past.as_ref().map_or(0, |past| past.epoch),
            is_deceived: past.as_ref().is_some_and(|past| past.is_deceived),
            has_caught_up: false,
            checked: None,
            doubts: past.map(|past| past.doubts).unwrap_or_default(),
            doubts_of_list: Vec::new(),
            has_unread: false,
            list_has_unread: false,
            trusts: true,
        }
    }

    pub(crate) fn start(&mut self, around: &mut Around<'_>) -> Result<(), Violation> {
        self.input(around, Input::Start)
    }

    pub(crate) fn covers(&self, key: Key) -> bool {
        self.namespace.is_none_or(|namespace| namespace == key.namespace())
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.reflector.deadline()
    }

    pub(crate) fn tick(&mut self, around: &mut Around<'_>) -> Result<(), Violation> {
        self.input(around, Input::Tick)?;
        Invariant::Pace.holds(self.deadline().is_some_and(|deadline| deadline > around.now), || {
            format!("after its time had come, the next deadline is {:?} at {:?}", self.deadline(), around.now)
        })
    }

    pub(crate) fn wake(&mut self, around: &mut Around<'_>) -> Result<(), Violation> {
        let before = self.deadline();
        let waits = self.waits;
        if waits {
            self.not_before = around.now;
        }
        self.input(around, Input::Wake)?;
        Invariant::Connection.holds(waits || self.deadline() == before, || {
            "being woken has given a request more time".to_owned()
        })
    }

    /// Ends for good, and has to stay so.
    pub(crate) fn stop(&mut self, around: &mut Around<'_>) -> Result<(), Violation> {
        self.input(around, Input::Stop)?;
        for input in [Input::Wake, Input::Start, Input::Tick, Input::Accepted, Input::End] {
            self.reflector.handle(around.now + Duration::from_secs(3600), input);
        }
        let more = self.reflector.poll_output();
        Invariant::Stop.holds(more.is_none() && self.deadline().is_none(), || {
            format!("after the stop it wants {more:?} and waits for {:?}", self.deadline())
        })?;
        Invariant::Stop.holds(self.link.is_none() && self.staging.is_none(), || {
            "after the stop a connection or a staged list is left".to_owned()
        })?;
        Invariant::Stop.holds(self.status == Status::Stopped, || format!("the status is {}", self.status))
    }

    /// Takes what arrives, in pieces of so many bytes. Whether there was anything.
    pub(crate) fn receive(&mut self, around: &mut Around<'_>, most: usize) -> Result<bool, Violation> {
        let Some(arrival) = self.link.and_then(|link| around.server.take(link, most)) else {
            return Ok(false);
        };
        self.note_damage(around);
        match arrival {
            Arrival::Head(Head::Accepted) => self.input(around, Input::Accepted)?,
            Arrival::Head(Head::Unreachable) => {
                self.hang_up(around);
                self.input(around, Input::Unreachable("refused".into()))?;
            }
            Arrival::Head(Head::Refused { code, retry_after, body }) => {
                self.hang_up(around);
                let mut status = ApiStatus::from_body(code, body.as_bytes());
                status.retry_after = status.retry_after.max(retry_after.map(Duration::from_secs));
                self.input(around, Input::Refused(status))?;
            }
            Arrival::Bytes(bytes) => {
                if let Some(answer) = &mut self.answer {
                    answer.push(&bytes);
                }
                self.read(around)?;
            }
            Arrival::End => self.finish(around)?,
            Arrival::Broken => {
                self.hang_up(around);
                self.input(around, Input::Broken("reset".into()))?;
            }
        }
        Ok(true)
    }

    /// An input may end the exchange, and with it the answer.
    fn read(&mut self, around: &mut Around<'_>) -> Result<(), Violation> {
        loop {
            let trust = self.reflector.trusts_versions();
            let reading = self.answer.as_mut().and_then(|answer| around.content.reader.next(answer, trust));
            let Some(Reading { input, .. }) = reading else { return Ok(()) };
            if matches!(input, Input::Undecodable(_)) {
                self.hang_up(around);
            }
            self.input(around, input)?;
        }
    }

    fn finish(&mut self, around: &mut Around<'_>) -> Result<(), Violation> {
        let trust = self.reflector.trusts_versions();
        let (link, Some(mut answer)) = (self.link, self.answer.take()) else { return Ok(()) };
        let (last, end) = around.content.reader.finish(&mut answer, trust);
        if let Some(last) = last {
            self.input(around, last.input)?;
        }
        if self.link == link {
            self.input(around, end)?;
        }
        // Unless something else was asked for by now.
        if self.link == link {
            self.hang_up(around);
        }
        Ok(())
    }

    fn hang_up(&mut self, around: &mut Around<'_>) {
        self.answer = None;
        if let Some(link) = self.link.take() {
            around.server.close(link);
        }
    }

    /// Whatever is damaged on this connection is in doubt from the first byte on.
    fn note_damage(&mut self, around: &mut Around<'_>) {
        let Some(link) = self.link.and_then(|link| around.server.link(link)) else { return };
        for (key, doubt) in std::mem::take(&mut link.doubts) {
            if self.staging.is_some() {
                self.doubts_of_list.push((key, doubt));
            }
            self.doubt(around.content, key, doubt);
        }
    }

    fn doubt(&mut self, content: &mut Content, key: Key, doubt: Doubt) {
        content.doubts.of(key);
        let known = self.doubts.entry((key, doubt.cause)).or_insert(doubt);
        known.until = known.until.max(doubt.until);
    }
}

/// What the state machine asks for.
impl Client {
    fn input(&mut self, around: &mut Around<'_>, input: Input) -> Result<(), Violation> {
        around.trace.line(|| format!("       {} <- {}", self.name(), shown(&input)));
        let goes_on =
            matches!(input, Input::End) && self.watch.is_some_and(|watch| watch.is_enough(around.now));
        if let Some(watch) = &mut self.watch {
            watch.hear(around.now, &input);
        }
        self.reflector.handle(around.now, input);
        while let Some(output) = self.reflector.poll_output() {
            match output {
                Output::Send(request) => self.send(around, &request)?,
                Output::Cancel => self.hang_up(around),
                Output::RefreshCredentials => {}
                Output::Store(operation) => self.store(around, operation)?,
                Output::Status(status) => self.status(around, status)?,
                Output::Report(report) => self.report(around, &report),
            }
        }
        Invariant::Request.holds(!goes_on || self.watch.is_some_and(Served::is_new), || {
            format!("a watch that was served has ended, and no watch follows: {}", self.status)
        })
    }

    fn name(&self) -> &'static str {
        self.namespace.map_or("*", namespace)
    }

    fn send(&mut self, around: &mut Around<'_>, request: &Request) -> Result<(), Violation> {
        around.trace.line(|| format!("       {} -> {request}", self.name()));
        self.check_request(&around.content.store.source_version(self.source), request)?;
        Invariant::Pace.holds(around.now >= self.not_before, || {
            format!("{request} is sent at {:?}, before {:?}", around.now, self.not_before)
        })?;
        let is_page = matches!(request, Request::List(list) if list.continue_token.is_some());
        if !is_page {
            self.asked += 1;
            let (at, count) = self.asked_now;
            self.asked_now = if at == around.now { (at, count + 1) } else { (around.now, 1) };
            Invariant::Pace.holds(self.asked_now.1 <= REQUESTS_AT_ONCE, || {
                format!("{request} is the {}th request in one moment", self.asked_now.1)
            })?;
        }
        self.hang_up(around);
        self.waits = false;
        if !is_page {
            self.doubts_of_list.clear();
        }
        self.names_version = !match request {
            Request::List(list) => list.resource_version.is_unset(),
            Request::Watch(watch) => watch.resource_version.is_unset(),
        };
        self.watch = match request {
            Request::Watch(watch) if !watch.initial_events => Some(Served::asked()),
            _ => None,
        };
        let to = match request {
            Request::List(_) => To::List,
            Request::Watch(_) => To::Watch,
        };
        self.answer = Some(Answer::new(to, around.server.speaks_protobuf(), Limits::default()));
        self.link = Some(around.server.request(around.now, self.namespace, request));
        Ok(())
    }

    /// A step of its own: what comes now has another cause.
    pub(crate) fn another_moment(&mut self) {
        self.asked_now.1 = 0;
    }

    fn check_request(&self, reached: &ResourceVersion, request: &Request) -> Result<(), Violation> {
        let right = match request {
            Request::List(list) if list.continue_token.is_some() => {
                list.resource_version.is_unset() && !list.not_older_than
            }
            Request::List(list) => self.may_list_at(&list.resource_version, reached),
            Request::Watch(watch) => {
                let at = &watch.resource_version;
                let right = if watch.initial_events { self.may_list_at(at, reached) } else { at == reached };
                right && (300..=600).contains(&watch.timeout_seconds)
            }
        };
        Invariant::Request.holds(right, || format!("{request} though {reached:?} was reached"))
    }

    fn may_list_at(&self, version: &ResourceVersion, reached: &ResourceVersion) -> bool {
        let is_zero = version.is_unset_or_zero() && !version.is_unset();
        version.is_unset() || version.is_at_least(reached) || is_zero && !self.is_synced
    }

    fn status(&mut self, around: &mut Around<'_>, status: Status) -> Result<(), Violation> {
        around.trace.line(|| format!("       {} is {status}", self.name()));
        self.waits = matches!(status, Status::Retrying { .. } | Status::Denied { .. });
        match &status {
            Status::Retrying { wait, .. } => {
                self.not_before = around.now + *wait;
                Invariant::Pace
                    .holds((SHORTEST_WAIT..=LONGEST_WAIT).contains(wait), || format!("a wait of {wait:?}"))?;
            }
            Status::Denied { status } => {
                self.not_before = around.now + ReflectorConfig::default().denied_retry;
                // What is wrong with a request may be its version.
                let is_right = match status.code {
                    401 | 403 | 404 => true,
                    400 | 405 | 406 | 415 | 422 => !self.names_version,
                    _ => false,
                };
                Invariant::Connection.holds(is_right, || format!("denied by {status}"))?;
            }
            Status::Live { .. } => {
                Invariant::Connection.holds(around.content.store.is_source_synced(self.source), || {
                    "live without content".to_owned()
                })?;
            }
            Status::Connecting | Status::Syncing { .. } | Status::Stopped => {}
        }
        self.status = status;
        Ok(())
    }

    fn report(&mut self, around: &mut Around<'_>, report: &Report) {
        around.trace.line(|| format!("       {} reports {report:?}", self.name()));
        match report {
            Report::ServerRestored { .. } => {
                around.content.restored = true;
                around.content.doubts.everything();
            }
            Report::Quarantined { .. } => {
                self.has_unread = true;
                self.list_has_unread |= self.staging.is_some();
            }
            Report::Disconnected(_) => {}
        }
    }

    fn store(&mut self, around: &mut Around<'_>, operation: StoreOperation) -> Result<(), Violation> {
        let source = self.source;
        match operation {
            StoreOperation::BeginReplace { trust_versions } => {
                self.trusts = trust_versions;
                self.list_has_unread = false;
                let store = &around.content.store;
                let staging = if trust_versions {
                    store.begin_replace(source)
                } else {
                    store.begin_restored_replace(source)
                };
                self.staging = Some(staging);
            }
            StoreOperation::Discard => self.staging = None,
            StoreOperation::Keep(key) => self.stage(|staging| staging.keep_cached(&key)),
            StoreOperation::Stage(object) => self.stage(|staging| staging.stage(object)),
            StoreOperation::Unstage(object) => self.stage(|staging| staging.delete(object)),
            StoreOperation::Commit { resource_version } => self.commit(around, resource_version)?,
            StoreOperation::Upsert(object) => {
                self.told_of(around, object.key().as_str(), object.resource_version());
                around.content.change(|store| Ok(store.upsert(source, object).into_iter().collect()))?;
            }
            StoreOperation::Delete(object) => {
                self.told_of(around, object.key().as_str(), object.resource_version());
                around.content.change(|store| Ok(store.delete(source, object).into_iter().collect()))?;
            }
            StoreOperation::Confirm => {
                let saved = number(&around.content.store.source_version(source));
                // Of a server that was restored since nobody has heard yet.
                let is_unheard = self.link_epoch(around) != around.server.truth.epoch();
                Invariant::Saved.holds(is_unheard || around.server.version >= saved, || {
                    format!("{saved} is confirmed by a server at {}", around.server.version)
                })?;
                around.content.change(|store| {
                    store.confirm(source);
                    Ok(Vec::new())
                })?;
            }
            StoreOperation::Bookmark(version) => {
                self.follows(around);
                around.content.change(|store| {
                    store.bookmark(source, &version);
                    Ok(Vec::new())
                })?;
            }
        }
        Ok(())
    }

    fn stage(&mut self, stage: impl FnOnce(&mut Replace)) {
        if let Some(staging) = &mut self.staging {
            stage(staging);
        }
    }

    fn commit(&mut self, around: &mut Around<'_>, version: ResourceVersion) -> Result<(), Violation> {
        let Some(staging) = self.staging.take() else {
            return Err(Invariant::Content.violated("a list is committed that was not begun"));
        };
        let epoch = self.link_epoch(around);
        if !self.trusts {
            self.is_deceived = false;
            // A version may be told once more, for another state.
            around.content.doubts.everything();
        } else if self.is_synced && epoch != self.epoch {
            self.deceived(around);
        }
        let reached = number(&version);
        // What came as a stream goes on as the watch.
        self.watch = Some(Served::accepted(around.now));
        // Versions of another past say nothing about this one.
        self.doubts.retain(|_, doubt| doubt.until > reached && epoch == self.epoch);
        (self.epoch, self.is_synced) = (epoch, true);
        // Namespaces may come and go across a restore that nobody was there to notice.
        if around.content.epoch.replace(epoch).is_some_and(|before| before != epoch) {
            around.content.doubts.everything();
        }
        for (key, doubt) in std::mem::take(&mut self.doubts_of_list) {
            self.doubt(around.content, key, doubt);
        }
        let unread = self.link.and_then(|link| around.server.link(link)).map(|link| link.kept_unread.clone());
        let kept: Vec<_> = unread
            .unwrap_or_default()
            .into_iter()
            .filter(|key| self.trusts && around.content.cache.get_str(key.text()).is_some())
            .collect();
        around.content.change(|store| {
            store.commit(staging, version).map_err(|error| Invariant::Content.violated(error.to_string()))
        })?;
        self.has_unread = std::mem::take(&mut self.list_has_unread);
        let lost = kept.iter().find(|key| around.content.cache.get_str(key.text()).is_none());
        Invariant::Content.holds(lost.is_none(), || format!("{lost:?} cannot be read, and is gone (W8)"))
    }

    /// An event of a key comes out of the watch: as good as the server has it.
    fn told_of(&mut self, around: &mut Around<'_>, key: &str, version: &ResourceVersion) {
        self.follows(around);
        if let Some(key) = Key::of(key) {
            self.doubts.retain(|(doubted, _), doubt| *doubted != key || doubt.until > number(version));
        }
    }

    /// What a watch says is put upon what is there, whatever past that is of.
    fn follows(&mut self, around: &mut Around<'_>) {
        if self.link_epoch(around) != self.epoch {
            self.deceived(around);
        }
    }

    fn deceived(&mut self, around: &mut Around<'_>) {
        if !std::mem::replace(&mut self.is_deceived, true) {
            around.trace.line(|| format!("       {} cannot know that the server was restored", self.name()));
        }
        around.content.doubts.everything();
    }

    fn link_epoch(&self, around: &mut Around<'_>) -> usize {
        self.link.and_then(|link| around.server.link(link)).map_or(self.epoch, |link| link.epoch)
    }
}

/// The number of a version; zero if it has none.
pub(crate) fn number(version: &ResourceVersion) -> u64 {
    version.to_string().parse().unwrap_or_default()
}

fn shown(input: &Input) -> String {
    match input {
        Input::ListStart(meta) | Input::ListEnd(meta) => {
            let name = if matches!(input, Input::ListStart(_)) { "ListStart" } else { "ListEnd" };
            format!("{name}({:?}, {:?})", meta.resource_version, meta.continue_token)
        }
        other => format!("{other:?}"),
    }
}
