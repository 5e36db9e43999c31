//! Drives one reflector: the only place that waits. Sends what the state machine asks for, feeds it what comes back,
//! and applies what it puts out to the cache.

use std::sync::Arc;

use futures_util::FutureExt;
use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use informer_core::reflector::{
    EventKind, Input, Output, Reflector, Report, Request, Status, StoreOperation,
};
use informer_core::store::Replace;
use informer_core::wire::{
    ApiStatus, EventType, Limits, ListDecoder, ListPart, ScanError, WatchDecoder, WatchFrame, scan_bookmark,
    scan_object,
};
use informer_core::{Change, Object, ObjectKey, Scope, SourceId, Time};
use tokio::time::Instant;

use super::source::Control;
use super::{Content, Core};
use crate::exchange::{Decoder, Exchange, Progress};
use crate::transform::Transform;

/// Runs until it is stopped.
pub(super) async fn run(core: Arc<Core>, source: SourceId, scope: Scope, control: Control) {
    let config = tokio::select! {
        () = control.stop.cancelled() => return,
        config = core.server.reflector_config(&core.settings) => config,
    };
    let setup = core.setup();
    let seed = core.server.seed();
    let driver = Driver {
        reflector: Reflector::new(config, seed),
        exchange: Exchange::Idle,
        refresh_credentials: false,
        staging: None,
        started: Instant::now(),
        content: setup.content,
        transform: setup.transform,
        core,
        source,
        scope,
        control,
    };
    driver.run().await;
}

