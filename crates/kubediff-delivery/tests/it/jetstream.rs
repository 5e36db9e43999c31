//! Streams on a real NATS server.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, RetentionPolicy};
use expect_test::expect;
use fastrand::Rng;
use kubediff_delivery::{JetStream, JetStreamOptions, Login, Policy};

use crate::log::Memory;
use crate::nats::{Line, Nats, Relay, copy_folder};
use crate::running::Running;

/// How often the long story is played.
const TIMES: &str = "INFORMER_SOAK";
/// The kills of one story.
const KILLS: usize = 25;

fn quick() -> Policy {
    let (first_wait, longest_wait) = (Duration::from_millis(2), Duration::from_millis(50));
    Policy { first_wait, longest_wait, ..Policy::stream() }
}

fn options(url: String) -> JetStreamOptions {
    let timeout = Duration::from_secs(2);
    JetStreamOptions {
        servers: vec![url],
        cluster: "prod".into(),
        create: true,
        timeout,
        ..JetStreamOptions::default()
    }
}

/// A sink that continues the log, whose ids are those of this timeline from a number on, and of the first one before it.
fn sink(log: &Memory, options: JetStreamOptions, (from, timeline): (u64, u64)) -> JetStream {
    let id = move |number| format!("log-{}-{number}", if number < from { 1 } else { timeline });
    let tail = log.settled.borrow().tail.clone();
    JetStream::new(options).expect("a sink").continues(tail.as_deref(), id)
}

fn start(log: &Memory, url: String) -> Running {
    Running::start(log, sink(log, options(url), (0, 1)), quick())
}

fn up_to(last: u64) -> Vec<u64> {
    (1..=last).collect()
}

