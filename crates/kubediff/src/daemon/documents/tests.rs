//! Servers that answer anything, over real connections.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube_client::Config;
use kubediff_history::{Cluster, Number, Settings};
use serde_json::json;
use tokio::net::TcpListener;

use super::*;

/// A server's answers by path; one that is missing never comes. And what it was asked for.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    answers: BTreeMap<String, (u16, Vec<u8>)>,
    asked: Vec<String>,
}

impl Scripted {
    fn answers(&self, path: &str, status: u16, body: impl Into<Vec<u8>>) {
        self.0.lock().unwrap().answers.insert(path.to_owned(), (status, body.into()));
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }

    fn version(&self, git: &str) {
        self.answers("/version", 200, json!({"major": "1", "minor": "37", "gitVersion": git}).to_string());
    }

    /// The index, with these editions.
    fn index(&self, editions: &[(&str, &str)]) {
        let paths = editions.iter().map(|(path, edition)| {
            let url = json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={edition}")});
            ((*path).to_owned(), url)
        });
        let paths: serde_json::Map<_, _> = paths.collect();
        self.answers("/openapi/v3", 200, json!({ "paths": paths }).to_string());
    }

    fn schemas(&self, path: &str, of: &str) {
        let document = json!({"paths": {}, "components": {"schemas": {"of": of}}});
        self.answers(&format!("/openapi/v3/{path}"), 200, document.to_string());
    }

    async fn client(&self) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scripted = self.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let scripted = scripted.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let path = request.uri().path().to_owned();
                    let answer = scripted.0.lock().unwrap().answers.get(&path).cloned();
                    scripted.0.lock().unwrap().asked.push(path);
                    async move {
                        let Some((status, body)) = answer else { return std::future::pending().await };
                        let mut response = Response::new(Full::new(Bytes::from(body)));
                        *response.status_mut() = StatusCode::from_u16(status).unwrap();
                        Ok::<_, Infallible>(response)
                    }
                });
                let server = auto::Builder::new(TokioExecutor::new());
                tokio::spawn(async move { server.serve_connection(TokioIo::new(stream), service).await });
            }
        });
        Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap()
    }
}

struct Place {
    server: Scripted,
    client: Client,
    history: SharedHistory,
    _folder: tempfile::TempDir,
}

impl Place {
    async fn open() -> Self {
        let (server, folder) = (Scripted::default(), tempfile::tempdir().unwrap());
        let cluster = Cluster { uid: "1".to_owned(), name: None };
        let path = folder.path().join("history.db");
        let history = SharedHistory::open(&path, &cluster, &Settings::default()).unwrap();
        Self { client: server.client().await, server, history, _folder: folder }
    }

    async fn round(&self) -> Result<(), String> {
        let done = super::round(&self.client, &self.history).await;
        done.map_err(|(path, error)| format!("{path}: {error}"))
    }

    /// What is stored of a document.
    fn stored(&self, name: &str) -> Option<String> {
        let mut reader = self.history.lock().reader().unwrap();
        let content = reader.document(name, Number(9)).unwrap();
        content.map(|content| String::from_utf8(content).unwrap())
    }
}

fn of(text: &str) -> Option<String> {
    Some(json!({ "of": text }).to_string())
}

#[tokio::test]
async fn documents_are_asked_for_when_they_change() {
    let place = Place::open().await;
    place.server.version("v1.37.1");
    // A group of custom resources, one of another version, and addresses that lead elsewhere.
    place.server.index(&[
        ("api/v1", "a"),
        ("apis/apps/v1", "a"),
        ("apis/example.com/v1", "a"),
        ("apis/apps", "a"),
        ("version", "a"),
    ]);
    place.server.schemas("api/v1", "core");
    place.server.schemas("apis/apps/v1", "apps");
    place.round().await.unwrap();
    let asked = ["/version", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"];
    assert_eq!(place.server.asked(), asked);
    assert_eq!(
        (place.stored("openapi/v3/api/v1"), place.stored("openapi/v3/apis/apps/v1")),
        (of("core"), of("apps"))
    );
    place.server.index(&[("api/v1", "b")]);
    place.server.schemas("api/v1", "another");
    place.server.version("v1.37.2");
    place.round().await.unwrap();
    assert_eq!(place.server.asked(), asked[..3]);
    assert_eq!(
        (place.stored("openapi/v3/api/v1"), place.stored("openapi/v3/apis/apps/v1")),
        (of("another"), None)
    );
    assert!(place.stored("version").unwrap().contains("v1.37.2"));
    place.round().await.unwrap();
    assert_eq!(place.server.asked(), asked[..2]);
    let elsewhere =
        json!({"paths": {"api/v1": {"serverRelativeURL": "http://example.com/openapi/v3/api/v1"}}});
    place.server.answers("/openapi/v3", 200, elsewhere.to_string());
    place.round().await.unwrap();
    assert_eq!(place.server.asked(), asked[..2]);
}

#[tokio::test]
async fn what_cannot_be_had_keeps_nothing_else_away_and_is_asked_for_again() {
    let place = Place::open().await;
    let paths = ["api/v1", "apis/apps/v1", "apis/batch/v1", "apis/policy/v1"];
    place.server.version("v1.37.1");
    place.server.index(&paths.map(|path| (path, "a")));
    paths.iter().for_each(|path| place.server.schemas(path, "first"));
    place.round().await.unwrap();
    place.server.index(&paths.map(|path| (path, "b")));
    place.server.answers("/version", 200, "<html>");
    place.server.answers("/openapi/v3/api/v1", 200, "<html>");
    place.server.answers("/openapi/v3/apis/apps/v1", 403, "a long story");
    place.server.answers("/openapi/v3/apis/batch/v1", 200, vec![b' '; (8 << 20) + 1]);
    place.server.schemas("apis/policy/v1", "second");
    assert_eq!(place.round().await.unwrap_err(), "/version: it is not what it should be");
    let stored = || paths.map(|path| place.stored(&format!("openapi/v3/{path}")));
    assert_eq!(stored(), ["first", "first", "first", "second"].map(of));
    assert!(place.stored("version").unwrap().contains("v1.37.1"));
    for (answer, error) in [
        ("5", "/version: it is not what it should be"),
        (
            r#"{"major":"1","minor":"37","gitVersion":"v1.37.2"}"#,
            "/openapi/v3/api/v1?hash=b: it is not what it should be",
        ),
    ] {
        place.server.answers("/version", 200, answer);
        assert_eq!(place.round().await.unwrap_err(), error);
    }
    place.server.schemas("api/v1", "second");
    let refused = "/openapi/v3/apis/apps/v1?hash=b: the server refuses it with status 403";
    assert_eq!(place.round().await.unwrap_err(), refused);
    place.server.schemas("apis/apps/v1", "second");
    assert_eq!(place.round().await.unwrap_err(), "/openapi/v3/apis/batch/v1?hash=b: it has more than 8 MiB");
    place.server.schemas("apis/batch/v1", "second");
    place.round().await.unwrap();
    assert_eq!(stored(), ["second"; 4].map(of));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_not_asked_for_more() {
    let place = Place::open().await;
    assert_eq!(place.round().await.unwrap_err(), "/version: the server does not answer within 30 s");
    assert!(!place.server.asked().contains(&"/openapi/v3".to_owned()));
}
