//! Finalizers: added before anything outside, removed after the cleanup, and no others touched.

use std::sync::Arc;
use std::time::Duration;

use informer_controller::election::Election;
use informer_controller::finalizer::{Finalizer, Guarded};
use informer_controller::{Context, Controller, Failure, Outcome, RunError, with};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use testapi::faults::{Events, Fault, Refusal};
use testapi::{Gvr, Patch, Verb};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::{LONG, Stop, World, map, maps};
use crate::wireless::Wireless;

const BUCKET: Finalizer = Finalizer::new("shop.example.com/bucket");

/// The effects of a reconciliation outside of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Made,
    Removed,
    Nothing,
    Gone,
}

async fn reconcile(
    done: Arc<mpsc::UnboundedSender<Done>>,
    context: Context<ConfigMap>,
) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else {
        let _ = done.send(Done::Gone);
        return Ok(Outcome::Done);
    };
    match BUCKET.guard(context.writer(), map).await? {
        Guarded::Held => drop(done.send(Done::Made)),
        Guarded::Cleanup(cleanup) => {
            let _ = done.send(Done::Removed);
            // A cleanup may write the object.
            context.writer().patch(map, json!({ "data": { "of": "cleaned" } })).await?;
            cleanup.done().await?;
        }
        Guarded::Released => drop(done.send(Done::Nothing)),
    }
    Ok(Outcome::Done)
}

struct Running {
    world: World,

    done: mpsc::UnboundedReceiver<Done>,
    stop: Stop,
    running: JoinHandle<Result<(), RunError>>,
}

impl Running {
    async fn start(object: Value) -> Self {
        Self::on(World::new([object]).await)
    }

    fn on(world: World) -> Self {
        let informer = world.factory.informer::<ConfigMap>();
        let (done, did) = mpsc::unbounded_channel();
        let (stop, stopped) = Stop::pair();
        let controller = Controller::new("test", &informer).until(stopped);
        let running = tokio::spawn(controller.run(world.client.clone(), with(done, reconcile)));
        Self { world, done: did, stop, running }
    }

    /// Waits until something is done, which may have been preceded by the same as before.
    async fn until(&mut self, wanted: Done) {
        let wait = async { while self.done.recv().await.unwrap() != wanted {} };
        tokio::time::timeout(LONG, wait).await.unwrap();
    }

    fn object(&self) -> Option<Value> {
        self.world.server.api().get(&maps(), "shop", "a").ok()
    }

    fn finalizers(&self) -> Value {
        self.object().map(|object| object["metadata"]["finalizers"].clone()).unwrap_or_default()
    }

    fn set_finalizers(&self, finalizers: &[&str]) {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
        self.world.server.api().patch(&maps(), "shop", "a", &patch).unwrap();
    }

    fn delete(&self) {
        self.world.server.api().delete(&maps(), "shop", "a").unwrap();
    }

    async fn end(self) {
        self.stop.and_wait(self.running).await.unwrap();
    }
}

fn with_finalizers(finalizers: &[&str]) -> Value {
    let mut map = map("shop", "a");
    map["metadata"]["finalizers"] = json!(finalizers);
    map
}

#[tokio::test]
async fn a_finalizer_is_on_the_server_before_anything_is_made_and_off_after_the_cleanup() {
    let mut running = Running::start(with_finalizers(&["other.example.com/a"])).await;
    running.until(Done::Made).await;
    assert_eq!(running.finalizers(), json!(["other.example.com/a", "shop.example.com/bucket"]));
    running.delete();
    running.until(Done::Removed).await;
    // The other finalizer holds the object still: the next reconciliation has nothing to do.
    running.until(Done::Nothing).await;
    assert_eq!(running.finalizers(), json!(["other.example.com/a"]));
    running.set_finalizers(&[]);
    running.until(Done::Gone).await;
    assert_eq!(running.object(), None);
    running.end().await;
}

#[tokio::test]
async fn without_the_finalizer_on_the_server_nothing_is_made() {
    let world = World::new([map("shop", "a")]).await;
    let refusal = Fault::Refuse(Refusal::InternalError);
    let refused = world.server.faults().on(Verb::Patch.of("configmaps")).times(2, refusal);
    let mut running = Running::on(world);
    assert_eq!(running.done.recv().await, Some(Done::Made));
    assert_eq!(refused.hits(), 2);
    assert_eq!(running.finalizers(), json!(["shop.example.com/bucket"]));
    running.end().await;
}

#[tokio::test]
async fn a_finalizer_that_somebody_removes_is_added_again() {
    let mut running = Running::start(map("shop", "a")).await;
    running.until(Done::Made).await;
    running.set_finalizers(&["other.example.com/a"]);
    running.until(Done::Made).await;
    running
        .world
        .server
        .api()
        .wait_for(&maps(), "shop", "a", |map| {
            map["metadata"]["finalizers"] == json!(["other.example.com/a", "shop.example.com/bucket"])
        })
        .await
        .unwrap();
    running.end().await;
}

#[tokio::test]
async fn a_deletion_without_our_finalizer_is_not_held_up_and_not_cleaned_up() {
    let mut running = Running::start(with_finalizers(&["other.example.com/a"])).await;
    running.until(Done::Made).await;
    running.set_finalizers(&["other.example.com/a"]);
    running.delete();
    running.until(Done::Nothing).await;
    assert_eq!(running.finalizers(), json!(["other.example.com/a"]));
    running.end().await;
}

