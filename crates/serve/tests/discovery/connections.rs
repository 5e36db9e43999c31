//! The HTTP server: how connections begin and end.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serve::http::{ConnectionInfo, Server, ServerOptions, Serving};
use serve::{Body, full};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Answers `/forever` with a first chunk and no end, `/big` with 64 MiB, and everything else with its connection's number.
async fn start(options: ServerOptions) -> Serving {
    let server = Server::bind(options).await.unwrap();
    server.serve(|request: Request<Bytes>, connection: ConnectionInfo| async move {
        Response::new(match request.uri().path() {
            "/forever" => {
                let first = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"first")))]);
                let never = futures_util::stream::pending::<std::io::Result<Frame<Bytes>>>();
                StreamBody::new(first.chain(never)).boxed_unsync()
            }
            "/big" => {
                let chunk = Bytes::from(vec![b'x'; 1 << 20]);
                let chunks = (0..64).map(move |_| Ok(Frame::data(chunk.clone())));
                StreamBody::new(futures_util::stream::iter(chunks)).boxed_unsync()
            }
            "/hang-up" => {
                connection.close();
                full("too late")
            }
            _ => full(format!("{} {}", connection.id, request.body().len())),
        }) as Response<Body>
    })
}

type Answered = Result<Response<hyper::body::Incoming>, hyper::Error>;

async fn http1(address: SocketAddr) -> http1::SendRequest<Full<Bytes>> {
    http1_over(TcpStream::connect(address).await.unwrap()).await
}

async fn http1_over(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> http1::SendRequest<Full<Bytes>> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn http2_over(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> http2::SendRequest<Full<Bytes>> {
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path).header("host", "x").body(Full::default()).unwrap()
}

async fn text(answer: Answered) -> String {
    String::from_utf8(answer.unwrap().into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn requests_share_a_connection_and_both_protocols_a_port() {
    let serving = start(ServerOptions::default()).await;
    let mut first = http1(serving.address()).await;
    assert_eq!(text(first.send_request(get("/")).await).await, "1 0");
    assert_eq!(text(first.send_request(get("/")).await).await, "1 0", "kept alive");
    let mut second = http2_over(TcpStream::connect(serving.address()).await.unwrap()).await;
    let answer = second.send_request(get("http://x/")).await.unwrap();
    assert_eq!(answer.version(), Version::HTTP_2);
    assert_eq!(text(Ok(answer)).await, "2 0");
    assert_eq!(serving.connections(), 2);
    serving.stop().await;
}

#[tokio::test]
async fn tls_offers_both_protocols() {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
    let (certificate, key) = (signed.cert.der(), signed.signing_key.serialize_der());
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.try_into().unwrap())
            .unwrap();
    let serving = start(ServerOptions { tls: Some(Arc::new(config)), ..ServerOptions::default() }).await;
    for (wanted, expected) in [(&b"h2"[..], "1 0"), (b"http/1.1", "2 0")] {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![wanted.to_vec()];
        let stream = TcpStream::connect(serving.address()).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
        let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(wanted));
        let answer = if wanted == b"h2" {
            http2_over(stream).await.send_request(get("https://localhost/")).await
        } else {
            http1_over(stream).await.send_request(get("/")).await
        };
        assert_eq!(text(answer).await, expected);
    }
    serving.stop().await;
}

#[tokio::test]
async fn a_refusing_server_keeps_its_port_and_its_connections() {
    let serving = start(ServerOptions::default()).await;
    let address = serving.address();
    let mut open = http1(address).await;
    assert_eq!(text(open.send_request(get("/")).await).await, "1 0");
    for round in 0..20 {
        serving.refuse();
        let error = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "round {round}");
        assert!(std::net::TcpListener::bind(address).is_err(), "nobody else gets the port, round {round}");
        assert_eq!(text(open.send_request(get("/")).await).await, "1 0", "round {round}");
        serving.resume().unwrap();
        let mut new = http1(address).await;
        assert_eq!(text(new.send_request(get("/")).await).await, format!("{} 0", round + 2));
    }
    serving.stop().await;
}

#[tokio::test]
async fn disconnecting_ends_every_answer_in_the_middle() {
    let serving = start(ServerOptions::default()).await;
    let mut first = http1(serving.address()).await;
    let mut second = http2_over(TcpStream::connect(serving.address()).await.unwrap()).await;
    let mut bodies = [
        first.send_request(get("/forever")).await.unwrap().into_body(),
        second.send_request(get("http://x/forever")).await.unwrap().into_body(),
    ];
    for body in &mut bodies {
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
    }
    serving.disconnect_all();
    for body in &mut bodies {
        assert!(body.frame().await.is_none_or(|frame| frame.is_err()));
    }
    let mut new = http1(serving.address()).await;
    assert_eq!(text(new.send_request(get("/")).await).await, "3 0", "new connections are served");
    assert!(new.send_request(get("/hang-up")).await.is_err());
    serving.stop().await;
}

