//! Clause Q7: after a write through the context the next reconciliation of that key sees it, or something newer, or is put
//! off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use informer::Informer;
use informer::kube::Client;
use informer::kube::client::Api;
use informer::kube::client::client::Body;
use informer::kube::client::client::retry::RetryPolicy;
use informer::kube::core::params::PostParams;
use informer_controller::metrics::Format;
use informer_controller::{Context, Controller, Failure, Outcome, with};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use testapi::faults::{Bytes, Events, Fault};
use testapi::{Patch, Verb};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::support::{LONG, Stop, World, child, map, maps, secrets};
use crate::wireless::{Wireless, pass};

/// How a reconciler writes.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Context,
    /// With a client, so that the controller does not know of the write.
    Around,
}

struct State {
    secrets: Informer<Secret>,
    way: Way,
    /// The number of children that each reconciliation saw.
    seen: mpsc::UnboundedSender<usize>,
}

/// Each config map wants one secret, whose name the server chooses.
async fn one_child(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let children = context.owned(&state.secrets);
    let _ = state.seen.send(children.len());
    if !children.is_empty() {
        return Ok(Outcome::Done);
    }
    let child = child(map);
    match state.way {
        Way::Context => context.writer().create(&child).await.map(drop)?,
        Way::Around => {
            let api: Api<Secret> = Api::namespaced(context.unrecorded_client().clone(), "shop");
            api.create(&PostParams::default(), &child).await.map(drop)?;
        }
    }
    Ok(Outcome::Done)
}

/// Creates a child while the watch of children stands still, then changes the parent. Returns how many children there are
/// in the end, and how many each reconciliation saw.
async fn with_a_cache_that_lags(way: Way, fields: &str) -> (usize, Vec<usize>) {
    let world = World::new([map("shop", "a")]).await;
    let maps_informer = world.factory.informer::<ConfigMap>();
    let children = world.factory.with_fields(fields).unwrap().informer::<Secret>();
    let stalled = world.server.faults().on(Verb::Watch.of("secrets")).once(Fault::StallAfter(Events(0)));
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &maps_informer).owns(&children).until(stopped);
    let state = State { secrets: children.clone(), way, seen };
    let running = tokio::spawn(controller.run(world.client.clone(), with(state, one_child)));
    let mut counts = Vec::new();
    counts.push(tokio::time::timeout(LONG, reconciled.recv()).await.unwrap().unwrap());
    world.answered(&Verb::Create.of("secrets"), 1).await;

    let patch = Patch::Merge(json!({ "data": { "of": "changed" } }));
    world.server.api().patch(&maps(), "shop", "a", &patch).unwrap();
    maps_informer.at_least(&world.version(), LONG).await.unwrap();
    if way == Way::Around {
        // The second reconciliation does not see the first child.
        world.answered(&Verb::Create.of("secrets"), 2).await;
    }
    // The watch goes on, if it has begun.
    stalled.hit().await;
    world.server.faults().running(Verb::Watch.of("secrets")).cut();
    while counts.last() == Some(&0) {
        counts.push(tokio::time::timeout(LONG, reconciled.recv()).await.unwrap().unwrap());
    }
    stop.and_wait(running).await.unwrap();
    (world.server.api().list(&secrets(), Some("shop")).unwrap().len(), counts)
}

#[tokio::test]
async fn q7_a_write_through_the_context_is_seen_by_the_next_reconciliation() {
    assert_eq!(with_a_cache_that_lags(Way::Context, "").await, (1, vec![0, 1]));
}

#[tokio::test]
async fn q7_without_it_a_child_is_created_twice() {
    let (children, counts) = with_a_cache_that_lags(Way::Around, "").await;
    assert_eq!((children, &counts[..2]), (2, &[0, 0][..]));
}

