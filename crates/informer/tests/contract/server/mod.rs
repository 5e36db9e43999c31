//! An API server without a network, and what goes wrong on the way to it, as a test says: requests that are refused or held,
//! responses that are cut, watches that break. Objects, their history, lists and watches are those of `testapi`.

mod body;
mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use informer::transport::{Response, Transport, TransportError};
use serde_json::{Value, json};
use testapi::{Api, ApiOptions, Gvr};
use tokio::sync::watch;

use body::{Body, Chunk, Watch};
use request::Request;

/// A handle; clones are the same server.
#[derive(Clone)]
pub(crate) struct Server(Arc<Inner>);

struct Inner {
    api: Api,
    state: Mutex<State>,
    /// Collections whose requests wait, and such with [`HALFWAY`] whose lists wait in the middle.
    held: watch::Sender<BTreeSet<String>>,
    /// Open requests have clones.
    open: Arc<()>,
}

const HALFWAY: &str = " halfway";

#[derive(Default)]
struct State {
    /// The minor version that `/version` says; `None` for no answer.
    minor: Option<u32>,
    /// By collection, as in `pods`, or by its part in a namespace, as in `pods/shop`.
    denied: BTreeMap<String, (u16, Value)>,
    floods: BTreeSet<String>,
    /// A text of responses, and the one that they have in its place.
    converted: Option<(String, String)>,
    /// Nobody can connect.
    away: bool,
    /// The hashes of schemas, by path as in `apis/apps/v1`, and how often they were asked for.
    schemas: BTreeMap<String, String>,
    schema_questions: usize,
    watches: Vec<Arc<Mutex<Watch>>>,
    log: Vec<String>,
    user_agents: BTreeSet<String>,
    accept: String,
}

