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
use serve::http::{ConnectionInfo, Server, ServerOptions};

use super::args::UiArgs;
use super::behind::{Behind, fold, store};
use super::door::Door;
use super::entrance::Entrance;
use super::error::UiError;
use super::remote::ALIVE;
use super::routes::Routes;
use super::viewer::Viewer;
use crate::signals::Signals;
use crate::text::terminal::say;

/// How long the head of a request may take, and a connection may be idle.
const HEAD: Duration = Duration::from_secs(60);

/// The longest body of a request.
const BODY: usize = 64 << 10;

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
    let behind = tokio::select! {
        opened = Behind::open(&args.source) => opened?,
        () = signals.end() => return Ok(()),
    };
    behind.fold();
    let door = Door::new(server.address());
    let link = door.link()?;
    let of = behind.name.clone();
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

/// Serves the page on standard input and output, until the other side ends it.
async fn stdio(args: &UiArgs) -> Result<(), UiError> {
    let store = store(&args.source, false)?;
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
