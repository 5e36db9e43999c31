//! The page of the daemon in a cluster: requests go through exec into its pod, all of them over one connection of HTTP/2 (RFC 9113) on the
//! standard input and output of a `kubediff ui --stdio` there.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use jiff::Zoned;
use serve::Body;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::Mutex;

use super::etag;
use super::problem::Problem;
use super::routes::refusal;
use crate::query::remote::{self, DaemonError, End, Pipe};
use crate::query::{DaemonName, SourceArgs};
use crate::text::terminal::{escape, say};

/// How often a quiet connection is used, so that no load balancer cuts it.
pub(super) const ALIVE: Duration = Duration::from_secs(20);
/// How long a command that answers no more may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The way to the daemon.
pub(super) struct Remote {
    name: DaemonName,
    source: SourceArgs,
    connection: Mutex<Option<Connection>>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    end: End,
}

impl Remote {
    /// The way to this daemon, which answers.
    pub(super) async fn open(name: DaemonName, source: SourceArgs) -> Result<Self, DaemonError> {
        let remote = Self { name, source, connection: Mutex::new(None) };
        let probe = Request::get("http://daemon/v1/status").body(Bytes::new()).unwrap_or_default();
        remote.send(&probe).await?;
        Ok(remote)
    }

    /// `kubediff/kubediff`
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.name.namespace, self.name.name)
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: &Request<Bytes>) -> Response<Body> {
        match self.send(request).await {
            Ok(response) => response,
            Err(error) => {
                let problem = Problem {
                    detail: informer::error_chain(&error),
                    ..Problem::new(StatusCode::BAD_GATEWAY, "The daemon does not answer")
                };
                refusal(request.uri().path(), problem, &Zoned::now())
            }
        }
    }

    /// Sends a request, on a new connection if the former one is gone.
    async fn send(&self, request: &Request<Bytes>) -> Result<Response<Body>, DaemonError> {
        loop {
            let (mut sender, is_new) = self.connected().await?;
            let answer = match sender.ready().await {
                Ok(()) => sender.send_request(whole(request)).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(response) => {
                    return Ok(response.map(|body| body.map_err(std::io::Error::other).boxed_unsync()));
                }
                Err(error) => {
                    let lost = self.connection.lock().await.take();
                    if let Some(lost) = lost.filter(|_| is_new) {
                        return Err(match tokio::time::timeout(LAST_WORDS, lost.end.reason()).await {
                            Ok(reason) => reason,
                            Err(_) => DaemonError::lost(&self.name, &error.to_string()),
                        });
                    }
                    if is_new {
                        return Err(DaemonError::lost(&self.name, &error.to_string()));
                    }
                }
            }
        }
    }

    /// A connection, and whether it is new.
    async fn connected(&self) -> Result<(SendRequest<Full<Bytes>>, bool), DaemonError> {
        let mut connection = self.connection.lock().await;
        if let Some(known) = connection.as_ref().filter(|known| !known.sender.is_closed()) {
            return Ok((known.sender.clone(), false));
        }
        let now = self.source.now.clone().unwrap_or_else(Zoned::now);
        let words = ["kubediff", "ui", "--stdio", "--of-this-daemon"].map(str::to_owned);
        let words = words.into_iter().chain([format!("--now={now}")]).collect();
        let Pipe { stream, stderr, end } = remote::open(&self.name, &self.source, words).await?;
        tokio::spawn(relay(stderr));
        let mut builder = http2::Builder::new(TokioExecutor::new());
        let builder = builder.timer(TokioTimer::new()).keep_alive_interval(ALIVE).keep_alive_while_idle(true);
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (sender, running) =
            handshake.map_err(|error| DaemonError::lost(&self.name, &error.to_string()))?;
        // An error of it is one of each request.
        tokio::spawn(async move {
            let _ = running.await;
        });
        *connection = Some(Connection { sender: sender.clone(), end });
        Ok((sender, true))
    }
}

/// The request as the daemon gets it: with what it needs to answer, and nothing else of the browser's.
fn whole(request: &Request<Bytes>) -> Request<Full<Bytes>> {
    let mut sent = Request::new(Full::new(request.body().clone()));
    *sent.method_mut() = request.method().clone();
    let host = request.headers().get(http::header::HOST).and_then(|host| host.to_str().ok());
    let host = request.uri().authority().map(http::uri::Authority::as_str).or(host).unwrap_or("daemon");
    let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    if let Ok(uri) = format!("http://{host}{path}").parse::<Uri>() {
        *sent.uri_mut() = uri;
    }
    for name in ["last-event-id", "accept", "accept-encoding", "content-type"] {
        if let Some(value) = request.headers().get(name) {
            sent.headers_mut().insert(name, value.clone());
        }
    }
    etag::copy(request.headers(), sent.headers_mut());
    sent
}

/// Passes on what the command says.
async fn relay(stderr: impl AsyncRead + Unpin) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        say(&format!("the daemon's pod says: {}", escape(line.trim_start_matches("kubediff: "))));
    }
}
