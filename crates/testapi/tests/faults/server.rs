//! Starting, stopping, starting anew; who may ask; the log.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;
use testapi::faults::Matcher;
use testapi::{Gvr, History, TestApi, Verb};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::client::{Client, MAPS, create, get, maps, request, start, start_with, watch_from, within};

/// The protocol that a client gets which offers both.
async fn protocol(api: &TestApi) -> Result<Option<Vec<u8>>, std::io::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(api.ca_pem().unwrap().as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(("127.0.0.1", api.port())).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await?;
    Ok(stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec))
}

#[tokio::test]
async fn tls_has_an_authority_of_its_own_and_offers_what_was_chosen() {
    let both = TestApi::builder().tls().start().await.unwrap();
    assert!(both.url().starts_with("https://127.0.0.1:"));
    assert_eq!(protocol(&both).await.unwrap().as_deref(), Some(&b"h2"[..]));
    let http1 = TestApi::builder().tls().http1_only().start().await.unwrap();
    assert_eq!(protocol(&http1).await.unwrap().as_deref(), Some(&b"http/1.1"[..]));
    let http2 = TestApi::builder().tls().http2_only().start().await.unwrap();
    assert_eq!(protocol(&http2).await.unwrap().as_deref(), Some(&b"h2"[..]));
    assert_ne!(both.ca_pem(), http1.ca_pem());
}

