//! A small API server in memory: versioned collections that answer LIST and WATCH, and do what a test tells them to.

mod body;
mod collection;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use informer::transport::{Response, Transport, TransportError};
use serde_json::{Value, json};

use body::{Chunks, Open};
use collection::Collection;

/// A handle; clones are the same server.
#[derive(Clone)]
pub(crate) struct Server(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    open: Arc<AtomicUsize>,
}

struct State {
    version: u64,
    /// The minor version that `/version` says; `None` for no answer.
    minor: Option<u32>,
    /// Whether watches with `sendInitialEvents` are served.
    streaming_lists: bool,
    collections: BTreeMap<String, Collection>,
    log: Vec<String>,
    user_agents: BTreeSet<String>,
    /// Of the last request for objects.
    accept: String,
    chunks: fastrand::Rng,
    /// Nobody can connect.
    away: bool,
    /// The hashes of schemas, by path as in `apis/apps/v1`, and how often they were asked for.
    schemas: BTreeMap<String, String>,
    schema_questions: usize,
}

/// A request, as far as the server looks at it.
#[derive(Clone)]
pub(crate) struct Request {
    path: String,
    plural: String,
    namespace: Option<String>,
    /// Of a single object.
    name: Option<String>,
    query: BTreeMap<String, String>,
    only_metadata: bool,
    user_agent: Option<String>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            state: Mutex::new(State {
                version: 100,
                minor: Some(36),
                streaming_lists: true,
                collections: BTreeMap::new(),
                log: Vec::new(),
                user_agents: BTreeSet::new(),
                accept: String::new(),
                chunks: fastrand::Rng::with_seed(7),
                away: false,
                schemas: BTreeMap::new(),
                schema_questions: 0,
            }),
            open: Arc::default(),
        }))
    }

    /// Writes an object with these fields, and says at which version. The metadata is added.
    pub(crate) fn put(&self, plural: &str, key: &str, fields: Value) -> u64 {
        self.change(plural, |collection, version| collection.put(key, fields, version))
    }

    /// Objects look different from now on, though nobody has written them.
    pub(crate) fn convert(&self, plural: &str, key: &str, fields: Value) {
        self.with(plural, |collection| collection.convert(key, fields));
    }

    /// The schemas of a group and version, by its path as in `apis/apps/v1`, have this hash from now on.
    pub(crate) fn set_schema(&self, path: &str, hash: &str) {
        self.state().schemas.insert(path.to_owned(), hash.to_owned());
    }

    /// How often the server was asked for the hashes of its schemas. These requests are of no informer, and not in the log.
    pub(crate) fn schema_questions(&self) -> usize {
        self.state().schema_questions
    }

    pub(crate) fn delete(&self, plural: &str, key: &str) -> u64 {
        self.change(plural, |collection, version| collection.delete(key, version))
    }

    /// Many writes in one go.
    pub(crate) fn put_many(&self, plural: &str, keys: impl IntoIterator<Item = String>) {
        for key in keys {
            self.put(plural, &key, json!({}));
        }
    }

    /// Ends all watches of a collection as servers do.
    pub(crate) fn end_watches(&self, plural: &str) {
        self.with(plural, Collection::end_watches);
    }

    /// Breaks all watches of a collection off.
    pub(crate) fn break_watches(&self, plural: &str) {
        self.with(plural, Collection::break_watches);
    }

    /// Forgets the history: watches end with 410, and those from before it are refused with it.
    pub(crate) fn expire(&self, plural: &str) {
        let version = self.state().version;
        self.with(plural, |collection| collection.expire(version));
    }

    pub(crate) fn bookmark(&self, plural: &str) {
        // Something happened elsewhere.
        let version = {
            let mut state = self.state();
            state.version += 1;
            state.version
        };
        self.with(plural, |collection| collection.bookmark(version));
    }

    /// Watches bring bookmarks without end from now on, and are always ready with the next.
    pub(crate) fn flood(&self, plural: &str) {
        self.with(plural, |collection| collection.floods = true);
    }

    /// Sends a line as it is to all watches.
    pub(crate) fn send_line(&self, plural: &str, line: &str) {
        self.with(plural, |collection| collection.send_line(line));
    }

    /// Answers everything with this status; watches end.
    pub(crate) fn deny(&self, plural: &str, code: u16, reason: &str) {
        self.with(plural, |collection| {
            collection.denied = Some((code, reason.to_owned()));
            collection.end_watches();
        });
    }

    pub(crate) fn allow(&self, plural: &str) {
        self.with(plural, |collection| collection.denied = None);
    }

    /// Denies one namespace.
    pub(crate) fn deny_namespace(&self, plural: &str, namespace: &str) {
        self.with(plural, |collection| collection.denied_namespace = Some(namespace.to_owned()));
    }

    /// Denies no namespace any more.
    pub(crate) fn allow_namespaces(&self, plural: &str) {
        self.with(plural, |collection| collection.denied_namespace = None);
    }

    /// Leaves requests without an answer until they are released.
    pub(crate) fn hold(&self, plural: &str) {
        self.with(plural, |collection| collection.held.send_replace(true));
    }

    /// Answers lists, but stops in the middle of them until they are released.
    pub(crate) fn hold_in_the_middle_of_lists(&self, plural: &str) {
        self.with(plural, |collection| collection.held_in_the_middle.send_replace(true));
    }

    pub(crate) fn release(&self, plural: &str) {
        self.with(plural, |collection| {
            collection.held.send_replace(false);
            collection.held_in_the_middle.send_replace(false);
        });
    }

    /// Breaks all watches off, and lets nobody connect until [`Server::come_back`].
    pub(crate) fn go_away(&self) {
        let mut state = self.state();
        state.away = true;
        state.collections.values_mut().for_each(Collection::break_watches);
    }

    pub(crate) fn come_back(&self) {
        self.state().away = false;
    }

    pub(crate) fn set_minor(&self, minor: Option<u32>) {
        self.state().minor = minor;
    }

    pub(crate) fn refuse_streaming_lists(&self) {
        self.state().streaming_lists = false;
    }

    /// Requests that are open, answered or not.
    pub(crate) fn open(&self) -> usize {
        self.0.open.load(Ordering::SeqCst)
    }

    /// The requests so far, as in `LIST /api/v1/pods`.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    /// The senders of requests for objects.
    pub(crate) fn user_agents(&self) -> BTreeSet<String> {
        self.state().user_agents.clone()
    }

    /// The `Accept` header of the last request for objects.
    pub(crate) fn accepted(&self) -> String {
        self.state().accept.clone()
    }

    pub(crate) fn count(&self, beginning: &str) -> usize {
        self.log().iter().filter(|line| line.starts_with(beginning)).count()
    }

    pub(crate) fn version(&self) -> u64 {
        self.state().version
    }

    /// The content of a collection: keys with versions.
    pub(crate) fn content(&self, plural: &str) -> BTreeMap<String, String> {
        let mut state = self.state();
        state.collections.entry(plural.to_owned()).or_default().versions()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    fn with<R>(&self, plural: &str, change: impl FnOnce(&mut Collection) -> R) -> R {
        change(self.state().collections.entry(plural.to_owned()).or_default())
    }

    fn change(&self, plural: &str, change: impl FnOnce(&mut Collection, u64)) -> u64 {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        change(state.collections.entry(plural.to_owned()).or_default(), version);
        version
    }

    fn schemas(&self) -> Result<Response, TransportError> {
        let mut state = self.state();
        state.schema_questions += 1;
        if state.away {
            return Err(TransportError::new("connection refused", None));
        }
        let document = |(path, hash): (&String, &String)| {
            let url = format!("/openapi/v3/{path}?hash={hash}");
            (path.clone(), json!({ "serverRelativeURL": url }))
        };
        let paths: serde_json::Map<_, _> = state.schemas.iter().map(document).collect();
        let body = json!({ "paths": paths }).to_string();
        Ok(response(200, stream::iter([Ok(body.into())]).boxed()))
    }

    fn answer(&self, request: &Request, open: Open) -> Response {
        let mut state = self.state();
        if request.path == "/version" {
            let body = match state.minor {
                Some(minor) => json!({ "major": "1", "minor": minor.to_string() }),
                None => return response(503, stream::empty().boxed()),
            };
            return response(200, state.whole(&body, open));
        }
        let (version, streaming) = (state.version, state.streaming_lists);
        let collection = state.collections.entry(request.plural.clone()).or_default();
        let refused = collection.denied.clone().or_else(|| {
            let namespace = collection.denied_namespace.as_ref()?;
            (request.namespace.as_ref() == Some(namespace)).then(|| (403, "Forbidden".to_owned()))
        });
        let refused = refused
            .or_else(|| (request.wants_initial_events() && !streaming).then(|| (422, "Invalid".to_owned())));
        if let Some((code, reason)) = refused {
            return response(code, state.whole(&status(code, &reason), open));
        }
        if let Some(key) = request.key() {
            let (code, answer) = match collection.object(&key) {
                Some(object) => (200, object.clone()),
                None => (404, status(404, "NotFound")),
            };
            return response(code, state.whole(&answer, open));
        }
        if !request.is_watch() {
            let list = collection.list(request, version);
            let held = collection.held_in_the_middle.subscribe();
            let chunks = Chunks::of(list.to_string().as_bytes(), &mut state.chunks);
            return response(200, chunks.held_in_the_middle(held, open));
        }
        if collection.floods {
            return response(200, body::endless(collection::bookmark(version), open));
        }
        match collection.watch(request, version) {
            Ok(lines) => {
                let seed = state.chunks.u64(..);
                response(200, body::cut_lines(lines, seed, open))
            }
            Err(expired) => response(410, state.whole(&expired, open)),
        }
    }
}

