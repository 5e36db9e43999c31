//! Connections to servers that behave badly, in memory and on a paused clock.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, SendStream};
use http::{Request, Response};
use http_body_util::BodyExt;
use kube_client::client::Body;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tower::{BoxError, ServiceExt};

use super::{Connections, Connector};
use crate::{Http2, error_chain};

/// An h2 server in memory. Tests decide stream by stream what it does.
struct Server {
    options: Builder,
    accepted: AtomicUsize,
    closed: watch::Sender<usize>,
    /// How many of the next streams are refused. The others are answered.
    refusals: AtomicUsize,
    frozen: watch::Sender<bool>,
    /// Connections up to this one take no new streams.
    goodbye: watch::Sender<usize>,
    bodies: mpsc::UnboundedSender<(usize, SendStream<Bytes>)>,
}

type Bodies = mpsc::UnboundedReceiver<(usize, SendStream<Bytes>)>;

impl Server {
    /// A server, and the bodies of its answers with the number of their connection.
    fn new(streams: u32) -> (Arc<Self>, Bodies) {
        let (bodies, answered) = mpsc::unbounded_channel();
        let mut options = Builder::new();
        options.max_concurrent_streams(streams);
        let server = Self {
            options,
            accepted: AtomicUsize::new(0),
            closed: watch::Sender::new(0),
            refusals: AtomicUsize::new(0),
            frozen: watch::Sender::new(false),
            goodbye: watch::Sender::new(0),
            bodies,
        };
        (Arc::new(server), answered)
    }

    fn refuse(&self, streams: usize) {
        self.refusals.store(streams, Ordering::Relaxed);
    }

    fn connections(self: &Arc<Self>, options: Http2) -> Connections {
        Connections::new(options, self.connector())
    }

    fn connector(self: &Arc<Self>) -> Connector {
        let server = self.clone();
        Connector::over(move || {
            let (ours, theirs) = tokio::io::duplex(1 << 20);
            tokio::spawn(server.clone().serve(theirs));
            ours
        })
    }

    async fn serve(self: Arc<Self>, bytes: DuplexStream) {
        let number = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let (mut frozen, mut goodbye) = (self.frozen.subscribe(), self.goodbye.subscribe());
        let mut connection = self.options.handshake(bytes).await.unwrap();
        loop {
            let stream = tokio::select! {
                stream = connection.accept() => stream,
                () = async { drop(frozen.wait_for(|frozen| *frozen).await) } => {
                    return std::future::pending().await;
                }
                () = async { drop(goodbye.wait_for(|last| *last >= number).await) } => {
                    connection.graceful_shutdown();
                    goodbye = watch::Sender::new(0).subscribe();
                    continue;
                }
            };
            let Some(Ok((_, mut respond))) = stream else { break };
            let refused =
                self.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            match refused {
                Ok(_) => respond.send_reset(Reason::REFUSED_STREAM),
                Err(_) => self.answer(number, respond),
            }
        }
        self.closed.send_modify(|closed| *closed += 1);
    }

