//! A small HTTP server with control over its connections: HTTP/1.1 and HTTP/2 on one port, plain or over TLS. It can
//! refuse new connections and close those that are open.
//!
//! All tasks belong to one [`Serving`]: when it is stopped or dropped, no connection and no task is left.

mod activity;
mod connection;
mod gate;
mod request;
mod tls;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Body;

use self::connection::Connection;
pub use self::connection::ConnectionInfo;
use self::gate::Gate;

/// How long the server pauses after a failed accept.
const AFTER_A_FAILURE: Duration = Duration::from_millis(50);

/// Options of the HTTP server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address to listen on; port 0 takes a free one.
    pub address: SocketAddr,
    /// Turns TLS on. If the configuration names no protocols, `h2` and `http/1.1` are offered.
    #[cfg(feature = "tls")]
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The maximum body of a request in bytes. A longer one is refused (413).
    pub max_request_body: usize,
    /// How many requests of one HTTP/2 connection run at once.
    pub max_concurrent_streams: u32,
    /// How long a handshake, the head of a request and its body may take, each. A connection is closed that is idle so long, or whose
    /// client takes nothing of its responses. `None` waits for ever, as clients of Kubernetes are used to.
    pub read_timeout: Option<Duration>,
    /// How many connections may be open. A further one is closed at once. `None` for as many as there are.
    pub max_connections: Option<usize>,
}

/// A server that has bound its port and does not answer yet: connections wait.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    address: SocketAddr,
    gate: Arc<Gate>,
}

/// A running server. Dropping it ends it at once, as if its process had been killed.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    gate: Arc<Gate>,
    state: Arc<ServerState>,
}

/// The state that all tasks of a server share.
#[derive(Debug)]
struct ServerState {
    tasks: TaskTracker,
    /// Cancelled when the server drains: it accepts no connection, and connections end after their running responses.
    drain: CancellationToken,
    /// Cancels the connections that are open now; replaced each time.
    open: Mutex<CancellationToken>,
    count: AtomicUsize,
    next_id: AtomicU64,
}

/// Answers requests. Implemented for functions from a request and its connection to a future.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request.
    fn answer(
        &self,
        request: Request<Bytes>,
        connection: ConnectionInfo,
    ) -> impl Future<Output = Response<Body>> + Send;
}

impl<H, F> Handler for H
where
    H: Fn(Request<Bytes>, ConnectionInfo) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send,
{
    fn answer(
        &self,
        request: Request<Bytes>,
        connection: ConnectionInfo,
    ) -> impl Future<Output = Response<Body>> + Send {
        self(request, connection)
    }
}

/// Loopback, a free port, plain, and the limits of kube-apiserver.
impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            #[cfg(feature = "tls")]
            tls: None,
            max_request_body: 3 << 20,
            max_concurrent_streams: 1000,
            read_timeout: None,
            max_connections: None,
        }
    }
}

impl Server {
    /// Binds the port. Must be called in a tokio runtime with I/O and time.
    ///
    /// # Errors
    ///
    /// The errors of bind and listen: the port is taken, the address is not this machine's ...
    pub async fn bind(options: ServerOptions) -> std::io::Result<Self> {
        let (gate, address) = Gate::open(options.address)?;
        Ok(Self { options, address, gate: Arc::new(gate) })
    }

    /// The address it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests with a handler from now on.
    pub fn serve(self, handler: impl Handler) -> Serving {
        let state = Arc::new(ServerState {
            tasks: TaskTracker::new(),
            drain: CancellationToken::new(),
            open: Mutex::new(CancellationToken::new()),
            count: AtomicUsize::new(0),
            next_id: AtomicU64::new(1),
        });
        let accepting = accept(self.gate.clone(), state.clone(), self.options, boxed(handler));
        state.tasks.spawn(state.drain.clone().run_until_cancelled_owned(accepting));
        Serving { address: self.address, gate: self.gate, state }
    }
}

/// A handler of any type. Without the box, a program would have the code of a connection, both versions of HTTP, once for each type.
type AnyHandler =
    Arc<dyn Fn(Request<Bytes>, ConnectionInfo) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

fn boxed(handler: impl Handler) -> AnyHandler {
    let handler = Arc::new(handler);
    Arc::new(move |request, connection| {
        let handler = handler.clone();
        Box::pin(async move { handler.answer(request, connection).await })
    })
}

async fn accept(gate: Arc<Gate>, state: Arc<ServerState>, options: ServerOptions, handler: AnyHandler) {
    let acceptor = tls::acceptor(&options);
    loop {
        let Ok((stream, peer)) = gate.accept().await else {
            // Too many open files, or a client that went away before accept: neither ends the server. The first lasts
            // until a connection closes.
            tokio::time::sleep(AFTER_A_FAILURE).await;
            continue;
        };
        if options.max_connections.is_none_or(|most| state.count.load(Ordering::Acquire) < most) {
            state.connect(stream, peer, acceptor.clone(), &options, handler.clone());
        }
    }
}

impl ServerState {
    fn connect(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        acceptor: Option<tls::Acceptor>,
        options: &ServerOptions,
        handler: AnyHandler,
    ) {
        // Otherwise a small event would wait for the acknowledgement of the previous one.
        let _ = stream.set_nodelay(true);
        let closed = self.open.lock().child_token();
        let connection = Connection {
            info: ConnectionInfo {
                id: self.next_id.fetch_add(1, Ordering::Relaxed),
                peer,
                tls: acceptor.is_some(),
                closed: closed.clone(),
            },
            tasks: self.tasks.clone(),
            drain: self.drain.clone(),
            max_request_body: options.max_request_body,
            max_concurrent_streams: options.max_concurrent_streams,
            read_timeout: options.read_timeout,
        };
        let counted = Counted::new(self.clone());
        let running = connection.run(stream, acceptor, handler);
        self.tasks.spawn(async move {
            let _counted = counted;
            closed.run_until_cancelled_owned(running).await;
        });
    }
}

impl Serving {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.state.count.load(Ordering::Acquire)
    }

    /// Refuses new connections (`ECONNREFUSED`) and keeps the port reserved. Open connections go on.
    pub fn refuse(&self) {
        self.gate.close();
    }

    /// Accepts new connections again.
    ///
    /// # Errors
    ///
    /// The errors of listen.
    pub fn resume(&self) -> std::io::Result<()> {
        self.gate.reopen()
    }

    /// Closes all connections in the middle of their traffic, like a server that is killed.
    pub fn disconnect_all(&self) {
        let mut open = self.state.open.lock();
        std::mem::replace(&mut *open, CancellationToken::new()).cancel();
    }

    /// Ends everything at once and returns when nothing runs.
    pub async fn stop(self) {
        self.abandon();
        self.state.tasks.wait().await;
    }

    /// Accepts no new connections and waits until running responses have ended. Watches end when their timeouts do;
    /// dropping the future ends everything at once instead.
    pub async fn shutdown(self) {
        self.gate.close();
        self.state.drain.cancel();
        self.state.tasks.close();
        self.state.tasks.wait().await;
    }

    fn abandon(&self) {
        self.gate.close();
        self.state.drain.cancel();
        self.state.tasks.close();
        // Not replaced: a connection that is being accepted right now ends too.
        self.state.open.lock().cancel();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// One of the open connections.
struct Counted(Arc<ServerState>);

impl Counted {
    fn new(state: Arc<ServerState>) -> Self {
        state.count.fetch_add(1, Ordering::AcqRel);
        Self(state)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
    }
}
