//! D6: what a transform does, and what it cannot spoil. And F8: when it can be set.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use informer::{Informer, Keep, Object, Report, SharedInformerFactory, StreamingListChoice, Transform};
use serde_json::{Value, json};

use super::server::Server;
use super::support::{Recorder, builder, caught_up, pods, settle, soon, started, until};

/// Counts its calls per version, and does what the object says.
fn counting() -> (Transform, Arc<Mutex<Vec<String>>>) {
    let calls = Arc::<Mutex<Vec<String>>>::default();
    let seen = calls.clone();
    let transform = Transform::json(move |object| {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let version = metadata["resourceVersion"].as_str().unwrap_or_default();
        seen.lock().unwrap().push(format!("{name}@{version}"));
        let what = object["do"].as_str().unwrap_or_default().to_owned();
        object["seen"] = json!(true);
        object["secret"] = Value::Null;
        match what.as_str() {
            "fail" => Err("as the test wants it".into()),
            "panic" => panic!("as the test wants it"),
            "drop" => Ok(Keep::No),
            _ => Ok(Keep::Yes),
        }
    });
    (transform, calls)
}

fn factory(server: &Server, transform: Transform, streaming: StreamingListChoice) -> SharedInformerFactory {
    builder(server)
        .transform(transform)
        .reflector(|reflector| reflector.streaming_list = streaming)
        .build()
        .unwrap()
}

fn field(object: &Object, name: &str) -> Value {
    object.decode::<Value>().unwrap()[name].clone()
}

#[tokio::test(start_paused = true)]
async fn d6_a_transform_runs_once_per_version_and_before_anybody_sees_the_object() {
    for streaming in [StreamingListChoice::Never, StreamingListChoice::Always] {
        let server = Server::new();
        server.put("pods", "shop/a", json!({ "secret": "x" }));
        let (transform, calls) = counting();
        let factory = factory(&server, transform, streaming);
        let informer = factory.informer_of::<Object>(pods());
        let seen = Arc::new(AtomicUsize::new(0));
        let counted = seen.clone();
        let index = informer.add_index(move |object| {
            assert_eq!((field(object, "seen"), field(object, "secret")), (json!(true), Value::Null));
            counted.fetch_add(1, Ordering::SeqCst);
            [0]
        });
        let informer = started(&factory).await;
        server.put("pods", "shop/b", json!({}));
        server.put("pods", "shop/a", json!({ "secret": "y" }));
        caught_up(&server, &informer).await;
        // A re-list does not transform unchanged objects again.
        let lists = server.log().len();
        server.expire("pods");
        until("it was listed again", || server.log().len() > lists).await;
        settle().await;
        assert_eq!(*calls.lock().unwrap(), ["a@101", "b@102", "a@103"], "{streaming:?}");
        assert_eq!((index.get(&0).len(), informer.len()), (2, 2));
        assert!(seen.load(Ordering::SeqCst) >= 3);
    }
}

#[tokio::test(start_paused = true)]
async fn d6_w8_a_failing_transform_concerns_its_object_alone_and_is_reported() {
    for streaming in [StreamingListChoice::Never, StreamingListChoice::Always] {
        let server = Server::new();
        for (key, what) in [("shop/a", ""), ("shop/fails", "fail"), ("shop/panics", "panic")] {
            server.put("pods", key, json!({ "do": what }));
        }
        let factory = factory(&server, counting().0, streaming);
        let informer = factory.informer_of::<Object>(pods());
        let mut reports = informer.reports();
        let informer = started(&factory).await;
        assert_eq!(informer.len(), 1);
        let mut reported = Vec::new();
        while let Some(report) = reports.try_recv() {
            if let Report::Quarantined { key, reason } = report {
                assert!(reason.contains("transform"), "{reason}");
                reported.push(key.unwrap().to_string());
            }
        }
        assert_eq!(reported, ["shop/fails", "shop/panics"], "{streaming:?}");
        // A version that it likes ends the quarantine; one that it does not like leaves the one before.
        server.put("pods", "shop/fails", json!({}));
        let before = server.put("pods", "shop/a", json!({}));
        server.put("pods", "shop/a", json!({ "do": "fail" }));
        server.put("pods", "shop/b", json!({}));
        until("the last one is there", || informer.lister().get("shop/b").unwrap().is_some()).await;
        assert_eq!(informer.len(), 3);
        let kept = informer.lister().get("shop/a").unwrap().unwrap();
        assert_eq!(kept.resource_version().to_string(), before.to_string());
    }
}