/// The owner's cache never has the version of the child. Such a key waited for ten seconds, again and again.
#[tokio::test(start_paused = true)]
async fn q7_a_child_with_the_key_of_its_owner_is_awaited_in_its_own_cache_alone() {
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let factory = world.factory();
    let (owners, children) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let state = State { secrets: children.clone(), way: Way::Context, seen };
    let reconcile = async |state: Arc<State>, context: Context<ConfigMap>| {
        let Some(map) = context.object() else { return Ok(Outcome::Done) };
        let children = context.owned(&state.secrets).len();
        let _ = state.seen.send(children);
        if children == 0 {
            let seen = json!({ "metadata": { "annotations": { "seen": "yes" } } });
            context.writer().patch(map, seen).await?;
            let mut child = child(map);
            child.metadata.name = map.metadata.name.clone();
            context.writer().create(&child).await?;
        }
        Ok(Outcome::Done)
    };
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &owners).owns(&children).until(stopped);
    let running = tokio::spawn(controller.run(world.client(), with(state, reconcile)));
    pass(Duration::from_secs(5)).await;
    stop.and_wait(running).await.unwrap();
    let counts: Vec<usize> = std::iter::from_fn(|| reconciled.try_recv().ok()).collect();
    assert!(counts.len() >= 2 && counts[0] == 0 && counts[1..].iter().all(|&count| count == 1), "{counts:?}");
}

#[tokio::test]
async fn q7_a_cache_that_stays_behind_puts_the_key_off_and_never_reconciles_on_older_state() {
    let world = World::new([map("shop", "a")]).await;
    let maps_informer = world.factory.informer::<ConfigMap>();
    let children = world.factory.informer::<Secret>();
    let stalled = world.server.faults().on(Verb::Watch.of("secrets")).once(Fault::StallAfter(Events(0)));
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &maps_informer)
        .owns(&children)
        .own_writes_limit(Duration::from_millis(20))
        .until(stopped);
    let state = State { secrets: children.clone(), way: Way::Context, seen };
    let running = tokio::spawn(controller.run(world.client.clone(), with(state, one_child)));
    assert_eq!(reconciled.recv().await, Some(0));
    world.answered(&Verb::Create.of("secrets"), 1).await;
    for n in 0..20 {
        let patch = Patch::Merge(json!({ "data": { "of": n.to_string() } }));
        world.server.api().patch(&maps(), "shop", "a", &patch).unwrap();
        maps_informer.at_least(&world.version(), LONG).await.unwrap();
    }
    stalled.hit().await;
    world.server.faults().running(Verb::Watch.of("secrets")).cut();
    assert_eq!(tokio::time::timeout(LONG, reconciled.recv()).await.unwrap(), Some(1));
    stop.and_wait(running).await.unwrap();
    assert_eq!(world.server.api().list(&secrets(), Some("shop")).unwrap().len(), 1);
}

#[tokio::test]
async fn q7_a_write_without_an_answer_counts_as_carried_out() {
    let world = World::new([map("shop", "a")]).await;
    let maps_informer = world.factory.informer::<ConfigMap>();
    let children = world.factory.informer::<Secret>();
    // The server creates the secret, and the answer is lost.
    let lost = world.server.faults().on(Verb::Create.of("secrets")).once(Fault::CutAfter(Bytes(0)));
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &maps_informer).owns(&children).until(stopped);
    let state = State { secrets: children.clone(), way: Way::Context, seen };
    let running = tokio::spawn(controller.run(world.client.clone(), with(state, one_child)));
    assert_eq!(tokio::time::timeout(LONG, reconciled.recv()).await.unwrap(), Some(0));
    tokio::time::timeout(LONG, lost.hit()).await.unwrap();
    assert_eq!(tokio::time::timeout(LONG, reconciled.recv()).await.unwrap(), Some(1));
    stop.and_wait(running).await.unwrap();
    assert_eq!(world.server.api().list(&secrets(), Some("shop")).unwrap().len(), 1);
}

