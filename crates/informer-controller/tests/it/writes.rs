//! The ways to write: each is seen by the next reconciliation, as far as a cache shows it.

use std::sync::Arc;
use std::time::Duration;

use informer::kube::Resource;
use informer::kube::client::Api;
use informer::kube::core::params::{DeleteParams, ValidationDirective};
use informer::kube::core::{ApiResource, DynamicObject};
use informer::{Informer, ResourceType, View};
use informer_controller::metrics::Format;
use informer_controller::{Context, Controller, ControllerHandle, Failure, Outcome, Patch, WriteError};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use serde_json::{Value, json};
use testapi::faults::{Events, Fault};
use testapi::{Gvr, Verb};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::scripted;
use crate::support::{LONG, World, map, maps};
use crate::wireless::{Wireless, pass};

fn deployments() -> Gvr {
    Gvr::new("apps/v1", "deployments")
}

fn pods() -> Gvr {
    Gvr::new("v1", "pods")
}

fn accounts() -> Gvr {
    Gvr::new("v1", "serviceaccounts")
}

/// Two containers, so that a list that is replaced loses one.
fn deployment() -> Value {
    let containers = json!([{ "name": "web", "image": "web:1" }, { "name": "log", "image": "log:1" }]);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": "shop", "name": "a" },
        "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": containers } },
        },
    })
}

/// A pod that its finalizer keeps after its deletion.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "shop", "name": name, "finalizers": ["shop.example.com/held"] },
        "spec": { "containers": [{ "name": "c", "image": "d" }] },
    })
}

/// A controller, and the results of its reconciliations, one after the other.
struct Runs<A> {
    answers: mpsc::UnboundedReceiver<A>,
    handle: ControllerHandle,
    _running: AbortOnDropHandle<()>,
}

impl<A: Send + 'static> Runs<A> {
    /// Each reconciliation asks for another one a second later.
    fn begin<K, F, R>(informer: &Informer<K>, client: informer::kube::Client, reconcile: F) -> Self
    where
        K: View,
        F: Fn(Context<K>) -> R + Send + Sync + 'static,
        R: Future<Output = A> + Send,
    {
        let (answer, answers) = mpsc::unbounded_channel();
        let reconcile = Arc::new(reconcile);
        let reconciler = move |context: Context<K>| {
            let (reconcile, answer) = (reconcile.clone(), answer.clone());
            async move {
                let _ = answer.send(reconcile(context).await);
                Ok(Outcome::After(Duration::from_secs(1)))
            }
        };
        let controller = Controller::new("test", informer).own_writes_limit(Duration::from_millis(20));
        let handle = controller.handle();
        let running = controller.run(client, reconciler);
        let running = AbortOnDropHandle::new(tokio::spawn(async move { running.await.unwrap() }));
        Self { answers, handle, _running: running }
    }

    /// Waits until the object `shop/a` is put off, because its cache lacks the last write.
    async fn is_put_off(&self) {
        self.handle.reconcile("shop/a".parse().unwrap());
        let none = r#"controller_reconciles_total{name="test",result="put_off"} 0"#;
        let put_off = async {
            while self.handle.metrics().to_text(Format::Prometheus).contains(none) {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, put_off).await.expect("a reconciliation is put off");
    }

    async fn next(&mut self) -> A {
        timeout(LONG, self.answers.recv()).await.expect("a reconciliation").unwrap()
    }
}

/// The answer of one reconciliation.
async fn once<K, F, R, A>(world: &Wireless, reconcile: F) -> A
where
    K: View + Resource<DynamicType = (), Scope: 'static>,
    F: Fn(Context<K>) -> R + Send + Sync + 'static,
    R: Future<Output = A> + Send,
    A: Send + 'static,
{
    Runs::begin(&world.factory().informer::<K>(), world.client(), reconcile).next().await
}

