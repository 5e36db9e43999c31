//! Events, of a controller and of a recorder alone.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use informer::{ObjectKey, ObjectRef, ResourceType};
use informer_controller::recorder::{Event, Recorder, Stats};
use informer_controller::{Context, Controller, Host, Outcome};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use serde_json::{Value, json};
use testapi::faults::Fault;
use testapi::{Gvr, Verb, sample};
use tokio::time::Instant;

use crate::scripted::{self, Asked, Log};
use crate::support::{Stop, World, map};

fn events() -> Gvr {
    Gvr::new("events.k8s.io/v1", "events")
}

fn a_map(name: &str) -> ObjectRef<ConfigMap> {
    let key = ObjectKey::new(Some("shop"), name).unwrap();
    ObjectRef::new(ResourceType::of::<ConfigMap>(), key)
}

/// A server that accepts every event.
fn accepting() -> (Recorder, Log) {
    let (client, log) = scripted::client(|asked| Some((200, asked.body.clone())));
    (Recorder::builder("test").instance("test-1").host(Host::default().with_seed(7)).start(client), log)
}

/// Lets time pass, which is paused: this takes none.
async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

fn asked(log: &Log) -> Vec<Asked> {
    log.lock().unwrap().clone()
}

#[tokio::test]
async fn the_events_of_a_controller_are_sent_before_it_ends() {
    let world = World::new([sample::events(), map("shop", "a")]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let (stop, stopped) = Stop::pair();
    let (reconciled, mut done) = tokio::sync::mpsc::unbounded_channel();
    let running = tokio::spawn(Controller::new("copier", &informer).until(stopped).run(
        world.client.clone(),
        move |context: Context<ConfigMap>| {
            let reconciled = reconciled.clone();
            async move {
                if let Some(map) = context.object() {
                    context.event(map, Event::normal("Copied", "Copy", "copied"));
                    context.event(map, Event::normal("Copied", "Copy", "copied"));
                    context.event(map, Event::warning("Late", "Copy", "late").related(&a_map("other")));
                }
                let _ = reconciled.send(());
                Ok(Outcome::Done)
            }
        },
    ));
    done.recv().await.unwrap();
    stop.and_wait(running).await.unwrap();

    let mut written = world.server.api().list(&events(), Some("shop")).unwrap();
    written.sort_by_key(|event| event["reason"].to_string());
    let [copied, late] = &written[..] else { panic!("{written:?}") };
    let object = &world.server.api().list(&crate::support::maps(), Some("shop")).unwrap()[0];
    assert_eq!(
        copied["regarding"],
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a",
            "uid": object["metadata"]["uid"],
        })
    );
    let said = |event: &Value| {
        ["type", "reason", "action", "note", "reportingController"]
            .map(|field| event[field].as_str().unwrap().to_owned())
    };
    assert_eq!(said(copied), ["Normal", "Copied", "Copy", "copied", "copier"]);
    assert_eq!(said(late), ["Warning", "Late", "Copy", "late", "copier"]);
    assert!(copied["reportingInstance"].as_str().unwrap().starts_with("copier-"));
    assert_eq!(copied["series"]["count"], 2);
    assert_eq!((&late["series"], &late["related"]["name"]), (&Value::Null, &json!("other")));
    assert!(copied["metadata"]["name"].as_str().unwrap().starts_with("a."));
}