#[tokio::test]
async fn finalizers_that_others_add_and_remove_meanwhile_stay_as_they_are() {
    let world =
        World::new([with_finalizers(&["a.example.com/a", "shop.example.com/bucket", "b.example.com/b"])])
            .await;
    world.server.api().delete(&maps(), "shop", "a").unwrap();
    let informer = world.factory.informer::<ConfigMap>();
    informer.start();
    informer.wait_for_sync(LONG).await.unwrap();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let api = world.server.api().clone();
    let reconcile = move |context: Context<ConfigMap>| {
        let (api, calls) = (api.clone(), calls.clone());
        async move {
            let Some(map) = context.object() else { return Ok(Outcome::Done) };
            let Guarded::Cleanup(cleanup) = BUCKET.guard(context.writer(), map).await? else {
                return Ok(Outcome::Done);
            };
            if context.failures() == 0 {
                // Somebody is done with the first one in this moment, which moves ours.
                let left =
                    json!({ "metadata": { "finalizers": ["shop.example.com/bucket", "b.example.com/b"] } });
                api.patch(&maps(), "shop", "a", &Patch::Merge(left)).unwrap();
            }
            let done = cleanup.done().await;
            let _ = calls.send(done.as_ref().err().map(|error| (error.is_conflict(), error.to_string())));
            done?;
            Ok(Outcome::Done)
        }
    };
    let running =
        tokio::spawn(Controller::new("test", &informer).until(stopped).run(world.client.clone(), reconcile));
    let (is_conflict, text) = called.recv().await.unwrap().expect("the entry has moved");
    assert!(is_conflict, "{text}");
    assert_eq!(text, "cannot patch configmaps.v1 shop/a: the object has changed since");
    assert_eq!(called.recv().await, Some(None));
    let left = world.server.api().get(&maps(), "shop", "a").unwrap();
    assert_eq!(left["metadata"]["finalizers"], json!(["b.example.com/b"]));
    stop.and_wait(running).await.unwrap();
}

/// The questions to the server about one map. The informer lists all of them.
fn looks(world: &World) -> usize {
    let lists = world.server.requests().matching(&Verb::List.of("configmaps"));
    lists.iter().filter(|list| list.call.query.get("fieldSelector") == Some("metadata.name=a")).count()
}

#[tokio::test]
async fn the_server_confirms_a_finalizer_once_per_object_and_term() {
    let world = World::new([with_finalizers(&["shop.example.com/bucket"])]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let election = Election::builder(world.server.config(), "shop", "bucket")
        .lease_duration(Duration::from_secs(3))
        .renew_deadline(Duration::from_secs(2))
        .retry_period(Duration::from_millis(100))
        .build()
        .unwrap();
    let (done, mut did) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    let config = world.server.config();
    let running =
        tokio::spawn(async move { controller.run_elected(&election, config, with(done, reconcile)).await });
    let mut made = async || {
        assert_eq!(tokio::time::timeout(LONG, did.recv()).await.unwrap(), Some(Done::Made));
    };
    made().await;
    assert_eq!(looks(&world), 1);
    let patch = Patch::Merge(json!({ "data": { "of": "changed" } }));
    world.server.api().patch(&maps(), "shop", "a", &patch).unwrap();
    made().await;
    assert_eq!(looks(&world), 1, "it is known");

    // Somebody takes the lease, and releases it.
    let leases = Gvr::new("coordination.k8s.io/v1", "leases");
    let taken = json!({ "spec": { "holderIdentity": "somebody", "leaseDurationSeconds": 1 } });
    world.server.api().patch(&leases, "shop", "bucket", &Patch::Merge(taken)).unwrap();
    made().await;
    assert_eq!(looks(&world), 2, "another leader may have cleaned up meanwhile");
    stop.and_wait(running).await.unwrap();
}

#[tokio::test]
async fn an_object_that_is_gone_for_the_server_is_not_held() {
    let world = World::new([with_finalizers(&["shop.example.com/bucket"])]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let stalled = world.server.faults().on(Verb::Watch.of("configmaps")).once(Fault::StallAfter(Events(0)));
    informer.start();
    informer.wait_for_sync(LONG).await.unwrap();
    stalled.hit().await;
    // A former process has cleaned up. The cache does not have that yet.
    world
        .server
        .api()
        .patch(&maps(), "shop", "a", &Patch::Merge(json!({ "metadata": { "finalizers": null } })))
        .unwrap();
    world.server.api().delete(&maps(), "shop", "a").unwrap();
    let mut running = Running::on(world);
    assert_eq!(running.done.recv().await, Some(Done::Nothing));
    running.world.server.faults().running(Verb::Watch.of("configmaps")).cut();
    running.until(Done::Gone).await;
    running.end().await;
}

/// 150 objects, of which the server is asked about 50 a second after the first 100.
#[tokio::test(start_paused = true)]
async fn the_questions_have_a_pace() {
    let objects = (0..150).map(|number| {
        let mut map = map("shop", &format!("m-{number}"));
        map["metadata"]["finalizers"] = json!(["shop.example.com/bucket"]);
        map
    });
    let world = Wireless::with(&maps(), objects);
    let informer = world.factory().informer::<ConfigMap>();
    let (done, mut did) = mpsc::unbounded_channel();
    let begun = tokio::time::Instant::now();
    let controller = Controller::new("test", &informer).workers(8).run(world.client(), with(done, reconcile));
    let _running = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(controller));
    for _ in 0..150 {
        assert_eq!(tokio::time::timeout(LONG, did.recv()).await.unwrap(), Some(Done::Made));
    }
    let took = begun.elapsed();
    assert!((Duration::from_millis(950)..Duration::from_millis(1100)).contains(&took), "{took:?}");
}
