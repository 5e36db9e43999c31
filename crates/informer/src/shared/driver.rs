//! Drives one reflector: the only place that waits. Sends what the state machine asks for, feeds it what comes back,
//! and applies what it puts out to the cache.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt;
use http::HeaderValue;
use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use informer_core::reader::{Expected, Part, Reader, Reading, To, Unreadable};
use informer_core::reflector::{
    Input, Output, Reflector, ReflectorConfig, Report, Request, Resume, Status, StoreOperation,
};
use informer_core::store::Replace;
use informer_core::wire::{ApiStatus, Limits};
use informer_core::{Scope, SourceId, Time, reader};
use tokio::time::Instant;

use super::journal::Journal;
use super::quarantine::{self, Put};
use super::source::Control;
use super::tally::Tally;
use super::{Content, Core};
use crate::EncodingChoice;
use crate::exchange::{Exchange, Progress};
use crate::metrics::Freshness;
use crate::transform::Transform;
use crate::transport::{PROTOBUF, TransportError};

/// Runs until it is stopped.
pub(super) async fn run(
    core: Arc<Core>,
    source: SourceId,
    scope: Scope,
    control: Control,
    resume: Option<Resume>,
) {
    let config = tokio::select! {
        () = control.stop.cancelled() => return,
        config = core.server.reflector_config(&core.settings) => config,
    };
    let setup = core.setup();
    let seed = core.server.seed();
    let started = Instant::now();
    let freshness = Arc::new(Freshness::new(started));
    core.counters.source_added(source, freshness.clone());
    let wants_json = setup.transform.as_ref().is_some_and(Transform::wants_json);
    let reader = core.reader(setup.transform, setup.content);
    let protobuf = core.settings.encoding == EncodingChoice::ProtobufWhereOffered && !wants_json;
    let config = ReflectorConfig { backoff: setup.backoff, ..config };
    let resumes = resume.is_some();
    let driver = Driver {
        reflector: match resume {
            None => Reflector::new(config, seed),
            Some(resume) => Reflector::resuming(config, seed, resume),
        },
        exchange: Exchange::Idle,
        waiting: false,
        refresh_credentials: false,
        staging: None,
        unreadable: quarantine::Unreadable::default(),
        started,
        tally: Tally::new(core.counters.clone(), freshness, resumes),
        journal: Journal::new(core.resource.clone(), scope.clone()),
        foreseen: None,
        takes_protobuf: protobuf && reader.reads_protobuf(),
        reader,
        content: setup.content,
        core,
        source,
        scope,
        control,
    };
    driver.run().await;
}

const JSON: &str = "application/json";

struct Driver {
    core: Arc<Core>,
    source: SourceId,
    scope: Scope,
    control: Control,
    reader: Reader,
    content: Content,
    takes_protobuf: bool,
    reflector: Reflector,
    exchange: Exchange,
    /// The last request has failed, and the next one waits for its time.
    waiting: bool,
    /// The next request is preceded by reading the credentials again.
    refresh_credentials: bool,
    staging: Option<Replace>,
    /// What is staged without having been readable.
    unreadable: quarantine::Unreadable,
    started: Instant,
    tally: Tally,
    journal: Journal,
    /// What the server would answer, known from what it answered to another informer.
    foreseen: Option<ApiStatus>,
}

/// Everything that can wake a driver.
enum Event {
    Stop,
    Wake,
    Progress(Progress),
    Deadline,
}