fn quarantined(informer: &Informer<Object>) -> Vec<String> {
    informer
        .quarantined()
        .iter()
        .map(|quarantined| format!("{}: {}", quarantined.key, quarantined.reason))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn w8_a_key_is_in_quarantine_until_its_next_good_version() {
    for streaming in [StreamingListChoice::Never, StreamingListChoice::Always] {
        let server = Server::new();
        for (key, what) in [("shop/a", ""), ("shop/b", "fail"), ("shop/c", "fail"), ("shop/d", "panic")] {
            server.put("pods", key, json!({ "do": what }));
        }
        let factory = factory(&server, counting().0, streaming);
        let informer = started(&factory).await;
        let [b, c, d] = ["shop/b", "shop/c", "shop/d"].map(|key| {
            let why = if key == "shop/d" {
                "the transform panicked"
            } else {
                "the transform failed: as the test wants it"
            };
            format!("{key}: {why}")
        });
        assert_eq!(quarantined(&informer), [b.clone(), c.clone(), d.clone()], "{streaming:?}");
        assert_eq!(informer.metrics().quarantined, 3);

        // A good version, and a deletion whose last state is no better, end it.
        server.put("pods", "shop/b", json!({}));
        server.delete("pods", "shop/c");
        server.put("pods", "shop/a", json!({ "do": "fail" }));
        let a = "shop/a: the transform failed: as the test wants it".to_owned();
        until("it is as it is", || quarantined(&informer) == [a.clone(), d.clone()]).await;
        assert!(informer.lister().get("shop/a").unwrap().is_some(), "the last good version");

        // So does a list without it; one that finds it as it was does not.
        server.break_watches("pods");
        server.delete("pods", "shop/d");
        server.put("pods", "shop/e", json!({}));
        server.expire("pods");
        until("it was listed again", || informer.lister().get("shop/e").unwrap().is_some()).await;
        // The list is applied before its objects leave the quarantine, on another thread.
        until("the list has released it", || quarantined(&informer) == [a.clone()]).await;
        server.delete("pods", "shop/a");
        until("it is gone", || informer.lister().get("shop/a").unwrap().is_none()).await;
        assert_eq!(quarantined(&informer), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn w8_the_quarantine_of_a_namespace_ends_with_it() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "do": "fail" }));
    server.put("pods", "front/b", json!({ "do": "fail" }));
    let factory = factory(&server, counting().0, StreamingListChoice::Never).in_namespaces(["front", "shop"]);
    let informer = started(&factory).await;
    assert_eq!(quarantined(&informer).len(), 2);
    assert!(informer.remove_namespace("shop").await);
    assert_eq!(quarantined(&informer), ["front/b: the transform failed: as the test wants it"]);
}

#[tokio::test(start_paused = true)]
async fn d6_a_transform_may_leave_an_object_out() {
    for streaming in [StreamingListChoice::Never, StreamingListChoice::Always] {
        let server = Server::new();
        server.put("pods", "shop/a", json!({}));
        server.put("pods", "shop/b", json!({ "do": "drop" }));
        let factory = factory(&server, counting().0, streaming);
        let informer = started(&factory).await;
        let (recorder, log) = Recorder::new();
        let registration = informer.add_handler(recorder).unwrap();
        assert!(soon(registration.synced()).await);
        assert_eq!(log.take(), ["add shop/a@101 initial", "synced"]);
        // It goes as if it had left the selector; what is told last is what was known: the rest was not transformed.
        server.put("pods", "shop/a", json!({ "do": "drop", "secret": "x" }));
        log.until("delete shop/a@101 or deselected").await;
        server.put("pods", "shop/a", json!({}));
        log.until("add shop/a@104").await;
        server.delete("pods", "shop/b");
        server.put("pods", "shop/c", json!({}));
        log.until("add shop/c@106").await;
        assert_eq!(log.len(), 3, "{:?}", log.lines());
        // A re-list finds the same.
        server.break_watches("pods");
        server.put("pods", "shop/c", json!({ "do": "drop" }));
        server.expire("pods");
        until("it is gone", || informer.len() == 1).await;
        log.until("delete shop/c@106 or deselected").await;
    }
}

#[tokio::test(start_paused = true)]
async fn d6_a_deletion_is_not_lost_though_the_transform_fails_for_it() {
    let server = Server::new();
    for key in ["shop/a", "shop/b"] {
        server.put("pods", key, json!({}));
    }
    let fails = Transform::json(|object| {
        let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse()?;
        if version > 102 { Err("as the test wants it".into()) } else { Ok(Keep::Yes) }
    });
    let factory = factory(&server, fails, StreamingListChoice::Never);
    let informer = started(&factory).await;
    let mut reports = informer.reports();
    let (recorder, log) = Recorder::new();
    let _registration = informer.add_handler(recorder).unwrap();
    server.delete("pods", "shop/a");
    log.until("delete shop/a@101").await;
    assert_eq!(informer.len(), 1);
    assert!(matches!(reports.try_recv(), Some(Report::Quarantined { .. })));
}

#[tokio::test(start_paused = true)]
async fn w8_an_event_of_another_kind_deletes_nothing() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "kind": "Pod" }));
    let factory = builder(&server).build().unwrap();
    let informer = started(&factory).await;
    let mut reports = informer.reports();
    let other = json!({ "kind": "Service", "metadata": { "name": "a", "namespace": "shop", "resourceVersion": "900" } });
    for kind in ["DELETED", "MODIFIED"] {
        server.send_line("pods", &format!("{}\n", json!({ "type": kind, "object": other })));
    }
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &informer).await;
    for _ in 0..2 {
        assert!(matches!(reports.try_recv(), Some(Report::Quarantined { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn f8_a_transform_is_set_before_the_start_or_not_at_all() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    let factory = builder(&server).build().unwrap();
    let informer = factory.informer_of::<Object>(pods());
    let (transform, calls) = counting();
    informer.set_transform(transform).unwrap();
    started(&factory).await;
    assert_eq!(*calls.lock().unwrap(), ["a@101"]);
    let error = informer.set_transform(Transform::drop_managed_fields()).unwrap_err();
    assert!(error.is_already_started());
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &informer).await;
    assert_eq!(*calls.lock().unwrap(), ["a@101", "b@102"]);
}
