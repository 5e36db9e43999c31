//! Where controllers lose something: late notifications, lost answers, narrow permissions and selections.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer::kube::Client;
use informer::kube::client::Api;
use informer::share::{self, HashRange, Share, ShareBy};
use informer::{Informer, SharedInformerFactory};
use informer_controller::election::Election;
use informer_controller::{Context, Controller, Failure, Outcome, Watched, changed, with};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use testapi::faults::{Bytes, Events, Fault};
use testapi::{Gvr, Patch, TestApi, Verb};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::support::{LONG, Stop, World, map, maps, secrets};

/// Expected events come within this time.
const SOON: Duration = Duration::from_secs(5);

async fn soon<T>(calls: &mut UnboundedReceiver<T>) -> Option<T> {
    tokio::time::timeout(SOON, calls.recv()).await.ok().flatten()
}

fn secret(name: &str) -> serde_json::Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": "shop", "name": name } })
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some("shop".to_owned()), name: Some(name.to_owned()), ..ObjectMeta::default() }
}

struct Children {
    secrets: Informer<Secret>,
    seen: UnboundedSender<usize>,
}

async fn one_child(state: Arc<Children>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let children = context.owned(&state.secrets).len();
    let _ = state.seen.send(children);
    if children == 0 {
        let owner = informer::kube::Resource::controller_owner_ref(&**map, &());
        let metadata = ObjectMeta {
            namespace: Some("shop".to_owned()),
            generate_name: Some("child-".to_owned()),
            owner_references: owner.map(|owner| vec![owner]),
            ..ObjectMeta::default()
        };
        context.writer().create(&Secret { metadata, ..Secret::default() }).await?;
    }
    Ok(Outcome::Done)
}

/// Q6: a child that a reconciliation has seen is deleted. Its owner must be reconciled again, also when the subscription's
/// task is late.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn q6_a_child_that_came_and_went_before_its_notification_wakes_its_owner() {
    let world = World::new([map("shop", "a"), secret("slow")]).await;
    let maps_informer = world.factory.informer::<ConfigMap>();
    let children = world.factory.informer::<Secret>();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let watched = Watched::of(&children).when(move |change| {
        if change.key().is_some_and(|key| key.name() == "slow") {
            let _ = wait.lock().unwrap().recv();
        }
        true
    });
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &maps_informer).owns(watched).until(stopped);
    let state = Children { secrets: children.clone(), seen };
    let running = tokio::spawn(controller.run(world.client.clone(), with(state, one_child)));
    assert_eq!(soon(&mut reconciled).await, Some(0));
    world.answered(&Verb::Create.of("secrets"), 1).await;
    let patch = Patch::Merge(json!({ "data": { "of": "changed" } }));
    world.server.api().patch(&maps(), "shop", "a", &patch).unwrap();
    assert_eq!(soon(&mut reconciled).await, Some(1), "it sees its child, and is content");
    let all = world.server.api().list(&secrets(), Some("shop")).unwrap();
    let child = all.iter().map(|it| it["metadata"]["name"].as_str().unwrap()).find(|name| *name != "slow");
    world.server.api().delete(&secrets(), "shop", child.unwrap()).unwrap();
    children.at_least(&world.version(), LONG).await.unwrap();
    drop(go_on);
    assert_eq!(soon(&mut reconciled).await, Some(0), "the child is gone and nobody told its owner");
    stop.and_wait(running).await.unwrap();
}

/// Q7: a deletion whose answer was lost is a write too.
#[tokio::test]
async fn q7_after_a_deletion_without_an_answer_the_object_is_not_seen_again() {
    let world = World::new([map("shop", "a"), secret("child")]).await;
    let maps_informer = world.factory.informer::<ConfigMap>();
    let children = world.factory.informer::<Secret>();
    let stalled = world.server.faults().on(Verb::Watch.of("secrets")).once(Fault::StallAfter(Events(0)));
    let _lost = world.server.faults().on(Verb::Delete.of("secrets")).once(Fault::CutAfter(Bytes(0)));
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &maps_informer).reads(&children).until(stopped);
    async fn reconcile(state: Arc<Children>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let child = context.get(&state.secrets, "shop/child")?;
        let _ = state.seen.send(child.iter().len());
        if let Some(child) = child {
            context.writer().delete(&child).await?;
        }
        Ok(Outcome::Done)
    }
    let state = Children { secrets: children.clone(), seen };
    let running = tokio::spawn(controller.run(world.client.clone(), with(state, reconcile)));
    assert_eq!(soon(&mut reconciled).await, Some(1));
    // Nothing comes while the watch stands still.
    let early = tokio::time::timeout(Duration::from_millis(300), reconciled.recv()).await.ok().flatten();
    stalled.hit().await;
    world.server.faults().running(Verb::Watch.of("secrets")).cut();
    assert_eq!(early, None, "it reconciled on state older than its own deletion");
    assert_eq!(soon(&mut reconciled).await, Some(0));
    stop.and_wait(running).await.unwrap();
}

