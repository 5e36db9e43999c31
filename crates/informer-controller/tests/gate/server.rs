//! A server that records what reaches it, byte by byte, and a relay that holds bytes back.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use informer::kube::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, watch};

#[derive(Default)]
struct Seen {
    /// The heads of requests.
    requests: Vec<String>,
    bytes: usize,
    connections: usize,
    open: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Answers,
    Silent,
    DoesNotRead,
}

/// Speaks enough HTTP/1.1 for requests without a body.
pub(crate) struct Server {
    address: SocketAddr,
    seen: watch::Receiver<()>,
    state: Arc<Mutex<Seen>>,
    fails_next: Arc<AtomicBool>,
    unread: tokio::sync::Mutex<mpsc::UnboundedReceiver<TcpStream>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(Manner::Answers).await
    }

    /// It reads, but never answers.
    pub(crate) async fn silent() -> Self {
        Self::with(Manner::Silent).await
    }

    /// It leaves reading to the test: see [`Server::connection`].
    pub(crate) async fn that_does_not_read() -> Self {
        Self::with(Manner::DoesNotRead).await
    }

    async fn with(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (news, seen) = watch::channel(());
        let (state, fails_next) = (Arc::new(Mutex::new(Seen::default())), Arc::new(AtomicBool::new(false)));
        let (connections, unread) = mpsc::unbounded_channel();
        let (for_task, failing) = (state.clone(), fails_next.clone());
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (state, failing, news) = (for_task.clone(), failing.clone(), news.clone());
                note(&state, &news, |seen| {
                    seen.connections += 1;
                    seen.open += 1;
                });
                if manner == Manner::DoesNotRead {
                    let _ = connections.send(connection);
                    continue;
                }
                tokio::spawn(async move {
                    serve(connection, manner, &state, &news, &failing).await;
                    note(&state, &news, |seen| seen.open -= 1);
                });
            }
        });
        Self { address, seen, state, fails_next, unread: tokio::sync::Mutex::new(unread) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn config(&self) -> Config {
        Config::new(format!("http://{}/", self.address).parse().unwrap())
    }

    /// The next request is answered by 503.
    pub(crate) fn fail_next(&self) {
        self.fails_next.store(true, Ordering::SeqCst);
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }

    /// All bytes of the connections so far, once these are closed.
    pub(crate) async fn bytes(&self) -> usize {
        crate::within("the end of the connections", self.has_no_connections()).await;
        self.state.lock().unwrap().bytes
    }

    pub(crate) async fn has_requests(&self, count: usize) {
        self.until(|seen| seen.requests.len() >= count).await;
    }

    pub(crate) async fn has_no_connections(&self) {
        self.until(|seen| seen.connections > 0 && seen.open == 0).await;
    }

    pub(crate) async fn connection(&self) -> TcpStream {
        self.unread.lock().await.recv().await.unwrap()
    }

    async fn until(&self, is_so: impl Fn(&Seen) -> bool) {
        let mut seen = self.seen.clone();
        seen.wait_for(|()| is_so(&self.state.lock().unwrap())).await.unwrap();
    }
}

fn note(state: &Mutex<Seen>, news: &watch::Sender<()>, change: impl FnOnce(&mut Seen)) {
    change(&mut state.lock().unwrap());
    news.send_replace(());
}

async fn serve(
    mut connection: TcpStream,
    manner: Manner,
    state: &Mutex<Seen>,
    news: &watch::Sender<()>,
    failing: &AtomicBool,
) {
    let (mut head, mut chunk) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = connection.read(&mut chunk).await {
        head.extend_from_slice(&chunk[..count]);
        note(state, news, |seen| seen.bytes += count);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let request = String::from_utf8(std::mem::take(&mut head)).unwrap();
        // A tunnel to itself.
        let is_tunnel = request.starts_with("CONNECT");
        note(state, news, |seen| seen.requests.push(request));
        let answer = match (is_tunnel, failing.swap(false, Ordering::SeqCst)) {
            (true, _) => "HTTP/1.1 200 OK\r\n\r\n",
            (_, true) => "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
            (_, false) => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        };
        if manner == Manner::Answers && connection.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Passes one connection on to a server, and holds the server's bytes back at first.
pub(crate) struct Relay {
    address: SocketAddr,
    from_client: watch::Receiver<(usize, bool)>,
    go: Arc<Notify>,
}

impl Relay {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (counted, from_client) = watch::channel((0, false));
        let go = Arc::new(Notify::new());
        let going = go.clone();
        tokio::spawn(async move {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let (mut from, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let up = async {
                let mut chunk = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut chunk).await {
                    counted.send_modify(|(bytes, _)| *bytes += count);
                    to_server.write_all(&chunk[..count]).await.unwrap();
                }
                counted.send_modify(|(_, ended)| *ended = true);
                // The server ends too.
                drop(to_server);
            };
            let down = async {
                going.notified().await;
                // The client may be gone.
                let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
            };
            tokio::join!(up, down);
        });
        Self { address, from_client, go }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of bytes of the client's first message.
    pub(crate) async fn hello(&self) -> usize {
        self.from_client.clone().wait_for(|(bytes, _)| *bytes > 0).await.unwrap().0
    }

    /// The number of bytes that the client has sent until its end.
    pub(crate) async fn all_from_client(&self) -> usize {
        let mut counted = self.from_client.clone();
        let ended = counted.wait_for(|(_, ended)| *ended);
        crate::within("the end of the connection", ended).await.unwrap().0
    }

    /// Passes the server's bytes on from now on.
    pub(crate) fn go(&self) {
        self.go.notify_one();
    }
}
