//! Issue 12: what `watch --history` records, and what a restart adds.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use http::Method;
use kubediff_history::{Filter, KindName, Page, Reader, Record, Scope};
use serde_json::{Value, json};
use testapi::TestApi;

use crate::session::{PATIENCE, Session};
use crate::shop::Shop;

/// Starts recording; ends when it watches.
async fn record(shop: &Shop, file: &Path, what: &'static str) -> Session {
    let (kubeconfig, file) = (shop.kubeconfig().to_owned(), file.to_owned());
    let session = tokio::task::spawn_blocking(move || {
        let arguments = ["--history", file.to_str().unwrap(), "--oneline", what];
        Session::against(&kubeconfig, &arguments)
    });
    session.await.unwrap()
}

async fn see(mut session: Session, texts: &'static [&'static str]) -> (Session, String) {
    let seen = tokio::task::spawn_blocking(move || {
        let line = session.line(texts);
        (session, line)
    });
    seen.await.unwrap()
}

async fn end(session: Session, signal: &'static str) -> Vec<String> {
    let ended = tokio::task::spawn_blocking(move || match signal {
        "-KILL" => session.kill(),
        signal => session.end_with(signal).0,
    });
    ended.await.unwrap()
}

/// The log as text: verb, object, origin, summary; and gaps.
fn log(file: &Path) -> Vec<String> {
    let mut reader = Reader::open(file).unwrap();
    let filter = Filter { gaps: true, ..Filter::default() };
    let records = reader.records(&filter, &Page::oldest(1_000)).unwrap().records;
    let line = |record: &Record| match record {
        Record::Change(change) => {
            let (name, origin) = (&change.object.name, change.origin.as_str());
            let text = format!("{} {name} {origin}", change.verb.as_str());
            // The summary of an object that came or went has its age in it.
            if change.paths.is_empty() { text } else { format!("{text}: {}", change.summary) }
        }
        Record::Scrubbed(scrubbed) => format!("scrubbed: {}", scrubbed.cause),
        Record::Event(event) => format!("event: {}", event.object["reason"]),
        Record::Gap(gap) => format!("gap {}: {}", gap.resource.as_deref().unwrap_or("all"), gap.reason),
    };
    records.iter().map(line).collect()
}