impl State {
    fn whole(&mut self, body: &Value, open: Open) -> body::Body {
        Chunks::of(body.to_string().as_bytes(), &mut self.chunks).at_once(open)
    }
}

impl Transport for Server {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        if request.uri().path() == "/openapi/v3" {
            return std::future::ready(self.schemas()).boxed();
        }
        if let Some(accept) = request.headers().get("accept") {
            self.state().accept = accept.to_str().unwrap().to_owned();
        }
        let request = Request::read(&request);
        let open = Open::new(&self.0.open);
        let mut held = {
            let mut state = self.state();
            // On a paused clock, a test that waits for ever lets years pass.
            assert!(state.log.len() < 100_000, "a test waits in vain");
            state.log.push(request.to_string());
            state.user_agents.extend(request.user_agent.clone());
            state.collections.entry(request.plural.clone()).or_default().held.subscribe()
        };
        let server = self.clone();
        async move {
            let _ = held.wait_for(|held| !held).await;
            if server.state().away {
                return Err(TransportError::new("connection refused", None));
            }
            Ok(server.answer(&request, open))
        }
        .boxed()
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        let server = self.clone();
        async move {
            server.state().log.push("REFRESH".to_owned());
            Ok(())
        }
        .boxed()
    }
}

impl Request {
    fn read(request: &http::Request<Vec<u8>>) -> Self {
        let path = request.uri().path().to_owned();
        let segments: Vec<_> = path.split('/').collect();
        let (namespace, resource) = match segments.iter().position(|segment| *segment == "namespaces") {
            Some(at) if at + 2 < segments.len() => (Some(segments[at + 1].to_owned()), at + 2),
            // After `/api/v1`, or `/apis/group/version`.
            _ => (None, if segments[1] == "apis" { 4 } else { 3 }),
        };
        let query = request.uri().query().unwrap_or_default();
        let accept = request.headers().get("accept").map_or("", |accept| accept.to_str().unwrap());
        Self {
            plural: (*segments.get(resource).or(segments.last()).unwrap()).to_owned(),
            name: segments.get(resource + 1).map(|name| decoded(name)),
            namespace,
            query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            only_metadata: accept.contains("as=PartialObjectMetadata"),
            user_agent: request.headers().get("user-agent").map(|name| name.to_str().unwrap().to_owned()),
            path,
        }
    }