    fn answer(&self, connection: usize, mut respond: SendResponse<Bytes>) {
        let body = respond.send_response(Response::new(()), false).unwrap();
        let _ = self.bodies.send((connection, body));
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

fn connections(count: usize) -> Http2 {
    Http2 { connections: NonZeroUsize::new(count).unwrap(), ..Http2::default() }
}

type Answer = Response<super::connection::Incoming>;

async fn get(connections: &Connections) -> Result<Answer, BoxError> {
    let request = Request::get("http://server/watch").body(Body::empty()).unwrap();
    connections.clone().oneshot(request).await
}

async fn failure(connections: &Connections) -> String {
    error_chain(&*get(connections).await.err().unwrap())
}

async fn text(answer: &mut Answer) -> Result<String, String> {
    match answer.frame().await {
        Some(Ok(frame)) => Ok(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()),
        Some(Err(failure)) => Err(error_chain(&failure)),
        None => Ok(String::new()),
    }
}

#[tokio::test(start_paused = true)]
async fn w12_one_unanswered_ping_breaks_all_streams_of_its_connection() {
    let (server, mut bodies) = Server::new(100);
    let pool = server.connections(Http2::default());
    let (mut one, mut two) = (get(&pool).await.unwrap(), get(&pool).await.unwrap());
    let (_, mut body) = bodies.recv().await.unwrap();
    body.send_data("event".into(), false).unwrap();
    assert_eq!(text(&mut one).await.unwrap(), "event");

    // Pings that are answered let a silent watch live.
    let silent = tokio::time::timeout(Duration::from_secs(3600), text(&mut one)).await;
    assert!(silent.is_err());

    server.frozen.send_replace(true);
    let frozen = Instant::now();
    let (one, two) = tokio::join!(text(&mut one), text(&mut two));
    let expected = "an HTTP/2 ping was not answered within 15s";
    assert_eq!((one.unwrap_err().as_str(), two.unwrap_err().as_str()), (expected, expected));
    assert!(frozen.elapsed() <= Duration::from_secs(30 + 15), "{:?}", frozen.elapsed());
    assert_eq!(server.accepted(), 1);
}

#[tokio::test(start_paused = true)]
async fn w12_a_request_to_a_dead_connection_fails_too() {
    let (server, _bodies) = Server::new(100);
    let options = Http2 {
        ping_interval: Duration::from_secs(2),
        ping_timeout: Duration::from_secs(1),
        ..Http2::default()
    };
    let pool = server.connections(options);
    let _watch = get(&pool).await.unwrap();
    server.frozen.send_replace(true);
    let frozen = Instant::now();
    let failure = failure(&pool).await;
    assert!(failure.contains("not answered within 1s"), "{failure}");
    assert!(frozen.elapsed() <= Duration::from_secs(2 + 1), "{:?}", frozen.elapsed());
    server.frozen.send_replace(false);
    get(&pool).await.unwrap();
    assert_eq!(server.accepted(), 2);
}

/// The header of a frame without a stream (RFC 9113, section 4.1).
fn frame(length: u8, kind: u8, flags: u8) -> [u8; 9] {
    [0, 0, length, kind, flags, 0, 0, 0, 0]
}

#[tokio::test(start_paused = true)]
async fn w12_a_server_that_is_slow_is_not_dead() {
    // The answer to the ping is queued behind so many other bytes that it takes minutes; then the server falls silent.
    async fn slow(mut bytes: DuplexStream) {
        const PREFACE: usize = 24;
        let (settings, ping, acknowledges) = (4, 6, 1);
        let _ = bytes.read_exact(&mut [0; PREFACE]).await;
        bytes.write_all(&frame(0, settings, 0)).await.unwrap();
        loop {
            let mut header = [0; 9];
            bytes.read_exact(&mut header).await.unwrap();
            let mut payload = vec![0; usize::from(header[1]) << 8 | usize::from(header[2])];
            bytes.read_exact(&mut payload).await.unwrap();
            if header[3] == ping {
                bytes.write_all(&frame(8, ping, acknowledges)).await.unwrap();
                bytes.write_all(&payload).await.unwrap();
                break;
            }
        }
        let mut ticks = tokio::time::interval(Duration::from_secs(10));
        for tick in 0..30u64 {
            ticks.tick().await;
            bytes.write_all(&frame(8, ping, 0)).await.unwrap();
            bytes.write_all(&tick.to_be_bytes()).await.unwrap();
        }
        std::future::pending().await
    }
    let connector = Connector::over(|| {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(slow(theirs));
        ours
    });
    let pool = Connections::new(Http2::default(), connector);
    let begun = Instant::now();
    let failure = failure(&pool).await;
    assert!(failure.contains("not answered"), "{failure}");
    let (alive, silent) = (Duration::from_secs(290), Duration::from_secs(15));
    assert!((alive..=alive + 2 * silent).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn requests_are_spread_over_the_connections() {
    let (server, mut bodies) = Server::new(100);
    let pool = server.connections(connections(3));
    let mut answers = Vec::new();
    let mut on = vec![0; 4];
    for _ in 0..9 {
        answers.push(get(&pool).await.unwrap());
        on[bodies.recv().await.unwrap().0] += 1;
    }
    assert_eq!(on, [0, 3, 3, 3]);
    // A place that becomes free is used first.
    drop(answers.remove(1));
    answers.push(get(&pool).await.unwrap());
    assert_eq!(bodies.recv().await.unwrap().0, 2);
}

#[tokio::test(start_paused = true)]
async fn who_comes_at_the_same_time_shares_one_connection() {
    let (server, _bodies) = Server::new(100);
    let pool = server.connections(connections(1));
    let answers = futures_util::future::join_all((0..100).map(|_| get(&pool))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(server.accepted(), 1);
}

#[tokio::test(start_paused = true)]
async fn more_requests_than_a_server_takes_on_one_connection_get_another() {
    let (server, mut bodies) = Server::new(2);
    let pool = server.connections(connections(1));
    let answers = futures_util::future::join_all((0..5).map(|_| get(&pool))).await;
    assert!(answers.iter().all(Result::is_ok));
    let mut on = [0; 4];
    for _ in 0..5 {
        on[bodies.recv().await.unwrap().0] += 1;
    }
    on.sort();
    assert_eq!(on, [0, 1, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn f9_streams_that_nobody_reads_hold_up_no_other() {
    let (server, mut bodies) = Server::new(100);
    let pool = server.connections(connections(1));
    let (mut stalled, mut senders) = (Vec::new(), Vec::new());
    for _ in 0..99 {
        stalled.push(get(&pool).await.unwrap());
        // Each body is far larger than the window of a stream.
        let (_, mut body) = bodies.recv().await.unwrap();
        body.send_data(vec![b'x'; 8 << 20].into(), false).unwrap();
        senders.push(body);
    }
    let mut watch = get(&pool).await.unwrap();
    let (_, mut body) = bodies.recv().await.unwrap();
    let mut event = async || {
        body.send_data("event".into(), false).unwrap();
        let event = tokio::time::timeout(Duration::from_secs(60), text(&mut watch)).await;
        assert_eq!(event.unwrap().unwrap(), "event");
    };
    event().await;
    // A response that is dropped returns the window of its unread bytes.
    for answer in stalled.drain(..) {
        drop(answer);
        event().await;
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_carries_a_hundred_streams_whatever_the_server_allows() {
    let (server, _bodies) = Server::new(1000);
    let pool = server.connections(connections(1));
    let answers = futures_util::future::join_all((0..101).map(|_| get(&pool))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(server.accepted(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_stream_is_sent_again() {
    let (server, mut bodies) = Server::new(100);
    let pool = server.connections(connections(1));
    server.refuse(2);
    get(&pool).await.unwrap();
    assert_eq!(bodies.recv().await.unwrap().0, 1);

    // The number of attempts is limited.
    server.refuse(3);
    let failure = failure(&pool).await;
    assert!(failure.contains("refused"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn after_a_goodbye_what_runs_goes_on_and_what_comes_goes_elsewhere() {
    let (server, mut bodies) = Server::new(100);
    let pool = server.connections(connections(1));
    let mut watch = get(&pool).await.unwrap();
    let (_, mut body) = bodies.recv().await.unwrap();
    server.goodbye.send_replace(1);
    let mut next = get(&pool).await.unwrap();
    let (number, mut second) = bodies.recv().await.unwrap();
    assert_eq!(number, 2);

    body.send_data("event".into(), true).unwrap();
    assert_eq!(text(&mut watch).await.unwrap(), "event");
    assert_eq!(text(&mut watch).await.unwrap(), "");
    drop(watch);
    server.closed.subscribe().wait_for(|closed| *closed == 1).await.unwrap();
    second.send_data("event".into(), false).unwrap();
    assert_eq!(text(&mut next).await.unwrap(), "event");
}

#[tokio::test(start_paused = true)]
async fn f4_a_connection_without_requests_is_closed() {
    let (server, mut bodies) = Server::new(100);
    let pool = server.connections(connections(1));
    let mut list = get(&pool).await.unwrap();
    let (_, mut body) = bodies.recv().await.unwrap();
    body.send_data("list".into(), true).unwrap();
    while text(&mut list).await.unwrap() != "" {}
    drop(list);
    // The watch that follows a list finds the connection open.
    let watch = get(&pool).await.unwrap();
    assert_eq!((bodies.recv().await.unwrap().0, server.accepted()), (1, 1));

    drop(watch);
    let begun = Instant::now();
    server.closed.subscribe().wait_for(|closed| *closed == 1).await.unwrap();
    assert!(begun.elapsed() <= Duration::from_secs(2), "{:?}", begun.elapsed());
    get(&pool).await.unwrap();
    assert_eq!(server.accepted(), 2);
}

#[tokio::test(start_paused = true)]
async fn w15_other_certificates_mean_other_connections() {
    let (server, mut bodies) = Server::new(100);
    let pool = server.connections(connections(1));
    let mut watch = get(&pool).await.unwrap();
    let (_, mut body) = bodies.recv().await.unwrap();
    pool.renew(server.connector(), false);
    let kept = get(&pool).await.unwrap();
    assert_eq!(bodies.recv().await.unwrap().0, 1);
    pool.renew(server.connector(), true);
    let _new = get(&pool).await.unwrap();
    assert_eq!(bodies.recv().await.unwrap().0, 2);
    // The running stream continues, and the old connection ends with it.
    body.send_data("event".into(), false).unwrap();
    assert_eq!(text(&mut watch).await.unwrap(), "event");
    drop((watch, kept));
    server.closed.subscribe().wait_for(|closed| *closed == 1).await.unwrap();
}