/// A controller that may list, watch and write, but not `get`: a lost answer must not put the key off for ever.
#[tokio::test]
async fn q7_a_write_without_an_answer_needs_no_permission_to_get() {
    let world = World::new([map("shop", "a")]).await;
    let maps_informer = world.factory.informer::<ConfigMap>();
    let children = world.factory.informer::<Secret>();
    let _denied = world.server.faults().deny(Verb::Get.of("secrets"));
    let _lost = world.server.faults().on(Verb::Create.of("secrets")).once(Fault::CutAfter(Bytes(0)));
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &maps_informer).reads(&children).until(stopped);
    async fn reconcile(state: Arc<Children>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let child = context.get(&state.secrets, "shop/child")?;
        let _ = state.seen.send(child.iter().len());
        if child.is_none() {
            context.writer().create(&Secret { metadata: named("child"), ..Secret::default() }).await?;
        }
        Ok(Outcome::Done)
    }
    let state = Children { secrets: children.clone(), seen };
    let running = tokio::spawn(controller.run(world.client.clone(), with(state, reconcile)));
    assert_eq!(soon(&mut reconciled).await, Some(0));
    assert_eq!(soon(&mut reconciled).await, Some(1), "the key is put off again and again");
    stop.and_wait(running).await.unwrap();
}

/// A namespace that the informer selects no more: its objects were not deleted.
#[tokio::test]
async fn q6_objects_of_a_removed_namespace_are_not_reconciled_as_if_deleted() {
    let world = World::new([map("shop", "a"), map("back", "b")]).await;
    let informer = world.factory.in_namespaces(["shop", "back"]).informer::<ConfigMap>();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    let running = tokio::spawn(controller.run(
        world.client.clone(),
        with(calls, |calls: Arc<UnboundedSender<_>>, context: Context<ConfigMap>| async move {
            let _ = calls.send((context.key().to_string(), context.object().is_some()));
            Ok(Outcome::Done)
        }),
    ));
    soon(&mut called).await.unwrap();
    soon(&mut called).await.unwrap();
    informer.remove_namespace("back").await;
    let patch = Patch::Merge(json!({ "data": { "of": "changed" } }));
    world.server.api().patch(&maps(), "shop", "a", &patch).unwrap();
    let mut after = Vec::new();
    while after.last() != Some(&("shop/a".to_owned(), true)) {
        after.push(soon(&mut called).await.unwrap());
    }
    stop.and_wait(running).await.unwrap();
    assert_eq!(after, [("shop/a".to_owned(), true)], "shop/b still exists");
}

/// The second term reconciles what the predicate excludes.
#[tokio::test]
async fn q6_a_predicate_holds_in_the_next_term_too() {
    let world = World::new([map("shop", "mine"), map("shop", "other")]).await;
    let factory = SharedInformerFactory::builder(world.server.config()).build().unwrap();
    let informer = factory.informer::<ConfigMap>();
    let election = Election::builder(world.server.config(), "shop", "stamp")
        .identity("one")
        .lease_duration(Duration::from_secs(3))
        .renew_deadline(Duration::from_secs(2))
        .retry_period(Duration::from_millis(100))
        .build()
        .unwrap();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let mine = Watched::of(&informer).when(|change| change.key().is_some_and(|key| key.name() == "mine"));
    // A predicate that stops resyncs does not stop this.
    let mine = mine.when(changed::version);
    let controller = Controller::new("stamp", mine).until(stopped);
    let config = world.server.config();
    let reconciler = with(calls, |calls: Arc<UnboundedSender<_>>, context: Context<ConfigMap>| async move {
        let _ = calls.send(context.key().name().to_owned());
        Ok(Outcome::Done)
    });
    let running = tokio::spawn(async move { controller.run_elected(&election, config, reconciler).await });
    assert_eq!(soon(&mut called).await.as_deref(), Some("mine"));
    let leases = Gvr::new("coordination.k8s.io/v1", "leases");
    let taken = json!({ "spec": { "holderIdentity": "somebody", "leaseDurationSeconds": 1 } });
    world.server.api().patch(&leases, "shop", "stamp", &Patch::Merge(taken)).unwrap();
    let mut next_term = vec![tokio::time::timeout(LONG, called.recv()).await.unwrap().unwrap()];
    stop.and_wait(running).await.unwrap();
    while let Some(name) = called.recv().await {
        next_term.push(name);
    }
    assert!(!next_term.contains(&"other".to_owned()), "{next_term:?}");
}

