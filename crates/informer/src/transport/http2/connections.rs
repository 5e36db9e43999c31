//! The connections to one server: as few as possible, opened on demand. Requests are spread over them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use http::{Request, Response};
use kube_client::client::Body;
use tower::{BoxError, Service};

use super::Failure;
use super::connect::Connector;
use super::connection::{Connection, Incoming, Place, Sent};
use crate::Http2;

/// A handle to the connections to one server.
#[derive(Clone)]
pub(in crate::transport) struct Connections(Arc<Pool>);

struct Pool {
    options: Http2,
    state: Mutex<State>,
}

struct State {
    connector: Arc<Connector>,
    open: Vec<Arc<Connection>>,
    /// The connection that is being opened. It is dropped when no request waits for it any more.
    opening: Option<WeakShared<Opening>>,
}

type Opening = BoxFuture<'static, Result<(), Arc<Failure>>>;

/// How many times a request is sent if the server has not processed it.
const ATTEMPTS: usize = 3;

impl Connections {
    pub(in crate::transport) fn new(options: Http2, connector: Connector) -> Self {
        let state = State { connector: Arc::new(connector), open: Vec::new(), opening: None };
        Self(Arc::new(Pool { options, state: Mutex::new(state) }))
    }

    /// Uses `connector` for new connections from now on. With `replaces_open`, new requests use new connections only, and
    /// the open ones end with their last stream.
    pub(in crate::transport) fn renew(&self, connector: Connector, replaces_open: bool) {
        let mut state = self.0.state();
        state.connector = Arc::new(connector);
        // A connection that is being opened has the former connector. `open` retires it when it is ready.
        state.opening = None;
        if replaces_open {
            for connection in state.open.drain(..) {
                connection.retire();
            }
        }
    }

    async fn send(self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(Failure::Body)?;
        let mut last = Arc::new(Failure::Closed);
        for _ in 0..ATTEMPTS {
            match self.place().await?.send(head.clone(), body.clone()).await {
                Sent::Answered(response) => return Ok(response),
                Sent::Failed(failure) => return Err(failure.into()),
                Sent::NotProcessed(failure) => last = failure,
            }
        }
        Err(last.into())
    }

    /// A place for a request, on a new connection if necessary.
    async fn place(&self) -> Result<Place, Arc<Failure>> {
        loop {
            let opening = {
                let mut state = self.0.state();
                match state.place(self.0.options.connections.get()) {
                    Some(place) => return Ok(place),
                    None => state.opening(&self.0),
                }
            };
            if let Err(failure) = opening.await {
                // A connection that is shared with others is better than none.
                return self.0.state().any_place().ok_or(failure);
            }
        }
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A place on an open connection. `None` if one more connection is to be opened: all are in use, and there are fewer
    /// than configured, or all are full.
    fn place(&mut self, connections: usize) -> Option<Place> {
        self.open.retain(|connection| connection.is_open());
        let is_used = self.open.iter().all(|connection| connection.streams() > 0);
        if is_used && self.open.len() < connections { None } else { self.any_place() }
    }

    /// A place on the connection with the fewest streams that has room. `None` when all are full: the caller then opens one
    /// more connection, because a watch may keep its place for minutes.
    fn any_place(&mut self) -> Option<Place> {
        self.open.sort_by_key(|connection| connection.streams());
        self.open.iter().find_map(Connection::place)
    }

    /// The future that opens a connection, shared by all requests that need one.
    fn opening(&mut self, pool: &Arc<Pool>) -> Shared<Opening> {
        if let Some(opening) = self.opening.as_ref().and_then(WeakShared::upgrade) {
            return opening;
        }
        let opening = open(self.connector.clone(), pool.options, Arc::downgrade(pool)).boxed().shared();
        self.opening = opening.downgrade();
        opening
    }
}

async fn open(connector: Arc<Connector>, options: Http2, pool: Weak<Pool>) -> Result<(), Arc<Failure>> {
    let opened = Connection::open(&connector, &options).await;
    let Some(pool) = pool.upgrade() else { return Err(Arc::new(Failure::Closed)) };
    let mut state = pool.state();
    let is_current = Arc::ptr_eq(&connector, &state.connector);
    if is_current {
        state.opening = None;
    }
    match opened {
        Ok(connection) if is_current => state.open.push(connection),
        // The connection was opened with the former certificates.
        Ok(connection) => connection.retire(),
        Err(failure) => return Err(Arc::new(failure)),
    }
    Ok(())
}

impl Service<Request<Body>> for Connections {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.clone().send(request).boxed()
    }
}
