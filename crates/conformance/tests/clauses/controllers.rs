//! Q: controllers. The work queue and the election have tests of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use conformance::{DEADLINE, Rig, config_map, within};
use informer::{Informer, ResourceVersion};
use informer_controller::{Context, Controller, Failure, Outcome, Patch, with};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::Api;
use kube_client::api::{ListParams, PostParams};
use kube_core::{Resource, ResourceExt};
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::SERVER;

/// How a reconciler writes.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Context,
    /// With a client, so that the controller does not know of the write.
    Around,
}

struct OneChild {
    secrets: Informer<Secret>,
    way: Way,
    /// The number of children that each reconciliation saw.
    seen: mpsc::UnboundedSender<usize>,
}

/// Each config map wants one secret, whose name the server chooses.
async fn one_child(state: Arc<OneChild>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object().filter(|map| map.key().name() == "parent") else {
        return Ok(Outcome::Done);
    };
    let children = context.owned(&state.secrets).len();
    let _ = state.seen.send(children);
    if children > 0 {
        return Ok(Outcome::Done);
    }
    let mut child = Secret::default();
    child.metadata.namespace = map.metadata.namespace.clone();
    child.metadata.generate_name = Some("child-".to_owned());
    child.metadata.owner_references = map.controller_owner_ref(&()).map(|owner| vec![owner]);
    match state.way {
        Way::Context => drop(context.writer().create(&child).await?),
        Way::Around => {
            let api: Api<Secret> = Api::namespaced(
                context.unrecorded_client().clone(),
                map.key().namespace().unwrap_or_default(),
            );
            api.create(&PostParams::default(), &child).await?;
        }
    }
    Ok(Outcome::Done)
}