/// Somebody else changes the config map `shop/a`.
fn change(world: &Wireless, value: &str) {
    let patch = testapi::Patch::Merge(json!({ "data": { "other": value } }));
    world.0.patch(&maps(), "shop", "a", &patch).unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_read_from_the_server_is_written_with_its_own_version() {
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let other = world.clone();
    let (cached, live, late) = once(&world, move |context: Context<ConfigMap>| {
        let other = other.clone();
        async move {
            let (map, writer) = (context.object().unwrap(), context.writer());
            let patch = |value| json!({ "data": { "own": value } });
            change(&other, "1");
            let cached = writer.patch(map, patch("cached")).await.map(drop);
            let maps: Api<ConfigMap> = Api::namespaced(context.unrecorded_client().clone(), "shop");
            let read = maps.get("a").await.unwrap();
            let live = writer.patch(&read, patch("live")).await;
            change(&other, "2");
            // The writer's own last write is older than what is read here, and newer than what was read before.
            let again = maps.get("a").await.unwrap();
            let live = live.and(writer.patch(&again, patch("again")).await);
            let live = live.and(writer.patch(&read, patch("own")).await);
            change(&other, "3");
            let late: Result<ConfigMap, _> = writer.patch(&again, patch("late")).await;
            (cached, live, late)
        }
    })
    .await;
    assert!(cached.unwrap_err().is_conflict(), "the cache is older");
    let data = live.unwrap().data.unwrap();
    assert_eq!((&*data["own"], &*data["other"]), ("own", "2"));
    assert!(late.unwrap_err().is_conflict(), "somebody has written it since");
}

#[tokio::test(start_paused = true)]
async fn an_object_of_a_type_that_is_known_at_run_time_is_created_replaced_and_a_target() {
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let result: Result<_, WriteError> = once(&world, async |context: Context<ConfigMap>| {
        let (writer, resource) = (context.writer(), ResourceType::of::<ConfigMap>());
        let new = json!({ "metadata": { "namespace": "shop", "name": "b" }, "data": { "a": "1", "b": "1" } });
        let mut created = writer.create_value(&resource, &new).await?;
        created["data"] = json!({ "a": "2" });
        let replaced = writer.replace_value(&resource, &created).await?;
        let of = ApiResource::erase::<ConfigMap>(&());
        let maps: Api<DynamicObject> = Api::namespaced_with(context.unrecorded_client().clone(), "shop", &of);
        let read = maps.get("b").await.unwrap();
        let patched = writer.patch((&resource, &read), json!({ "data": { "c": "3" } })).await?;
        let unnamed = writer.delete(&ConfigMap::default()).await;
        Ok((replaced["data"].clone(), patched.data["data"].clone(), unnamed))
    })
    .await;
    let (replaced, patched, unnamed) = result.unwrap();
    assert_eq!((replaced, patched), (json!({ "a": "2" }), json!({ "a": "2", "c": "3" })));
    assert_eq!(
        unnamed.unwrap_err().to_string(),
        "cannot delete configmaps.v1: the object has no metadata.name"
    );
}

#[tokio::test(start_paused = true)]
async fn a_strategic_merge_patch_merges_lists_by_their_keys() {
    let world = Wireless::with(&deployments(), [deployment()]);
    let patched = once(&world, async |context: Context<Deployment>| {
        let containers = json!([{ "name": "web", "image": "web:2" }]);
        let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
        context.writer().patch(context.object().unwrap(), Patch::Strategic(patch)).await
    })
    .await;
    let containers = patched.unwrap().spec.template.spec.unwrap().containers;
    let images: Vec<_> = containers.iter().filter_map(|container| container.image.as_deref()).collect();
    assert_eq!(images, ["web:2", "log:1"]);
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_fails_with_a_conflict_where_the_object_is_not_as_it_demands() {
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let other = world.clone();
    let (patched, misfit, invalid, old, unlocked) = once(&world, move |context: Context<ConfigMap>| {
        let other = other.clone();
        async move {
            let (map, writer) = (context.object().unwrap(), context.writer());
            let patch = |op: &str, path: &str, value: Value| {
                Patch::Json(vec![json!({ "op": op, "path": path, "value": value })])
            };
            let patched: Result<ConfigMap, _> = writer.patch(map, patch("add", "/data/b", "1".into())).await;
            let misfit = writer.patch(map, patch("test", "/data/b", "2".into())).await.map(drop);
            let label = patch("add", "/metadata/labels", json!({ "a": "no label!" }));
            let invalid = writer.patch(map, label).await.map(drop);
            change(&other, "1");
            let old = writer.patch(map, patch("add", "/data/c", "1".into())).await.map(drop);
            let unlocked = writer.unlocked().patch(map, patch("add", "/data/c", "1".into())).await;
            (patched, misfit, invalid, old, unlocked)
        }
    })
    .await;
    assert_eq!(patched.unwrap().data.unwrap()["b"], "1");
    assert!(misfit.unwrap_err().is_conflict(), "a test failed");
    let invalid = invalid.unwrap_err();
    assert!(invalid.is_invalid() && !invalid.is_conflict(), "{invalid}");
    assert!(old.unwrap_err().is_conflict(), "the version is another");
    assert_eq!(unlocked.unwrap().data.unwrap()["c"], "1");
}

#[tokio::test(start_paused = true)]
async fn q7_a_dry_run_changes_nothing_and_nothing_is_expected_of_it() {
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let informer = world.factory().informer::<ConfigMap>();
    let mut runs = Runs::begin(&informer, world.client(), async |context: Context<ConfigMap>| {
        let map = context.object().unwrap();
        let (writer, dry) = (context.writer(), context.writer().dry_run());
        let patch = |value| json!({ "data": { "of": value } });
        let patched: ConfigMap = dry.patch(map, patch("dry")).await?;
        dry.apply(&ConfigMap { metadata: named("new"), ..ConfigMap::default() }).await?;
        dry.create(&ConfigMap { metadata: named("newer"), ..ConfigMap::default() }).await?;
        dry.delete(map).await?;
        writer.delete_with(map, DeleteParams { dry_run: true, ..DeleteParams::default() }).await?;
        // Still the version of the cache.
        writer.patch(map, json!({ "data": { "own": "1" } })).await?;
        Ok::<_, WriteError>(patched.data.unwrap()["of"].clone())
    });
    assert_eq!(runs.next().await.unwrap(), "dry");
    let begun = Instant::now();
    assert_eq!(runs.next().await.unwrap(), "dry");
    assert!(begun.elapsed() < Duration::from_secs(5), "the next reconciliation waits for nothing");
    assert_eq!(world.0.list(&maps(), Some("shop")).unwrap().len(), 1);
    assert_eq!(world.0.get(&maps(), "shop", "a").unwrap()["data"], json!({ "of": "a", "own": "1" }));
}

fn named(name: &str) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        namespace: Some("shop".to_owned()),
        name: Some(name.to_owned()),
        ..Default::default()
    }
}