/// The data of the config maps that the history has now.
fn state(file: &Path) -> BTreeMap<String, Value> {
    let mut reader = Reader::open(file).unwrap();
    let scope = Scope {
        kinds: vec![KindName { group: None, resource: "configmaps".to_owned() }],
        ..Scope::default()
    };
    let state = reader.state(&scope, None).unwrap();
    state.iter().map(|it| (it.object.name.clone(), it.body.value()["data"]["k"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_finds_what_changed_meanwhile() {
    for signal in ["-INT", "-KILL"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let shop = Shop::open().await;
        for name in ["kept", "changed", "deleted", "recreated"] {
            shop.create(name, "1").await;
        }
        let session = record(&shop, &file, "cm").await;
        shop.create("new", "1").await;
        shop.patch("changed", "2").await;
        let (session, _) = see(session, &["changed", r#""1" -> "2""#]).await;
        let lines = end(session, signal).await;
        assert!(!lines.iter().any(|line| line.contains("kept")), "{lines:#?}");
        assert_eq!(log(&file), ["added new watch", r#"updated changed watch: data.k "1" -> "2""#]);

        shop.patch("changed", "3").await;
        shop.patch("changed", "4").await;
        shop.delete("deleted").await;
        shop.delete("recreated").await;
        shop.create("recreated", "2").await;
        shop.create("newer", "1").await;
        let session = record(&shop, &file, "cm").await;
        shop.patch("kept", "2").await;
        let (session, _) = see(session, &["kept", r#""1" -> "2""#]).await;
        let lines = end(session, "-INT").await;
        let of_restart = lines.iter().filter(|line| line.contains("while kubediff did not run"));
        assert_eq!(of_restart.count(), 4, "{lines:#?}");

        let mut told = log(&file);
        told.drain(..2);
        told[1..5].sort();
        // `kubediff did not run` ends before the changes that were found after it.
        assert_eq!(
            told,
            [
                "gap all: kubediff did not run",
                "added newer restart",
                "deleted deleted restart",
                r#"recreated recreated restart: data.k "1" -> "2""#,
                r#"updated changed restart: data.k "2" -> "4""#,
                r#"updated kept watch: data.k "1" -> "2""#,
            ]
            .map(str::to_owned)
        );
        let expected = [("kept", "2"), ("changed", "4"), ("recreated", "2"), ("new", "1"), ("newer", "1")];
        let expected = expected.map(|(name, data)| (name.to_owned(), json!(data)));
        assert_eq!(state(&file), expected.into());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_start_finds_nothing_new() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let shop = Shop::open().await;
    shop.create("a", "1").await;
    for _ in 0..3 {
        let session = record(&shop, &file, "cm").await;
        end(session, "-INT").await;
    }
    let gap = "gap all: kubediff did not run";
    assert_eq!(log(&file), [gap, gap]);
}

/// Issue 19, attack 14: a kill within the first list, and a deletion before the next start.
#[tokio::test(flavor = "multi_thread")]
async fn k1_what_a_first_list_has_stored_in_part_and_is_gone_was_deleted() {
    let shop = Shop::open().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    shop.create("ghost", "1").await;
    shop.create("stays", "1").await;
    end(record(&shop, &file, "cm").await, "-TERM").await;
    // As the kill left it: the objects are there, and the position is not.
    let foreign = rusqlite::Connection::open(&file).unwrap();
    foreign.execute("DELETE FROM positions", []).unwrap();
    drop(foreign);
    shop.delete("ghost").await;
    end(record(&shop, &file, "cm").await, "-TERM").await;
    assert!(log(&file).contains(&"deleted ghost restart".to_owned()), "{:#?}", log(&file));
    let names: Vec<String> = state(&file).into_keys().filter(|name| name != "kube-root-ca.crt").collect();
    assert_eq!(names, ["stays"]);
}

/// A watch has the position that it was recorded up to, in the namespace or in all: noise moves it, too.
#[tokio::test(flavor = "multi_thread")]
async fn k1_the_positions_are_of_the_watches() {
    for (what, watch) in [("cm", "configmaps@default"), ("-A", "configmaps@*")] {
        let shop = Shop::open().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let session = record(&shop, &file, what).await;
        shop.create("a", "1").await;
        let noise = json!({"metadata": {"annotations": {"control-plane.alpha.kubernetes.io/leader": "1"}}});
        shop.send(Method::PATCH, "/api/v1/namespaces/default/configmaps/a", noise).await;
        let (session, _) = see(session, &["+ configmaps default/a"]).await;
        end(session, "-INT").await;
        let mut reader = Reader::open(&file).unwrap();
        let state = reader.state(&Scope::default(), None).unwrap();
        let a = state.into_iter().find(|it| it.object.name == "a").unwrap();
        assert!(a.body.value()["metadata"].get("annotations").is_some(), "the noise was not stored");
        let positions = reader.positions().unwrap();
        assert_eq!((&*positions["configmaps"], &positions[watch]), ("0", &a.rv), "{positions:?}");
    }
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The third attack: what comes and goes between a definition and the first list of its objects.
#[tokio::test(flavor = "multi_thread")]
async fn k1_before_the_first_list_of_a_new_resource_there_is_a_gap() {
    let shop = Shop::open().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let session = record(&shop, &file, "-A").await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gates.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "gates", "kind": "Gate"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    let gate = json!({"apiVersion": "example.com/v1", "kind": "Gate", "metadata": {"name": "g"}});
    let mut session = session;
    // The fourth attack: the deletions were recorded twice, and a definition that came again was one that "was not selected".
    for round in 1..=2 {
        shop.post(DEFINITIONS, definition.clone()).await;
        shop.post("/apis/example.com/v1/namespaces/default/gates", gate.clone()).await;
        (session, _) = see(session, &["+ gates.example.com default/g"]).await;
        // The fifth attack: once watched again, it was still "not watched since" the end of the definition.
        let mut question = std::process::Command::new(env!("CARGO_BIN_EXE_kubediff"));
        question.args(["get", "gates", "-A", "--history"]).arg(&file);
        let said = tokio::task::spawn_blocking(move || question.output().unwrap()).await.unwrap();
        let said = String::from_utf8(said.stderr).unwrap();
        assert!(!said.contains("not watched since"), "{said}");
        shop.send(Method::DELETE, &format!("{DEFINITIONS}/gates.example.com"), Value::Null).await;
        let end = Instant::now() + PATIENCE;
        for gone in ["deleted g ", "deleted gates.example.com "] {
            while log(&file).iter().filter(|line| line.starts_with(gone)).count() < round {
                assert!(Instant::now() < end, "{:#?}", log(&file));
                tokio::task::yield_now().await;
            }
        }
    }
    end(session, "-TERM").await;
    let mut log = log(&file);
    // A watch that notices the end of the definition before the next discovery has a gap, too.
    log.retain(|line| line.contains(" g ") || line.contains("the definition is new"));
    let lines: Vec<String> =
        log.iter().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    let once = ["added g", "gap gates.example.com:", "deleted g"];
    assert_eq!(lines, [once, once].concat(), "{log:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_outside_of_the_view_was_not_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let shop = Shop::open().await;
    shop.create("a", "1").await;
    shop.create("b", "1").await;
    let session = record(&shop, &file, "cm").await;
    end(session, "-INT").await;
    shop.delete("b").await;
    // Only one object is looked at, then all again.
    for (what, expected) in [("cm/a", None), ("cm", Some("deleted b restart"))] {
        let session = record(&shop, &file, what).await;
        end(session, "-INT").await;
        let log = log(&file);
        let found = log.iter().find(|line| line.starts_with("deleted")).map(String::as_str);
        assert_eq!(found, expected, "{log:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_value_of_a_secret_is_in_the_file() {
    const PASSWORD: &str = "correct horse battery staple";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let shop = Shop::open().await;
    let secret = |text: &str| json!({"metadata": {"name": "db"}, "stringData": {"password": text}});
    shop.post("/api/v1/namespaces/default/secrets", secret(PASSWORD)).await;
    shop.create("copy", PASSWORD).await;
    let session = record(&shop, &file, "cm,secrets").await;
    end(session, "-INT").await;
    let change = json!({"stringData": {"password": format!("{PASSWORD} 2")}});
    shop.send(Method::PATCH, "/api/v1/namespaces/default/secrets/db", change).await;
    let session = record(&shop, &file, "cm,secrets").await;
    end(session, "-INT").await;
    assert_eq!(log(&file).len(), 2, "{:#?}", log(&file));
    assert!(log(&file)[1].starts_with("updated db restart: data.password <"), "{:#?}", log(&file));
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let leaks = |needle: &str| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
        assert!(!leaks(PASSWORD) && !leaks("Y29ycmVjdCBob3Jz"), "{}", path.display());
    }
    // Versions are packed in the file: what they say is read from it, too.
    let mut reader = Reader::open(&file).unwrap();
    let state = reader.state(&Scope::default(), None).unwrap();
    assert_eq!(state.len(), 2);
    for version in &state {
        let text = version.body.value().to_string();
        assert!(!text.contains("correct horse") && !text.contains("Y29ycmVjdCBob3Jz"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_of_another_cluster_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let shop = Shop::open().await;
    let session = record(&shop, &file, "cm").await;
    end(session, "-INT").await;
    let other = Shop::with(TestApi::builder().seed(2), None).await;
    let kubeconfig = other.kubeconfig().to_owned();
    let refused = tokio::task::spawn_blocking(move || {
        Session::with(&kubeconfig, &["--history", file.to_str().unwrap(), "cm"]).wait()
    });
    let (said, status) = refused.await.unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(
        said[0].contains("is of the cluster with uid") && said[0].contains("choose another file"),
        "{said:?}"
    );
}

/// The third attack: another cluster at the address, while the program runs. The start alone compared the uid.
#[tokio::test(flavor = "multi_thread")]
async fn k1_another_cluster_at_the_same_address_ends_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let shop = Shop::open().await;
    let session = record(&shop, &file, "cm").await;
    let port = shop.server.port();
    shop.server.stop().await;
    let other = Shop::with(TestApi::builder().seed(2).port(port), None).await;
    let (said, status) = tokio::task::spawn_blocking(move || session.wait()).await.unwrap();
    assert_eq!(status.code(), Some(3), "{said:?}");
    assert!(said.iter().any(|line| line.contains("start again with another history")), "{said:?}");
    drop(other);
}

/// The third attack: a path that is hidden no more was a change of the next writer.
#[tokio::test(flavor = "multi_thread")]
async fn k4_what_is_hidden_no_more_is_no_change_of_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let shop = Shop::open().await;
    let data = |n: u32| json!({"k": "plainwords", "url": "pg://plainwords@db", "n": n.to_string()});
    let maps = "/api/v1/namespaces/default/configmaps";
    shop.post(maps, json!({"metadata": {"name": "a"}, "data": data(1)})).await;
    for (at, hide) in [(2, "data.k"), (3, "data.url"), (4, "data.nothing")] {
        let (kubeconfig, place) = (shop.kubeconfig().to_owned(), file.clone());
        let session = tokio::task::spawn_blocking(move || {
            let arguments = ["--history", place.to_str().unwrap(), "--hide", hide, "--oneline", "cm"];
            Session::against(&kubeconfig, &arguments)
        });
        end(session.await.unwrap(), "-TERM").await;
        shop.send(Method::PATCH, &format!("{maps}/a"), json!({"data": data(at)})).await;
    }
    end(record(&shop, &file, "cm").await, "-TERM").await;
    let changes: Vec<String> = log(&file).into_iter().filter(|line| line.contains(" a ")).collect();
    let expected = [2, 3, 4].map(|n| format!(r#"updated a restart: data.n "{}" -> "{n}""#, n - 1));
    assert_eq!(changes, expected);
}