/// The state of the child in a reconciliation's view.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Child {
    Stays,
    IsDeleted,
    Gone,
}

/// Each config map wants its child to go.
async fn no_child(
    state: Arc<(Informer<Secret>, mpsc::UnboundedSender<Child>)>,
    context: Context<ConfigMap>,
) -> Result<Outcome, Failure> {
    let child = context.get(&state.0, "shop/child")?;
    let seen = match child.as_ref().map(|child| child.metadata.deletion_timestamp.is_some()) {
        None => Child::Gone,
        Some(true) => Child::IsDeleted,
        Some(false) => Child::Stays,
    };
    let _ = state.1.send(seen);
    if let Some(child) = child.filter(|_| seen == Child::Stays) {
        context.writer().delete(&child).await?;
    }
    Ok(Outcome::Done)
}

/// A child with a finalizer is deleted while the watch of children stands still: it stays, with a deletion timestamp.
async fn a_deletion_that_a_finalizer_holds_up(is_answered: bool) {
    let child = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "namespace": "shop", "name": "child", "finalizers": ["shop.example.com/bucket"] },
    });
    let world = World::new([map("shop", "a"), child]).await;
    let maps_informer = world.factory.informer::<ConfigMap>();
    let children = world.factory.informer::<Secret>();
    let stalled = world.server.faults().on(Verb::Watch.of("secrets")).once(Fault::StallAfter(Events(0)));
    let deletion = world.server.faults().on(Verb::Delete.of("secrets"));
    let _lost = (!is_answered).then(|| deletion.once(Fault::CutAfter(Bytes(0))));
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &maps_informer)
        .reads(&children)
        .own_writes_limit(Duration::from_millis(20))
        .until(stopped);
    let handle = controller.handle();
    let running =
        tokio::spawn(controller.run(world.client.clone(), with((children.clone(), seen), no_child)));
    let mut next = async || tokio::time::timeout(LONG, reconciled.recv()).await.unwrap().unwrap();
    assert_eq!(next().await, Child::Stays);
    world.answered(&Verb::Delete.of("secrets"), 1).await;

    // It is asked for again, and put off: the cache has the child as it was.
    handle.reconcile("shop/a".parse().unwrap());
    let put_off = async {
        let none = r#"controller_reconciles_total{name="test",result="put_off"} 0"#;
        while handle.metrics().to_text(Format::Prometheus).contains(none) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, put_off).await.unwrap();
    stalled.hit().await;
    world.server.faults().running(Verb::Watch.of("secrets")).cut();
    assert_eq!(next().await, Child::IsDeleted, "nothing was reconciled on older state");

    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    world.server.api().patch(&secrets(), "shop", "child", &released).unwrap();
    children.at_least(&world.version(), LONG).await.unwrap();
    handle.reconcile("shop/a".parse().unwrap());
    assert_eq!(next().await, Child::Gone);
    stop.and_wait(running).await.unwrap();
    assert_eq!(world.server.requests().count(&Verb::Delete.of("secrets")), 1);
}

#[tokio::test]
async fn q7_a_deletion_that_a_finalizer_holds_up_is_seen_by_the_next_reconciliation() {
    a_deletion_that_a_finalizer_holds_up(true).await;
}

#[tokio::test]
async fn q7_a_deletion_that_a_finalizer_holds_up_is_seen_although_its_answer_was_lost() {
    a_deletion_that_a_finalizer_holds_up(false).await;
}

