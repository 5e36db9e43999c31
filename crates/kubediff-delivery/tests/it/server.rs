//! A real HTTP server that does as it is told, request by request.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

/// The reaction of the server to a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Status(u16),
    /// 200 with this body.
    Json(String),
    /// With this header `Retry-After`.
    RetryAfter(u16, String),
    /// It reads the request and closes the connection.
    Break,
    /// It reads the request and never answers.
    Silence,
    /// It answers 200 when it is told to.
    Held(Arc<Notify>),
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

#[derive(Clone)]
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _task: Arc<Stop>,
}

struct Stop(AbortHandle);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Server {
    /// A server that does these one after the other, and then answers 204.
    pub(crate) async fn start(acts: impl IntoIterator<Item = Act>) -> Self {
        let mut acts: VecDeque<Act> = acts.into_iter().collect();
        Self::with(move |_| acts.pop_front().unwrap_or(Act::Status(204))).await
    }

    /// A server that decides by the request.
    pub(crate) async fn with(decide: impl FnMut(&Seen) -> Act + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (noted, decide) = (seen.clone(), Arc::new(Mutex::new(decide)));
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (noted, decide) = (noted.clone(), decide.clone());
                connections.spawn(async move {
                    let service = service_fn(move |request| {
                        let (noted, decide) = (noted.clone(), decide.clone());
                        async move {
                            let seen = read(request).await?;
                            let act = (decide.lock().expect("no panic"))(&seen);
                            noted.lock().expect("no panic").push(seen);
                            answer(act).await
                        }
                    });
                    let builder = Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, seen, _task: Arc::new(Stop(accepting.abort_handle())) }
    }

    /// An address to which paths can be added.
    pub(crate) fn base(&self) -> String {
        format!("http://{}/api/", self.address)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook?token=not-for-logs", self.address)
    }

    /// Waits for a request.
    pub(crate) async fn is_asked(&self) {
        while self.seen().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }
}

/// A connection that breaks.
#[derive(Debug)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken on purpose")
    }
}

impl std::error::Error for Broken {}

async fn read(request: Request<Incoming>) -> Result<Seen, Broken> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
    let (method, path) = (head.method.to_string(), head.uri.path().to_owned());
    Ok(Seen { method, path, headers: head.headers, body })
}

async fn answer(act: Act) -> Result<Response<Full<Bytes>>, Broken> {
    let response = |status: u16| Response::builder().status(status);
    let empty = Full::new(Bytes::new());
    let built = match act {
        Act::Status(status) => response(status).body(empty),
        Act::Json(text) => {
            let json = response(200).header("Content-Type", "application/json");
            return json.body(Full::new(text.into())).map_err(|_| Broken);
        }
        Act::RetryAfter(status, after) => response(status).header("Retry-After", after).body(empty),
        Act::Break => return Err(Broken),
        Act::Silence => std::future::pending::<Result<_, Infallible>>().await.map_err(|never| match never {}),
        Act::Held(go) => {
            go.notified().await;
            response(200).body(empty)
        }
    };
    built.map_err(|_| Broken)
}