struct Driver {
    core: Arc<Core>,
    source: SourceId,
    scope: Scope,
    control: Control,
    content: Content,
    transform: Option<Transform>,
    reflector: Reflector,
    exchange: Exchange,
    /// The next request is preceded by reading the credentials again.
    refresh_credentials: bool,
    staging: Option<Replace>,
    started: Instant,
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
            let deadline =
                self.reflector.deadline().map(|deadline| self.started + deadline.since(Time::ZERO));
            let event = tokio::select! {
                biased;
                () = self.control.stop.cancelled() => Event::Stop,
                () = self.control.wake.notified() => Event::Wake,
                progress = self.exchange.progress() => Event::Progress(progress),
                () = sleep_until(deadline) => Event::Deadline,
            };
            match event {
                Event::Stop => break,
                Event::Wake => self.input(Input::Wake),
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
                Output::Store(operation) => self.store(operation),
                Output::Status(status) => self.status(status),
                Output::Report(report) => self.report(report),
            }
        }
    }

    fn status(&self, status: Status) {
        let live = matches!(status, Status::Live { .. });
        self.core.progress.source_status(self.source, status);
        if live {
            // Resyncs pause while a list is under way.
            self.core.fanout.wake_all();
        }
    }

    fn report(&self, report: Report) {
        tracing::debug!(resource = %self.core.resource, scope = ?self.scope, ?report, "reflector");
        self.core.progress.report(report);
    }

    fn progress(&mut self, progress: Progress) {
        match progress {
            Progress::Accepted => self.input(Input::Accepted),
            Progress::Refused(status) => self.input(Input::Refused(status)),
            Progress::Unreachable(reason) => self.input(Input::Unreachable(reason)),
            Progress::Broken(reason) => self.input(Input::Broken(reason)),
            Progress::Bytes => self.read(),
            Progress::End => self.finish(),
        }
    }

    /// Reads whatever the decoder has. An input may end the exchange, and with it the decoder.
    fn read(&mut self) {
        while let Some(input) = self.next_input() {
            self.input(input);
        }
    }

    fn next_input(&mut self) -> Option<Input> {
        let reader = self.reader();
        match self.exchange.decoder()? {
            Decoder::List(decoder) => match decoder.next() {
                Ok(Some(ListPart::Meta(meta))) => Some(Input::ListStart(meta.clone())),
                Ok(Some(ListPart::Item(json))) => Some(reader.item(json)),
                Ok(None) => None,
                Err(error) => Some(self.undecodable(error.to_string())),
            },
            Decoder::Watch(decoder) => match decoder.next() {
                Ok(Some(Ok(frame))) => Some(reader.frame(&frame)),
                Ok(Some(Err(error))) => Some(Input::Unreadable { key: None, reason: error.to_string() }),
                Ok(None) => None,
                Err(error) => Some(self.undecodable(error.to_string())),
            },
        }
    }

    fn reader(&self) -> Reader {
        Reader {
            core: self.core.clone(),
            transform: self.transform.clone(),
            content: self.content,
            trust_versions: self.reflector.trusts_versions(),
        }
    }

    fn undecodable(&mut self, reason: String) -> Input {
        self.exchange = Exchange::Idle;
        Input::Undecodable(reason)
    }

    /// The response has ended: a list has to be complete, a watch may hold a last frame.
    fn finish(&mut self) {
        let reader = self.reader();
        let (last, end) = match self.exchange.decoder() {
            None => return,
            Some(Decoder::List(decoder)) => match decoder.finish() {
                Ok(meta) => (None, Input::ListEnd(meta)),
                Err(error) => (None, Input::Undecodable(error.to_string())),
            },
            Some(Decoder::Watch(decoder)) => match decoder.finish() {
                Ok(frame) => (frame.map(|frame| reader.frame(&frame)), Input::End),
                Err(error) => (None, Input::Broken(error.to_string())),
            },
        };
        self.exchange = Exchange::Idle;
        if let Some(last) = last {
            self.input(last);
        }
        self.input(end);
    }

    fn send(&mut self, request: &Request) {
        let limits = Limits { item_bytes: self.core.settings.item_limit };
        let decoder = match request {
            Request::List(_) => Decoder::List(Box::new(ListDecoder::new(limits))),
            Request::Watch(_) => Decoder::Watch(Box::new(WatchDecoder::new(limits))),
        };
        let answer = match self.http_request(request) {
            Ok(http) => {
                let sent = self.core.server.transport().send(http);
                if std::mem::take(&mut self.refresh_credentials) {
                    let refreshed = self.core.server.transport().refresh_credentials();
                    async move {
                        refreshed.await?;
                        sent.await
                    }
                    .boxed()
                } else {
                    sent
                }
            }
            Err(error) => {
                let error =
                    crate::transport::TransportError::new("the request is invalid", Some(Box::from(error)));
                futures_util::future::ready(Err(error)).boxed()
            }
        };
        self.exchange = Exchange::send(answer, decoder);
    }

    fn http_request(&self, request: &Request) -> Result<http::Request<Vec<u8>>, http::Error> {
        let selection = &self.core.selection;
        let named = |(name, value): (&str, String)| (name.to_owned(), value);
        let mut query: Vec<(String, String)> = request.query().into_iter().map(named).collect();
        for (name, selector) in [("labelSelector", &selection.labels), ("fieldSelector", &selection.fields)] {
            if !selector.is_empty() {
                query.push((name.to_owned(), selector.clone()));
            }
        }
        if let Some(tweak) = &self.core.settings.tweak {
            tweak(&self.core.resource, &mut query);
        }
        let path = self.core.resource.path(&self.scope);
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let uri = format!("{path}?{query}");
        let encoding = if self.core.settings.gzip { "gzip" } else { "identity" };
        http::Request::get(uri)
            .header(ACCEPT, accept(self.content, request))
            .header(ACCEPT_ENCODING, encoding)
            .header(USER_AGENT, concat!("informer/", env!("CARGO_PKG_VERSION")))
            .body(Vec::new())
    }

    fn store(&mut self, operation: StoreOperation) {
        let core = self.core.clone();
        let mut store = core.store();
        let changes: Vec<Change> = match operation {
            StoreOperation::BeginReplace { trust_versions } => {
                self.staging = Some(match trust_versions {
                    true => store.begin_replace(self.source),
                    false => store.begin_restored_replace(self.source),
                });
                return;
            }
            StoreOperation::Discard => {
                drop(store);
                self.staging = None;
                return;
            }
            StoreOperation::Keep(key) => {
                if let Some(staging) = &mut self.staging {
                    staging.keep_cached(&key);
                }
                return;
            }
            StoreOperation::Stage(object) => {
                if let Some(staging) = &mut self.staging {
                    staging.stage(object);
                }
                return;
            }
            StoreOperation::Unstage(object) => {
                if let Some(staging) = &mut self.staging {
                    staging.delete(object);
                }
                return;
            }
            StoreOperation::Commit { resource_version } => {
                let Some(staging) = self.staging.take() else { return };
                store.commit(staging, resource_version).unwrap_or_else(|error| {
                    tracing::error!(resource = %self.core.resource, %error, "a list was not applied");
                    Vec::new()
                })
            }
            StoreOperation::Upsert(object) => store.upsert(self.source, object).into_iter().collect(),
            StoreOperation::Delete(object) => store.delete(self.source, object).into_iter().collect(),
            StoreOperation::Bookmark(version) => {
                store.bookmark(self.source, &version);
                Vec::new()
            }
        };
        let (revision, version, synced) = (store.revision(), store.resource_version(), store.is_synced());
        let reports = store.take_reports();
        drop(store);
        self.core.publish(revision, &changes);
        self.core.progress.version_reached(version);
        for report in reports {
            tracing::warn!(resource = %self.core.resource, %report, "an index function failed");
        }
        if synced && !self.core.progress.is_synced() {
            self.core.sync_if_complete();
        }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Turns the bytes of objects into inputs.
struct Reader {
    core: Arc<Core>,
    transform: Option<Transform>,
    content: Content,
    trust_versions: bool,
}

impl Reader {
    fn item(&self, json: &[u8]) -> Input {
        self.object(json, Input::Item)
    }

    fn frame(&self, frame: &WatchFrame<'_>) -> Input {
        let kind = match frame.kind {
            EventType::Added => EventKind::Added,
            EventType::Modified => EventKind::Modified,
            EventType::Deleted => EventKind::Deleted,
            EventType::Bookmark => {
                return match scan_bookmark(frame.object) {
                    Ok(bookmark) => Input::Bookmark(bookmark),
                    Err(error) => Input::Unreadable { key: None, reason: error.to_string() },
                };
            }
            EventType::Error => return Input::ErrorEvent(ApiStatus::from_body(500, frame.object)),
        };
        self.object(frame.object, |object| Input::Event(kind, object))
    }

    fn object(&self, json: &[u8], input: impl FnOnce(Arc<Object>) -> Input) -> Input {
        match self.read(json) {
            Ok(Read::Unchanged(key)) => Input::Unchanged(key),
            Ok(Read::Kept(object)) => input(Arc::new(object)),
            // As if it had left the selector.
            Ok(Read::Dropped(object)) => Input::Event(EventKind::Deleted, Arc::new(object)),
            Err(Unreadable { key, reason }) => Input::Unreadable { key, reason },
        }
    }

    fn read(&self, json: &[u8]) -> Result<Read, Unreadable> {
        let scanned = scan_object(json)?;
        let key = scanned.key()?;
        let version = scanned.resource_version();
        if self.trust_versions && self.core.cache.is_unchanged(key.as_str(), &version) {
            return Ok(Read::Unchanged(key));
        }
        let resource = &self.core.resource;
        let (kind, api_version) = match self.content {
            Content::Whole => (resource.kind.as_str(), resource.api_version()),
            Content::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned()),
        };
        let own = scanned.type_meta()?.kind;
        if own.as_deref().is_some_and(|own| own != kind && own != resource.kind) {
            let reason = format!("it is of another kind than {kind}");
            return Err(Unreadable { key: Some(key), reason });
        }
        let object = scanned.into_object_of(json, &api_version, kind)?;
        let Some(transform) = &self.transform else { return Ok(Read::Kept(object)) };
        match transform.apply(&object) {
            Ok(Some(transformed)) => Ok(Read::Kept(transformed)),
            Ok(None) => Ok(Read::Dropped(object)),
            Err(error) => Err(Unreadable { key: Some(key), reason: error.to_string() }),
        }
    }
}

/// What the bytes of an object turned out to be.
enum Read {
    Unchanged(ObjectKey),
    Kept(Object),
    Dropped(Object),
}

/// An object that has to be left out.
struct Unreadable {
    key: Option<ObjectKey>,
    reason: String,
}

impl From<ScanError> for Unreadable {
    fn from(error: ScanError) -> Self {
        Self { key: error.key().cloned(), reason: error.to_string() }
    }
}

fn accept(content: Content, request: &Request) -> &'static str {
    match (content, request) {
        (Content::Whole, _) => "application/json",
        (Content::Metadata, Request::List(_)) => {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        }
        (Content::Metadata, Request::Watch(_)) => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
        }
    }
}
