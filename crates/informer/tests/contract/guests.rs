//! F9: user code is a guest. It delays its own informer, and nothing else.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use informer::{Informer, Keep, Object, Status, Transform};
use serde_json::json;

use super::server::Server;
use super::support::{LONG, builder, cached, content, factory, nodes, pods, soon, started, until};

/// Then a gate opens by itself: what waits for user code, against the promise, must fail a test and not hang it.
const PATIENCE: Duration = Duration::from_secs(60);

/// User code waits here until the test lets it through.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar, AtomicUsize)>);

impl Gate {
    pub(crate) fn pass(&self) {
        let (is_open, opened, waiting) = &*self.0;
        waiting.fetch_add(1, Ordering::SeqCst);
        let waited = opened.wait_timeout_while(is_open.lock().unwrap(), PATIENCE, |is_open| !*is_open);
        let (mut is_open, waited) = waited.unwrap();
        if waited.timed_out() {
            *is_open = true;
            opened.notify_all();
        }
        drop(is_open);
        waiting.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub(crate) fn is_waited_at(&self) -> bool {
        self.0.2.load(Ordering::SeqCst) > 0
    }
}

/// Opens the gate when the test ends, also when it fails: a thread that waits there would hang it.
pub(crate) struct Opened(pub(crate) Gate);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.open();
    }
}

fn server() -> Server {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.put("nodes", "one", json!({}));
    server
}