/// Creates a parent while the informer of children hears nothing, then changes the parent. Returns how many children there
/// are in the end, and how many each of the first two reconciliations saw.
async fn with_a_deaf_informer_of_children(test: &str, way: Way) -> Option<(usize, [usize; 2])> {
    let rig = Rig::shared(SERVER, test).await?;
    let parents = rig.builder_of(rig.direct_config()).build().unwrap().in_namespace(rig.namespace());
    let maps = parents.informer::<ConfigMap>();
    // This one goes through the proxy.
    let secrets = rig.factory().informer::<Secret>();
    secrets.start();
    secrets.wait_for_sync(DEADLINE).await.unwrap();
    rig.proxy.freeze();
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel();
    // A permission check asks through the frozen connection as well: the informer would find it dead, and hear again.
    let controller = Controller::new("one-child", &maps)
        .owns(&secrets)
        .without_permission_check()
        .until(async { stopped.await.unwrap_or_default() });
    let state = OneChild { secrets: secrets.clone(), way, seen };
    let running = tokio::spawn(controller.run(rig.client(), with(state, one_child)));
    rig.create_with(config_map("parent", "text")).await;
    let first = within("the first reconciliation", reconciled.recv()).await.unwrap();
    let children: Api<Secret> = Api::namespaced(rig.client(), rig.namespace());
    let count = async || {
        let all = children.list(&ListParams::default()).await.unwrap();
        all.iter().filter(|secret| secret.name_any().starts_with("child-")).count()
    };
    within("the first child", async {
        while count().await == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let version = rig.update("parent", "changed").await;
    maps.at_least(&version, DEADLINE).await.unwrap();
    if way == Way::Around {
        within("the second child", async {
            while count().await < 2 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    // The informer hears again.
    rig.proxy.cut();
    let second = within("the second reconciliation", reconciled.recv()).await.unwrap();
    let _ = stop.send(());
    within("the end", running).await.unwrap().unwrap();
    Some((count().await, [first, second]))
}

#[tokio::test]
async fn q7_a_lagging_cache_leads_to_no_second_child() {
    let Some(result) = with_a_deaf_informer_of_children("q7_lagging", Way::Context).await else { return };
    assert_eq!(result, (1, [0, 1]));
}

#[tokio::test]
async fn q7_a_write_around_the_context_leads_to_a_second_child() {
    let Some(result) = with_a_deaf_informer_of_children("q7_around", Way::Around).await else { return };
    assert_eq!(result, (2, [0, 0]));
}

#[tokio::test]
async fn q7_writes_carry_what_the_reconciliation_knows() {
    let Some(rig) = Rig::shared(SERVER, "q7_preconditions").await else { return };
    let maps = rig.factory().informer::<ConfigMap>();
    let (done, mut results) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel();
    let controller = Controller::new("late", &maps).until(async { stopped.await.unwrap_or_default() });
    let api = rig.config_maps();
    let state = (api, done, Mutex::new(false));
    type State = (Api<ConfigMap>, mpsc::UnboundedSender<Vec<Option<bool>>>, Mutex<bool>);
    async fn reconcile(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let Some(map) = context.object().filter(|map| map.key().name() == "late") else {
            return Ok(Outcome::Done);
        };
        if std::mem::replace(&mut *state.2.lock().unwrap(), true) {
            return Ok(Outcome::Done);
        }
        let change = json!({ "data": { "value": "somebody else's" } });
        let merge = kube_client::api::Patch::Merge(&change);
        state.0.patch("late", &Default::default(), &merge).await?;
        let writer = context.writer();
        let label = json!({ "metadata": { "labels": { "a": "b" } } });
        let whole = ConfigMap::clone(map);
        let applied = config_map_of(map);
        let mut conflicts = Vec::new();
        let mut note = |result: Result<(), informer_controller::WriteError>| {
            conflicts.push(result.err().map(|error| error.is_conflict()));
        };
        note(writer.patch(map, label.clone()).await.map(drop));
        note(writer.replace(&whole).await.map(drop));
        note(writer.apply(&applied).await.map(drop));
        let operation = json!({ "op": "add", "path": "/metadata/annotations", "value": { "a": "b" } });
        let operations = Patch::Json(vec![operation]);
        note(writer.patch(map, operations.clone()).await.map(drop));
        note(writer.delete(map).await);
        // An object that was read from the server carries its own version.
        let read = state.0.get("late").await?;
        note(writer.dry_run().delete(&read).await);
        note(writer.patch(&read, Patch::Strategic(json!({ "data": { "read": "yes" } }))).await.map(drop));
        // Without the version they go through, as long as it is the same incarnation.
        note(writer.unlocked().patch(map, label).await.map(drop));
        note(writer.unlocked().patch(map, operations).await.map(drop));
        note(writer.unlocked().apply(&applied).await.map(drop));
        // A write of this same reconciliation is no conflict.
        note(writer.patch(map, json!({ "metadata": { "labels": { "c": "d" } } })).await.map(drop));
        note(writer.delete(map).await);
        let _ = state.1.send(conflicts);
        Ok(Outcome::Done)
    }
    let running = tokio::spawn(controller.run(rig.client(), with(state, reconcile)));
    rig.create_with(config_map("late", "text")).await;
    let results = within("a reconciliation", results.recv()).await.unwrap();
    let refused = Some(true);
    assert_eq!(results[..5], [refused; 5]);
    assert_eq!(results[5..], [None; 7]);
    let _ = stop.send(());
    within("the end", running).await.unwrap().unwrap();
}

/// The configuration of a controller that sets one field.
fn config_map_of(map: &ConfigMap) -> ConfigMap {
    let mut applied = ConfigMap::default();
    applied.metadata.name = map.metadata.name.clone();
    applied.metadata.namespace = map.metadata.namespace.clone();
    applied.data = Some([("applied".to_owned(), "yes".to_owned())].into());
    applied
}

#[tokio::test]
async fn q6_every_object_ends_reconciled_at_its_last_version_whatever_fails() {
    let Some(rig) = Rig::shared(SERVER, "q6_storm").await else { return };
    const OBJECTS: usize = 20;
    let seed = 7;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let maps = rig.factory().informer::<ConfigMap>();
    /// The version at which each object was reconciled last, and whom that wakes.
    type Done = (Mutex<HashMap<String, ResourceVersion>>, Notify);
    let done = Arc::new(Done::default());
    let (stop, stopped) = oneshot::channel();
    let controller =
        Controller::new("storm", &maps).workers(4).until(async { stopped.await.unwrap_or_default() });
    async fn reconcile(done: Arc<Done>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let Some(map) = context.object() else { return Ok(Outcome::Done) };
        match context.random().u8(..10) {
            0 => return Err(Failure::retry("now and then it fails")),
            1 => panic!("now and then it panics"),
            _ => tokio::task::yield_now().await,
        }
        done.0.lock().unwrap().insert(map.key().name().to_owned(), map.resource_version().clone());
        done.1.notify_one();
        Ok(Outcome::Done)
    }
    let running = tokio::spawn(controller.run(rig.client(), with(done.clone(), reconcile)));
    let mut last = HashMap::new();
    for n in 0..OBJECTS {
        last.insert(format!("m{n}"), rig.create(&format!("m{n}")).await);
    }
    for n in 0..200 {
        let name = format!("m{}", random.usize(..OBJECTS));
        let version = rig.update(&name, &n.to_string()).await;
        last.insert(name, version);
        if n % 50 == 49 {
            rig.proxy.cut();
        }
    }
    within("every object at its last version", async {
        while !last.iter().all(|(name, version)| done.0.lock().unwrap().get(name) == Some(version)) {
            done.1.notified().await;
        }
    })
    .await;
    let _ = stop.send(());
    within("the end", running).await.unwrap().unwrap();
}
