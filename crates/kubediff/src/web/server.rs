//! `kubediff ui`: the page of a history, on a port of this machine.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Collected, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use jiff::Zoned;
use serve::http::{ConnectionInfo, Server, ServerOptions};

use super::args::UiArgs;
use super::door::Door;
use super::entrance::{Behind, Entrance};
use super::remote::{ALIVE, Remote};
use super::routes::Routes;
use super::store::{Asked, Seen, Store};
use super::viewer::Viewer;
use crate::exit::Exit;
use crate::query::{DaemonError, QueryError, SourceArgs};
use crate::signals::Signals;
use crate::text::terminal::say;

/// How long the head of a request may take, and a connection may be idle.
const HEAD: Duration = Duration::from_secs(60);

/// The longest body of a request.
const BODY: usize = 64 << 10;

/// The page could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// The history cannot be read.
    #[error(transparent)]
    History(#[from] QueryError),
    /// The port is taken.
    #[error(
        "the page cannot be served on port {port} of this machine; leave --port out, or choose another one"
    )]
    Port {
        /// The port.
        port: u16,
        /// Why.
        source: std::io::Error,
    },
    /// The program cannot listen for signals.
    #[error("signals cannot be handled")]
    Signals(#[source] std::io::Error),
    /// There are no random numbers.
    #[error("the system has no random numbers for the link of the page")]
    Random(#[from] getrandom::Error),
    /// The daemon cannot be asked.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// A thread has ended although it should not.
    #[error(
        "the thread that opens the history has ended unexpectedly, which is a mistake in kubediff; report the message above"
    )]
    Ended(#[source] tokio::task::JoinError),
    /// The connection on standard input and output ended with an error.
    #[error("the page on standard input and output ended")]
    Stdio(#[source] hyper::Error),
}

impl UiError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::History(error) => error.exit(),
            Self::Daemon(error) => error.exit(),
            Self::Port { .. } | Self::Signals(_) | Self::Random(_) | Self::Ended(_) | Self::Stdio(_) => {
                Exit::Failure
            }
        }
    }
}

/// Serves the page until it is asked to end.
///
/// # Errors
///
/// When the history cannot be read, or the port is taken.
pub async fn run(args: &UiArgs) -> Result<(), UiError> {
    if args.stdio {
        return stdio(args).await;
    }
    let mut signals = Signals::listen().map_err(UiError::Signals)?;
    let server = bind(args.port).await.map_err(|source| UiError::Port { port: args.port, source })?;
    let Some(behind) = open(&args.source, &mut signals).await? else { return Ok(()) };
    let of = behind.name();
    if let Behind::File(routes) = &behind {
        fold(routes.store().clone());
    }
    let door = Door::new(server.address());
    let link = door.link()?;
    let entrance = Arc::new(Entrance::new(door, behind));
    let serving = server.serve(move |request: Request<Bytes>, _: ConnectionInfo| {
        let entrance = entrance.clone();
        async move { entrance.answer(request).await }
    });
    say(&format!("the page of {of} is at {link}"));
    say("the link works once; Ctrl-C ends the page");
    signals.end().await;
    serving.stop().await;
    Ok(())
}

/// Finds what answers; `None` when somebody ends the program meanwhile.
pub(super) async fn open(source: &SourceArgs, signals: &mut Signals) -> Result<Option<Behind>, UiError> {
    let asking = source.clone();
    let opening = async move {
        match asking.daemon.clone() {
            Some(name) => Ok(Behind::Daemon(Box::new(Remote::open(name, asking).await?))),
            None => {
                // A named pipe in the place of the file would never answer.
                let store = tokio::task::spawn_blocking(move || store(&asking, false));
                Ok(Behind::File(Routes::new(store.await.map_err(UiError::Ended)??, "http")))
            }
        }
    };
    tokio::select! {
        opened = opening => opened.map(Some),
        () = signals.end() => Ok(None),
    }
}

/// Binds the port. The server shares its port with other sockets of this user, so that it asks first whether somebody has it.
async fn bind(port: u16) -> std::io::Result<Server> {
    let address = SocketAddr::from((if port == 0 { own_address() } else { Ipv4Addr::LOCALHOST }, port));
    if port != 0 {
        drop(tokio::net::TcpListener::bind(address).await?);
    }
    let read_timeout = Some(HEAD);
    Server::bind(ServerOptions { address, max_request_body: BODY, read_timeout, ..ServerOptions::default() })
        .await
}

/// An address of this machine that probably nobody else has. All of 127.0.0.0/8 is of Linux (RFC 1122, 3.2.1.3, lets it).
pub(super) fn own_address() -> Ipv4Addr {
    match getrandom::u32() {
        Ok(random) if cfg!(target_os = "linux") => {
            let [_, b, c, d] = random.to_be_bytes();
            Ipv4Addr::new(127, b.max(1), c, d.clamp(1, 254))
        }
        _ => Ipv4Addr::LOCALHOST,
    }
}

/// The history of the page. The clock of the person who asks a daemon goes on.
fn store(source: &SourceArgs, has_clock: bool) -> Result<Arc<Store>, UiError> {
    let location = source.location()?;
    let (cluster, beside) = (source.cluster(&location)?, location.file().map(std::path::Path::to_owned));
    let place = super::Place { location, cluster, beside };
    let now = source.now.clone();
    let zone = now.clone().unwrap_or_else(Zoned::now).time_zone().clone();
    let fixed = now.filter(|_| !has_clock).map(|now| now.timestamp());
    Ok(Arc::new(Store::open(place, zone, fixed).map_err(QueryError::from)?))
}

/// Folds the stories meanwhile: the first page need not wait.
fn fold(store: Arc<Store>) {
    tokio::spawn(async move {
        let question =
            |asked: &mut Asked<'_>| asked.store.stories(asked.reader, asked.now.timestamp()).map(drop);
        let _ = store.ask(Seen::default(), question).await;
    });
}

/// Serves the page on standard input and output, until the other side ends it.
async fn stdio(args: &UiArgs) -> Result<(), UiError> {
    let store = store(&args.source, true)?;
    fold(store.clone());
    let routes = Arc::new(Routes::new(store, "http"));
    let service = service_fn(move |request: Request<Incoming>| {
        let routes = routes.clone();
        async move {
            let (parts, body) = request.into_parts();
            // What is too long is no question.
            let body = Limited::new(body, BODY).collect().await.map(Collected::to_bytes).unwrap_or_default();
            let request = Request::from_parts(parts, body);
            Ok::<_, Infallible>(routes.answer(&request, &Viewer::Owner).await)
        }
    });
    let stream = TokioIo::new(tokio::io::join(tokio::io::stdin(), tokio::io::stdout()));
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let builder = builder.timer(TokioTimer::new()).keep_alive_interval(Some(ALIVE));
    builder.serve_connection(stream, service).await.map_err(UiError::Stdio)
}