impl Driver {
    async fn run(mut self) {
        self.input(Input::Start);
        while !self.control.stop.is_cancelled() {
            // A response that always has more must not keep this thread from everybody else.
            tokio::task::coop::consume_budget().await;
            let deadline = self.reflector.deadline();
            // One so far off that it cannot be told never comes.
            let deadline = deadline.and_then(|at| self.started.checked_add(at.since(Time::ZERO)));
            let event = tokio::select! {
                biased;
                () = self.control.stop.cancelled() => Event::Stop,
                () = self.control.wake.notified() => Event::Wake,
                progress = self.exchange.progress() => Event::Progress(progress),
                () = sleep_until(deadline) => Event::Deadline,
            };
            match event {
                Event::Stop => break,
                // A request under way has its own time.
                Event::Wake if self.waiting => self.input(Input::Wake),
                Event::Wake => {}
                Event::Deadline => self.input(Input::Tick),
                Event::Progress(progress) => self.progress(progress),
            }
        }
        self.input(Input::Stop);
    }

    fn now(&self) -> Time {
        Time::from_start(self.started.elapsed())
    }

    /// Hands one input to the state machine and does what it asks for.
    fn input(&mut self, input: Input) {
        let now = self.now();
        self.reflector.handle(now, input);
        while let Some(output) = self.reflector.poll_output() {
            match output {
                Output::Send(request) => self.send(&request),
                Output::Cancel => self.exchange = Exchange::Idle,
                Output::RefreshCredentials => self.refresh_credentials = true,
                Output::Store(operation) => {
                    self.tally.stored(&operation, now);
                    self.store(operation);
                }
                Output::Status(status) => self.status(status),
                Output::Report(report) => self.report(report),
            }
        }
        if let Some(status) = self.foreseen.take() {
            self.input(Input::Refused(status));
        }
    }

    fn status(&mut self, status: Status) {
        self.waiting = matches!(status, Status::Retrying { .. } | Status::Denied { .. });
        if self.waiting {
            // Of a response that ended in an error event there may be more.
            self.exchange = Exchange::Idle;
        }
        self.journal.status(&status);
        self.core.observe(|progress| progress.source_status(self.source, status));
    }

    fn report(&mut self, report: Report) {
        let resource = &self.core.resource;
        tracing::debug!(%resource, scope = ?self.scope, ?report, "reflector");
        match &report {
            Report::Disconnected(cause) => self.tally.disconnected(cause),
            Report::ServerRestored { seen, now } => {
                tracing::warn!(%resource, %seen, %now, "the server went back to an older state, and the cache follows");
            }
            Report::Quarantined { key, reason } => {
                self.core.counters.unreadable.add(1);
                let put = self.core.quarantine.put(self.source, &self.scope, key.clone(), reason.clone());
                if put == Put::First
                    && let Some(key) = key
                {
                    tracing::warn!(%resource, %key, reason, "an object cannot be read: the quarantine has it, and others to come");
                }
                if self.staging.is_some() {
                    self.unreadable.keys.extend(key.clone());
                    self.unreadable.some_lost |= put == Put::Lost;
                }
            }
        }
        self.core.progress.report(report);
    }

    fn progress(&mut self, progress: Progress) {
        match progress {
            Progress::Accepted => self.input(Input::Accepted),
            Progress::Refused(status) => self.refused(status),
            Progress::Unreachable(reason) => self.input(Input::Unreachable(reason)),
            Progress::Broken(reason) => self.input(Input::Broken(reason)),
            Progress::Bytes => self.read(),
            Progress::End => self.finish(),
        }
    }

    fn refused(&mut self, status: ApiStatus) {
        let before = self.reflector.streaming_refused_until();
        self.input(Input::Refused(status.clone()));
        if self.reflector.streaming_refused_until() != before {
            self.core.server.streaming_list_refused(&self.core.resource, status);
        }
    }

    /// Reads whatever has come. An input may end the exchange, and with it the answer.
    fn read(&mut self) {
        loop {
            let begun = std::time::Instant::now();
            let trust = self.reflector.trusts_versions();
            let reading = self.exchange.answer().and_then(|answer| self.reader.next(answer, trust));
            self.core.counters.decode_nanos.add_nanos(begun.elapsed());
            match reading {
                Some(reading) => self.take(reading),
                None => return,
            }
        }
    }