#[tokio::test]
async fn q7_a_write_of_what_somebody_else_has_changed_is_a_conflict() {
    let world = World::new([map("shop", "a")]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let (errors, mut failed) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    let api: Api<ConfigMap> = Api::namespaced(world.client.clone(), "shop");
    let state = (api, errors);
    async fn reconcile(
        state: Arc<(Api<ConfigMap>, mpsc::UnboundedSender<Option<bool>>)>,
        context: Context<ConfigMap>,
    ) -> Result<Outcome, Failure> {
        let Some(map) = context.object() else { return Ok(Outcome::Done) };
        if context.failures() == 0 && map.labels().is_empty() {
            let other = json!({ "data": { "of": "somebody else" } });
            let merge = informer::kube::core::params::Patch::Merge(&other);
            state.0.patch("a", &Default::default(), &merge).await?;
        }
        let patched = context.writer().patch(map, json!({ "metadata": { "labels": { "a": "b" } } })).await;
        let _ = state.1.send(patched.as_ref().err().map(|error| error.is_conflict()));
        patched?;
        // Its own last write does not conflict with this one.
        context.writer().patch(map, json!({ "metadata": { "labels": { "c": "d" } } })).await?;
        Ok(Outcome::Done)
    }
    let running = tokio::spawn(controller.run(world.client.clone(), with(state, reconcile)));
    assert_eq!(tokio::time::timeout(LONG, failed.recv()).await.unwrap(), Some(Some(true)));
    // Again, until the cache has what somebody else wrote.
    while tokio::time::timeout(LONG, failed.recv()).await.unwrap() == Some(Some(true)) {}
    world
        .server
        .api()
        .wait_for(&maps(), "shop", "a", |map| map["metadata"]["labels"]["c"] == "d")
        .await
        .unwrap();
    stop.and_wait(running).await.unwrap();
}

/// kube's client repeats what is answered with 504. The first creation was carried out.
#[tokio::test(start_paused = true)]
async fn q7_a_creation_whose_fate_is_unknown_is_repeated_by_nobody() {
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let (api, creations) = (world.0.clone(), Arc::new(AtomicUsize::new(0)));
    let counter = creations.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (api, creations) = (api.clone(), counter.clone());
        async move {
            let (head, body) = request.into_parts();
            assert!(body.size_hint().exact().is_some(), "its length is a header");
            let body = body.collect().await?.to_bytes();
            let creates = head.method == "POST" && head.uri.path().ends_with("/secrets");
            let answer = api.handle(http::Request::from_parts(head, body)).await;
            if creates && creations.fetch_add(1, Ordering::SeqCst) == 0 {
                // A proxy on the way gives up.
                let gave_up = http::Response::builder().status(504);
                return Ok(gave_up.body(Body::from(Vec::new()))?);
            }
            Ok::<_, tower::BoxError>(
                answer.map(|body| Body::from(body.collect().now_or_never().unwrap().unwrap().to_bytes())),
            )
        }
    });
    let retries = tower::retry::RetryLayer::new(RetryPolicy::server_retry());
    let client = Client::new(tower::ServiceBuilder::new().layer(retries).service(service), "default");
    let factory = world.factory();
    let (parents, children) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let controller = Controller::new("test", &parents).owns(&children);
    let state = State { secrets: children.clone(), way: Way::Context, seen };
    let _running = AbortOnDropHandle::new(tokio::spawn(controller.run(client, with(state, one_child))));
    let mut next = async || tokio::time::timeout(LONG, reconciled.recv()).await.unwrap().unwrap();
    assert_eq!(
        (next().await, next().await),
        (0, 1),
        "it is tried again, and sees what the first attempt wrote"
    );
    assert_eq!(creations.load(Ordering::SeqCst), 1);
    assert_eq!(world.0.list(&secrets(), Some("shop")).unwrap().len(), 1);
}

/// Only the server knows which objects such an informer selects.
#[tokio::test]
async fn q7_a_write_is_seen_by_an_informer_with_a_field_selector() {
    assert_eq!(with_a_cache_that_lags(Way::Context, "type=Opaque").await, (1, vec![0, 1]));
}