#[tokio::test]
async fn a_record_is_a_cloud_event_whose_subject_says_where_its_object_is() {
    let Some(nats) = Nats::start("jetstream", &[]).await else { return };
    let log = Memory::of([1]);
    log.append([2]);
    log.change(|record| {
        let place = record.event.place.as_mut().expect("a place");
        (place.group, place.namespace) = ("rbac.authorization.k8s.io".into(), None);
        place.resource = "clusterroles".into();
        record.event.about = "clusterroles.rbac.authorization.k8s.io/v\u{e4}rd".into();
    });
    log.append([0]);
    log.change(|record| {
        (record.event.place, record.event.kind) = (None, "io.kubediff.gap".into());
    });
    let running = start(&log, nats.url());
    log.reaches(3).await;
    running.stop().await;
    let stream = nats.stream().await;
    let mut said = String::new();
    for sequence in 1..=3 {
        let message = stream.get_raw_message(sequence).await.expect("a message");
        said += &format!("{}\n", message.subject);
        let headers = message.headers.iter();
        let mut headers: Vec<String> =
            headers.map(|(name, values)| format!("  {name}: {}\n", values[0].as_str())).collect();
        headers.sort();
        said += &headers.concat();
        said += &format!("  {}\n", String::from_utf8_lossy(&message.payload));
    }
    expect![[r#"
        kubediff.prod.core.configmaps.shop
          Kubediff-Number: 1
          Nats-Expected-Last-Sequence: 0
          Nats-Msg-Id: log-1-1
          ce-id: log-1-1
          ce-sequence: 00000000000000000001
          ce-source: prod
          ce-specversion: 1.0
          ce-subject: configmaps/shop/object-1
          ce-time: 1970-01-01T00:00:00Z
          ce-type: io.kubediff.change.updated
          content-type: application/json
          {"name":"object-1","n":1}
        kubediff.prod.rbac_authorization_k8s_io.clusterroles._
          Kubediff-Number: 2
          Nats-Expected-Last-Sequence: 1
          Nats-Msg-Id: log-1-2
          ce-id: log-1-2
          ce-sequence: 00000000000000000002
          ce-source: prod
          ce-specversion: 1.0
          ce-subject: clusterroles.rbac.authorization.k8s.io/v%C3%A4rd
          ce-time: 1970-01-01T00:00:00Z
          ce-type: io.kubediff.change.updated
          content-type: application/json
          {"name":"object-2","n":2}
        kubediff.prod._.gap._
          Kubediff-Number: 3
          Nats-Expected-Last-Sequence: 2
          Nats-Msg-Id: log-1-3
          ce-id: log-1-3
          ce-sequence: 00000000000000000003
          ce-source: prod
          ce-specversion: 1.0
          ce-subject: configmaps/shop/object-0
          ce-time: 1970-01-01T00:00:00Z
          ce-type: io.kubediff.gap
          content-type: application/json
          {"name":"object-0","n":3}
    "#]]
    .assert_eq(&said);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_killed_or_cut_a_consumer_gets_the_log() {
    let times = std::env::var(TIMES).ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    for _ in 0..times {
        if !is_the_log(fastrand::u64(..)).await {
            return;
        }
    }
}

/// Returns whether there is a server.
async fn is_the_log(seed: u64) -> bool {
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let Some(mut nats) = Nats::start("jetstream", &[]).await else { return false };
    let relay = Relay::before(&nats).await;
    let log = Memory::of([]);
    let (mut running, mut count) = (start(&log, relay.url()), 0);
    for _ in 0..KILLS {
        let new = random.u64(1..1_000);
        count += new;
        log.append((0..new).map(|_| random.u64(..20)));
        // In the middle of them, or before, or right after.
        log.reaches(count.saturating_sub(random.u64(..=new + new / 2))).await;
        match random.u8(..6) {
            0 | 1 => {
                nats.kill();
                nats.begin().await;
            }
            2 => relay.cut(Line::CutBefore).await,
            3 | 4 => relay.cut(Line::CutAfter).await,
            _ => {
                running.kill().await;
                running = start(&log, relay.url());
            }
        }
    }
    log.reaches(count).await;
    running.stop().await;
    assert_eq!(nats.view().await, up_to(count), "seed {seed}");
    true
}

#[tokio::test]
async fn an_end_that_the_disk_has_lost_is_sent_again_even_if_nothing_new_happens() {
    let Some(mut nats) = Nats::start("jetstream", &[]).await else { return };
    let log = Memory::of(0..100);
    let running = start(&log, nats.url());
    log.reaches(100).await;
    nats.kill();
    let copy = tempfile::tempdir().expect("a folder");
    copy_folder(&nats.storage(), copy.path());
    nats.begin().await;
    log.append(0..2_000);
    log.reaches(2_100).await;
    nats.kill();
    std::fs::remove_dir_all(nats.storage()).expect("a folder");
    copy_folder(copy.path(), &nats.storage());
    nats.begin().await;
    let mut went_back = log.went_back.subscribe();
    let lost = *went_back.wait_for(Option::is_some).await.expect("a log");
    assert_eq!(lost, Some((2_100, 100)));
    while nats.stream().await.cached_info().state.messages < 2_100 {
        tokio::task::yield_now().await;
    }
    running.stop().await;
    assert_eq!(nats.view().await, up_to(2_100));
}

#[tokio::test]
async fn an_end_that_was_deleted_is_sent_again_although_the_server_knows_its_ids() {
    let Some(nats) = Nats::start("jetstream", &[]).await else { return };
    let log = Memory::of(0..600);
    let running = start(&log, nats.url());
    log.reaches(600).await;
    running.stop().await;
    let stream = nats.stream().await;
    for sequence in 11..=600 {
        stream.delete_message(sequence).await.expect("a message");
    }
    let running = start(&log, nats.url());
    log.append([1]);
    log.reaches(601).await;
    running.stop().await;
    assert_eq!(nats.view().await, up_to(601));
}

#[tokio::test]
async fn a_stream_that_was_emptied_goes_on() {
    let Some(nats) = Nats::start("jetstream", &[]).await else { return };
    let log = Memory::of(0..10);
    let running = start(&log, nats.url());
    log.reaches(10).await;
    running.stop().await;
    nats.stream().await.purge().await.expect("an empty stream");
    let running = start(&log, nats.url());
    log.append(0..3);
    log.reaches(13).await;
    running.stop().await;
    assert_eq!(nats.view().await, [11, 12, 13]);
    assert_eq!(*log.went_back.borrow(), None);
}

#[tokio::test]
async fn a_stream_that_was_deleted_gets_all_that_the_log_has() {
    let Some(nats) = Nats::start("jetstream", &[]).await else { return };
    let log = Memory::of(0..10);
    let running = start(&log, nats.url());
    log.reaches(10).await;
    running.stop().await;
    nats.client().await.delete_stream("KUBEDIFF_prod").await.expect("no stream");
    let running = start(&log, nats.url());
    log.append(0..3);
    log.reaches(13).await;
    running.stop().await;
    assert_eq!(nats.view().await, up_to(13));
}

#[tokio::test]
async fn of_two_writers_one_goes_on_and_none_doubles_a_record() {
    let Some(nats) = Nats::start("jetstream", &[]).await else { return };
    let (former, later) = (Memory::of(0..500), Memory::of(0..500));
    let mut first = start(&former, nats.url());
    former.reaches(500).await;
    // The other one has a copy of the history, and goes on by itself.
    later.append(0..500);
    let second = Running::start(&later, sink(&later, options(nats.url()), (501, 2)), quick());
    later.change(|record| record.id = "log-2-1000".into());
    later.reaches(1_000).await;
    former.append(0..10);
    let trouble = first.trouble_with("later writer").await;
    expect!["the stream KUBEDIFF_prod has records of a later writer of this history: another kubediff uses a copy of it; end one of the two"].assert_eq(&trouble);
    later.append(0..10);
    later.change(|record| record.id = "log-2-1010".into());
    later.reaches(1_010).await;
    first.stop().await;
    second.stop().await;
    assert_eq!(nats.view().await, up_to(1_010));
}

#[tokio::test]
async fn a_log_that_was_restored_goes_on_after_what_it_has_no_more() {
    let Some(nats) = Nats::start("jetstream", &[]).await else { return };
    let (former, restored) = (Memory::of(0..20), Memory::of(0..15));
    let running = start(&former, nats.url());
    former.reaches(20).await;
    running.stop().await;
    restored
        .settled
        .send_modify(|settled| (settled.position, settled.tail) = (10, Some("10 10 KUBEDIFF_prod".into())));
    let running = Running::start(&restored, sink(&restored, options(nats.url()), (11, 2)), quick());
    restored.reaches(15).await;
    running.stop().await;
    assert_eq!(nats.view().await, [up_to(20), (11..=15).collect()].concat());
}

#[tokio::test]
async fn a_record_that_is_too_large_is_a_dead_letter_and_the_next_one_names_it() {
    let Some(nats) = Nats::start("jetstream", &[]).await else { return };
    let subjects = vec!["kubediff.>".to_owned()];
    let config =
        Config { name: "KUBEDIFF_prod".to_owned(), subjects, max_message_size: 2_000, ..Config::default() };
    nats.client().await.create_stream(config).await.expect("a stream");
    let log = Memory::of(0..5);
    log.change(|record| record.body = "x".repeat(3_000).into());
    log.append([6]);
    log.change(|record| record.body = "x".repeat(2_000_000).into());
    log.append(0..2);
    let running = start(&log, nats.url());
    let settled = log.reaches(8).await;
    let dead: Vec<String> =
        settled.dead.iter().map(|letter| format!("{}: {}", letter.number, letter.reason)).collect();
    expect![[r#"
        5: the record is larger than the stream's `max_msg_size`
        6: the record is larger than the server's `max_payload`"#]]
    .assert_eq(&dead.join("\n"));
    // It is sent again when the stream takes it.
    let stream = nats.stream().await;
    assert_eq!(nats.view().await, [1, 2, 3, 4, 7, 8]);
    let last = stream.get_raw_message(5).await.expect("a message");
    assert_eq!(last.headers.get("ce-missing").expect("a header").as_str(), "5,6");
    let larger = Config { max_message_size: 4_000, ..stream.cached_info().config.clone() };
    nats.client().await.update_stream(larger).await.expect("a stream");
    running.resends.send(log.record(5)).await.expect("a driver");
    log.settled.subscribe().wait_for(|settled| settled.resent == [5]).await.expect("a log");
    running.stop().await;
    assert_eq!(nats.view().await, [1, 2, 3, 4, 7, 8, 5]);
    // It does not look like a lost end.
    let running = start(&log, nats.url());
    log.append([1]);
    log.reaches(9).await;
    running.stop().await;
    assert_eq!(nats.view().await, [1, 2, 3, 4, 7, 8, 5, 9]);
}

#[tokio::test]
async fn a_stream_that_is_none_for_kubediff_is_told_with_the_remedy_and_gets_nothing() {
    let Some(nats) = Nats::start("jetstream", &[]).await else { return };
    let context = nats.client().await;
    let config = |subject: &str| Config {
        name: "KUBEDIFF_prod".to_owned(),
        subjects: vec![subject.to_owned()],
        ..Config::default()
    };
    let mut said = String::new();
    for case in ["missing", "subjects", "workqueue", "foreign", "other log"] {
        let config = match case {
            "subjects" => Some(config("kubediff.test.>")),
            "workqueue" => Some(Config { retention: RetentionPolicy::WorkQueue, ..config("kubediff.*.>") }),
            "foreign" | "other log" => Some(config("kubediff.*.*.*.*")),
            _ => None,
        };
        if let Some(config) = config {
            context.create_stream(config).await.expect("a stream");
        }
        if case == "foreign" {
            let sent = context.publish("kubediff.prod.a.b.c", "x".into()).await.expect("a message");
            sent.await.expect("a message");
        }
        let log = Memory::of(0..2);
        if case == "other log" {
            let running = start(&log, nats.url());
            log.reaches(2).await;
            running.stop().await;
            log.settled.send_replace(kubediff_delivery::Settled::default());
        }
        let id = |number| format!("0a-1-{number}");
        let options = JetStreamOptions { create: false, ..options(nats.url()) };
        let other = JetStream::new(options).expect("a sink").continues(None, id);
        let mut running = Running::start(&log, other, quick());
        said += &format!("{case}: {}\n", running.trouble().await);
        running.stop().await;
        assert_eq!(log.settled.borrow().position, 0, "{case}");
        let _ = context.delete_stream("KUBEDIFF_prod").await;
    }
    expect![[r#"
        missing: there is no stream KUBEDIFF_prod: create it with `nats stream add KUBEDIFF_prod --subjects 'kubediff.prod.>'`, or set `create: true`
        subjects: the stream KUBEDIFF_prod has not the subjects of kubediff: `nats stream edit KUBEDIFF_prod --subjects 'kubediff.prod.>'` gives it them
        workqueue: the stream KUBEDIFF_prod removes what was consumed: create one with `--retention limits`
        foreign: the last message of the stream KUBEDIFF_prod, 1 on the subject kubediff.prod.a.b.c, is not of kubediff, which has to be the only writer: name another stream in `stream`, or remove it with `nats stream rmm KUBEDIFF_prod 1`
        other log: the stream KUBEDIFF_prod has the records of another history, log: name another one in `stream`, or delete it
    "#]].assert_eq(&said.replace(&nats.url(), "SERVER"));
}

#[tokio::test]
async fn a_server_that_refuses_or_is_full_is_told_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("nats.conf").display().to_string();
    // The rights are those that docs/streams.md names.
    let rights =
        ["kubediff.prod.>", "$JS.API.STREAM.INFO.KUBEDIFF_prod", "$JS.API.STREAM.MSG.GET.KUBEDIFF_prod"];
    let users = format!(
        "authorization: {{users: [{{user: admin, password: secret}}, {{user: kubediff, password: secret, permissions: \
         {{publish: {rights:?}, subscribe: ['_INBOX.>']}}}}]}}"
    );
    std::fs::write(&file, users).expect("a file");
    let Some(nats) = Nats::start("jetstream", &["-c", &file]).await else { return };
    let login = |password: &str| Login::Password { user: "kubediff".into(), password: password.into() };
    let with = |password| JetStreamOptions { login: login(password), ..options(nats.url()) };
    let log = Memory::of(0..10);
    let mut running = Running::start(&log, sink(&log, with("wrong"), (0, 1)), quick());
    let mut said = format!("{}\n", running.trouble().await);
    running.stop().await;

    // It may not create a stream.
    let mut running = Running::start(&log, sink(&log, with("secret"), (0, 1)), quick());
    said += &format!("{}\n", running.trouble_with("says").await);
    running.stop().await;

    let options = async_nats::ConnectOptions::with_user_and_password("admin".into(), "secret".into());
    let context = async_nats::jetstream::new(options.connect(nats.url()).await.expect("a connection"));
    let config = Config {
        name: "KUBEDIFF_prod".to_owned(),
        subjects: vec!["kubediff.prod.>".to_owned()],
        max_messages: 4,
        discard: async_nats::jetstream::stream::DiscardPolicy::New,
        ..Config::default()
    };
    context.create_stream(config).await.expect("a stream");
    let mut running = Running::start(&log, sink(&log, with("secret"), (0, 1)), quick());
    said += &format!("{}\n", running.trouble().await);
    assert_eq!(log.reaches(4).await.position, 4);
    let stream = context.get_stream("KUBEDIFF_prod").await.expect("a stream");
    for taken in [8, 10] {
        stream.purge().await.expect("room");
        log.reaches(taken).await;
    }
    running.stop().await;
    expect![[r#"
        the server refuses the credentials: see `credentials`, `token`, or `user` and `password` of the sink
        the stream KUBEDIFF_prod cannot be created: jetstream request timed out; the server says: Permissions Violation for Publish to "$JS.API.STREAM.CREATE.KUBEDIFF_prod"
        the server says: maximum messages exceeded (code 503, error code 10077)
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn a_connection_can_be_encrypted_and_the_certificate_is_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("cert"), own.cert.pem()).expect("a file");
    std::fs::write(path("key"), own.signing_key.serialize_pem()).expect("a file");
    let tls = ["--tls", "--tlscert", &path("cert"), "--tlskey", &path("key")];
    let Some(nats) = Nats::start("jetstream", &tls).await else { return };
    let log = Memory::of(0..3);
    let mut running = start(&log, nats.url().replace("nats://", "tls://"));
    expect!["no encrypted connection to the server: invalid peer certificate: UnknownIssuer; see `caFile` of the sink"]
        .assert_eq(&running.trouble().await);
    running.stop().await;
    let trusting = JetStreamOptions { ca: Some(own.cert.pem().into()), ..options(nats.url()) };
    let running = Running::start(&log, sink(&log, trusting, (0, 1)), quick());
    log.reaches(3).await;
    running.stop().await;
}

#[test]
fn settings_that_cannot_be_right_are_told_before_anything_is_sent() {
    let options = |url: &str| options(url.to_owned());
    let login = Login::Credentials("none".into());
    for (options, expected) in [
        (
            options("https://nats.example.com"),
            expect!["the servers of the sink are addresses of NATS: nats://HOST:PORT or tls://HOST:PORT"],
        ),
        (
            JetStreamOptions { login, ..options("nats.example.com") },
            expect!["these are no credentials of NATS, as `nsc generate creds` writes them"],
        ),
        (
            JetStreamOptions { ca: Some(b"x".to_vec()), ..options("nats://h:1") },
            expect!["the sink's certificates are not PEM"],
        ),
    ] {
        let error = JetStream::new(options).expect_err("an error");
        expected.assert_eq(&error.to_string());
    }
}