    fn take(&mut self, reading: Reading) {
        let counters = &self.core.counters;
        match reading.part {
            Part::Item => counters.list_items.add(1),
            Part::Event(kind) => counters.event(kind),
            Part::Other => {}
        }
        if let Some(Unreadable { key, reason, .. }) = reading.unreadable {
            counters.unreadable.add(1);
            self.core.progress.report(Report::Quarantined { key, reason });
            if let Input::Unchanged(gone) = &reading.input {
                self.core.quarantine.release(gone);
            }
        }
        if matches!(reading.input, Input::Undecodable(_)) {
            self.exchange = Exchange::Idle;
        }
        self.input(reading.input);
    }

    /// The response has ended: a list has to be complete, a watch may hold a last event.
    fn finish(&mut self) {
        let trust = self.reflector.trusts_versions();
        let Some((last, end)) = self.exchange.answer().map(|answer| self.reader.finish(answer, trust)) else {
            return;
        };
        self.exchange = Exchange::Idle;
        if let Some(last) = last {
            self.take(last);
        }
        self.input(end);
    }

    fn send(&mut self, request: &Request) {
        if let Request::Watch(watch) = request
            && watch.initial_events
        {
            let time = self.core.settings.reflector.streaming_list_retry;
            self.foreseen = self.core.server.refuses_streaming_list(&self.core.resource, time);
            if self.foreseen.is_some() {
                self.exchange = Exchange::Idle;
                return;
            }
        }
        self.tally.sent(request);
        let limits = Limits { item_bytes: self.core.settings.item_limit };
        let to = match request {
            Request::List(_) => To::List,
            Request::Watch(_) => To::Watch,
        };
        let refresh = std::mem::take(&mut self.refresh_credentials);
        // Each release gives fields to objects, and none to their metadata.
        let unless_newer = self.takes_protobuf && self.content == Content::Whole;
        let response = match self.http_request(request) {
            Ok(mut http) => {
                let server = self.core.server.clone();
                let counters = self.core.counters.clone();
                let limit = self.core.settings.reflector.response_timeout;
                async move {
                    // Sent after that: a transport takes the credentials that it has by then.
                    if refresh {
                        server.transport().refresh_credentials().await?;
                    }
                    if unless_newer && server.may_be_newer_than_protobuf(limit).await {
                        http.headers_mut().insert(ACCEPT, HeaderValue::from_static(JSON));
                    }
                    let response = server.transport().send(http).await?;
                    Ok(response.inspect_bytes(move |bytes| counters.received_bytes.add(bytes as u64)))
                }
                .boxed()
            }
            Err(error) => futures_util::future::ready(Err(error)).boxed(),
        };
        self.waiting = false;
        self.exchange = Exchange::send(response, to, limits);
    }

    fn http_request(&self, request: &Request) -> Result<http::Request<Vec<u8>>, TransportError> {
        let selection = &self.core.selection;
        let named = |(name, value): (&str, String)| (name.to_owned(), value);
        let mut query: Vec<(String, String)> = request.query().into_iter().map(named).collect();
        for (name, selector) in [("labelSelector", &selection.labels), ("fieldSelector", &selection.fields)] {
            if !selector.is_empty() {
                query.push((name.to_owned(), selector.clone()));
            }
        }
        if let Some(tweak) = &self.core.settings.tweak {
            catch_unwind(AssertUnwindSafe(|| tweak(&self.core.resource, &mut query)))
                .map_err(|_| TransportError::new("the function that tweaks list options panicked", None))?;
        }
        let path = self.core.resource.path(&self.scope);
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let uri = format!("{path}?{query}");
        let encoding = if self.core.settings.gzip { "gzip" } else { "identity" };
        http::Request::get(uri)
            .header(ACCEPT, self.accept(request))
            .header(ACCEPT_ENCODING, encoding)
            .header(USER_AGENT, self.core.settings.user_agent.clone())
            .body(Vec::new())
            .map_err(|error| TransportError::new("the request is invalid", Some(Box::from(error))))
    }

