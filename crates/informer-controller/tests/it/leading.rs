//! Controllers of which one leads (clause Q8; the election has tests of its own).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use informer::SharedInformerFactory;
use informer_controller::election::Election;
use informer_controller::{Context, Controller, ControllerHandle, Failure, Outcome, RunError, Trigger, with};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use testapi::{Gvr, Patch, Verb};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::support::{LONG, Stop, World, map, maps};

struct State {
    begun: mpsc::UnboundedSender<(&'static str, String, Vec<Trigger>)>,
    name: &'static str,
    /// The event that a reconciliation waits for.
    go_on: Arc<Semaphore>,
}

async fn stamp(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let causes = context.triggers().iter().collect();
    let _ = state.begun.send((state.name, context.key().to_string(), causes));
    state.go_on.acquire().await?.forget();
    if let Some(map) = context.object() {
        let by = json!({ "metadata": { "annotations": { "by": state.name } } });
        context.writer().unlocked().patch(map, by).await?;
    }
    Ok(Outcome::Done)
}

struct Member {
    stop: Stop,
    running: JoinHandle<Result<(), RunError>>,
    go_on: Arc<Semaphore>,
    handle: ControllerHandle,
}

fn member(
    world: &World,
    name: &'static str,
    begun: &mpsc::UnboundedSender<(&'static str, String, Vec<Trigger>)>,
) -> Member {
    let factory = SharedInformerFactory::builder(world.server.config()).build().unwrap();
    let informer = factory.informer::<ConfigMap>();
    let election = Election::builder(world.server.config(), "shop", "stamp")
        .identity(name)
        .lease_duration(Duration::from_secs(3))
        .renew_deadline(Duration::from_secs(2))
        .retry_period(Duration::from_millis(100))
        .build()
        .unwrap();
    let go_on = Arc::new(Semaphore::new(0));
    let state = State { begun: begun.clone(), name, go_on: go_on.clone() };
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("stamp", &informer).until(stopped);
    let (config, handle) = (world.server.config(), controller.handle());
    let running =
        tokio::spawn(async move { controller.run_elected(&election, config, with(state, stamp)).await });
    Member { stop, running, go_on, handle }
}

async fn next(
    begun: &mut mpsc::UnboundedReceiver<(&'static str, String, Vec<Trigger>)>,
) -> (&'static str, String, Vec<Trigger>) {
    tokio::time::timeout(LONG, begun.recv()).await.expect("a reconciliation").expect("a controller runs")
}

#[tokio::test]
async fn q8_one_of_two_controllers_reconciles_and_the_other_follows_when_it_stops() {
    let world = World::new([map("shop", "a")]).await;
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let one = member(&world, "one", &begun);
    assert_eq!(next(&mut has_begun).await.0, "one");
    let two = member(&world, "two", &begun);
    // The second one has synced and waits: it has listed, and has looked at the lease.
    world.answered(&Verb::List.of("configmaps"), 2).await;
    world.answered(&Verb::Get.of("leases"), 2).await;
    one.go_on.add_permits(8);
    world
        .server
        .api()
        .wait_for(&maps(), "shop", "a", |map| map["metadata"]["annotations"]["by"] == "one")
        .await
        .unwrap();
    one.stop.and_wait(one.running).await.unwrap();
    // Reconciliations by the first one after its own write are not of interest here.
    let (name, key, _) = loop {
        let began = next(&mut has_begun).await;
        if began.0 == "two" {
            break began;
        }
    };
    assert_eq!((name, key.as_str()), ("two", "shop/a"));
    two.go_on.add_permits(8);
    world
        .server
        .api()
        .wait_for(&maps(), "shop", "a", |map| map["metadata"]["annotations"]["by"] == "two")
        .await
        .unwrap();
    two.stop.and_wait(two.running).await.unwrap();
}

/// Issue 20: a standby kept the keys of all objects that ever came and went.
#[tokio::test]
async fn q8_the_queue_of_a_standby_holds_what_exists() {
    let world = World::new([map("shop", "a")]).await;
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let one = member(&world, "one", &begun);
    one.go_on.add_permits(1_000);
    assert_eq!(next(&mut has_begun).await.0, "one");
    let two = member(&world, "two", &begun);
    two.go_on.add_permits(1_000);
    world.answered(&Verb::List.of("configmaps"), 2).await;
    world.answered(&Verb::Get.of("leases"), 2).await;
    let api = world.server.api();
    for at in 0..50 {
        let name = format!("gone-{at}");
        api.create(&maps(), map("shop", &name)).unwrap();
        api.delete(&maps(), "shop", &name).unwrap();
    }
    // More than the others, so that so many keys mean that the watch has brought all of these.
    for at in 0..60 {
        api.create(&maps(), map("shop", &format!("b-{at}"))).unwrap();
    }
    let depth = || two.handle.metrics().queue.numbers.depth.values().sum::<usize>();
    let settled = async {
        while depth() != 61 {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(LONG, settled).await.is_ok(), "{} keys wait", depth());
    one.stop.and_wait(one.running).await.unwrap();
    let mut keys = BTreeSet::new();
    while keys.len() < 61 {
        let (name, key, _) = next(&mut has_begun).await;
        if name == "two" {
            assert!(!key.contains("gone"), "{key}");
            keys.insert(key);
        }
    }
    two.stop.and_wait(two.running).await.unwrap();
}

#[tokio::test]
async fn q8_a_reconciliation_is_cut_off_when_leadership_is_lost_and_repeated_in_the_next_term() {
    let world = World::new([map("shop", "a")]).await;
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let one = member(&world, "one", &begun);
    let (_, _, causes) = next(&mut has_begun).await;
    assert_eq!(causes, [Trigger::Initial]);
    // Somebody takes the lease while the reconciliation waits, and releases it.
    let leases = Gvr::new("coordination.k8s.io/v1", "leases");
    let taken = json!({ "spec": { "holderIdentity": "somebody", "leaseDurationSeconds": 1 } });
    world.server.api().patch(&leases, "shop", "stamp", &Patch::Merge(taken)).unwrap();
    // It waits on until the lease has expired, and begins again.
    let (_, _, causes) = next(&mut has_begun).await;
    assert!(causes.contains(&Trigger::Interrupted) && causes.contains(&Trigger::Leading), "{causes:?}");
    let written = world.server.api().get(&maps(), "shop", "a").unwrap();
    assert!(written["metadata"]["annotations"].is_null(), "the first reconciliation wrote nothing");
    one.go_on.add_permits(8);
    world
        .server
        .api()
        .wait_for(&maps(), "shop", "a", |map| map["metadata"]["annotations"]["by"] == "one")
        .await
        .unwrap();
    one.stop.and_wait(one.running).await.unwrap();
}
