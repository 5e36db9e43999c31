//! One HTTP/2 connection. Counts its streams, sends pings, and reports its end to all of its streams.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use h2::client::{Builder, SendRequest};
use h2::{Ping, PingPong, Reason, RecvStream};
use http_body::Frame;
use tokio::sync::Notify;
use tokio_util::io::InspectReader;

use super::Failure;
use super::connect::Connector;
use crate::Http2;

/// The number of bytes that a server may send ahead of the reader, per stream. With 2 MiB a list fills a link of 160 Mbit/s
/// at 100 ms.
const STREAM_WINDOW: u32 = 2 << 20;
/// The most streams that a connection carries, even if the server allows more. It is kube-apiserver's own limit.
const STREAMS: u16 = 100;
/// The window of a whole connection is the sum of the windows of its streams, so unread streams do not block the others. A
/// connection therefore has at most 200 MiB of unread bytes, when no stream of a hundred is read.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS as u32;
/// How long an idle connection stays open: somewhat longer than the time between a list and its watch.
const LINGER: Duration = Duration::from_secs(1);
/// The number of cancelled streams that h2 remembers. Frames that are still in flight for them are then no protocol error.
const REMEMBERED_RESETS: usize = 256;

/// A connection, as seen by the requests that need streams.
pub(super) struct Connection {
    /// `None` when the connection accepts no new streams.
    sender: Mutex<Option<SendRequest<bytes::Bytes>>>,
    streams: AtomicUsize,
    unused: Notify,
    end: OnceLock<Arc<Failure>>,
}

impl Connection {
    /// Opens a connection. A task of its own drives it from then on.
    pub(super) async fn open(connector: &Connector, options: &Http2) -> Result<Arc<Self>, Failure> {
        let opening = Self::handshake(connector, options);
        match connector.timeout() {
            None => opening.await,
            Some(limit) => match tokio::time::timeout(limit, opening).await {
                Ok(opened) => opened,
                Err(_) => Err(Failure::ConnectTimeout(limit)),
            },
        }
    }

    async fn handshake(connector: &Connector, options: &Http2) -> Result<Arc<Self>, Failure> {
        let received = Arc::new(AtomicU64::new(0));
        let counted = received.clone();
        let wire = InspectReader::new(connector.connect().await?, move |read: &[u8]| {
            counted.fetch_add(read.len() as u64, Ordering::Relaxed);
        });
        let handshake = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_reset_streams(REMEMBERED_RESETS)
            .enable_push(false)
            .handshake(wire);
        let (sender, mut driver) = handshake.await.map_err(Failure::Handshake)?;
        let Some(mut pings) = driver.ping_pong() else { return Err(Failure::Closed) };
        // A server sends its settings before everything else: once the pong has arrived, its stream limit is known.
        let _pong = tokio::select! {
            biased;
            end = &mut driver => return Err(end.map_or_else(Failure::Handshake, |()| Failure::Closed)),
            pong = pings.ping(Ping::opaque()) => pong.map_err(Failure::Handshake)?,
        };
        let connection = Arc::new(Self {
            sender: Mutex::new(Some(sender)),
            streams: AtomicUsize::new(0),
            unused: Notify::new(),
            end: OnceLock::new(),
        });
        let keep_alive =
            KeepAlive { pings, received, interval: options.ping_interval, timeout: options.ping_timeout };
        tokio::spawn(drive(connection.clone(), driver, keep_alive));
        Ok(connection)
    }

    /// A place for one more request, within the server's limit.
    pub(super) fn place(self: &Arc<Self>) -> Option<Place> {
        let sender = self.sender();
        let sender = sender.as_ref()?;
        // At least one stream: a server that accepts no streams right now must refuse them itself.
        let limit = sender.current_max_send_streams().clamp(1, usize::from(STREAMS));
        let one_more = |streams| (streams < limit).then_some(streams + 1);
        // Streams end without this lock, so their count is atomic.
        self.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Place { taken: Taken(self.clone()), sender: sender.clone() })
    }

    /// The number of running requests.
    pub(super) fn streams(&self) -> usize {
        self.streams.load(Ordering::Acquire)
    }

    /// Whether it accepts new streams.
    pub(super) fn is_open(&self) -> bool {
        self.sender().is_some()
    }

    /// Makes the connection accept no new streams. It ends with its last stream.
    pub(super) fn retire(&self) {
        *self.sender() = None;
    }

    fn sender(&self) -> std::sync::MutexGuard<'_, Option<SendRequest<bytes::Bytes>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Retires the connection when it has been idle for a while.
    async fn unused(&self) {
        loop {
            self.unused.notified().await;
            tokio::time::sleep(LINGER).await;
            // No request can take a place while this lock is held.
            let mut sender = self.sender();
            if self.streams() == 0 {
                *sender = None;
                return;
            }
        }
    }

    /// The reason why a stream has ended: the end of its connection, or else the stream's own error.
    fn explain(&self, error: h2::Error) -> Arc<Failure> {
        self.end.get().cloned().unwrap_or_else(|| Arc::new(Failure::Stream(error)))
    }
}