/// The child is not selected, so nothing waits for the cache, which stands still.
#[tokio::test]
async fn q7_a_write_that_a_field_selector_leaves_out_holds_nothing_up() {
    let world = World::new([map("shop", "a")]).await;
    let parents = world.factory.informer::<ConfigMap>();
    let others = world.factory.with_fields("type=shop.example.com/other").unwrap().informer::<Secret>();
    let _stalled = world.server.faults().on(Verb::Watch.of("secrets")).always(Fault::StallAfter(Events(0)));
    let (seen, mut reconciled) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &parents).reads(&others).until(stopped);
    let handle = controller.handle();
    let reconcile = move |context: Context<ConfigMap>| {
        let seen = seen.clone();
        async move {
            let metadata = ObjectMeta {
                namespace: Some("shop".to_owned()),
                name: Some("child".to_owned()),
                ..ObjectMeta::default()
            };
            let created = context.writer().create(&Secret { metadata, ..Secret::default() }).await;
            let _ = seen.send(created.is_ok());
            Ok(Outcome::Done)
        }
    };
    let running = tokio::spawn(controller.run(world.client.clone(), reconcile));
    let mut next = async || tokio::time::timeout(LONG, reconciled.recv()).await.unwrap().unwrap();
    assert!(next().await);
    handle.reconcile("shop/a".parse().unwrap());
    assert!(!next().await, "it exists");
    let waited = handle.metrics().to_text(Format::Prometheus);
    assert!(waited.contains(r#"controller_reconciles_total{name="test",result="put_off"} 0"#), "{waited}");
    stop.and_wait(running).await.unwrap();
}

/// Each config map gets the lowest number that no secret has, while the watch of secrets stands still.
async fn allocated(for_all: bool) -> Vec<String> {
    let world = World::new([map("shop", "a"), map("shop", "b")]).await;
    let parents = world.factory.informer::<ConfigMap>();
    let secrets_informer = world.factory.informer::<Secret>();
    let stalled = world.server.faults().on(Verb::Watch.of("secrets")).once(Fault::StallAfter(Events(0)));
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &parents).reads(&secrets_informer).until(stopped);
    let controller = if for_all { controller.own_writes_for_all_keys() } else { controller };
    let (read, stalls) = (secrets_informer.clone(), Arc::new(tokio::sync::Semaphore::new(0)));
    let waits = stalls.clone();
    let reconcile = move |context: Context<ConfigMap>| {
        let (taken, waits) = (context.snapshot(&read), waits.clone());
        async move {
            // The watch has begun.
            drop(waits.acquire().await?);
            let own = context.key().name().to_owned();
            if taken.iter().any(|secret| secret.labels().value("of") == Some(&own)) {
                return Ok(Outcome::Done);
            }
            let labels = [("of".to_owned(), own.clone()), ("number".to_owned(), taken.len().to_string())];
            let metadata = ObjectMeta {
                namespace: Some("shop".to_owned()),
                name: Some(own),
                labels: Some(labels.into()),
                ..ObjectMeta::default()
            };
            context.writer().create(&Secret { metadata, ..Secret::default() }).await?;
            Ok(Outcome::Done)
        }
    };
    let running = tokio::spawn(controller.run(world.client.clone(), reconcile));
    tokio::time::timeout(LONG, stalled.hit()).await.unwrap();
    stalls.add_permits(1);
    world.answered(&Verb::Create.of("secrets"), if for_all { 1 } else { 2 }).await;
    world.server.faults().running(Verb::Watch.of("secrets")).cut();
    world.answered(&Verb::Create.of("secrets"), 2).await;
    stop.and_wait(running).await.unwrap();
    let all = world.server.api().list(&secrets(), Some("shop")).unwrap();
    all.iter().map(|one| one["metadata"]["labels"]["number"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn q7_by_option_a_key_sees_what_other_keys_have_written() {
    let mut numbers = allocated(true).await;
    numbers.sort_unstable();
    assert_eq!(numbers, ["0", "1"]);
}

#[tokio::test]
async fn q7_without_the_option_two_keys_take_the_same_number() {
    assert_eq!(allocated(false).await, ["0", "0"]);
}
