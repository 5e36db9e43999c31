//! Issue 12: the daemon as a user runs it: configuration, sinks, health, a restart, another configuration.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use kubediff_history::{DeadLetter, Filter, History, Page, Reader, Scope, Settings, Settled};
use serde_json::{Value, json};
use serve::full;
use serve::http::{Server, ServerOptions, Serving};

use crate::session::Session;
use crate::shop::Shop;

mod backlog;
mod damage;
mod events;
mod gaps;
mod keys;
mod limits;
mod probes;

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// A webhook that says what it gets, and answers as it is told to.
struct Hook {
    serving: Serving,
    status: Arc<Mutex<StatusCode>>,
    got: Receiver<Value>,
    refused: Arc<AtomicUsize>,
}

impl Hook {
    async fn open() -> Self {
        let status = Arc::new(Mutex::new(StatusCode::NO_CONTENT));
        let (tell, got) = channel();
        let refused = Arc::new(AtomicUsize::new(0));
        let count = refused.clone();
        let server = Server::bind(ServerOptions::default()).await.unwrap();
        let answers = status.clone();
        let answer = move |request: Request<Bytes>, _| {
            let status = *answers.lock().unwrap();
            if status.is_success() {
                let body: Value = serde_json::from_slice(request.body()).unwrap();
                for change in body["changes"].as_array().unwrap() {
                    let _ = tell.send(change.clone());
                }
            } else {
                count.fetch_add(1, Ordering::Relaxed);
            }
            let mut response = Response::new(full(Bytes::new()));
            *response.status_mut() = status;
            async move { response }
        };
        Self { serving: server.serve(answer), status, got, refused }
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.serving.address())
    }

    /// The next change of an object, as `updated a watch`; gaps in between are passed over.
    fn next(&self) -> String {
        loop {
            let change = self.got.recv_timeout(PATIENCE).unwrap();
            // The record, with what the delivery adds around it.
            let record = &change["change"];
            if record["change"] != "gap" {
                let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
                return format!(
                    "{} {} {}: {}",
                    text("change"),
                    text("name"),
                    text("source"),
                    text("summary")
                );
            }
        }
    }
}

/// A folder with a configuration, and the shop that it is about.
struct Set {
    folder: tempfile::TempDir,
    shop: Shop,
}

impl Set {
    async fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), shop: Shop::open().await }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self, text: &str) {
        let text = format!("history: {{path: history.db}}\nlisten: 127.0.0.1:0\n{text}");
        std::fs::write(self.path("kubediff.yaml"), text).unwrap();
    }

    /// Starts the daemon; its address, when it watches.
    async fn serve(&self) -> (Session, String) {
        self.serve_with(&[]).await
    }

    async fn serve_with(&self, arguments: &'static [&'static str]) -> (Session, String) {
        let (kubeconfig, config) = (self.shop.kubeconfig().to_owned(), self.path("kubediff.yaml"));
        let started = tokio::task::spawn_blocking(move || {
            let mut session = Session::serve_with(&kubeconfig, &config, arguments);
            let note = session.note("health and metrics are on ");
            let address = note.split("are on ").nth(1).unwrap().to_owned();
            session.note("watching");
            (session, address)
        });
        started.await.unwrap()
    }
}

pub(crate) async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Standard output of `kubediff ARGUMENTS`, and whether it succeeded.
async fn kubediff(arguments: &[&str]) -> (String, bool) {
    let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
    on_thread(move || {
        let output = Command::new(env!("CARGO_BIN_EXE_kubediff")).args(arguments).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.success())
    })
    .await
}