    /// Of a single object.
    fn key(&self) -> Option<String> {
        let name = self.name.as_ref()?;
        Some(self.namespace.as_ref().map_or(name.clone(), |namespace| format!("{namespace}/{name}")))
    }

    fn is_watch(&self) -> bool {
        self.query.contains_key("watch")
    }

    fn wants_initial_events(&self) -> bool {
        self.query.contains_key("sendInitialEvents")
    }

    fn version(&self) -> u64 {
        self.query.get("resourceVersion").map_or(0, |version| version.parse().unwrap())
    }

    /// Whether an object is asked for; of selectors the server knows `key=value`.
    fn selects(&self, object: &Value) -> bool {
        let namespace = object["metadata"]["namespace"].as_str();
        let labels = self.query.get("labelSelector").and_then(|selector| selector.split_once('='));
        self.namespace.as_deref().is_none_or(|wanted| namespace == Some(wanted))
            && labels.is_none_or(|(label, value)| object["metadata"]["labels"][label] == value)
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verb = if self.path == "/version" || self.name.is_some() {
            "GET"
        } else if self.is_watch() {
            "WATCH"
        } else {
            "LIST"
        };
        write!(f, "{verb} {}", self.path)?;
        for (name, value) in &self.query {
            match name.as_str() {
                "watch" => {}
                "timeoutSeconds" => write!(f, " timeoutSeconds")?,
                name => write!(f, " {name}={value}")?,
            }
        }
        if self.only_metadata { write!(f, " (metadata)") } else { Ok(()) }
    }
}

/// A segment of a path, in which `+` is a plus.
fn decoded(segment: &str) -> String {
    let segment = segment.replace('+', "%2B");
    form_urlencoded::parse(segment.as_bytes()).map(|(name, _)| name.into_owned()).collect()
}

pub(crate) fn status(code: u16, reason: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason })
}

fn response(code: u16, body: body::Body) -> Response {
    let (head, ()) = http::Response::builder().status(code).body(()).unwrap().into_parts();
    Response { head, body }
}