#[tokio::test]
async fn stopping_ends_watches_and_leaves_no_task() {
    // Another process may have taken the port by the time that it is looked at.
    for _ in 0..3 {
        if stops().await {
            return;
        }
    }
    panic!("the port of a server that was stopped is in use, three times");
}

/// Whether nobody listens where a server was that was stopped.
async fn stops() -> bool {
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let serving = start(ServerOptions::default()).await;
    let address = serving.address();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let client = tokio::spawn(connection);
    let mut bodies = Vec::new();
    for _ in 0..10 {
        let mut body = sender.send_request(get("http://x/forever")).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        bodies.push(body);
    }
    assert_eq!(serving.connections(), 1);
    serving.stop().await;
    drop((sender, bodies));
    let _ = client.await;
    match TcpStream::connect(address).await {
        Ok(_) => return false,
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused),
    }
    // Tasks that the client spawned end a moment later.
    for _ in 0..1_000 {
        if tokio::runtime::Handle::current().metrics().num_alive_tasks() == before {
            return true;
        }
        tokio::task::yield_now().await;
    }
    panic!("{} tasks are left", tokio::runtime::Handle::current().metrics().num_alive_tasks() - before);
}

#[tokio::test]
async fn shutting_down_lets_an_answer_end() {
    let serving = start(ServerOptions::default()).await;
    let mut client = http1(serving.address()).await;
    let mut body = client.send_request(get("/big")).await.unwrap().into_body();
    let stopped = tokio::spawn(serving.shutdown());
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(length, 64 << 20);
    stopped.await.unwrap();
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let serving = start(ServerOptions { max_request_body: 10, ..ServerOptions::default() }).await;
    let mut client = http1(serving.address()).await;
    let post = |length| Request::post("/").header("host", "x").body(Full::from(vec![b'x'; length])).unwrap();
    assert_eq!(text(client.send_request(post(10)).await).await, "1 10");
    let answer = client.send_request(post(11)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let status: serde_json::Value = serde_json::from_str(&text(Ok(answer)).await).unwrap();
    assert_eq!(status["message"], "Request entity too large: limit is 10");
    serving.stop().await;
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_and_only_so_many_are_open() {
    let limit = Some(std::time::Duration::from_secs(1));
    let serving =
        start(ServerOptions { read_timeout: limit, max_connections: Some(3), ..ServerOptions::default() })
            .await;
    let mut silent = TcpStream::connect(serving.address()).await.unwrap();
    let mut halved = TcpStream::connect(serving.address()).await.unwrap();
    halved.write_all(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
    let mut preface = TcpStream::connect(serving.address()).await.unwrap();
    preface.write_all(b"PRI * HTTP/2").await.unwrap();
    // Until the server has taken the three.
    let taken = async {
        while serving.connections() < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), taken).await.unwrap();
    let mut more = TcpStream::connect(serving.address()).await.unwrap();
    for closed in [&mut more, &mut silent, &mut halved, &mut preface] {
        let mut answer = Vec::new();
        let _ = closed.read_to_end(&mut answer).await;
        assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    }
    while serving.connections() > 0 {
        tokio::task::yield_now().await;
    }
    let mut sender = http1(serving.address()).await;
    assert_eq!(text(sender.send_request(get("/")).await).await, "4 0");
    serving.stop().await;
}

/// An attack kept 400 connections open: their clients took nothing of what they had asked for, and answered each ping.
#[tokio::test]
async fn a_connection_is_closed_whose_client_takes_nothing() {
    let limit = Some(std::time::Duration::from_secs(1));
    let serving = start(ServerOptions { read_timeout: limit, ..ServerOptions::default() }).await;
    let mut stalled = Vec::new();
    for window in [0, 1] {
        for path in ["http://x/", "http://x/big"] {
            let stream = TokioIo::new(TcpStream::connect(serving.address()).await.unwrap());
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.initial_stream_window_size(window);
            let (mut sender, connection) = builder.handshake(stream).await.unwrap();
            let running = tokio::spawn(connection);
            let answer = sender.send_request(get(path)).await.unwrap();
            stalled.push((sender, answer, running));
        }
    }
    let mut unread = http1(serving.address()).await;
    let unread = unread.send_request(get("/big")).await.unwrap();
    // This one waits for the server.
    let mut waits = http2_over(TcpStream::connect(serving.address()).await.unwrap()).await;
    let mut body = waits.send_request(get("http://x/forever")).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    for (_, _, running) in &mut stalled {
        let _ =
            tokio::time::timeout(std::time::Duration::from_secs(20), running).await.expect("it is closed");
    }
    while serving.connections() > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(text(waits.send_request(get("http://x/")).await).await, "6 0");
    drop((stalled, unread, body));
    serving.stop().await;
}