/// Drives the connection until it ends.
async fn drive(
    connection: Arc<Connection>,
    mut driver: impl Future<Output = Result<(), h2::Error>> + Unpin,
    keep_alive: KeepAlive,
) {
    // The caller that opened the connection may be gone; then the connection is idle from the start.
    connection.unused.notify_one();
    let unused = async {
        connection.unused().await;
        // The connection is retired, so the driver ends by itself now.
        std::future::pending::<()>().await;
    };
    let end = tokio::select! {
        biased;
        end = &mut driver => end.map_or_else(Failure::Connection, |()| Failure::Closed),
        failure = keep_alive.failure() => failure,
        () = unused => Failure::Closed,
    };
    tracing::debug!(%end, "HTTP/2 connection");
    connection.retire();
    // The end is set before the driver is dropped. That drop ends the streams without a reason.
    let _ = connection.end.set(Arc::new(end));
}

/// Detects a dead connection that neither side has closed.
struct KeepAlive {
    pings: PingPong,
    /// Counts the received bytes.
    received: Arc<AtomicU64>,
    interval: Duration,
    timeout: Duration,
}

impl KeepAlive {
    /// Resolves when a ping was not answered in time.
    async fn failure(mut self) -> Failure {
        loop {
            tokio::time::sleep(self.interval).await;
            let pong = self.pings.ping(Ping::opaque());
            let mut pong = std::pin::pin!(pong);
            loop {
                let before = self.received.load(Ordering::Relaxed);
                match tokio::time::timeout(self.timeout, &mut pong).await {
                    Ok(Ok(_)) => break,
                    // The connection has ended. The driver reports the reason.
                    Ok(Err(_)) => return std::future::pending().await,
                    Err(_) if self.received.load(Ordering::Relaxed) == before => {
                        return Failure::PingUnanswered(self.timeout);
                    }
                    // The link is slow: bytes that the server sent before the pong are still arriving.
                    Err(_) => {}
                }
            }
        }
    }
}

/// A place for a request on a connection.
pub(super) struct Place {
    taken: Taken,
    sender: SendRequest<bytes::Bytes>,
}

/// Counts as a stream of its connection until it is dropped.
struct Taken(Arc<Connection>);

/// The outcome of a request.
pub(super) enum Sent {
    Answered(http::Response<Incoming>),
    /// The server guarantees that it did not process the request, which can be sent again over another connection.
    NotProcessed(Arc<Failure>),
    Failed(Arc<Failure>),
}

impl Place {
    /// Sends a request, and waits for the head of the response.
    pub(super) async fn send(self, head: http::request::Parts, body: bytes::Bytes) -> Sent {
        let Self { taken, sender } = self;
        let connection = &taken.0;
        let mut sender = match sender.ready().await {
            Ok(sender) => sender,
            Err(error) => {
                // The server sent GOAWAY, or the connection broke, before the request was sent.
                connection.retire();
                return Sent::NotProcessed(connection.explain(error));
            }
        };
        let mut request = http::Request::from_parts(head, ());
        *request.version_mut() = http::Version::HTTP_2;
        // The header is valid only in HTTP/1.1 (RFC 9113, section 8.2.2).
        request.headers_mut().remove(http::header::CONNECTION);
        let answer = sender.send_request(request, body.is_empty()).and_then(|(answer, mut rest)| {
            if !body.is_empty() {
                rest.send_data(body, true)?;
            }
            Ok(answer)
        });
        drop(sender);
        let answer = match answer {
            Ok(answer) => answer.await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(response) => Sent::Answered(response.map(|stream| Incoming { stream, taken })),
            Err(error) if is_refusal(&error) => {
                if error.is_go_away() {
                    connection.retire();
                }
                Sent::NotProcessed(Arc::new(Failure::Stream(error)))
            }
            Err(error) => Sent::Failed(connection.explain(error)),
        }
    }
}

/// Whether the server guarantees that it did not process the request (RFC 9113, section 8.7). After a GOAWAY, only those
/// streams fail that the server does not count as processed.
fn is_refusal(error: &h2::Error) -> bool {
    error.is_remote() && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM))
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.0.streams.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.unused.notify_one();
        }
    }
}

/// The body of a response, as a stream.
pub(in crate::transport) struct Incoming {
    stream: RecvStream,
    taken: Taken,
}

impl http_body::Body for Incoming {
    type Data = bytes::Bytes;
    type Error = Arc<Failure>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let data = ready!(self.stream.poll_data(context));
        let read = data.map(|data| {
            let bytes = data?;
            self.stream.flow_control().release_capacity(bytes.len())?;
            Ok(Frame::data(bytes))
        });
        Poll::Ready(read.map(|read| read.map_err(|error| self.taken.0.explain(error))))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }
}
