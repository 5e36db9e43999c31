//! Webhooks to real HTTP servers that are down, refuse, break, keep silent and are slow.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use fastrand::Rng;
use hmac::{Hmac, KeyInit, Mac};
use kubediff_delivery::{Form, Key, Policy, Settled, Webhook, WebhookOptions};
use serde_json::Value;
use tokio::sync::Notify;

use crate::log::Memory;
use crate::running::{Running, quick};
use crate::server::{Act, Server};

fn options() -> WebhookOptions {
    WebhookOptions { timeout: Duration::from_secs(30), ..WebhookOptions::default() }
}

/// For servers that keep silent: the time limit is waited for.
fn impatient() -> WebhookOptions {
    WebhookOptions { timeout: Duration::from_secs(1), ..options() }
}

fn run(log: &Memory, url: &str, policy: Policy, options: WebhookOptions) -> Running {
    Running::start(log, Webhook::new(url, options).expect("a webhook"), policy)
}

/// The numbers in each request.
fn numbers(server: &Server) -> Vec<Vec<u64>> {
    let of = |body: &[u8]| {
        let body: Value = serde_json::from_slice(body).expect("JSON");
        let changes = body["changes"].as_array().expect("changes").iter();
        changes.map(|change| change["number"].as_u64().expect("a number")).collect()
    };
    server.seen().iter().map(|seen| of(&seen.body)).collect()
}

async fn delivers(
    acts: impl IntoIterator<Item = Act>,
    records: u64,
    expected: &[&[u64]],
    options: WebhookOptions,
) -> Settled {
    let log = Memory::of(1..=records);
    let server = Server::start(acts).await;
    let running = run(&log, &server.url(), quick(), options);
    let settled = log.reaches(records).await;
    running.stop().await;
    assert_eq!(numbers(&server), expected);
    settled
}

#[tokio::test]
async fn what_is_accepted_is_not_sent_again() {
    delivers([Act::Status(202), Act::Status(204), Act::Status(200)], 5, &[&[1, 2], &[3, 4], &[5]], options())
        .await;
}

#[tokio::test]
async fn what_fails_is_sent_again() {
    let acts = [
        Act::Status(500),
        Act::RetryAfter(429, "1".to_owned()),
        Act::RetryAfter(503, "Fri, 01 Jan 2100 00:00:00 GMT".to_owned()),
        Act::Status(401),
    ];
    delivers(acts, 2, &[&[1, 2], &[1, 2], &[1, 2], &[1, 2], &[1, 2]], options()).await;
}

#[tokio::test]
async fn a_connection_that_breaks_and_a_server_that_keeps_silent_are_failures() {
    delivers([Act::Break, Act::Silence], 1, &[&[1], &[1], &[1]], impatient()).await;
}