#[tokio::test(start_paused = true)]
async fn fields_that_the_type_lacks_are_refused_on_demand_and_the_manager_has_a_name() {
    let world = Wireless::with(&deployments(), [deployment()]);
    let (dropped, refused, managed) = once(&world, async |context: Context<Deployment>| {
        let (deployment, writer) = (context.object().unwrap(), context.writer());
        let wrong = || json!({ "spec": { "replica": 3 } });
        let dropped: Result<Deployment, _> = writer.patch(deployment, wrong()).await;
        let strict = writer.field_validation(ValidationDirective::Strict);
        let refused = strict.patch(deployment, wrong()).await.map(drop);
        let label = json!({ "metadata": { "labels": { "a": "b" } } });
        let managed = writer.field_manager("shop & co").patch(deployment, label).await;
        (dropped, refused, managed)
    })
    .await;
    assert!(dropped.is_ok());
    assert!(refused.unwrap_err().is_invalid());
    let managers = managed.unwrap().metadata.managed_fields.unwrap();
    assert!(managers.iter().any(|entry| entry.manager.as_deref() == Some("shop & co")));
}

#[tokio::test]
async fn q7_a_scale_is_seen_by_the_next_reconciliation_and_by_the_next_write() {
    let world = World::new([deployment()]).await;
    let informer = world.factory.informer::<Deployment>();
    let stalled = world.server.faults().on(Verb::Watch.of("deployments")).once(Fault::StallAfter(Events(0)));
    let mut runs = Runs::begin(&informer, world.client.clone(), async |context: Context<Deployment>| {
        let (deployment, writer) = (context.object().unwrap(), context.writer());
        let replicas = deployment.spec.replicas;
        if replicas != Some(0) {
            assert_eq!(writer.scale(deployment, 3).await?.spec.unwrap().replicas, Some(3));
            assert_eq!(writer.scale(deployment, 0).await?.spec.unwrap_or_default().replicas, None);
            let status = json!({ "status": { "replicas": 1 } });
            writer.patch_status(deployment, status).await?;
        }
        Ok::<_, WriteError>(replicas)
    });
    assert_eq!(runs.next().await.unwrap(), Some(1));
    runs.is_put_off().await;
    stalled.hit().await;
    world.server.faults().running(Verb::Watch.of("deployments")).cut();
    assert_eq!(runs.next().await.unwrap(), Some(0));
    let of_scale = world.server.requests().count(&Verb::Patch.of("deployments").below("scale"));
    assert_eq!(of_scale, 2, "nothing is scaled twice");
}