    /// Protobuf where the objects have such a form, as those of custom resources have not but for their metadata. Of a server
    /// that turns out to be newer objects as a whole are asked for in JSON all the same.
    fn accept(&self, request: &Request) -> String {
        let form = match (self.content, request) {
            (Content::Whole, _) => "",
            (Content::Metadata, Request::List(_)) => ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            (Content::Metadata, Request::Watch(_)) => ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        };
        let mut accept = String::new();
        if self.takes_protobuf {
            accept.push_str(&format!("{PROTOBUF}{form},"));
        }
        accept.push_str(&format!("{JSON}{form}"));
        if !form.is_empty() {
            // A server that makes no metadata of objects sends them whole.
            accept.push_str(&format!(",{JSON}"));
        }
        accept
    }

    /// Staging a list touches nothing that others see; what changes the cache does so in one step.
    fn store(&mut self, operation: StoreOperation) {
        let source = self.source;
        match operation {
            StoreOperation::BeginReplace { trust_versions } => {
                self.unreadable = quarantine::Unreadable::default();
                self.staging = Some(self.core.begin_replace(source, trust_versions));
            }
            StoreOperation::Discard => self.staging = None,
            StoreOperation::Keep(key) => self.stage(|staging| staging.keep_cached(&key)),
            StoreOperation::Stage(object) => {
                self.unreadable.keys.remove(object.key());
                self.stage(|staging| staging.stage(object));
            }
            StoreOperation::Unstage(object) => {
                self.unreadable.keys.remove(object.key());
                self.stage(|staging| staging.delete(object));
            }
            StoreOperation::Commit { resource_version } => {
                let Some(staging) = self.staging.take() else { return };
                self.core.change(|store| {
                    store.commit(staging, resource_version).unwrap_or_else(|error| {
                        // A source that was removed meanwhile has nothing to say any more.
                        if !error.is_unknown_source() {
                            tracing::error!(resource = %self.core.resource, %error, "a list was not applied");
                        }
                        Vec::new()
                    })
                });
                let unreadable = std::mem::take(&mut self.unreadable);
                self.core.quarantine.listed(source, &self.scope, &unreadable);
            }
            StoreOperation::Upsert(object) => {
                self.core.quarantine.release(object.key());
                self.core.change(|store| store.upsert(source, object).into_iter().collect());
            }
            StoreOperation::Delete(object) => {
                self.core.quarantine.release(object.key());
                self.core.change(|store| store.delete(source, object).into_iter().collect());
            }
            StoreOperation::Confirm => self.core.change(|store| {
                store.confirm(source);
                Vec::new()
            }),
            StoreOperation::Bookmark(version) => self.core.change(|store| {
                store.bookmark(source, &version);
                Vec::new()
            }),
        }
    }

    fn stage(&mut self, stage: impl FnOnce(&mut Replace)) {
        if let Some(staging) = &mut self.staging {
            stage(staging);
        }
    }
}

impl Core {
    fn reader(&self, transform: Option<Transform>, content: Content) -> Reader {
        let kind = self.resource.kind.clone();
        let expected = match content {
            Content::Whole => Expected { api_version: self.resource.api_version(), kind, or_kind: None },
            Content::Metadata => Expected {
                api_version: "meta.k8s.io/v1".to_owned(),
                kind: "PartialObjectMetadata".to_owned(),
                or_kind: Some(kind),
            },
        };
        let transform = transform.map(|transform| -> reader::Transform {
            Arc::new(move |object| transform.apply(object).map_err(|error| error.to_string()))
        });
        let reader = Reader::new(self.cache.clone(), self.storage.clone(), expected, transform);
        if self.settings.decodes_managed_fields { reader } else { reader.skipping_managed_fields() }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