#[tokio::test]
async fn a_record_that_is_refused_becomes_a_dead_letter_and_can_be_sent_again() {
    let log = Memory::of([1, 2, 1]);
    let server = Server::with(|seen| {
        let is_late = String::from_utf8_lossy(&seen.body).contains("late");
        let has_first = String::from_utf8_lossy(&seen.body).contains(r#""n":1}"#);
        Act::Status(if has_first && !is_late { 422 } else { 200 })
    })
    .await;
    let running = run(&log, &server.url(), quick(), options());
    let settled = log.reaches(3).await;
    assert_eq!(
        settled.dead.iter().map(|dead| (dead.number, &*dead.reason)).collect::<Vec<_>>(),
        [(1, "422")]
    );
    let third = server.seen().iter().rev().find_map(|seen| {
        let text = String::from_utf8_lossy(&seen.body).into_owned();
        text.contains(r#""n":3}"#).then_some(text)
    });
    expect![[
        r#"{"changes":[{"id":"log-1-3","number":3,"missing":[1],"change":{"name":"object-1","n":3}}]}"#
    ]]
    .assert_eq(&third.expect("the third record"));

    running.resends.send(log.record(1)).await.expect("a driver");
    let mut settled = log.settled.subscribe();
    settled.wait_for(|settled| settled.resent == [1]).await.expect("a log");
    expect![[r#"{"changes":[{"id":"log-1-1","number":1,"late":true,"change":{"name":"object-1","n":1}}]}"#]]
        .assert_eq(&String::from_utf8_lossy(&server.seen().last().expect("a request").body));
    running.stop().await;
}

/// Why the sink does not take records.
async fn trouble(url: &str) -> String {
    let log = Memory::of([1]);
    let mut running = run(&log, url, quick(), impatient());
    let reason = running.trouble().await;
    running.stop().await;
    assert_eq!(log.settled.borrow().position, 0);
    reason
}

#[tokio::test]
async fn the_status_says_in_words_why_nothing_is_delivered_and_never_where_to() {
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let silent = Server::with(|_| Act::Silence).await;
    let broken = Server::with(|_| Act::Break).await;
    let closed = Server::with(|_| Act::Status(403)).await;
    let mut said = Vec::new();
    for url in [
        format!("http://{nobody}/?token=secret"),
        silent.url(),
        broken.url(),
        closed.url(),
        silent.url().replace("http:", "https:"),
    ] {
        said.push(trouble(&url).await);
    }
    expect![[r#"
        connection refused
        no answer in time
        connection closed before message completed
        403
        the server does not speak TLS: is its address http://?"#]]
    .assert_eq(&said.join("\n"));
}

#[tokio::test]
async fn a_stop_waits_for_the_request_under_way() {
    let log = Memory::of([1]);
    let go = Arc::new(Notify::new());
    let server = Server::start([Act::Held(go.clone())]).await;
    let running = run(&log, &server.url(), quick(), options());
    server.is_asked().await;
    running.stop.cancel();
    tokio::task::yield_now().await;
    go.notify_one();
    running.stop().await;
    assert_eq!((log.settled.borrow().position, numbers(&server)), (1, vec![vec![1]]));
}

#[tokio::test]
async fn a_request_is_signed_after_the_standard_and_has_headers_of_ones_own() {
    let log = Memory::of([1]);
    let server = Server::start([]).await;
    let secret = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";
    let options = WebhookOptions {
        method: http::Method::PUT,
        key: Some(Key::read(secret).expect("a key")),
        headers: vec![("Authorization".to_owned(), "Bearer abc".to_owned())],
        ..options()
    };
    assert!(!format!("{options:?}").contains("c2Vj"));
    let running = run(&log, &server.url(), quick(), options);
    log.reaches(1).await;
    running.stop().await;
    let seen = &server.seen()[0];
    let header = |name: &str| seen.headers[name].to_str().expect("text");
    assert_eq!(
        (&*seen.method, header("authorization"), header("webhook-id")),
        ("PUT", "Bearer abc", "log-1-1")
    );
    assert!(header("user-agent").starts_with("kubediff/"));
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(b"secretsecretsecretsecret").expect("a key");
    mac.update(format!("log-1-1.{}.", header("webhook-timestamp")).as_bytes());
    mac.update(&seen.body);
    let expected = STANDARD.encode(mac.finalize().into_bytes());
    assert_eq!(header("webhook-signature"), format!("v1,{expected}"));
}

#[tokio::test]
async fn events_are_cloud_events() {
    let source: Box<str> = "kubediff/test".into();
    let mut said = String::new();
    for (single, batch) in [(true, 1), (false, 2)] {
        let log = Memory::of([1, 2]);
        let server = Server::start([]).await;
        let form = Form::CloudEvents { source: source.clone(), single };
        let policy = Policy { batch, ..quick() };
        let running = run(&log, &server.url(), policy, WebhookOptions { form, ..options() });
        log.reaches(2).await;
        running.stop().await;
        let seen = &server.seen()[0];
        let content_type = seen.headers["content-type"].to_str().expect("text");
        let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
        said += &format!("{content_type}\n{body:#}\n");
    }
    expect![[r#"
        application/cloudevents+json
        {
          "data": {
            "n": 1,
            "name": "object-1"
          },
          "datacontenttype": "application/json",
          "id": "log-1-1",
          "source": "kubediff/test",
          "specversion": "1.0",
          "subject": "ConfigMap shop/object-1",
          "time": "1970-01-01T00:00:00Z",
          "type": "kubediff.change"
        }
        application/cloudevents-batch+json
        [
          {
            "data": {
              "n": 1,
              "name": "object-1"
            },
            "datacontenttype": "application/json",
            "id": "log-1-1",
            "source": "kubediff/test",
            "specversion": "1.0",
            "subject": "ConfigMap shop/object-1",
            "time": "1970-01-01T00:00:00Z",
            "type": "kubediff.change"
          },
          {
            "data": {
              "n": 2,
              "name": "object-2"
            },
            "datacontenttype": "application/json",
            "id": "log-1-2",
            "source": "kubediff/test",
            "specversion": "1.0",
            "subject": "ConfigMap shop/object-2",
            "time": "1970-01-01T00:00:00Z",
            "type": "kubediff.change"
          }
        ]
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn a_bare_record_is_the_whole_body() {
    let log = Memory::of([1, 2]);
    let server = Server::start([]).await;
    let running = run(
        &log,
        &server.url(),
        Policy { batch: 1, ..quick() },
        WebhookOptions { form: Form::Bare, ..options() },
    );
    log.reaches(2).await;
    running.stop().await;
    let bodies: Vec<String> =
        server.seen().iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect();
    assert_eq!(bodies, [r#"{"name":"object-1","n":1}"#, r#"{"name":"object-2","n":2}"#]);
}

#[test]
fn what_is_wrong_in_the_settings_is_named_and_the_address_is_not() {
    let mut said = String::new();
    let headers = |name: &str, value: &str| WebhookOptions {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..WebhookOptions::default()
    };
    for (url, options) in [
        ("hooks.example.com/secret", WebhookOptions::default()),
        ("ftp://example.com/secret", WebhookOptions::default()),
        ("http://example.com", headers("X Token", "a")),
        ("http://example.com", headers("X-Token", "a\nb")),
        (
            "http://example.com",
            WebhookOptions { ca: Some(b"-----BEGIN CERTIFICATE-----\n!".to_vec()), ..options() },
        ),
    ] {
        said += &format!("{}\n", Webhook::new(url, options).expect_err("it is wrong"));
    }
    for secret in ["", "abc", "whsec_abc", "whsec_YWJj"] {
        said += &format!("{}\n", Key::read(secret).expect_err("it is wrong"));
    }
    expect![[r#"
        the address of the sink is no URL that begins with https:// or http://
        the address of the sink is no URL that begins with https:// or http://
        the sink's header "X Token" is not allowed in HTTP
        the sink's header "X-Token" is not allowed in HTTP
        the sink's certificates are not PEM
        a webhook's signing secret is whsec_ and 24 to 64 bytes in base64, for example whsec_ and the output of `openssl rand -base64 32`
        a webhook's signing secret is whsec_ and 24 to 64 bytes in base64, for example whsec_ and the output of `openssl rand -base64 32`
        a webhook's signing secret is whsec_ and 24 to 64 bytes in base64, for example whsec_ and the output of `openssl rand -base64 32`
        a webhook's signing secret is whsec_ and 24 to 64 bytes in base64, for example whsec_ and the output of `openssl rand -base64 32`
    "#]].assert_eq(&said);
}

/// 40 objects, 600 records, a server in random moods, and restarts.
#[tokio::test]
async fn whatever_a_server_does_each_record_arrives_and_in_the_order_of_its_object() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let objects: Vec<u64> = (0..600).map(|_| random.u64(..40)).collect();
    let log = Memory::of(objects.iter().copied());
    let arrived: Arc<Mutex<Vec<u64>>> = Arc::default();
    let (noted, mut moods) = (arrived.clone(), random.fork());
    let server = Server::with(move |seen| {
        let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
        let act = match moods.u8(..100) {
            0 => Act::Silence,
            1..5 => Act::Break,
            5..15 => Act::Status(500),
            15..18 => Act::RetryAfter(429, "0".to_owned()),
            18..50 => Act::Status(204),
            _ => Act::Status(200),
        };
        // It may have the records, whatever it answers.
        if matches!(act, Act::Status(200 | 204) | Act::Break | Act::Silence) {
            let numbers = body["changes"].as_array().expect("changes").iter();
            noted
                .lock()
                .expect("no panic")
                .extend(numbers.map(|change| change["number"].as_u64().expect("one")));
        }
        act
    })
    .await;
    let policy = Policy { batch: 5, ..quick() };
    for stop_at in [100, 250, 600] {
        let running = run(&log, &server.url(), policy.clone(), impatient());
        log.reaches(stop_at).await;
        running.stop().await;
    }
    let arrived = arrived.lock().expect("no panic").clone();
    let dead: BTreeSet<u64> = log.settled.borrow().dead.iter().map(|dead| dead.number).collect();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut first = BTreeSet::new();
    for number in arrived {
        if first.insert(number) {
            let before = last.insert(objects[number as usize - 1], number).unwrap_or_default();
            assert!(before < number, "{number} arrived after {before}");
        }
    }
    for number in 1..=600 {
        assert!(first.contains(&number) || dead.contains(&number), "{number} has not arrived");
    }
}