/// Others list, watch and notify while the pods' user code stands at the gate.
async fn others_go_on(server: &Server, nodes: &Informer<Object>, gate: &Gate) {
    until("user code runs", || gate.is_waited_at()).await;
    nodes.wait_for_sync(LONG).await.unwrap();
    let mut changes = nodes.changes().unwrap();
    server.put("nodes", "two", json!({}));
    until("the other informer follows", || nodes.len() == 2).await;
    assert!(soon(changes.recv()).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn f9_an_index_function_that_blocks_delays_its_own_informer_only() {
    let (server, gate) = (server(), Gate::default());
    let _opened = Opened(gate.clone());
    let factory = factory(&server);
    let pods = factory.informer_of::<Object>(pods());
    let nodes = factory.informer_of::<Object>(nodes());
    let at = gate.clone();
    let index = pods.add_index(move |pod| {
        at.pass();
        Some(pod.key().to_string())
    });
    factory.start();
    others_go_on(&server, &nodes, &gate).await;
    assert!(!pods.is_synced() && pods.is_empty(), "nobody sees a content without its index");
    gate.open();
    pods.wait_for_sync(LONG).await.unwrap();
    assert_eq!(index.get("shop/a").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn f9_a_transform_that_blocks_delays_its_own_informer_only() {
    let (server, gate) = (server(), Gate::default());
    let _opened = Opened(gate.clone());
    let factory = factory(&server);
    let pods = factory.informer_of::<Object>(pods());
    let nodes = factory.informer_of::<Object>(nodes());
    let at = gate.clone();
    let waits = Transform::json(move |_| {
        at.pass();
        Ok(Keep::Yes)
    });
    pods.set_transform(waits).unwrap();
    factory.start();
    others_go_on(&server, &nodes, &gate).await;
    gate.open();
    pods.wait_for_sync(LONG).await.unwrap();
    assert_eq!(cached(&pods), content(&server));
}

#[tokio::test(start_paused = true)]
async fn f9_a_function_that_tweaks_list_options_and_blocks_delays_its_own_informer_only() {
    let (server, gate) = (server(), Gate::default());
    let _opened = Opened(gate.clone());
    let at = gate.clone();
    let tweaks = builder(&server).tweak_list_options(move |resource, _| {
        if resource.plural == "pods" {
            at.pass();
        }
    });
    let factory = tweaks.build().unwrap();
    let pods = factory.informer_of::<Object>(pods());
    let nodes = factory.informer_of::<Object>(nodes());
    factory.start();
    others_go_on(&server, &nodes, &gate).await;
    gate.open();
    pods.wait_for_sync(LONG).await.unwrap();
}

/// An attempt that times out starts no second call beside one that has not returned. Each would hold a thread.
#[tokio::test(start_paused = true)]
async fn f9_a_function_that_tweaks_list_options_runs_once_at_a_time_and_the_status_names_it() {
    let (server, gate) = (server(), Gate::default());
    let _opened = Opened(gate.clone());
    let (at, calls) = (gate.clone(), Arc::<AtomicUsize>::default());
    let called = calls.clone();
    let tweaks = builder(&server).tweak_list_options(move |_, _| {
        called.fetch_add(1, Ordering::SeqCst);
        at.pass();
    });
    let factory = tweaks.build().unwrap().in_namespaces(["back", "front", "shop"]);
    let pods = factory.informer_of::<Object>(pods());
    factory.start();
    for attempt in 0..10 {
        until("an attempt has failed", || match pods.status() {
            Status::Retrying { cause, .. } => cause.to_string().contains("tweaks list options"),
            _ => false,
        })
        .await;
        assert_eq!(calls.load(Ordering::SeqCst), 1, "after {attempt} attempts");
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    gate.open();
    until("the informer is synced", || pods.is_synced()).await;
    assert_eq!(cached(&pods), content(&server));
}

#[tokio::test(start_paused = true)]
async fn f9_user_code_may_call_what_does_not_wait_for_its_informer() {
    let server = server();
    server.put("pods", "front/b", json!({}));
    let factory = factory(&server).in_namespaces(["shop"]);
    let pods = factory.informer_of::<Object>(pods());
    let (called, inside) = (Arc::new(AtomicBool::new(false)), pods.clone());
    let first = called.clone();
    let index = pods.add_index(move |pod| {
        if !first.swap(true, Ordering::SeqCst) {
            assert!(inside.add_namespace("front"));
            // Only its waiting would wait for this function.
            drop(inside.remove_namespace("shop"));
            inside.retry_now();
            let _ =
                (inside.len(), inside.status(), inside.metrics(), inside.snapshot(), inside.quarantined());
            drop(inside.changes().unwrap());
            drop(inside.add_index(|pod| Some(pod.key().to_string())));
        }
        Some(pod.key().to_string())
    });
    factory.start();
    pods.wait_for_sync(LONG).await.unwrap();
    until("the other namespace is there", || index.get("front/b").len() == 1).await;
    assert!(called.load(Ordering::SeqCst));
}

/// More events than may wait for user code.
const MANY: usize = 5_000;

#[tokio::test(start_paused = true)]
async fn f9_a_stalled_informer_gives_its_connection_back_and_resumes_without_a_gap() {
    let (server, gate) = (server(), Gate::default());
    let _opened = Opened(gate.clone());
    let factory = factory(&server);
    let informer = started(&factory).await;
    assert_eq!(server.open(), 1);
    let (at, armed) = (gate.clone(), Arc::new(AtomicBool::new(false)));
    let is_armed = armed.clone();
    let index = informer.add_index(move |pod| {
        if is_armed.load(Ordering::SeqCst) {
            at.pass();
        }
        Some(pod.key().to_string())
    });
    armed.store(true, Ordering::SeqCst);
    for number in 0..MANY {
        server.put("pods", &format!("shop/p{number}"), json!({}));
    }
    until("the informer is stalled", || informer.status() == Status::Stalled).await;
    assert_eq!(server.open(), 0, "nobody reads the watch, so nobody holds it");
    assert!(informer.len() < MANY);
    let lists = server.count("LIST");
    tokio::time::advance(Duration::from_secs(3600)).await;
    gate.open();
    until("everything is there", || informer.len() == MANY + 1).await;
    assert_eq!((server.count("LIST"), index.get("shop/p4999").len()), (lists, 1), "the watch went on");
}
