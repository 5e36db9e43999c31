//! HTTP/1.1 on one port, for the questions of probes and of Prometheus.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{self, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use crate::error::RunError;

/// How long the listener pauses after a failed accept: too many files are open, for example.
const AFTER_A_FAILURE: Duration = Duration::from_millis(50);

/// The most connections at once. Beyond that the oldest makes room: a probe is answered at once, and is not it.
const MOST: usize = 256;

/// The time of a connection, which has one request.
const LIMIT: Duration = Duration::from_secs(30);

/// A bound port that does not answer yet: connections wait.
pub(super) struct Listener {
    socket: net::TcpListener,
    address: SocketAddr,
}

impl Listener {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = net::TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self { address: socket.local_addr()?, socket })
    }

    /// The address with the actual port.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until the handle is dropped. The bodies of requests are not read.
    pub(super) fn answer<A>(self, answer: A) -> Result<AbortOnDropHandle<()>, RunError>
    where
        A: Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync + 'static,
    {
        let listener =
            TcpListener::from_std(self.socket).map_err(|error| RunError::listen(self.address, error))?;
        tracing::info!(address = %self.address, "health and metrics");
        Ok(AbortOnDropHandle::new(tokio::spawn(accept(listener, Arc::new(answer)))))
    }
}

async fn accept<A>(listener: TcpListener, answer: Arc<A>)
where
    A: Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync + 'static,
{
    let mut open: VecDeque<AbortOnDropHandle<_>> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(AFTER_A_FAILURE).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= MOST {
            open.pop_front();
        }
        let serving = tokio::time::timeout(LIMIT, serve(stream, answer.clone()));
        open.push_back(AbortOnDropHandle::new(tokio::spawn(serving)));
    }
}

async fn serve<A>(stream: TcpStream, answer: Arc<A>)
where
    A: Fn(&Request<Incoming>) -> Response<Full<Bytes>>,
{
    let service = service_fn(|request| {
        let answer = answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    // An error ends this connection and nothing else.
    let _ = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service).await;
}
