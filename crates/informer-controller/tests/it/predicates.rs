//! Which changes the predicates of `changed` pass.

use std::pin::pin;
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt};
use informer::{Change, View};
use informer_controller::{Context, Controller, Outcome, Watched, changed};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use testapi::{Gvr, Patch};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::support::{LONG, map, maps};
use crate::wireless::{Wireless, pass};

/// Longer than a whole test but for its resync.
const RESYNC: Duration = Duration::from_secs(3_600);

fn replica_sets() -> Gvr {
    Gvr::new("apps/v1", "replicasets")
}

fn replica_set() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "namespace": "shop", "name": "a" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "d" }] },
            },
        },
    })
}

fn annotation(replica_set: &ReplicaSet) -> Option<String> {
    replica_set.metadata.annotations.as_ref()?.get("seen").cloned()
}

/// The predicate that passes a change of a replica set.
fn passes(change: &Change<ReplicaSet>) -> Vec<&'static str> {
    let field = changed::field(annotation);
    let either = changed::either(changed::generation, changed::labels);
    let all: [(&str, bool); 5] = [
        ("generation", changed::generation(change)),
        ("version", changed::version(change)),
        ("labels", changed::labels(change)),
        ("field", field(change)),
        ("either", either(change)),
    ];
    all.into_iter().filter_map(|(name, passes)| passes.then_some(name)).collect()
}

const ALL: [&str; 5] = ["generation", "version", "labels", "field", "either"];

/// The next change of an object.
async fn next<T: View>(changes: &mut (impl Stream<Item = Change<T>> + Unpin)) -> Change<T> {
    loop {
        let change = tokio::time::timeout(2 * RESYNC, changes.next()).await.expect("a change").unwrap();
        if change.key().is_some() {
            return change;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_predicate_passes_the_changes_that_it_is_named_after() {
    let world = Wireless::with(&replica_sets(), [replica_set()]);
    let informer = world.factory().informer::<ReplicaSet>();
    let mut changes = pin!(informer.subscribe().resync(RESYNC).changes().unwrap());
    informer.start();
    assert_eq!(passes(&next(&mut changes).await), ALL, "the initial list");

    let merge = |patch: Value| {
        move |world: &Wireless| {
            world.0.patch(&replica_sets(), "shop", "a", &Patch::Merge(patch)).unwrap();
        }
    };
    let status = |world: &Wireless| {
        let mut object = world.0.get(&replica_sets(), "shop", "a").unwrap();
        object["status"] = json!({ "replicas": 1 });
        world.0.update_status(&replica_sets(), object).unwrap();
    };
    let recreate = |world: &Wireless| {
        let mut object = world.0.get(&replica_sets(), "shop", "a").unwrap();
        world.0.delete(&replica_sets(), "shop", "a").unwrap();
        // As it was, but for its uid.
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            object["metadata"].as_object_mut().unwrap().remove(field);
        }
        world.0.create(&replica_sets(), object).unwrap();
    };
    let delete = |world: &Wireless| drop(world.0.delete(&replica_sets(), "shop", "a").unwrap());
    type Write<'a> = Box<dyn FnOnce(&Wireless) + 'a>;
    let table: [(&str, Write<'_>, &[&str]); 8] = [
        (
            "the spec",
            Box::new(merge(json!({ "spec": { "replicas": 2 } }))),
            &["generation", "version", "either"],
        ),
        ("the status", Box::new(status), &["version"]),
        (
            "a label",
            Box::new(merge(json!({ "metadata": { "labels": { "a": "b" } } }))),
            &["version", "labels", "either"],
        ),
        (
            "the field that is read",
            Box::new(merge(json!({ "metadata": { "annotations": { "seen": "yes" } } }))),
            &["version", "field"],
        ),
        (
            "another one",
            Box::new(merge(json!({ "metadata": { "annotations": { "a": "b" } } }))),
            &["version"],
        ),
        ("a resync", Box::new(|_| {}), &["generation", "labels", "field", "either"]),
        ("another object of that name", Box::new(recreate), &ALL),
        ("its deletion", Box::new(delete), &ALL),
    ];
    for (what, write, expected) in table {
        write(&world);
        let change = next(&mut changes).await;
        assert_eq!(matches!(change, Change::Resynced(_)), what == "a resync", "{what}");
        assert_eq!(passes(&change), expected, "{what}");
        // Each is read before the next happens, except the two of a new object.
        pass(Duration::from_secs(1)).await;
        assert!(changes.next().now_or_never().is_none(), "{what}: one change");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_generation_always_passes() {
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let informer = world.factory().informer::<ConfigMap>();
    let mut changes = pin!(informer.subscribe().changes().unwrap());
    informer.start();
    informer.wait_for_sync(LONG).await.unwrap();
    next(&mut changes).await;
    let labels = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    world.0.patch(&maps(), "shop", "a", &labels).unwrap();
    let change = next(&mut changes).await;
    assert!(matches!(change, Change::Updated { .. }) && changed::generation(&change));
}

/// A map with a finalizer is deleted: without a reconciliation it would stay for ever.
#[tokio::test(start_paused = true)]
async fn the_beginning_of_a_deletion_passes_every_predicate() {
    type Predicate = Box<dyn Fn(&Change<ConfigMap>) -> bool + Send + Sync>;
    let predicates: [(&str, Predicate); 3] = [
        ("labels", Box::new(changed::labels)),
        ("field", Box::new(changed::field(|map: &ConfigMap| map.data.clone()))),
        ("nothing", Box::new(|_| false)),
    ];
    for (name, predicate) in predicates {
        let mut held = map("shop", "a");
        held["metadata"]["finalizers"] = json!(["shop.example.com/bucket"]);
        let mut going = held.clone();
        going["metadata"]["name"] = json!("b");
        let world = Wireless::with(&maps(), [held, going]);
        world.0.delete(&maps(), "shop", "b").unwrap();
        let informer = world.factory().informer::<ConfigMap>();
        let (seen, mut reconciled) = mpsc::unbounded_channel();
        let controller = Controller::new("test", Watched::of(&informer).when(predicate));
        let reconcile = move |context: Context<ConfigMap>| {
            if context.object().is_some_and(|map| map.metadata.deletion_timestamp.is_some()) {
                let _ = seen.send(context.key().to_string());
            }
            async { Ok(Outcome::Done) }
        };
        let _running = AbortOnDropHandle::new(tokio::spawn(controller.run(world.client(), reconcile)));
        let mut next = async || tokio::time::timeout(LONG, reconciled.recv()).await.expect(name).unwrap();
        assert_eq!(next().await, "shop/b", "{name}: it began before the start");
        world.0.delete(&maps(), "shop", "a").unwrap();
        assert_eq!(next().await, "shop/a", "{name}");
        let note = Patch::Merge(json!({ "metadata": { "annotations": { "a": "b" } } }));
        world.0.patch(&maps(), "shop", "a", &note).unwrap();
        pass(Duration::from_secs(1)).await;
        assert!(reconciled.try_recv().is_err(), "{name}: later changes are the predicate's");
    }
}
