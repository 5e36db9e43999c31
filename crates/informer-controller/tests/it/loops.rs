//! Which objects are reconciled, and when.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer::ResourceType;
use informer::kube::core::DynamicObject;
use informer_controller::{Context, Controller, Failure, Outcome, Trigger, Watched, changed, with};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use testapi::Patch;
use tokio::sync::mpsc;

use crate::support::{LONG, Stop, World, map, maps};

async fn next<T>(calls: &mut mpsc::UnboundedReceiver<T>) -> T {
    tokio::time::timeout(LONG, calls.recv()).await.expect("a reconciliation").expect("the controller runs")
}

#[tokio::test]
async fn q6_every_object_is_reconciled_after_the_start_and_after_each_change() {
    let world = World::new([map("shop", "a"), map("shop", "b")]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    let running = tokio::spawn(controller.run(
        world.client.clone(),
        with(calls, |calls: Arc<mpsc::UnboundedSender<_>>, context: Context<ConfigMap>| async move {
            let data = context.object().map(|map| map.data.clone().unwrap_or_default());
            let _ = calls.send((
                context.key().to_string(),
                data.map(|data| data["of"].clone()),
                context.triggers(),
            ));
            Ok(Outcome::Done)
        }),
    ));
    let mut initial = [next(&mut called).await, next(&mut called).await];
    initial.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(
        initial.clone().map(|(key, of, _)| (key, of.unwrap())),
        [("shop/a".to_owned(), "a".to_owned()), ("shop/b".to_owned(), "b".to_owned()),]
    );
    assert!(initial.iter().all(|(_, _, causes)| causes.contains(Trigger::Initial)), "{initial:?}");

    let patch = Patch::Merge(json!({ "data": { "of": "changed" } }));
    world.server.api().patch(&maps(), "shop", "a", &patch).unwrap();
    let (key, of, causes) = next(&mut called).await;
    assert_eq!((key.as_str(), of.as_deref()), ("shop/a", Some("changed")));
    assert_eq!(causes.iter().collect::<Vec<_>>(), [Trigger::Object]);

    world.server.api().delete(&maps(), "shop", "b").unwrap();
    let (key, of, _) = next(&mut called).await;
    assert_eq!((key.as_str(), of), ("shop/b", None));
    stop.and_wait(running).await.unwrap();
}

#[tokio::test]
async fn q6_a_failure_and_a_panic_are_tried_again_and_giving_up_waits_for_a_change() {
    let world = World::new([map("shop", "fails"), map("shop", "gives-up"), map("shop", "panics")]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    let running = tokio::spawn(controller.run(
        world.client.clone(),
        with(calls, |calls: Arc<mpsc::UnboundedSender<_>>, context: Context<ConfigMap>| async move {
            let name = context.key().name().to_owned();
            let _ = calls.send((name.clone(), context.failures(), context.triggers()));
            match (name.as_str(), context.failures()) {
                ("fails", 0 | 1) => Err(Failure::retry("not yet")),
                ("panics", 0) => panic!("on purpose"),
                ("gives-up", _) => Err(Failure::give_up("for good")),
                _ => Ok(Outcome::Done),
            }
        }),
    ));
    let mut seen: HashMap<String, Vec<u32>> = HashMap::new();
    for _ in 0..6 {
        let (name, failures, causes) = next(&mut called).await;
        assert_eq!(causes.contains(Trigger::Retry), failures > 0, "{name} {failures} {causes:?}");
        seen.entry(name).or_default().push(failures);
    }
    assert_eq!(seen["fails"], [0, 1, 2]);
    assert_eq!(seen["panics"], [0, 1]);
    assert_eq!(seen["gives-up"], [0]);

    let patch = Patch::Merge(json!({ "data": { "of": "changed" } }));
    world.server.api().patch(&maps(), "shop", "gives-up", &patch).unwrap();
    assert_eq!(next(&mut called).await.0, "gives-up");
    stop.and_wait(running).await.unwrap();
}

#[tokio::test]
async fn q6_one_reconciliation_of_a_key_at_a_time_and_another_one_after_a_change_meanwhile() {
    let world = World::new([map("shop", "a")]).await;
    let informer = world.factory.informer::<ConfigMap>();
    struct State {
        running: AtomicUsize,
        most: AtomicUsize,
        last: Mutex<Option<String>>,
        begun: mpsc::UnboundedSender<()>,
        go_on: tokio::sync::Semaphore,
    }
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let state = State {
        running: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        last: Mutex::new(None),
        begun,
        go_on: tokio::sync::Semaphore::new(0),
    };
    async fn reconcile(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let running = state.running.fetch_add(1, Ordering::SeqCst) + 1;
        state.most.fetch_max(running, Ordering::SeqCst);
        let _ = state.begun.send(());
        state.go_on.acquire().await?.forget();
        let of = context.object().and_then(|map| map.data.as_ref()?.get("of").cloned());
        *state.last.lock().unwrap() = of;
        state.running.fetch_sub(1, Ordering::SeqCst);
        Ok(Outcome::Done)
    }
    let state = Arc::new(state);
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).workers(8).until(stopped);
    let running = tokio::spawn(controller.run(world.client.clone(), with(state.clone(), reconcile)));
    next(&mut has_begun).await;
    // Three changes while the first reconciliation runs.
    for n in 0..3 {
        let patch = Patch::Merge(json!({ "data": { "of": n.to_string() } }));
        world.server.api().patch(&maps(), "shop", "a", &patch).unwrap();
    }
    informer.at_least(&world.version(), LONG).await.unwrap();
    state.go_on.add_permits(8);
    next(&mut has_begun).await;
    stop.and_wait(running).await.unwrap();
    assert_eq!(state.most.load(Ordering::SeqCst), 1);
    assert_eq!(state.last.lock().unwrap().as_deref(), Some("2"));
}

#[tokio::test]
async fn q6_an_outcome_after_a_delay_comes_again_and_predicates_pass_only_what_matters() {
    let world = World::new([map("shop", "a")]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let data = Watched::of(&informer).when(changed::field(|map: &ConfigMap| map.data.clone()));
    let controller = Controller::new("test", data).until(stopped);
    let running = tokio::spawn(controller.run(
        world.client.clone(),
        with(calls, |calls: Arc<mpsc::UnboundedSender<_>>, context: Context<ConfigMap>| async move {
            let _ = calls.send(context.triggers().iter().collect::<Vec<_>>());
            let again = context.triggers().contains(Trigger::Initial);
            Ok(if again { Outcome::After(Duration::from_millis(1)) } else { Outcome::Done })
        }),
    ));
    assert_eq!(next(&mut called).await, [Trigger::Initial]);
    assert_eq!(next(&mut called).await, [Trigger::Again]);
    let labelled = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    world.server.api().patch(&maps(), "shop", "a", &labelled).unwrap();
    let changed = Patch::Merge(json!({ "data": { "of": "changed" } }));
    world.server.api().patch(&maps(), "shop", "a", &changed).unwrap();
    assert_eq!(next(&mut called).await, [Trigger::Object]);
    stop.and_wait(running).await.unwrap();
    assert!(called.recv().await.is_none(), "the change of the label did not pass");
}

#[tokio::test]
async fn q6_a_denied_informer_is_an_error_that_names_it() {
    let world = World::new([]).await;
    let _denied = world.server.faults().deny(testapi::faults::Matcher::of("configmaps"));
    let informer = world.factory.informer::<ConfigMap>();
    let controller = Controller::new("test", &informer);
    let error = controller
        .run(world.client.clone(), |_: Context<ConfigMap>| async { Ok(Outcome::Done) })
        .await
        .expect_err("it is denied");
    assert!(error.to_string().contains("configmaps.v1"), "{error}");
}

#[tokio::test]
async fn q6_a_resource_that_is_not_served_is_an_error_that_says_so() {
    let world = World::new([]).await;
    let widgets = ResourceType {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        plural: "widgets".to_owned(),
        kind: "Widget".to_owned(),
        namespaced: true,
    };
    let informer = world.factory.informer_of::<DynamicObject>(widgets);
    let controller = Controller::new("test", &informer).sync_limit(Duration::from_secs(2));
    let error = controller
        .run(world.client.clone(), |_: Context<DynamicObject>| async { Ok(Outcome::Done) })
        .await
        .expect_err("it is not served")
        .to_string();
    assert!(error.contains("widgets.v1.example.com"), "{error}");
    assert!(error.contains("not serve"), "{error}");
}

#[tokio::test]
async fn q4_a_handle_triggers_reconciliations_and_has_the_metrics() {
    let world = World::new([map("shop", "a")]).await;
    let informer = world.factory.informer::<ConfigMap>();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    let handle = controller.handle();
    type Calls = mpsc::UnboundedSender<(String, Vec<Trigger>)>;
    async fn reconcile(calls: Arc<Calls>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let _ = calls.send((context.key().to_string(), context.triggers().iter().collect()));
        if context.object().is_none() { Err(Failure::give_up("there is none")) } else { Ok(Outcome::Done) }
    }
    let running = tokio::spawn(controller.run(world.client.clone(), with(calls, reconcile)));
    assert_eq!(next(&mut called).await, ("shop/a".to_owned(), vec![Trigger::Initial]));
    handle.reconcile("shop/none".parse().unwrap());
    assert_eq!(next(&mut called).await, ("shop/none".to_owned(), vec![Trigger::Asked]));
    stop.and_wait(running).await.unwrap();
    let text = handle.metrics().to_text(informer_controller::metrics::Format::Prometheus);
    for line in [
        r#"controller_reconciles_total{name="test",result="done"} 1"#,
        r#"workqueue_adds_total{name="test"} 2"#,
        r#"workqueue_depth{name="test",priority="0"} 0"#,
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}
