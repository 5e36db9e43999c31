//! A client that shows each byte, chunk and error, and what the tests have in common.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use testapi::{Gvr, TestApi};
use tokio::net::TcpStream;

/// One connection.
pub(crate) enum Client {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// Received bytes that were not read.
    read: BytesMut,
}

/// Fails instead of waiting for ever.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it comes in time")
}

/// Whether something does not come; asked only where it would come at once.
pub(crate) async fn nothing<T>(future: impl Future<Output = T>) -> bool {
    tokio::time::timeout(Duration::from_millis(100), future).await.is_err()
}

pub(crate) async fn start() -> TestApi {
    TestApi::builder().start().await.unwrap()
}

/// A server with config maps `a`, `b` ... in the namespace `default`.
pub(crate) async fn start_with(count: u8) -> TestApi {
    let api = start().await;
    for index in 0..count {
        create(&api, &name(index));
    }
    api
}

pub(crate) fn name(index: u8) -> String {
    char::from(b'a' + index).to_string()
}

pub(crate) fn maps() -> Gvr {
    Gvr::new("v1", "configmaps")
}

pub(crate) fn create(api: &TestApi, name: &str) {
    let object = json!({ "metadata": { "namespace": "default", "name": name }, "data": { "key": "value" } });
    api.api().create(&maps(), object).unwrap();
}

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A watch that goes on after a revision.
pub(crate) fn watch_from(revision: u64) -> String {
    format!("{MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={revision}")
}

impl Client {
    pub(crate) async fn connect(api: &TestApi) -> Self {
        Self::try_connect(api).await.unwrap()
    }

    pub(crate) async fn try_connect(api: &TestApi) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", api.port())).await?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        Ok(Self::Http1(sender))
    }

    pub(crate) async fn connect_http2(api: &TestApi) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", api.port())).await.unwrap();
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self::Http2(sender)
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Answer> {
        let response = within(async {
            match self {
                Self::Http1(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
                Self::Http2(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
            }
        })
        .await?;
        let (parts, body) = response.into_parts();
        Ok(Answer { status: parts.status, headers: parts.headers, body, read: BytesMut::new() })
    }

    pub(crate) async fn get(&mut self, path: &str) -> hyper::Result<Answer> {
        self.send(request(Method::GET, path, &[], "")).await
    }
}

pub(crate) fn request(
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &'static str,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(format!("http://testapi{path}"));
    request = request.header("host", "testapi").header("user-agent", "faults/1");
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.into())).unwrap()
}

/// One request on a connection of its own.
pub(crate) async fn get(api: &TestApi, path: &str) -> Answer {
    Client::connect(api).await.get(path).await.unwrap()
}

impl Answer {
    /// The next piece as it came; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> hyper::Result<Option<Bytes>> {
        loop {
            match within(self.body.frame()).await {
                None => return Ok(None),
                Some(Err(error)) => return Err(error),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => return Ok(Some(data)),
                    Err(_) => continue,
                },
            }
        }
    }

    /// The next line; `None` at the end.
    pub(crate) async fn line(&mut self) -> hyper::Result<Option<String>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line = self.read.split_to(end + 1);
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            match self.chunk().await? {
                Some(bytes) => self.read.extend_from_slice(&bytes),
                None => {
                    return Ok(
                        (!self.read.is_empty()).then(|| String::from_utf8_lossy(&self.read.split()).into())
                    );
                }
            }
        }
    }

    /// The next event of a watch as `ADDED a`, `ERROR Expired`.
    pub(crate) async fn event(&mut self) -> hyper::Result<Option<String>> {
        let Some(line) = self.line().await? else { return Ok(None) };
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let object = &event["object"];
        let what = if event["type"] == "ERROR" { &object["reason"] } else { &object["metadata"]["name"] };
        Ok(Some(format!("{} {}", event["type"].as_str().unwrap(), what.as_str().unwrap_or("-"))))
    }

    /// The next event of a watch as JSON.
    pub(crate) async fn value(&mut self) -> Value {
        serde_json::from_str(&self.line().await.unwrap().unwrap()).unwrap()
    }

    /// This number of events of a watch.
    pub(crate) async fn events(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.event().await.unwrap().expect("the watch goes on"));
        }
        events
    }

    /// Everything up to the end.
    pub(crate) async fn bytes(&mut self) -> hyper::Result<Vec<u8>> {
        let mut all = self.read.split().to_vec();
        while let Some(chunk) = self.chunk().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    /// The whole answer as JSON.
    pub(crate) async fn json(&mut self) -> Value {
        serde_json::from_slice(&self.bytes().await.unwrap()).unwrap()
    }

    /// Whether nothing more comes although the connection stays.
    pub(crate) async fn is_silent(&mut self) -> bool {
        nothing(self.body.frame()).await
    }
}
