//! HTTP/1.1 on one port, for the questions of probes and of Prometheus.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

/// How long the listener pauses after a failed accept.
const AFTER_A_FAILURE: Duration = Duration::from_millis(50);

/// The most connections at once.
const MOST: usize = 256;

/// A bound port that does not answer yet: connections wait.
pub(super) struct Listener(TcpListener);

/// A listener that answers. Dropping it closes the port and all connections.
pub(super) struct Listening(AbortOnDropHandle<()>);

impl Listener {
    pub(super) async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        TcpListener::bind(address).await.map(Self)
    }

    /// The address with the actual port.
    pub(super) fn address(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Answers requests from now on. The bodies of requests are not read.
    pub(super) fn answer<A>(self, answer: A) -> Listening
    where
        A: Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync + 'static,
    {
        Listening(AbortOnDropHandle::new(tokio::spawn(async move { accept(&self.0, &answer).await })))
    }
}

impl Listening {
    /// Closes the port and all connections, and returns when nothing runs.
    pub(super) async fn close(self) {
        self.0.abort();
        let _ = self.0.await;
    }
}

/// All connections are part of this one future: they end with it. Beyond the bound the oldest makes room: a probe is answered at once, and
/// is not it.
async fn accept(
    listener: &TcpListener,
    answer: &(impl Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Sync),
) {
    let mut open = FuturesUnordered::new();
    let mut closers = BTreeMap::new();
    for number in 0_u64.. {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if closers.len() >= MOST {
                        closers.pop_first();
                    }
                    let (closer, closed) = oneshot::channel::<()>();
                    closers.insert(number, closer);
                    open.push(async move {
                        tokio::select! {
                            () = serve(stream, answer) => {}
                            _ = closed => {}
                        }
                        number
                    });
                }
                // Too many open files, or a client that went away before accept: neither ends the listener.
                Err(_) => tokio::time::sleep(AFTER_A_FAILURE).await,
            },
            Some(number) = open.next() => drop(closers.remove(&number)),
        }
    }
}

async fn serve(stream: TcpStream, answer: &(impl Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Sync)) {
    let service = service_fn(|request| {
        let answer = answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    // The timer ends connections that send no whole head within half a minute. It would also end one that waits for its next
    // request, maybe in the moment of that request; so each connection has one.
    let mut builder = http1::Builder::new();
    let builder = builder.timer(TokioTimer::new()).keep_alive(false);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // An error ends this connection and nothing else.
    let _ = connection.await;
}
