//! One connection and the tasks that serve it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::activity::{Activity, Written};
use super::tls::Acceptor;
use super::{AnyHandler, request};

/// The buffer of one write: lists are long, and a system call costs more than a copy.
const WRITE_BUFFER: usize = 1 << 20;

/// The connection of a request.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// The connection's number, counted from 1.
    pub id: u64,
    /// The client's address.
    pub peer: SocketAddr,
    /// Whether it is encrypted.
    pub tls: bool,
    pub(super) closed: CancellationToken,
}

impl ConnectionInfo {
    /// Closes the connection in the middle of all its requests, this one included.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// Waits until either side has closed the connection.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

pub(super) struct Connection {
    pub(super) info: ConnectionInfo,
    pub(super) tasks: TaskTracker,
    pub(super) drain: CancellationToken,
    pub(super) max_request_body: usize,
    pub(super) max_concurrent_streams: u32,
    pub(super) read_timeout: Option<Duration>,
}

impl Connection {
    pub(super) async fn run(self, stream: TcpStream, tls: Option<Acceptor>, handler: AnyHandler) {
        // When the connection is gone, so are the tasks that answer on it.
        let _closes = self.info.closed.clone().drop_guard();
        match tls {
            None => self.answer(Box::new(TokioIo::new(stream)), handler).await,
            Some(acceptor) => {
                if let Some(Ok(stream)) = within(self.read_timeout, acceptor.accept(stream)).await {
                    self.answer(Box::new(TokioIo::new(stream)), handler).await;
                }
            }
        }
    }

    async fn answer(self, stream: Box<dyn Stream>, handler: AnyHandler) {
        let Self { info, tasks, drain, max_request_body, max_concurrent_streams, read_timeout } = self;
        let mut builder = auto::Builder::new(Streams { tasks, closed: info.closed.clone() });
        builder.http1().max_buf_size(WRITE_BUFFER);
        if let Some(limit) = read_timeout {
            builder.http1().timer(TokioTimer::new()).header_read_timeout(limit);
            builder.http2().timer(TokioTimer::new()).keep_alive_interval(limit);
        }
        builder.http2().max_send_buf_size(WRITE_BUFFER).max_concurrent_streams(max_concurrent_streams);
        let begun = CancellationToken::new();
        let first = begun.clone();
        let activity = Activity::new();
        let stream = Written::new(stream, activity.clone());
        let going_on = activity.clone();
        let service = service_fn(move |incoming: http::Request<Incoming>| {
            first.cancel();
            let (handler, info, activity) = (handler.clone(), info.clone(), going_on.clone());
            let busy = activity.begin();
            async move {
                let (closed, _busy) = (info.closed.clone(), busy);
                let answer = match within(read_timeout, request::collect(incoming, max_request_body)).await {
                    Some(Ok(request)) => handler(request, info).await,
                    Some(Err(refusal)) => refusal,
                    None => {
                        // The rest of the body would be taken for the next request.
                        info.close();
                        return std::future::pending().await;
                    }
                };
                if closed.is_cancelled() {
                    // After a close by the handler this response must not be sent.
                    std::future::pending::<()>().await;
                }
                let is_watched = read_timeout.is_some();
                Ok::<_, Infallible>(if is_watched { activity.watch(answer) } else { answer })
            }
        });
        let mut connection = pin!(builder.serve_connection_with_upgrades(stream, service));
        // hyper waits without a limit for the bytes that show the version of HTTP.
        let silent = async {
            if within(read_timeout, begun.cancelled()).await.is_some() {
                std::future::pending().await
            }
        };
        let idle = async {
            match read_timeout {
                Some(limit) => activity.is_idle(limit).await,
                None => std::future::pending().await,
            }
        };
        // An error ends this connection and nothing else.
        tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            () = silent => return,
            () = idle => return,
            () = drain.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }
}

/// The outcome, if it comes within the limit.
async fn within<F: Future>(limit: Option<Duration>, work: F) -> Option<F::Output> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}

/// The bytes of a connection, with or without TLS.
trait Stream: Read + Write + Unpin + Send {}

impl<T: Read + Write + Unpin + Send> Stream for T {}

/// Runs the concurrent streams of an HTTP/2 connection, no longer than the connection lives.
#[derive(Clone)]
struct Streams {
    tasks: TaskTracker,
    closed: CancellationToken,
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.tasks.spawn(self.closed.clone().run_until_cancelled_owned(stream));
    }
}
