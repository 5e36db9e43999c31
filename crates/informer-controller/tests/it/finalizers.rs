//! Finalizers: added before anything outside, removed after the cleanup, and no others touched.

use std::sync::Arc;

use informer_controller::finalizer::{Finalizer, Guarded};
use informer_controller::{Context, Controller, Failure, Outcome, RunError, with};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use testapi::faults::{Fault, Refusal};
use testapi::{Patch, Verb};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::{LONG, Stop, World, map, maps};

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
