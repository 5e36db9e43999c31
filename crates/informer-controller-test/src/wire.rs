//! The way between a process and the server: informer's transport, and the service below a `kube::Client`. Here requests
//! take time, and the disturbances of reads and writes happen.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use informer::kube::client::client::Body as ClientBody;
use informer::transport::{self, Transport, TransportError};
use informer_controller::Observed;
use serde_json::Value;
use serve::{Body, Reason, Route, Serve, Status};

use crate::cluster::Cluster;
use crate::history::{self, Author, Seen, What};
use crate::plan::{Disturbance, Unreadable};
use crate::process::Process;
use crate::recorder::named;
use crate::view::{Sent, View};

/// The connection of one process.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) process: Arc<Process>,
}

/// The program gives up a read without an answer after this time.
const GIVES_UP: Duration = Duration::from_secs(1);

/// A request, as the history has it.
#[derive(Clone)]
struct Words {
    line: String,
    /// The entries of the history when it left the program.
    departed: usize,
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// A request without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection was lost")]
pub(crate) struct Lost;

impl Wire {
    pub(crate) fn new(cluster: Arc<Cluster>, process: Arc<Process>) -> Self {
        Self { cluster, process }
    }

    async fn send(self, request: Request<Bytes>) -> Result<Response<Body>, Lost> {
        if !self.cluster.is_here() {
            return Err(Lost);
        }
        self.process.lives().await;
        let departed = self.cluster.state().history.entries.len();
        self.cluster.latency().await;
        self.process.lives().await;
        let request = readable(request);
        let sent = Sent::default();
        let answer = if *request.method() == Method::GET {
            self.read(request, departed, &sent).await?
        } else {
            self.write(request, departed).await?
        };
        // The events of a watch are sent later.
        let sent = sent.take();
        self.cluster.latency().await;
        self.process.lives().await;
        self.arrived(sent);
        Ok(answer)
    }

    async fn read(
        &self,
        request: Request<Bytes>,
        departed: usize,
        sent: &Sent,
    ) -> Result<Response<Body>, Lost> {
        let words = words(&request, departed);
        let (parts, body) = request.into_parts();
        let Route::Resource(asked) = serve::route(&parts.uri) else {
            let answer = match parts.uri.path().starts_with("/openapi/") {
                // The schemas of all kinds cost more than the rest of a run, and do not change in it.
                true => Serve::refusal(&Status::new(Reason::NotFound, "schemas are not rehearsed")),
                false => self.cluster.api.handle(Request::from_parts(parts, body)).await,
            };
            self.note(words, Some(&answer), false);
            return Ok(answer);
        };
        let is_collection = asked.name.is_none();
        let watches = is_collection
            && (asked.watch || asked.query.get("watch").is_some_and(|it| it != "false" && it != "0"));
        if !watches && let Some(unreadable) = self.cluster.reads(&named(&asked.plural, &asked.group)) {
            return self.unread(words, unreadable).await;
        }
        if !is_collection {
            let answer = self.cluster.api.handle(Request::from_parts(parts, body)).await;
            self.note(words, Some(&answer), false);
            return Ok(answer);
        }
        let any_version = asked.query.get("resourceVersion").is_some_and(|version| !version.is_empty());
        let select = |name: &str| asked.query.get(name).map_or(String::new(), |it| format!(" {it}"));
        let view = View {
            cluster: self.cluster.clone(),
            process: self.process.clone(),
            // A cache of the server may answer, or the newest state must.
            consistent: !watches && !any_version,
            scope: format!("{}{}{}", parts.uri.path(), select("labelSelector"), select("fieldSelector"))
                .into(),
            sent: sent.clone(),
        };
        let answer = Serve::new(Arc::new(view), self.cluster.reads.clone()).read(&parts).await;
        self.note(words, Some(&answer), false);
        Ok(if watches { self.delayed(answer, sent.clone()) } else { answer })
    }

    /// The answer of a read that fails.
    async fn unread(&self, words: Words, unreadable: Unreadable) -> Result<Response<Body>, Lost> {
        match unreadable {
            Unreadable::Status(reason) => {
                let answer = Serve::refusal(&Status::new(reason, "the server cannot answer now"));
                self.note(words, Some(&answer), false);
                Ok(answer)
            }
            Unreadable::NoAnswer => {
                tokio::time::sleep(GIVES_UP).await;
                self.process.lives().await;
                self.note(words, None, false);
                Err(Lost)
            }
        }
    }

    /// A response whose chunks take time, and which ends with the process.
    fn delayed(&self, answer: Response<Body>, reading: Sent) -> Response<Body> {
        let (head, body) = answer.into_parts();
        let (wire, server) = (self.clone(), self.clone());
        let (mut chunks, mut sent) = (body.into_data_stream(), reading.take());
        let sending = stream::poll_fn(move |context| {
            let next = chunks.poll_next_unpin(context);
            sent.extend(reading.take());
            match next {
                Poll::Ready(chunk) => Poll::Ready(chunk.map(|chunk| (chunk, std::mem::take(&mut sent)))),
                Poll::Pending => {
                    // The selector of the watch has left out all of them.
                    server.arrived(std::mem::take(&mut sent));
                    Poll::Pending
                }
            }
        });
        let frames = sending.then(move |(chunk, sent)| {
            let wire = wire.clone();
            async move {
                wire.cluster.latency().await;
                wire.process.lives().await;
                wire.arrived(sent);
                chunk.map(Frame::data)
            }
        });
        Response::from_parts(head, StreamBody::new(frames).boxed_unsync())
    }