#[tokio::test]
async fn a_plain_server_speaks_http_1_and_2() {
    let api = start_with(1).await;
    assert!(api.url().starts_with("http://127.0.0.1:") && api.ca_pem().is_none());
    assert_eq!(get(&api, MAPS).await.status, 200);
    assert_eq!(Client::connect_http2(&api).await.get(MAPS).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = TestApi::builder().port(port).start().await.unwrap_err();
    assert_eq!(error.to_string(), format!("failed to listen on 127.0.0.1:{port}"));
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn it_poses_as_the_version_that_was_chosen() {
    for (minor, streaming) in [(32, 200), (33, 422), (34, 200), (36, 200)] {
        let api = TestApi::builder().version(minor).start().await.unwrap();
        let version = get(&api, "/version").await.json().await;
        assert_eq!(version["minor"], minor.to_string());
        let path = format!(
            "{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        );
        assert_eq!(get(&api, &path).await.status.as_u16(), streaming, "1.{minor}");
    }
}

#[tokio::test]
async fn first_objects_are_created_with_their_namespaces() {
    let map = |namespace: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": namespace, "name": "a" } });
    let api = TestApi::builder()
        .object(map("shop"))
        .objects([map("shop-2"), map("default")])
        .start()
        .await
        .unwrap();
    let found = api.api().list(&maps(), None).unwrap();
    let namespaces: Vec<_> = found.iter().map(|map| map["metadata"]["namespace"].as_str().unwrap()).collect();
    // Sorted by the whole key, as in etcd: `shop-2/a` is before `shop/a`.
    assert_eq!(namespaces, ["default", "shop-2", "shop"]);
    assert!(api.api().get(&Gvr::new("v1", "namespaces"), "", "shop").is_ok());
    let wrong = json!({ "apiVersion": "v1", "kind": "Nothing", "metadata": { "name": "a" } });
    let error = TestApi::builder().object(wrong).start().await.unwrap_err();
    assert_eq!(error.to_string(), "failed to create a first object of kind \"Nothing\"");
}

#[tokio::test]
async fn bookmarks_come_as_often_as_was_chosen() {
    let api = TestApi::builder().bookmark_period(Duration::from_millis(20)).start().await.unwrap();
    let mut watch = get(&api, &watch_from(api.api().revision())).await;
    for _ in 0..2 {
        // There is something to tell: another resource has changed.
        let account = json!({ "metadata": { "namespace": "default", "generateName": "a-" } });
        api.api().create(&Gvr::new("v1", "serviceaccounts"), account).unwrap();
        assert_eq!(watch.events(1).await, ["BOOKMARK -"]);
    }
}

#[tokio::test]
async fn history_is_as_long_as_was_chosen() {
    let api = TestApi::builder().history(3).start().await.unwrap();
    let start = api.api().revision();
    for index in 0..10 {
        create(&api, &format!("map-{index}"));
    }
    assert_eq!(get(&api, &watch_from(start)).await.events(1).await, ["ERROR Expired"]);
    let last = api.api().revision() - 1;
    assert_eq!(get(&api, &watch_from(last)).await.events(1).await, ["ADDED map-9"]);
}

async fn with_token(api: &TestApi, token: Option<&str>) -> (StatusCode, String) {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
    let answer = Client::connect(api).await.send(request(Method::GET, MAPS, &headers, "")).await;
    let mut answer = answer.unwrap();
    (answer.status, answer.json().await["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn with_tokens_nobody_else_may_ask() {
    let api = TestApi::builder().token("secret", "jane").start().await.unwrap();
    assert_eq!(with_token(&api, Some("secret")).await.0, 200);
    for wrong in [None, Some("wrong"), Some("")] {
        assert_eq!(with_token(&api, wrong).await, (StatusCode::UNAUTHORIZED, "Unauthorized".to_owned()));
    }
    assert_eq!(api.requests().all()[0].call.user, "jane");
}

#[tokio::test]
async fn with_anonymous_no_token_is_needed_and_a_wrong_one_is_refused() {
    let api = TestApi::builder().token("secret", "jane").anonymous(true).start().await.unwrap();
    assert_eq!(with_token(&api, None).await.0, 200);
    assert_eq!(with_token(&api, Some("wrong")).await.0, 401);
    assert_eq!(api.requests().all()[0].call.user, "system:anonymous");
}

#[tokio::test]
async fn an_expired_token_is_refused_until_it_is_rotated() {
    let api = TestApi::builder().token("old", "jane").start().await.unwrap();
    let path = watch_from(api.api().revision());
    let ask = request(Method::GET, &path, &[("authorization", "Bearer old")], "");
    let mut watch = Client::connect(&api).await.send(ask).await.unwrap();
    api.tokens().expire("old");
    assert_eq!(with_token(&api, Some("old")).await.0, 401);
    // An open connection stays open.
    create(&api, "a");
    assert_eq!(watch.events(1).await, ["ADDED a"]);
    api.tokens().add("new", "jane");
    assert_eq!(with_token(&api, Some("new")).await.0, 200);
    assert!(api.tokens().rotate("new", "newer"));
    assert_eq!(with_token(&api, Some("new")).await.0, 401);
    assert_eq!(with_token(&api, Some("newer")).await.0, 200);
}

#[tokio::test]
async fn after_a_restart_objects_port_and_history_are_there_and_connections_are_not() {
    let api = start_with(1).await;
    let (port, revision) = (api.port(), api.api().revision());
    let mut watch = get(&api, &watch_from(revision)).await;
    create(&api, "b");
    assert_eq!(watch.events(1).await, ["ADDED b"]);
    api.restart(History::Kept).await.unwrap();
    assert!(watch.event().await.is_err());
    assert_eq!(api.port(), port);
    assert_eq!(get(&api, MAPS).await.json().await["items"].as_array().unwrap().len(), 2);
    assert_eq!(get(&api, &watch_from(revision)).await.events(1).await, ["ADDED b"]);
}

#[tokio::test]
async fn a_restart_may_lose_the_history() {
    let api = start_with(1).await;
    let revision = api.api().revision();
    create(&api, "b");
    api.restart(History::Lost).await.unwrap();
    assert_eq!(get(&api, &watch_from(revision)).await.events(1).await, ["ERROR Expired"]);
    assert_eq!(get(&api, MAPS).await.json().await["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn after_compaction_older_versions_have_expired() {
    let api = start_with(1).await;
    let revision = api.api().revision();
    create(&api, "b");
    api.compact();
    assert_eq!(get(&api, &watch_from(revision)).await.events(1).await, ["ERROR Expired"]);
}

#[tokio::test]
async fn a_restored_backup_brings_back_objects_and_versions() {
    let api = start_with(1).await;
    let (backup, revision) = (api.api().backup(), api.api().revision());
    create(&api, "b");
    let mut watch = get(&api, &watch_from(api.api().revision())).await;
    api.restore(&backup).await.unwrap();
    assert!(watch.event().await.is_err());
    let list = get(&api, MAPS).await.json().await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["metadata"]["resourceVersion"], revision.to_string());
}

#[tokio::test]
async fn nothing_is_left_of_a_server_that_has_stopped_or_was_dropped() {
    for stop in [true, false] {
        let api = start_with(1).await;
        let port = api.port();
        let mut watch = get(&api, &watch_from(api.api().revision())).await;
        match stop {
            true => within(api.stop()).await,
            false => drop(api),
        }
        assert!(watch.event().await.is_err());
        let refused = async {
            while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        within(refused).await;
    }
}

#[tokio::test]
async fn the_log_says_what_was_asked_and_how_it_was_answered() {
    let api = start().await;
    let path = format!("{MAPS}?limit=5");
    get(&api, &path).await;
    get(&api, &format!("{MAPS}/missing")).await;
    let log = within(api.requests().answered(&Matcher::of("configmaps"), 2)).await;
    let (list, object) = (&log[0], &log[1]);
    assert_eq!(list.to_string(), format!("1 LIST {path} -> 200"));
    assert_eq!(object.to_string(), format!("2 GET {MAPS}/missing -> 404"));
    assert_eq!((list.call.method.as_str(), list.call.verb, list.call.number), ("GET", Verb::List, 1));
    assert_eq!((list.call.path.as_str(), list.call.query.get("limit")), (MAPS, Some("5")));
    assert_eq!((list.call.user.as_str(), list.call.user_agent.as_str()), ("system:anonymous", "faults/1"));
    assert_eq!(object.call.target.as_ref().unwrap().name.as_deref(), Some("missing"));
    assert_eq!(api.requests().count(&Verb::Get.of_any()), 1);
    api.requests().clear();
    get(&api, MAPS).await;
    assert_eq!(api.requests().all()[0].call.number, 3);
}

#[tokio::test]
async fn a_request_can_be_waited_for() {
    let api = start().await;
    let requests = api.requests().clone();
    let waiting = tokio::spawn(async move { requests.answered(&Verb::Watch.of("configmaps"), 1).await });
    get(&api, MAPS).await;
    assert!(!waiting.is_finished());
    let _watch = get(&api, &watch_from(api.api().revision())).await;
    assert_eq!(within(waiting).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_log_is_bounded() {
    let api = start().await;
    let mut client = Client::connect(&api).await;
    for _ in 0..10_010 {
        client.get("/livez").await.unwrap().bytes().await.unwrap();
    }
    let log = api.requests().all();
    assert_eq!((log.len(), log[0].call.number), (10_000, 11));
}

#[tokio::test]
async fn no_token_is_shown_to_who_debugs() {
    let builder = TestApi::builder().token("hush", "jane");
    assert!(!format!("{builder:?}").contains("hush"));
    let server = builder.start().await.unwrap();
    let shown = format!("{server:?}");
    assert!(shown.contains("TestApi") && !shown.contains("hush"), "{shown}");
    server.stop().await;
}

#[tokio::test]
async fn an_empty_list_of_faults_arms_nothing() {
    let server = TestApi::builder().start().await.unwrap();
    let armed = server.faults().on(testapi::Verb::List.of("pods")).once([]);
    assert_eq!((server.faults().armed().len(), armed.met()), (0, 0));
    server.stop().await;
}