impl Server {
    /// The first write of the test is at version 101.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ApiOptions)) -> Self {
        let mut options = ApiOptions::default();
        options.history = usize::MAX;
        // Longer than any test: watches end, and have bookmarks, when the test says so.
        let never = Duration::from_secs(10 * 365 * 24 * 3600);
        (options.serve.watch_timeout, options.serve.bookmark_period) = (never, never);
        change(&mut options);
        let state = State { minor: Some(36), ..State::default() };
        let (api, state) = (Api::new(options), Mutex::new(state));
        let server =
            Self(Arc::new(Inner { api, state, held: watch::Sender::default(), open: Arc::default() }));
        while server.version() < 100 {
            server.happen_elsewhere();
        }
        server
    }

    /// Writes an object with these fields, and says at which version. The metadata is added.
    pub(crate) fn put(&self, plural: &str, key: &str, mut fields: Value) -> u64 {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let metadata = &mut fields["metadata"];
        metadata["name"] = name.into();
        if !namespace.is_empty() {
            metadata["namespace"] = namespace.into();
        }
        if plural == "pods" {
            // Pods are marked before they go. Without a mark, a deletion would be two events.
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        if let Ok(known) = self.0.api.get(&resource(plural), namespace, name) {
            metadata["uid"] = known["metadata"]["uid"].clone();
        }
        self.0.api.load(&resource(plural), [fields]).unwrap();
        self.version()
    }

    pub(crate) fn put_many(&self, plural: &str, keys: impl IntoIterator<Item = String>) {
        for key in keys {
            self.put(plural, &key, json!({}));
        }
    }

    pub(crate) fn delete(&self, plural: &str, key: &str) -> u64 {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        assert_eq!(self.0.api.delete(&resource(plural), namespace, name), Ok(None));
        self.version()
    }

    fn happen_elsewhere(&self) {
        let lease = json!({ "metadata": { "namespace": "kube-system", "name": "elsewhere" } });
        self.0.api.load(&Gvr::new("coordination.k8s.io/v1", "leases"), [lease]).unwrap();
    }

    /// Serves a resource of the group `example.com` in two versions.
    pub(crate) fn define(&self, plural: &str, kind: &str) {
        let schema =
            json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
        let version =
            |name: &str| json!({ "name": name, "served": true, "storage": name == "v1", "schema": schema });
        let definition = json!({
            "metadata": { "name": format!("{plural}.example.com") },
            "spec": {
                "group": "example.com", "scope": "Namespaced", "versions": [version("v1"), version("v2")],
                "names": { "plural": plural, "kind": kind },
            },
        });
        self.0.api.create(&definitions(), definition).unwrap();
    }

    pub(crate) fn undefine(&self, plural: &str) {
        // Its watches send all that has happened before they end.
        self.tell(plural, || None, true);
        self.0.api.delete(&definitions(), "", &format!("{plural}.example.com")).unwrap();
    }

    /// Objects look different from now on, though nobody has written them: one text is in place of another.
    pub(crate) fn convert(&self, from: &str, to: &str) {
        self.state().converted = Some((from.to_owned(), to.to_owned()));
    }

    /// The schemas of a group and version, by its path as in `apis/apps/v1`, have this hash from now on.
    pub(crate) fn set_schema(&self, path: &str, hash: &str) {
        self.state().schemas.insert(path.to_owned(), hash.to_owned());
    }

    /// How often the server was asked for the hashes of its schemas. These requests are of no informer, and not in the log.
    pub(crate) fn schema_questions(&self) -> usize {
        self.state().schema_questions
    }

    /// Ends all watches of a collection as servers do.
    pub(crate) fn end_watches(&self, plural: &str) {
        self.tell(plural, || None, false);
    }

    /// Breaks all watches of a collection off.
    pub(crate) fn break_watches(&self, plural: &str) {
        self.tell(plural, || Some(Err(TransportError::new("connection reset", None))), false);
    }

    /// Forgets the history: watches of the collection end with 410, and new ones from before it are refused with it. The
    /// history of other collections is gone too, though their watches go on.
    pub(crate) fn expire(&self, plural: &str) {
        let expired = json!({ "type": "ERROR", "object": status(410, "Expired") });
        self.tell(plural, || Some(Ok(format!("{expired}\n").into())), false);
        self.0.api.compact();
    }

    pub(crate) fn bookmark(&self, plural: &str) {
        self.happen_elsewhere();
        self.send_line(plural, &self.bookmark_line());
    }

    /// Watches bring bookmarks without end from now on, and are always ready with the next.
    pub(crate) fn flood(&self, plural: &str) {
        self.state().floods.insert(plural.to_owned());
    }

    /// Sends a line as it is to all watches.
    pub(crate) fn send_line(&self, plural: &str, line: &str) {
        self.tell(plural, || Some(Ok(line.to_owned().into())), true);
    }

    /// Answers everything with this status, and ends watches; those of a single namespace, as in `pods/shop`, go on.
    pub(crate) fn deny(&self, place: &str, code: u16, reason: &str) {
        self.state().denied.insert(place.to_owned(), (code, status(code, reason)));
        self.end_watches(place);
    }

    pub(crate) fn allow(&self, place: &str) {
        self.state().denied.remove(place);
    }

    /// Leaves requests without an answer until they are released.
    pub(crate) fn hold(&self, plural: &str) {
        self.0.held.send_modify(|held| _ = held.insert(plural.to_owned()));
    }

    /// Answers lists, but stops in the middle of them until they are released.
    pub(crate) fn hold_in_the_middle_of_lists(&self, plural: &str) {
        self.hold(&format!("{plural}{HALFWAY}"));
    }

    pub(crate) fn release(&self, plural: &str) {
        self.0.held.send_modify(|held| held.retain(|it| it.trim_end_matches(HALFWAY) != plural));
    }

    /// Breaks all watches off, and lets nobody connect until [`Server::come_back`].
    pub(crate) fn go_away(&self) {
        self.state().away = true;
        self.break_watches("");
    }

    pub(crate) fn come_back(&self) {
        self.state().away = false;
    }

    pub(crate) fn set_minor(&self, minor: Option<u32>) {
        self.state().minor = minor;
    }

    /// Requests that are open, answered or not.
    pub(crate) fn open(&self) -> usize {
        Arc::strong_count(&self.0.open) - 1
    }

    /// The requests so far, as in `LIST /api/v1/pods`.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    pub(crate) fn count(&self, beginning: &str) -> usize {
        self.state().log.iter().filter(|line| line.starts_with(beginning)).count()
    }

    /// The senders of requests.
    pub(crate) fn user_agents(&self) -> BTreeSet<String> {
        self.state().user_agents.clone()
    }

    /// The `Accept` header of the last request.
    pub(crate) fn accepted(&self) -> String {
        self.state().accept.clone()
    }

    pub(crate) fn version(&self) -> u64 {
        self.0.api.revision()
    }

    /// The content of a collection: keys with versions.
    pub(crate) fn content(&self, plural: &str) -> BTreeMap<String, String> {
        let collection = self.0.api.collection(&resource(plural)).unwrap();
        let mut listing = collection.list(&Default::default(), None).now_or_never().unwrap().unwrap();
        let key = |namespace: &str, name: &str| match namespace {
            "" => name.to_owned(),
            namespace => format!("{namespace}/{name}"),
        };
        let mut content = BTreeMap::new();
        loop {
            let some = listing.objects.next().now_or_never().unwrap().unwrap();
            if some.is_empty() {
                return content;
            }
            content.extend(some.iter().map(|it| (key(&it.namespace, &it.name), it.revision.to_string())));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    fn bookmark_line(&self) -> String {
        let object = json!({ "kind": "Pod", "metadata": { "resourceVersion": self.version().to_string() } });
        format!("{}\n", json!({ "type": "BOOKMARK", "object": object }))
    }

    /// Adds something to the watches of a collection, or to all; without more they end.
    fn tell(&self, plural: &str, chunk: impl Fn() -> Option<Chunk>, more: bool) {
        for watch in &self.state().watches {
            let mut watch = watch.lock().unwrap();
            if plural.is_empty() || watch.plural == plural {
                watch.add(chunk(), more);
            }
        }
    }

    /// The answer that the test has, or that of the API.
    async fn answer(&self, request: http::Request<Vec<u8>>, asked: &Request) -> http::Response<Body> {
        let Request { plural, is_watch, .. } = asked;
        if let Some(answer) = self.state().scripted(asked) {
            return answer;
        }
        if *is_watch && self.state().floods.contains(plural) {
            let line = self.bookmark_line();
            return http::Response::new(stream::repeat_with(move || Ok(line.clone().into())).boxed());
        }
        let (head, body) = self.0.api.handle(request::plain(request)).await.into_parts();
        if *is_watch {
            let body = body.into_data_stream().map(|chunk| Ok(chunk.unwrap())).boxed();
            let watch = Arc::new(Mutex::new(Watch::new(plural, body)));
            let mut state = self.state();
            // Its reader has the other handle of a watch.
            state.watches.retain(|watch| Arc::strong_count(watch) > 1);
            state.watches.push(watch.clone());
            return http::Response::from_parts(head, Watch::read(watch));
        }
        let mut text = String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap();
        if let Some((from, to)) = &self.state().converted {
            text = text.replace(from, to);
        }
        let mut text = Bytes::from(text);
        let half = text.split_off(text.len() / 2);
        let (mut held, halfway) = (self.0.held.subscribe(), format!("{plural}{HALFWAY}"));
        let half = stream::once(async move {
            let _ = held.wait_for(|held| !held.contains(&halfway)).await;
            Ok(half)
        });
        http::Response::from_parts(head, body::whole(text).chain(half).boxed())
    }
}

impl State {
    /// Writes a request down, and says how many there are.
    fn note(&mut self, request: &http::Request<Vec<u8>>, line: String) -> usize {
        let header = |name: &str| Some(request.headers().get(name)?.to_str().unwrap().to_owned());
        self.user_agents.extend(header("user-agent"));
        self.accept = header("accept").unwrap_or_default();
        // On a paused clock, a test that waits for ever lets years pass.
        assert!(self.log.len() < 100_000, "a test waits in vain");
        self.log.push(line);
        self.log.len()
    }

    /// The answer that the test wants.
    fn scripted(&self, asked: &Request) -> Option<http::Response<Body>> {
        let (code, document) = if asked.plural == "version" {
            let said = self.minor.map(|minor| json!({ "major": "1", "minor": minor.to_string() }));
            said.map_or((503, Value::Null), |said| (200, said))
        } else {
            self.denied.get(&asked.plural).or_else(|| self.denied.get(&asked.place))?.clone()
        };
        let body = body::whole(document.to_string());
        Some(http::Response::builder().status(code).body(body).unwrap())
    }

    /// The hashes of the schemas, as all informers together ask for them.
    fn schemas(&mut self) -> Result<Response, TransportError> {
        self.schema_questions += 1;
        let entry = |(path, hash): (&String, &String)| {
            (path.clone(), json!({ "serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}") }))
        };
        let paths: serde_json::Map<_, _> = self.schemas.iter().map(entry).collect();
        let (head, ()) = http::Response::new(()).into_parts();
        let body = body::whole(json!({ "paths": paths }).to_string());
        if self.away { Err(refused()) } else { Ok(Response { head, body }) }
    }
}

impl Transport for Server {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        if request.uri().path() == "/openapi/v3" {
            return ready(self.state().schemas()).boxed();
        }
        let asked = Request::read(&request);
        let number = self.state().note(&request, asked.line.clone());
        let (server, mut held, open) = (self.clone(), self.0.held.subscribe(), self.0.open.clone());
        async move {
            let _ = held.wait_for(|held| !held.contains(&asked.plural)).await;
            if server.state().away {
                return Err(refused());
            }
            let (head, body) = server.answer(request, &asked).await.into_parts();
            let body = body::cut(body, number as u64).inspect(move |_| _ = &open).boxed();
            Ok(Response { head, body })
        }
        .boxed()
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        self.state().log.push("REFRESH".to_owned());
        ready(Ok(())).boxed()
    }
}

fn resource(plural: &str) -> Gvr {
    let version = match plural {
        "deployments" => "apps/v1",
        "carts" => "example.com/v1",
        _ => "v1",
    };
    Gvr::new(version, plural)
}

fn definitions() -> Gvr {
    Gvr::new("apiextensions.k8s.io/v1", "customresourcedefinitions")
}

pub(crate) fn status(code: u16, reason: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason })
}

fn refused() -> TransportError {
    TransportError::new("connection refused", None)
}
