//! Reads of kube-rs' store without a server. It has no indexes.

#[path = "../../shared/slowest.rs"]
mod slowest;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::core::{Expression, Selector};
use kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use kube::runtime::watcher::Event;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Failure;
use crate::mean::mean;
use slowest::Slowest;

#[derive(Deserialize)]
pub(crate) struct Reads {
    seconds: f64,
    objects: usize,
}

pub(crate) fn run(wish: Reads) -> Result<Value, Failure> {
    let limit = Duration::try_from_secs_f64(wish.seconds)?;
    let mut pods = (0..wish.objects).map(small_pod).collect::<Result<Vec<_>, _>>()?;
    if pods.is_empty() {
        return Err("reads of no objects".into());
    }
    let keys: Vec<_> = pods.iter().map(ObjectRef::from_obj).collect();
    let mut writer = filled(&pods);
    let store = writer.as_reader();
    let app_seven = Selector::from(Expression::Equal("app".to_owned(), "app-7".to_owned()));
    check(&store, &keys, &app_seven)?;

    // Objects come from a stream that keeps none of them, so the store makes copies.
    let mut events: Vec<_> = pods.drain(..).map(Event::Apply).collect();
    let mut random = fastrand::Rng::with_seed(1);
    // Adding to an empty store, until it is full; then the next store is filled.
    let (mut filling, mut next) = (Writer::default(), 0);
    let add = mean(limit, || {
        if next == events.len() {
            (filling, next) = (Writer::default(), 0);
        }
        filling.apply_watcher_event(&events[next]);
        next += 1;
    });
    drop(filling);
    let get = mean(limit, || drop(black_box(store.get(&keys[random.usize(..keys.len())]))));
    let list = mean(limit, || drop(black_box(store.state())));
    let selector = mean(limit, || drop(black_box(store.state_filter_selector(&app_seven))));
    let mut version = wish.objects;
    let mut update_one = || {
        version += 1;
        let event = &mut events[random.usize(..keys.len())];
        if let Event::Apply(pod) = event {
            pod.metadata.resource_version = Some(version.to_string());
        }
        writer.apply_watcher_event(event);
    };
    let update = mean(limit, &mut update_one);

    let (slowest, updates) = slowest_get(3 * limit, &store, &keys, update_one);
    check(&store, &keys, &app_seven)?;
    Ok(json!({
        "event": "reads",
        "nanoseconds": {"add": add, "get": get, "list": list, "selector": selector, "update": update},
        "slowestGetNanoseconds": u64::try_from(slowest.get.as_nanos())?,
        "slowestOwnGetNanoseconds": u64::try_from(slowest.own_get.as_nanos())?,
        "updatesMeanwhile": updates,
    }))
}

fn filled(pods: &[Pod]) -> Writer<Pod> {
    let mut writer = Writer::default();
    writer.apply_watcher_event(&Event::Init);
    for pod in pods {
        writer.apply_watcher_event(&Event::InitApply(pod.clone()));
    }
    writer.apply_watcher_event(&Event::InitDone);
    writer
}

fn small_pod(i: usize) -> serde_json::Result<Pod> {
    serde_json::from_value(json!({
        "metadata": {
            "namespace": format!("ns-{}", i % 20),
            "name": format!("pod-{i}"),
            "uid": format!("00000000-0000-4000-8000-{i:012}"),
            "resourceVersion": (i + 1).to_string(),
            "labels": {"app": format!("app-{}", i / 100), "tier": format!("tier-{}", i % 3)},
        },
        "spec": {"nodeName": format!("node-{}", i / 100), "containers": [{"name": "main", "image": "web:1"}]},
        "status": {"podIP": format!("10.{}.{}.{}", i / 65536, i / 256 % 256, i % 256), "phase": "Running"},
    }))
}

/// Compares the results of the measured operations with what was put into the store.
fn check(store: &Store<Pod>, keys: &[ObjectRef<Pod>], app_seven: &Selector) -> Result<(), Failure> {
    let exists = keys.iter().all(|key| store.get(key).is_some());
    let listed = store.state().len();
    let selected = store.state_filter_selector(app_seven).len();
    if !exists || listed != keys.len() || selected != keys.len().saturating_sub(700).min(100) {
        return Err(format!("wrong answers: get {exists}, list {listed}, selector {selected}").into());
    }
    Ok(())
}

/// Two threads get while one updates and one lists. Returns the slowest get and the number of updates.
fn slowest_get(
    limit: Duration,
    store: &Store<Pod>,
    keys: &[ObjectRef<Pod>],
    mut update: impl FnMut() + Send,
) -> (Slowest, usize) {
    let is_over = AtomicBool::new(false);
    let goes_on = || !is_over.load(Ordering::Relaxed);
    let read = |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut slowest = Slowest::new();
        while goes_on() {
            let key = &keys[random.usize(..keys.len())];
            // The object is dropped after the time was taken.
            drop(slowest.time(|| black_box(store.get(key))));
        }
        slowest
    };
    thread::scope(|scope| {
        let readers = [2, 3].map(|seed| scope.spawn(move || read(seed)));
        scope.spawn(|| {
            while goes_on() {
                drop(black_box(store.state()));
            }
        });
        let writer = scope.spawn(|| {
            let mut updates = 0;
            while goes_on() {
                update();
                updates += 1;
            }
            updates
        });
        thread::sleep(limit);
        is_over.store(true, Ordering::Relaxed);
        let slowest = readers.into_iter().filter_map(|it| it.join().ok()).reduce(Slowest::or);
        (slowest.unwrap_or_else(Slowest::new), writer.join().unwrap_or_default())
    })
}