/// Issue 11: writes outside of the informer's view do not wait.
#[tokio::test]
async fn q7_a_write_outside_of_a_field_selection_does_not_wait() {
    let world = World::new([map("shop", "a")]).await;
    let informer = world.factory.with_fields("metadata.name=a").unwrap().informer::<ConfigMap>();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    async fn reconcile(
        calls: Arc<UnboundedSender<u32>>,
        context: Context<ConfigMap>,
    ) -> Result<Outcome, Failure> {
        let again = context.triggers().contains(informer_controller::Trigger::Again);
        let _ = calls.send(u32::from(again));
        if again {
            return Ok(Outcome::Done);
        }
        context.writer().create(&ConfigMap { metadata: named("b"), ..ConfigMap::default() }).await?;
        Ok(Outcome::After(Duration::from_millis(1)))
    }
    let running = tokio::spawn(controller.run(world.client.clone(), with(calls, reconcile)));
    assert_eq!(soon(&mut called).await, Some(0));
    assert_eq!(soon(&mut called).await, Some(1), "it waits for a bookmark");
    stop.and_wait(running).await.unwrap();
}

/// A server that divides a collection sends no event of the other shares.
#[tokio::test]
async fn q7_a_write_outside_of_a_share_does_not_wait() {
    let builder = TestApi::builder().objects([map("shop", "a")]);
    let server = builder.options(|options| options.serve.shard_selectors = true).start().await.unwrap();
    let own = share::hash("shop");
    let range = HashRange::new(own, u128::from(own) + 1).unwrap();
    let factory = SharedInformerFactory::builder(server.config())
        .ask_for_share(true)
        .build()
        .unwrap()
        .with_share(Share::new(ShareBy::Namespace, range));
    let client = Client::try_from(server.config()).unwrap();
    let informer = factory.informer::<ConfigMap>();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    async fn reconcile(
        calls: Arc<UnboundedSender<u32>>,
        context: Context<ConfigMap>,
    ) -> Result<Outcome, Failure> {
        let again = context.triggers().contains(informer_controller::Trigger::Again);
        let _ = calls.send(u32::from(again));
        if again {
            return Ok(Outcome::Done);
        }
        let metadata = ObjectMeta { namespace: Some("default".to_owned()), ..named("b") };
        context.writer().create(&ConfigMap { metadata, ..ConfigMap::default() }).await?;
        Ok(Outcome::After(Duration::from_millis(1)))
    }
    let running = tokio::spawn(controller.run(client, with(calls, reconcile)));
    assert_eq!(soon(&mut called).await, Some(0));
    assert_eq!(soon(&mut called).await, Some(1), "it waits for a bookmark");
    stop.and_wait(running).await.unwrap();
}