    async fn write(&self, request: Request<Bytes>, departed: usize) -> Result<Response<Body>, Lost> {
        let words = words(&request, departed);
        if !is_write(&request) {
            let answer = self.cluster.api.handle(request).await;
            self.note(words, Some(&answer), false);
            return Ok(answer);
        }
        let planned = self.cluster.next_write();
        let kind = planned.as_ref().map(|planned| planned.kind);
        match kind {
            Some(kind @ Disturbance::Failure) => {
                self.cluster.happened(kind, format!("the server fails: {words}"));
                let status = Status::new(Reason::InternalError, "etcdserver: request timed out");
                let answer = Serve::refusal(&status);
                self.note(words, Some(&answer), true);
                return Ok(answer);
            }
            Some(kind @ Disturbance::Conflict) if has_precondition(&request) => {
                self.cluster.happened(kind, format!("another client is faster: {words}"));
                let message = "the object has been modified; please apply your changes to the latest version";
                let answer = Serve::refusal(&Status::new(Reason::Conflict, message));
                self.note(words, Some(&answer), true);
                return Ok(answer);
            }
            _ => {}
        }
        let answer = self.cluster.api.handle(request).await;
        self.cluster.drain(Author::Program(self.process.instance));
        self.note(words.clone(), Some(&answer), true);
        // A change may have set off a crash.
        self.process.lives().await;
        match (kind, planned.map(|planned| planned.lasting)) {
            (Some(kind @ Disturbance::Crash), Some(down)) => {
                self.cluster.happened(kind, format!("the program crashes right after: {words}"));
                self.cluster.kill(&self.process, down, "crashed");
                self.process.lives().await;
            }
            (Some(kind @ Disturbance::LostAnswer), Some(wait)) => {
                self.cluster.happened(kind, format!("the answer is lost: {words}"));
                tokio::time::sleep(wait).await;
                self.process.lives().await;
                // It depends on the plan, so that a run can be repeated.
                if wait.as_millis() % 2 == 0 {
                    self.note(words, None, true);
                    return Err(Lost);
                }
                let gave_up = Serve::refusal(&Status::new(Reason::Timeout, "the proxy gave up"));
                self.note(words, Some(&gave_up), true);
                return Ok(gave_up);
            }
            _ => {}
        }
        Ok(answer)
    }

    /// The program has these states now.
    fn arrived(&self, sent: Vec<Seen>) {
        for seen in sent {
            self.cluster.note(Author::Program(self.process.instance), What::Seen(seen));
        }
    }

    fn note(&self, words: Words, answer: Option<&Response<Body>>, writes: bool) {
        let Words { line, departed } = words;
        let (at, by) = (self.cluster.now(), self.process.instance);
        let status = answer.map(|answer| answer.status().as_u16());
        let request = history::Request { at, by, line, status, writes, departed };
        self.cluster.note(Author::Program(by), What::Answered(request));
    }

    /// Notes the beginning or the end of a reconciliation.
    pub(crate) fn observe(&self, observed: Observed<'_>) {
        if self.process.is_dead() {
            return;
        }
        let (controller, key) = (observed.controller.into(), observed.key.to_string());
        let what = match observed.ended {
            None => What::Began { controller, key },
            Some((result, error)) => {
                What::Reconciled { controller, key, result, error: error.map(str::to_owned) }
            }
        };
        self.cluster.note(Author::Program(self.process.instance), what);
    }
}

impl Transport for Wire {
    fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> BoxFuture<'static, Result<transport::Response, TransportError>> {
        let wire = self.clone();
        async move {
            let answer = Self::send(wire, request.map(Bytes::from)).await;
            let answer = answer.map_err(|lost| TransportError::new("no answer", Some(lost.into())))?;
            let (head, body) = answer.into_parts();
            let body = body
                .into_data_stream()
                .map_err(|error| TransportError::new("the answer broke off", Some(error.into())));
            Ok(transport::Response { head, body: body.boxed() })
        }
        .boxed()
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        std::future::ready(Ok(())).boxed()
    }
}

impl tower::Service<Request<ClientBody>> for Wire {
    type Response = Response<Body>;
    type Error = Lost;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ClientBody>) -> Self::Future {
        let wire = self.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(|_| Lost)?.to_bytes();
            Self::send(wire, Request::from_parts(parts, body)).await
        }
        .boxed()
    }
}

/// The request, asking for plain JSON: the sight and the recorder read no other form.
fn readable(mut request: Request<Bytes>) -> Request<Bytes> {
    request.headers_mut().remove(ACCEPT_ENCODING);
    let accepted = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let json: Vec<_> = accepted.split(',').filter(|form| !form.contains("protobuf")).collect();
    let json = if json.is_empty() { "application/json".to_owned() } else { json.join(",") };
    if let Ok(value) = HeaderValue::from_str(&json) {
        request.headers_mut().insert(ACCEPT, value);
    }
    request
}

/// `PATCH /api/v1/namespaces/shop/secrets/a?fieldManager=x`
fn words(request: &Request<Bytes>, departed: usize) -> Words {
    let line =
        format!("{} {}", request.method(), request.uri().path_and_query().map_or("/", |path| path.as_str()));
    Words { line, departed }
}

/// Whether a request changes objects: questions about permissions are sent as POST, too.
fn is_write(request: &Request<Bytes>) -> bool {
    match serve::route(request.uri()) {
        Route::Resource(asked) => !matches!(&*asked.group, "authorization.k8s.io" | "authentication.k8s.io"),
        _ => false,
    }
}

/// Whether a request succeeds only for one version of the object.
fn has_precondition(request: &Request<Bytes>) -> bool {
    let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    body["metadata"]["resourceVersion"].is_string() || body["preconditions"]["resourceVersion"].is_string()
}