pub(crate) async fn get(address: &str, path: &str) -> (StatusCode, String) {
    use http_body_util::BodyExt as _;
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .build_http::<http_body_util::Empty<Bytes>>();
    let response = client.get(format!("{address}{path}").parse().unwrap()).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_gets_every_change_also_those_of_a_restart() {
    let set = Set::new().await;
    let hook = Hook::open().await;
    set.configure(
        "watch: {resources: [cm, secrets]}\nsinks:\n  hook: {webhook: {url: {file: url}}}\n  log: {file: {path: changes.log}}\n",
    );
    std::fs::write(set.path("url"), hook.url()).unwrap();
    set.shop.create("a", "1").await;
    set.shop.create("b", "1").await;
    let (daemon, address) = set.serve().await;
    set.shop.patch("a", "2").await;
    let hook = on_thread(move || {
        assert_eq!(hook.next(), r#"updated a watch: data.k "1" -> "2""#);
        hook
    })
    .await;

    assert_eq!(get(&address, "/healthz").await, (StatusCode::OK, "ok\n".to_owned()));
    assert_eq!(get(&address, "/readyz").await, (StatusCode::OK, "ok\n".to_owned()));
    let (_, metrics) = get(&address, "/metrics").await;
    for line in [
        r#"kubediff_changes_total{resource="configmaps",change="updated"} 1"#,
        r#"kubediff_watches{state="watched"} 2"#,
        r#"kubediff_sink_failing{sink="hook"} 0"#,
        "kubediff_history_last_record ",
        "kubediff_stories_record ",
        "informer_objects{",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    let (status, ready) = kubediff(&["status", "--address", &address]).await;
    assert!(ready, "{status}");
    assert!(status.starts_with("ready\nhistory: ") && status.contains("configmaps   watched"), "{status}");

    // It is killed, the webhook is down, and the cluster goes on.
    on_thread(move || daemon.kill()).await;
    *hook.status.lock().unwrap() = StatusCode::INTERNAL_SERVER_ERROR;
    set.shop.patch("a", "3").await;
    set.shop.delete("b").await;
    let (daemon, address) = set.serve().await;
    set.shop.patch("a", "4").await;
    let failing = format!("{address}/metrics");
    loop {
        let (_, metrics) = get(&failing, "").await;
        if metrics.contains(r#"kubediff_sink_failing{sink="hook"} 1"#) {
            break;
        }
        tokio::task::yield_now().await;
    }
    *hook.status.lock().unwrap() = StatusCode::OK;
    let mut told = on_thread(move || vec![hook.next(), hook.next(), hook.next()]).await;
    told[..2].sort();
    assert_eq!(
        told,
        ["deleted", r#"updated a restart: data.k "2" -> "3""#, r#"updated a watch: data.k "3" -> "4""#]
            .map(|line| if line.starts_with("deleted") { told[0].clone() } else { line.to_owned() })
    );
    assert!(told[0].starts_with("deleted b restart: "), "{told:?}");
    let (_, said, status) = on_thread(move || daemon.end_with("-TERM")).await;
    assert_eq!(status.code(), Some(0), "{said:?}");

    let of_a = |record: &Value| record["name"] == "a";
    let mut log: Vec<Value> =
        lines(&set.path("changes.log")).iter_mut().map(|line| line["change"].take()).collect();
    // A kill between the write and the note of it repeats the record.
    log.dedup_by_key(|record| record["number"].as_u64());
    let data: Vec<&Value> = log.iter().filter(|it| of_a(it)).map(|it| &it["diff"][0]["new"]).collect();
    assert_eq!(data, [&json!("2"), &json!("3"), &json!("4")]);
    assert!(log.iter().any(|record| record["change"] == "gap"), "{log:#?}");
    assert!(log.windows(2).all(|two| two[0]["number"].as_u64() < two[1]["number"].as_u64()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_sent_again_at_the_next_start() {
    let set = Set::new().await;
    let hook = Hook::open().await;
    set.configure("watch: {resources: [cm]}\nsinks:\n  hook: {webhook: {url: {file: url}}}\n");
    std::fs::write(set.path("url"), hook.url()).unwrap();
    set.shop.create("a", "1").await;
    let (daemon, _) = set.serve().await;
    set.shop.patch("a", "2").await;
    let hook = on_thread(move || {
        assert_eq!(hook.next(), r#"updated a watch: data.k "1" -> "2""#);
        hook
    })
    .await;
    on_thread(move || daemon.end_with("-TERM")).await;

    // As if the sink had refused it for good.
    let file = set.path("history.db");
    let (cluster, last) = {
        let mut reader = Reader::open(&file).unwrap();
        (reader.cluster().unwrap(), reader.last().unwrap().unwrap().0)
    };
    let mut history = History::open(&file, &cluster, &Settings::default()).unwrap();
    let dead = vec![DeadLetter { number: last, object: 1, reason: "400".to_owned() }];
    history.settle_sink("hook", &Settled { position: last, dead, ..Settled::default() }).unwrap();
    drop(history);
    let stats = ["history", "stats", "--history", file.to_str().unwrap(), "-o", "json"];
    let (before, _) = kubediff(&stats).await;
    assert!(before.contains(r#""dead":1"#), "{before}");

    let (daemon, address) = set.serve().await;
    let hook = on_thread(move || {
        assert_eq!(hook.next(), r#"updated a watch: data.k "1" -> "2""#);
        hook
    })
    .await;
    // It is none any more as soon as the answer is stored.
    while !get(&address, "/metrics").await.1.contains(r#"kubediff_sink_dead_letters{sink="hook"} 0"#) {
        tokio::task::yield_now().await;
    }
    let (status, _) = kubediff(&["status", "--address", &address]).await;
    assert!(status.contains("DEAD"), "{status}");
    on_thread(move || daemon.end_with("-TERM")).await;
    let (after, _) = kubediff(&stats).await;
    assert!(after.contains(r#""dead":0"#), "{after}");
    drop(hook);
}

/// Issue 19, attack 9.
#[tokio::test(flavor = "multi_thread")]
async fn k6_a_sink_that_refuses_everything_is_visible_and_gets_all_of_it_when_it_is_well() {
    let set = Set::new().await;
    let hook = Hook::open().await;
    *hook.status.lock().unwrap() = StatusCode::BAD_REQUEST;
    set.configure("watch: {resources: [cm]}\nsinks:\n  hook: {webhook: {url: {file: url}}}\n");
    std::fs::write(set.path("url"), hook.url()).unwrap();
    let (daemon, address) = set.serve().await;
    for name in ["a", "b", "c", "d"] {
        set.shop.create(name, "1").await;
    }
    let refuses = "ok; the sink hook: it refuses every record: 400";
    while !get(&address, "/readyz").await.1.starts_with(refuses) {
        tokio::task::yield_now().await;
    }
    *hook.status.lock().unwrap() = StatusCode::NO_CONTENT;
    let told = on_thread(move || {
        let told: std::collections::BTreeSet<String> = (0..4).map(|_| hook.next()).collect();
        (told, daemon.end_with("-TERM").1.join("\n"))
    })
    .await;
    let names: Vec<&str> = told.0.iter().filter_map(|told| told.split(' ').nth(1)).collect();
    assert_eq!(names, ["a", "b", "c", "d"], "each of them, the dead letter too");
    assert!(told.1.contains("the sink hook takes records again"), "{}", told.1);
}

/// A write that is noise only makes no version (issue 19, attack 6).
#[tokio::test(flavor = "multi_thread")]
async fn k4_a_route_by_label_finds_the_former_state_after_a_write_that_was_noise() {
    let set = Set::new().await;
    let hook = Hook::open().await;
    set.configure(
        "watch: {resources: [cm]}\nsinks:\n  hook: {webhook: {url: {file: url}}}\nroutes:\n- sinks: [hook]\n  match: {labels: env=prod}\n",
    );
    std::fs::write(set.path("url"), hook.url()).unwrap();
    set.shop.create("a", "before").await;
    let a = "/api/v1/namespaces/default/configmaps/a";
    let metadata =
        async |metadata: Value| set.shop.send(Method::PATCH, a, json!({"metadata": metadata})).await;
    metadata(json!({"labels": {"env": "prod"}})).await;
    let (daemon, _) = set.serve().await;
    metadata(json!({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}})).await;
    metadata(json!({"labels": {"env": null}})).await;
    let told = on_thread(move || hook.next()).await;
    assert!(told.starts_with("updated a watch: ") && told.contains("labels"), "{told}");
    on_thread(move || daemon.end_with("-TERM")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_configuration_is_taken_and_a_wrong_one_is_not() {
    let set = Set::new().await;
    let hook = Hook::open().await;
    let sinks = "watch: {resources: [cm]}\nsinks:\n  hook: {webhook: {url: {file: url}}}\nroutes:\n- sinks: [hook]\n  match: {names: [NAME]}\n";
    std::fs::write(set.path("url"), hook.url()).unwrap();
    set.configure(&sinks.replace("NAME", "a*"));
    set.shop.create("a", "1").await;
    set.shop.create("b", "1").await;
    let (mut daemon, _) = set.serve().await;
    set.shop.patch("b", "2").await;
    set.shop.patch("a", "2").await;
    let hook = on_thread(move || {
        assert_eq!(hook.next(), r#"updated a watch: data.k "1" -> "2""#);
        hook
    })
    .await;

    set.configure("watch: {resource: [cm]}\n");
    daemon.signal("-HUP");
    let mut daemon = on_thread(move || {
        let note = daemon.note("kubediff.yaml:3:9: watch.resource: there is no such field");
        assert!(note.contains("did you mean `resources`?"), "{note}");
        daemon.note("the former configuration stays in force");
        daemon
    })
    .await;
    set.shop.patch("a", "3").await;
    let hook = on_thread(move || {
        assert_eq!(hook.next(), r#"updated a watch: data.k "2" -> "3""#);
        hook
    })
    .await;

    set.configure(&sinks.replace("NAME", "b"));
    daemon.signal("-HUP");
    let daemon = on_thread(move || {
        daemon.note("the configuration has changed");
        daemon.note("watching");
        daemon
    })
    .await;
    set.shop.patch("a", "4").await;
    set.shop.patch("b", "3").await;
    let hook = on_thread(move || {
        assert_eq!(hook.next(), r#"updated b watch: data.k "2" -> "3""#);
        hook
    })
    .await;

    // A secret in a file that was rotated is taken without a signal.
    let rotated = Hook::open().await;
    std::fs::write(set.path("url"), rotated.url()).unwrap();
    let mut daemon = daemon;
    let daemon = on_thread(move || {
        daemon.note("the configuration has changed");
        daemon.note("watching");
        daemon
    })
    .await;
    set.shop.patch("b", "4").await;
    on_thread(move || assert_eq!(rotated.next(), r#"updated b watch: data.k "3" -> "4""#)).await;
    let (_, said, status) = on_thread(move || daemon.end_with("-INT")).await;
    assert_eq!(status.code(), Some(0), "{said:?}");
    drop(hook);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_waited_for() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm]}\n");
    set.shop.create("a", "1").await;
    set.shop.server.refuse_connections();
    let (kubeconfig, config) = (set.shop.kubeconfig().to_owned(), set.path("kubediff.yaml"));
    let (mut daemon, address) = on_thread(move || {
        let mut daemon = Session::serve(&kubeconfig, &config);
        let note = daemon.note("health and metrics are on ");
        let address = note.split("are on ").nth(1).unwrap().to_owned();
        let note = daemon.note("; trying again");
        assert!(note.ends_with("connection refused; trying again"), "{note}");
        (daemon, address)
    })
    .await;
    assert_eq!(get(&address, "/healthz").await.0, StatusCode::OK);
    let (status, reason) = get(&address, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(reason.ends_with("connection refused\n"), "{reason}");
    let (text, ready) = kubediff(&["status", "--address", &address]).await;
    assert!(!ready && text.starts_with("not ready: http"), "{text}");
    set.shop.server.accept_connections().unwrap();
    let daemon = on_thread(move || {
        daemon.note("watching 1 resource");
        daemon
    })
    .await;
    assert_eq!(get(&address, "/readyz").await.0, StatusCode::OK);
    on_thread(move || daemon.end_with("-TERM")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_that_has_begun_is_recorded_whenever_the_process_ends() {
    for (resources, signal) in [("cm", "-TERM"), ("cm", "-KILL"), ("cm, secrets", "-KILL")] {
        let set = Set::new().await;
        set.configure(&format!("watch: {{resources: [{resources}]}}\n"));
        set.shop.create("a", "1").await;
        let (mut daemon, _) = set.serve().await;
        set.shop.server.refuse_connections();
        set.shop.server.disconnect_all();
        let history = set.path("history.db");
        let begun = resources.split(", ").count();
        on_thread(move || {
            daemon.note("not watched: http");
            let open = || {
                let notes = Reader::open(&history).unwrap().notes().unwrap();
                notes.iter().filter(|(name, since)| name.starts_with("open/") && !since.is_empty()).count()
            };
            while open() < begun {
                std::thread::yield_now();
            }
            if signal == "-KILL" { daemon.kill() } else { daemon.end_with(signal).0 }
        })
        .await;
        set.shop.server.accept_connections().unwrap();
        for _ in 0..2 {
            let (daemon, _) = set.serve().await;
            on_thread(move || daemon.end_with("-TERM")).await;
        }
        let mut reader = Reader::open(set.path("history.db")).unwrap();
        let gaps = reader.gaps(&Scope::default(), None, None, &Page::oldest(100)).unwrap();
        let lost = gaps.iter().filter(|gap| gap.reason.starts_with("http")).count();
        // One, of the resource that is watched, or of both together; and those in which nothing ran.
        assert_eq!(lost, 1, "{resources} {signal}: {gaps:#?}");
        assert!(
            gaps.iter().any(|gap| gap.reason == "kubediff did not run"),
            "{resources} {signal}: {gaps:#?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_come_to_be_hidden_is_hidden_in_former_states_too() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm]}\n");
    set.shop.create("a", "a value of former times").await;
    let (daemon, _) = set.serve().await;
    on_thread(move || daemon.end_with("-TERM")).await;
    set.shop.patch("a", "another value").await;
    set.configure("watch: {resources: [cm]}\nhide: [{resource: cm, path: data.k}]\n");
    let (daemon, _) = set.serve().await;
    on_thread(move || daemon.end_with("-TERM")).await;
    let mut reader = Reader::open(set.path("history.db")).unwrap();
    let records = reader.records(&Filter::default(), &Page::oldest(100)).unwrap().records;
    let text = serde_json::to_string(&records).unwrap();
    assert_eq!(records.len(), 1, "{text}");
    assert!(text.contains("<hmac:") && !text.contains("value"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_cannot_begin_leaves_the_former_one_in_force() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm]}\n");
    let (daemon, _) = set.serve().await;
    let text = std::fs::read_to_string(set.path("kubediff.yaml")).unwrap();
    // A folder that does not exist is no mistake of form.
    let wrong = text.replace("history.db", "nowhere/history.db") + "keyFile: kubediff.key\n";
    std::fs::write(set.path("kubediff.yaml"), wrong).unwrap();
    daemon.signal("-HUP");
    let mut daemon = daemon;
    let daemon = on_thread(move || {
        daemon.note("nowhere/history.db");
        daemon.note("the former configuration stays in force");
        daemon.note("watching 1 resource");
        daemon
    })
    .await;
    let (_, said, status) = on_thread(move || daemon.end_with("-TERM")).await;
    assert!(status.success(), "{said:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn k5_values_over_a_bound_are_told() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm, secrets]}\n");
    let values: serde_json::Map<String, Value> =
        (0..300).map(|at| (format!("k{at}"), format!("qZ7-{at:05}-xvKw").into())).collect();
    let secret = json!({"metadata": {"name": "many"}, "stringData": values});
    set.shop.post("/api/v1/namespaces/default/secrets", secret).await;
    let (daemon, address) = set.serve().await;
    let told = get(&address, "/readyz").await.1;
    assert_eq!(told, "ok; 44 values of Secrets are not searched for in other objects: there are too many\n");
    let (status, _) = kubediff(&["status", "--address", &address]).await;
    assert!(status.contains("44 values of Secrets"), "{status}");
    on_thread(move || daemon.end_with("-TERM")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_and_the_metrics_are_for_who_has_the_token() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm]}\nlistenToken: {file: token}\n");
    std::fs::write(set.path("token"), "s3cret-token\n").unwrap();
    std::fs::write(set.path("other"), "s3cret-toke!\n").unwrap();
    let (daemon, address) = set.serve().await;
    for (path, expected) in [("/readyz", 200), ("/healthz", 200), ("/status", 401), ("/metrics", 401)] {
        assert_eq!(get(&address, path).await.0.as_u16(), expected, "{path}");
    }
    for (token, may_ask) in [("token", true), ("other", false)] {
        let file = set.path(token);
        let arguments = ["status", "--address", &address, "--token-file", file.to_str().unwrap()];
        assert_eq!(kubediff(&arguments).await.1, may_ask, "{token}");
    }
    assert!(!kubediff(&["status", "--address", &address]).await.1);
    on_thread(move || daemon.end_with("-TERM")).await;
}

/// A limit that each process is over.
#[tokio::test(flavor = "multi_thread")]
async fn k5_a_daemon_near_its_memory_limit_gives_up_caches_and_says_so() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm]}\n");
    let (daemon, address) = set.serve_with(&["--memory-limit", "1MiB"]).await;
    while !get(&address, "/readyz").await.1.contains("of the 1 MiB of memory are used: caches are given up") {
        tokio::task::yield_now().await;
    }
    assert!(get(&address, "/metrics").await.1.contains("kubediff_memory_short 1"));
    assert!(kubediff(&["status", "--address", &address]).await.0.contains("caches are given up"));
    // It records all the same.
    set.shop.create("a", "1").await;
    while !get(&address, "/status").await.1.contains(r#""records":1"#) {
        tokio::task::yield_now().await;
    }
    on_thread(move || daemon.end_with("-TERM")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn to_look_elsewhere_is_no_change_of_what_is_there() {
    let set = Set::new().await;
    set.shop.create("here", "1").await;
    let elsewhere = json!({"metadata": {"name": "elsewhere"}, "data": {"k": "1"}});
    set.shop.post("/api/v1/namespaces/kube-system/configmaps", elsewhere).await;
    set.shop.post("/api/v1/nodes", json!({"metadata": {"name": "n1"}})).await;
    for watch in [
        "{resources: [cm, nodes], namespaces: [default]}",
        // The same again, then more, then less in different ways, and all at last.
        "{resources: [cm, nodes], namespaces: [default]}",
        "{resources: [cm, nodes]}",
        "{resources: [cm, nodes], exclude: {namespaces: [kube-*]}}",
        "{resources: [cm, nodes], labels: app=none}",
        "{resources: [cm, nodes], exclude: {resources: [cm]}}",
        "{resources: [cm/here, nodes]}",
        "{exclude: {resources: [nodes]}}",
        "{}",
    ] {
        set.configure(&format!("watch: {watch}\n"));
        let (daemon, _) = set.serve().await;
        let (_, said, status) = on_thread(move || daemon.end_with("-TERM")).await;
        assert!(status.success(), "{said:#?}");
        let mut reader = Reader::open(set.path("history.db")).unwrap();
        let changes = reader.records(&Filter::default(), &Page::oldest(1_000)).unwrap().records;
        assert!(changes.is_empty(), "{watch}: {changes:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_waited_for_and_told() {
    let disk = tempfile::tempdir().unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(disk.path());
    if !mount.output().is_ok_and(|output| output.status.success()) {
        println!("not shown: this user may not mount a small disk");
        return;
    }
    let set = Set::new().await;
    let history = disk.path().join("history.db");
    let text = format!(
        "history: {{path: {}}}\nlisten: 127.0.0.1:0\nwatch: {{resources: [cm]}}\nsinks:\n  log: {{file: {{path: changes.log}}}}\n",
        history.display()
    );
    std::fs::write(set.path("kubediff.yaml"), text).unwrap();
    set.shop.create("a", "1").await;
    let (daemon, address) = set.serve().await;
    let filler = disk.path().join("filler");
    // All the room that is left.
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    // Compression does not make it fit into the pages that the history has already, nor into those that its log gives back.
    let mut state = 1_u64;
    let incompressible: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:08x}", state >> 32)
    })
    .take(62_500)
    .collect();
    set.shop.patch("a", &incompressible).await;
    let daemon = on_thread(move || {
        let mut daemon = daemon;
        daemon.note("no room to write to the history");
        daemon
    })
    .await;
    // A small write may have been the first without room, and have found some in the log that was given back.
    let reason = loop {
        match get(&address, "/readyz").await {
            (StatusCode::SERVICE_UNAVAILABLE, reason) => break reason,
            _ => tokio::task::yield_now().await,
        }
    };
    assert!(reason.contains("no room"), "{reason}");
    std::fs::remove_file(&filler).unwrap();
    drop(file);
    while get(&address, "/readyz").await.0 != StatusCode::OK {
        tokio::task::yield_now().await;
    }
    let daemon = on_thread(move || {
        let mut daemon = daemon;
        daemon.note("the history can be written again");
        daemon
    })
    .await;
    set.shop.patch("a", "3").await;
    let read = |history: &Path| {
        let mut reader = Reader::open(history).unwrap();
        let filter = Filter { gaps: true, ..Filter::default() };
        reader.records(&filter, &Page::oldest(100)).unwrap().records
    };
    while read(&history)
        .iter()
        .filter(|record| serde_json::to_value(record).unwrap()["gap"].is_null())
        .count()
        < 2
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(get(&address, "/readyz").await.0, StatusCode::OK);
    on_thread(move || daemon.end_with("-TERM")).await;
    let records = serde_json::to_value(read(&history)).unwrap();
    let (gaps, changes): (Vec<&Value>, Vec<&Value>) =
        records.as_array().unwrap().iter().partition(|record| record["gap"].is_object());
    assert!(!gaps.is_empty());
    for gap in gaps {
        let reason = gap["gap"]["reason"].as_str().unwrap();
        assert!(reason.starts_with("the disk was full"), "{reason}");
    }
    assert_eq!(changes.iter().map(|change| &change["name"]).collect::<Vec<_>>(), [&json!("a"), &json!("a")]);
    assert!(Command::new("umount").arg(disk.path()).status().unwrap().success());
}