/// Runs one reconciliation of `shop/a` and returns what it returns.
async fn once<R, F>(world: &World, reconcile: impl Fn(Context<ConfigMap>) -> F + Send + Sync + 'static) -> R
where
    R: Send + 'static,
    F: Future<Output = R> + Send,
{
    let informer = world.factory.informer::<ConfigMap>();
    let (results, mut result) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    let reconcile = Arc::new(reconcile);
    let running = tokio::spawn(controller.run(world.client.clone(), move |context: Context<ConfigMap>| {
        let (results, reconcile) = (results.clone(), reconcile.clone());
        async move {
            if context.key().name() == "a" {
                let _ = results.send(reconcile(context).await);
            }
            Ok(Outcome::Done)
        }
    }));
    let result = soon(&mut result).await.expect("no result: it panicked");
    stop.and_wait(running).await.unwrap();
    result
}

#[tokio::test]
async fn random_numbers_differ() {
    let world = World::new([map("shop", "a")]).await;
    let (one, other) =
        once(&world, |context| async move { (context.random().u64(..), context.random().u64(..)) }).await;
    assert_ne!(one, other);
}

#[tokio::test]
async fn a_patch_that_is_no_object_is_an_error() {
    let world = World::new([map("shop", "a")]).await;
    let result = once(&world, |context| async move {
        context.writer().patch(context.object().unwrap(), json!([])).await.is_err()
    })
    .await;
    assert!(result);
}

/// "Each write of an object that exists carries the uid and the resourceVersion that this reconciliation knows: of the
/// cache as it was when the reconciliation began".
#[tokio::test]
async fn q7_a_patch_by_reference_conflicts_too() {
    let world = World::new([map("shop", "a")]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let api: Api<ConfigMap> = Api::namespaced(world.client.clone(), "shop");
    let is_conflict = once(&world, move |context| {
        let (api, informer) = (api.clone(), informer.clone());
        async move {
            let other = json!({ "data": { "of": "somebody else" } });
            let merge = informer::kube::core::params::Patch::Merge(&other);
            api.patch("a", &Default::default(), &merge).await.unwrap();
            let reference = informer.object_ref(context.object().unwrap());
            let patch = json!({ "data": { "of": "me" } });
            context.writer().patch(&reference, patch).await.is_err_and(|error| error.is_conflict())
        }
    })
    .await;
    assert!(is_conflict, "somebody else's write is overwritten");
}

#[tokio::test]
async fn an_object_can_be_deleted_and_applied_anew() {
    let world = World::new([map("shop", "a")]).await;
    let applied = once(&world, |context| async move {
        let map = context.object().unwrap();
        context.writer().delete(map).await.unwrap();
        let anew = ConfigMap { metadata: named("a"), ..ConfigMap::default() };
        context.writer().apply(&anew).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(applied, Ok(()));
}

/// `unlocked`: "whose writes carry the uid but no resourceVersion".
#[tokio::test]
async fn an_unlocked_replacement_carries_no_version() {
    let world = World::new([map("shop", "a")]).await;
    let api: Api<ConfigMap> = Api::namespaced(world.client.clone(), "shop");
    let replaced = once(&world, move |context| {
        let api = api.clone();
        async move {
            let other = json!({ "data": { "of": "somebody else" } });
            let merge = informer::kube::core::params::Patch::Merge(&other);
            api.patch("a", &Default::default(), &merge).await.unwrap();
            let mine = ConfigMap::clone(context.object().unwrap());
            context.writer().unlocked().replace(&mine).await.map(drop).map_err(|error| error.to_string())
        }
    })
    .await;
    assert_eq!(replaced, Ok(()));
}

#[tokio::test]
async fn no_sync_limit() {
    let world = World::new([map("shop", "a")]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).sync_limit(Duration::MAX).until(stopped);
    let running = tokio::spawn(
        controller.run(world.client.clone(), |_: Context<ConfigMap>| async { Ok(Outcome::Done) }),
    );
    stop.and_wait(running).await.unwrap();
}

/// "When the reconciler returns, the context's Writer refuses further writes."
#[tokio::test]
async fn a_context_that_outlives_its_controller_cannot_write() {
    let world = World::new([map("shop", "a")]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let (contexts, mut kept) = mpsc::unbounded_channel();
    let go_on = Arc::new(tokio::sync::Semaphore::new(0));
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    let wait = go_on.clone();
    let running = tokio::spawn(controller.run(world.client.clone(), move |context: Context<ConfigMap>| {
        let (contexts, wait) = (contexts.clone(), wait.clone());
        async move {
            let _ = contexts.send(context.clone());
            wait.acquire().await?.forget();
            Ok(Outcome::Done)
        }
    }));
    let context = soon(&mut kept).await.unwrap();
    let ended = tokio::spawn(stop.and_wait(running));
    tokio::task::yield_now().await;
    go_on.add_permits(1);
    ended.await.unwrap().unwrap();
    let late = context.writer().patch(context.object().unwrap(), json!({ "data": { "of": "late" } })).await;
    assert!(late.is_err_and(|error| error.is_ended()), "the write was carried out");
}

/// A server that was restored from a backup, and a controller that may list in its namespace only.
#[tokio::test]
async fn q7_a_restored_server_is_found_out_with_permissions_for_one_namespace() {
    let world = World::new([map("shop", "a")]).await;
    let _denied =
        world.server.faults().deny(Verb::List.of("configmaps").when("cluster-wide", |call| {
            call.target.as_ref().is_some_and(|target| target.namespace.is_none())
        }));
    let informer = world.factory.in_namespace("shop").informer::<ConfigMap>();
    let stalled = world.server.faults().on(Verb::Watch.of("configmaps")).once(Fault::StallAfter(Events(0)));
    let backup = world.server.api().backup();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller =
        Controller::new("test", &informer).own_writes_limit(Duration::from_millis(50)).until(stopped);
    async fn reconcile(
        calls: Arc<UnboundedSender<()>>,
        context: Context<ConfigMap>,
    ) -> Result<Outcome, Failure> {
        let Some(map) = context.object() else { return Ok(Outcome::Done) };
        let _ = calls.send(());
        let patch = json!({ "metadata": { "labels": { "seen": "yes" } } });
        context.writer().unlocked().patch(map, patch).await?;
        Ok(Outcome::After(Duration::from_millis(1)))
    }
    let running = tokio::spawn(controller.run(world.client.clone(), with(calls, reconcile)));
    assert_eq!(soon(&mut called).await, Some(()));
    world.answered(&Verb::Patch.of("configmaps"), 1).await;
    world.server.api().restore(&backup);
    stalled.hit().await;
    world.server.faults().running(Verb::Watch.of("configmaps")).cut();
    assert_eq!(soon(&mut called).await, Some(()), "the write is void, and the key waits for it");
    stop.and_wait(running).await.unwrap();
}

/// `is_conflict`: "somebody else has written the object, or created it anew". A real server answers 422 to another uid in a
/// patch without a resourceVersion.
#[tokio::test]
async fn an_unlocked_patch_of_an_object_that_was_created_anew_is_a_conflict() {
    let world = World::new([map("shop", "a")]).await;
    let api: Api<ConfigMap> = Api::namespaced(world.client.clone(), "shop");
    let result = once(&world, move |context| {
        let api = api.clone();
        async move {
            api.delete("a", &Default::default()).await.unwrap();
            let anew = ConfigMap { metadata: named("a"), ..ConfigMap::default() };
            api.create(&Default::default(), &anew).await.unwrap();
            let patch = json!({ "data": { "of": "me" } });
            let patched = context.writer().unlocked().patch(context.object().unwrap(), patch).await;
            patched.map(drop).map_err(|error| (error.is_conflict(), error.is_invalid(), error.to_string()))
        }
    })
    .await;
    let (is_conflict, is_invalid, text) = result.expect_err("it is another object");
    assert!(is_conflict && !is_invalid, "{text}");
}

/// An object that one reconciliation creates inside of the selection and then takes out of it.
#[tokio::test]
async fn q7_a_write_that_takes_a_new_object_out_of_the_selection_is_awaited() {
    let world = World::new([map("shop", "a")]).await;
    let maps_informer = world.factory.informer::<ConfigMap>();
    let children = world.factory.with_labels("app=x").unwrap().informer::<Secret>();
    // Its watch shows the creation, and not what follows.
    let stalled = world.server.faults().on(Verb::Watch.of("secrets")).once(Fault::StallAfter(Events(1)));
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &maps_informer).reads(&children).until(stopped);
    async fn reconcile(state: Arc<Children>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let child = context.get(&state.secrets, "shop/child")?;
        let _ = state.seen.send(child.iter().len());
        if !context.triggers().contains(informer_controller::Trigger::Initial) {
            return Ok(Outcome::Done);
        }
        let labels = Some([("app".to_owned(), "x".to_owned())].into());
        let metadata = ObjectMeta { labels, ..named("child") };
        context.writer().create(&Secret { metadata, ..Secret::default() }).await?;
        let reference = informer::ObjectRef::<Secret>::new(
            informer::ResourceType::of::<Secret>(),
            informer::ObjectKey::new(Some("shop"), "child")?,
        );
        let patch = json!({ "metadata": { "labels": { "app": null } } });
        context.writer().patch(&reference, patch).await?;
        Ok(Outcome::After(Duration::from_millis(1)))
    }
    let state = Children { secrets: children.clone(), seen };
    let running = tokio::spawn(controller.run(world.client.clone(), with(state, reconcile)));
    assert_eq!(soon(&mut reconciled).await, Some(0));
    let early = tokio::time::timeout(Duration::from_millis(300), reconciled.recv()).await.ok().flatten();
    assert_ne!(early, Some(1), "it sees its creation, and not its patch");
    stalled.hit().await;
    world.server.faults().running(Verb::Watch.of("secrets")).cut();
    stop.and_wait(running).await.unwrap();
}