#[tokio::test]
async fn a_server_that_does_not_answer_events_delays_no_reconciliation_and_no_end() {
    let world = World::new([sample::events(), map("shop", "a"), map("shop", "b")]).await;
    let _hangs = world.server.faults().on(Verb::Create.of("events.events.k8s.io")).always(Fault::Hang);
    let informer = world.factory.informer::<ConfigMap>();
    let (reconciled, mut done) = tokio::sync::mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("copier", &informer).grace(Duration::from_millis(50)).until(stopped);
    let running = tokio::spawn(controller.run(world.client.clone(), move |context: Context<ConfigMap>| {
        let reconciled = reconciled.clone();
        async move {
            if let Some(map) = context.object() {
                context.event(map, Event::normal("Copied", "Copy", "copied"));
            }
            let _ = reconciled.send(());
            Ok(Outcome::Done)
        }
    }));
    done.recv().await.unwrap();
    done.recv().await.unwrap();
    world.server.requests().came(&Verb::Create.of("events.events.k8s.io"), 1).await;
    stop.and_wait(running).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_series_is_one_event_whose_last_count_comes_when_it_has_ended() {
    let (recorder, log) = accepting();
    for _ in 0..5 {
        recorder.record(&a_map("a"), Event::normal("A", "B", "x"));
        pass(Duration::from_secs(60)).await;
    }
    pass(Duration::from_secs(6 * 60)).await;
    let asked = asked(&log);
    let seen: Vec<_> =
        asked.iter().map(|one| (one.method.as_str(), one.body["series"]["count"].as_u64())).collect();
    assert_eq!(seen, [("POST", None), ("PATCH", Some(2)), ("PATCH", Some(5))]);
    let name = asked[0].body["metadata"]["name"].as_str().unwrap();
    let collection = "/apis/events.k8s.io/v1/namespaces/shop/events";
    assert_eq!(asked[0].path, collection);
    assert_eq!(asked[2].path, format!("{collection}/{name}"));
    assert_eq!(recorder.stats(), Stats { written: 3, ..Stats::default() });
}

#[tokio::test(start_paused = true)]
async fn an_event_about_an_object_of_the_cluster_is_in_the_namespace_default() {
    let (recorder, log) = accepting();
    let node = ObjectRef::<Node>::new(ResourceType::of::<Node>(), ObjectKey::new(None, "one").unwrap());
    recorder.record(&node, Event::normal("A", "B", "x"));
    assert!(recorder.flush(Duration::from_secs(1)).await);
    assert_eq!(asked(&log)[0].path, "/apis/events.k8s.io/v1/namespaces/default/events");
    assert_eq!(asked(&log)[0].body["regarding"]["namespace"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_server_is_asked_again_and_gets_each_event_once() {
    let times = AtomicU32::new(0);
    let (client, log) = scripted::client(move |asked| {
        let refuses = times.fetch_add(1, Ordering::SeqCst) < 3;
        Some(if refuses {
            (503, scripted::status(503, "ServiceUnavailable"))
        } else {
            (201, asked.body.clone())
        })
    });
    let recorder = Recorder::builder("test").host(Host::default().with_seed(7)).start(client);
    let start = Instant::now();
    recorder.record(&a_map("a"), Event::normal("A", "B", "x"));
    recorder.record(&a_map("b"), Event::normal("A", "B", "x"));
    while recorder.stats().written < 2 {
        pass(Duration::from_secs(1)).await;
    }
    let waited = start.elapsed().as_secs_f64();
    assert!((30.0..=39.0).contains(&waited), "{waited}");
    let names: Vec<_> = asked(&log).iter().map(|one| one.body["metadata"]["name"].to_string()).collect();
    assert_eq!(names.len(), 5);
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn after_twelve_attempts_an_event_is_lost_and_counted() {
    let (client, log) = scripted::client(|_| Some((503, scripted::status(503, "ServiceUnavailable"))));
    let recorder = Recorder::start(client, "test");
    recorder.record(&a_map("a"), Event::normal("A", "B", "x"));
    pass(Duration::from_secs(11 * 13)).await;
    assert_eq!(recorder.stats(), Stats { lost: 1, ..Stats::default() });
    assert_eq!(asked(&log).len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_is_not_sent_again() {
    let (client, log) = scripted::client(|_| Some((403, scripted::status(403, "Forbidden"))));
    let recorder = Recorder::start(client, "test");
    recorder.record(&a_map("a"), Event::normal("A", "B", "x"));
    assert!(recorder.flush(Duration::from_secs(1)).await);
    pass(Duration::from_secs(60)).await;
    assert_eq!((recorder.stats().refused, asked(&log).len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_lost_and_counted_and_never_blocks() {
    let (client, _) = scripted::client(|_| None);
    let recorder = Recorder::start(client, "test");
    for n in 0..5000 {
        // Without an await: the background task does not run meanwhile.
        recorder.record(&a_map(&format!("a{n}")), Event::normal("A", "B", "x"));
    }
    assert_eq!(recorder.stats().lost, 4000);
    assert!(!recorder.flush(Duration::from_secs(1)).await, "the server does not answer");
}

#[tokio::test(start_paused = true)]
async fn the_spam_filter_counts_what_it_does_not_let_pass() {
    let (recorder, log) = accepting();
    for n in 0..30 {
        recorder.record(&a_map("a"), Event::normal("A", "B", n.to_string()));
    }
    assert!(recorder.flush(Duration::from_secs(1)).await);
    assert_eq!(recorder.stats(), Stats { written: 25, filtered: 5, ..Stats::default() });
    assert_eq!(asked(&log).len(), 25);
}

#[tokio::test(start_paused = true)]
async fn what_waits_when_the_last_recorder_is_dropped_is_sent() {
    let (recorder, log) = accepting();
    for n in 0..3 {
        recorder.record(&a_map("a"), Event::normal("A", "B", n.to_string()));
    }
    drop(recorder);
    pass(Duration::from_secs(1)).await;
    assert_eq!(asked(&log).len(), 3);
}