#[tokio::test(start_paused = true)]
async fn a_scale_conflicts_with_another_version_of_its_object() {
    let world = Wireless::with(&deployments(), [deployment()]);
    let other = world.clone();
    let (locked, unlocked) = once(&world, move |context: Context<Deployment>| {
        let other = other.clone();
        async move {
            let (deployment, writer) = (context.object().unwrap(), context.writer());
            let label = testapi::Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
            other.0.patch(&deployments(), "shop", "a", &label).unwrap();
            (writer.scale(deployment, 2).await, writer.unlocked().scale(deployment, 3).await)
        }
    })
    .await;
    assert!(locked.unwrap_err().is_conflict());
    assert_eq!(unlocked.unwrap().spec.unwrap().replicas, Some(3));
}

#[tokio::test]
async fn q7_after_an_eviction_the_next_reconciliation_sees_that_the_deletion_has_begun() {
    let world = World::new([pod("a")]).await;
    let informer = world.factory.informer::<Pod>();
    let stalled = world.server.faults().on(Verb::Watch.of("pods")).once(Fault::StallAfter(Events(0)));
    let mut runs = Runs::begin(&informer, world.client.clone(), async |context: Context<Pod>| {
        let pod = context.object().unwrap();
        let is_going = pod.metadata.deletion_timestamp.is_some();
        if !is_going {
            context.writer().dry_run().evict(pod).await?;
            context.writer().evict(pod).await?;
        }
        Ok::<_, WriteError>(is_going)
    });
    assert!(!runs.next().await.unwrap());
    runs.is_put_off().await;
    stalled.hit().await;
    world.server.faults().running(Verb::Watch.of("pods")).cut();
    assert!(runs.next().await.unwrap(), "the pod is going, and its finalizer keeps it");
    assert_eq!(world.server.requests().count(&Verb::Create.of("pods").below("eviction")), 2);
    let conditions = world.server.api().get(&pods(), "shop", "a").unwrap()["status"]["conditions"].clone();
    assert_eq!(conditions[0]["type"], "DisruptionTarget");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_hits_no_other_version_of_the_pod() {
    let world = Wireless::with(&pods(), [pod("a")]);
    let other = world.clone();
    let evicted = once(&world, move |context: Context<Pod>| {
        let other = other.clone();
        async move {
            let label = testapi::Patch::Merge(json!({ "metadata": { "labels": { "keep": "yes" } } }));
            other.0.patch(&pods(), "shop", "a", &label).unwrap();
            let pod = context.object().unwrap();
            // The label wakes another reconciliation.
            if pod.labels().value("keep").is_some() { Ok(()) } else { context.writer().evict(pod).await }
        }
    })
    .await;
    assert!(evicted.unwrap_err().is_conflict());
    let pod = world.0.get(&pods(), "shop", "a").unwrap();
    assert_eq!(
        (&pod["metadata"]["deletionTimestamp"], &pod["status"]["conditions"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test(start_paused = true)]
async fn q7_a_token_is_created_and_nobody_waits_for_it() {
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": "shop", "name": "a" } });
    let world = Wireless::with(&accounts(), [account]);
    let informer = world.factory().informer::<ServiceAccount>();
    let mut runs = Runs::begin(&informer, world.client(), async |context: Context<ServiceAccount>| {
        let spec = TokenRequestSpec {
            audiences: Some(vec!["shop".to_owned()]),
            expiration_seconds: Some(600),
            ..Default::default()
        };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        context.writer().create_token(context.object().unwrap(), &request).await
    });
    let (first, begun) = (runs.next().await.unwrap().status.unwrap(), Instant::now());
    let second = runs.next().await.unwrap().status.unwrap();
    assert!(first.token.is_some() && first.token != second.token);
    assert!(begun.elapsed() < Duration::from_secs(2), "the next reconciliation waits for nothing");
}

/// An answer of 429, as an eviction gets it from a disruption budget.
fn not_now(seconds: u32) -> Value {
    let mut status = scripted::status(429, "TooManyRequests");
    status["details"] = json!({ "retryAfterSeconds": seconds });
    status
}

/// The failure of a reconciler that has errors of its own.
#[derive(Debug, thiserror::Error)]
#[error("the shop does not open")]
struct Closed(#[source] WriteError);

#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_for_now_is_no_failure_and_comes_again_after_the_time_that_the_server_asks_for()
 {
    for (asked, waits) in [(30, 30), (0, 5)] {
        let world = Wireless::with(&pods(), [pod("a")]);
        let (client, _) = scripted::client(move |_| Some((429, not_now(asked))));
        let (tell, mut told) = mpsc::unbounded_channel();
        let controller =
            Controller::new("test", &world.factory().informer::<Pod>()).without_permission_check();
        let handle = controller.handle();
        let running = controller.run(client, move |context: Context<Pod>| {
            let tell = tell.clone();
            async move {
                let _ = tell.send((Instant::now(), context.failures()));
                let evicted = context.writer().evict(context.object().unwrap()).await;
                evicted.map_err(Closed)?;
                Ok::<_, Failure>(Outcome::Done)
            }
        });
        let _running = AbortOnDropHandle::new(tokio::spawn(running));
        let (mut before, _) = told.recv().await.unwrap();
        for _ in 0..8 {
            let (at, failures) = told.recv().await.unwrap();
            assert_eq!((failures, (at - before).as_secs()), (0, waits));
            before = at;
        }
        let text = handle.metrics().to_text(Format::Prometheus);
        assert!(!text.contains("result=\"failed\"} 1"), "{text}");
    }
}

/// Each alone comes again after a second, and all together at the pace of failures.
#[tokio::test(start_paused = true)]
async fn many_writes_that_are_refused_for_now_come_again_at_the_pace_of_the_limiter() {
    let world = Wireless::with(&pods(), (0..500).map(|at| pod(&format!("a-{at}"))));
    let (client, log) = scripted::client(|_| Some((429, not_now(1))));
    let controller = Controller::new("test", &world.factory().informer::<Pod>()).without_permission_check();
    let running = controller.run(client, async |context: Context<Pod>| {
        context.writer().evict(context.object().unwrap()).await?;
        Ok::<_, Failure>(Outcome::Done)
    });
    let _running = AbortOnDropHandle::new(tokio::spawn(running));
    pass(Duration::from_secs(60)).await;
    let asked = log.lock().unwrap().len();
    // Each once, and then a burst of 100, and 10 a second.
    assert!((500..=500 + 100 + 600).contains(&asked), "{asked} evictions in a minute");
}
