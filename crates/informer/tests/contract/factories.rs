//! Group F: who shares what, options, and waiting for sync.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer::kube::{DynamicObject, PartialObjectMeta};
use informer::{Layout, Object, ResourceType, Status};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::server::Server;
use super::support::{
    LONG, Recorder, builder, caught_up, config_maps, factory, live, nodes, pods, settle, soon, started, until,
};

#[tokio::test(start_paused = true)]
async fn f1_who_asks_for_the_same_shares_the_same() {
    let (server, factory, first) = live(&["shop/a"]).await;
    let clone = factory.clone();
    let same = [
        clone.informer_of::<Object>(pods()),
        factory.in_namespace("shop").everything().informer_of::<Object>(pods()),
    ];
    for informer in &same {
        assert!(informer.is_synced());
    }
    let labelled = factory.with_labels("app=web").unwrap().informer_of::<Object>(pods());
    let narrowed = factory.in_namespaces(["shop", "front"]).informer_of::<Object>(pods());
    let turned = factory.in_namespaces(["front", "shop", "front"]).informer_of::<Object>(pods());
    assert!(!labelled.is_synced() && !narrowed.is_synced());
    factory.start();
    factory.start();
    factory.wait_for_sync(LONG).await.unwrap();
    assert!(turned.is_synced());
    first.start();
    settle().await;
    // All, with labels, and two namespaces.
    assert_eq!((server.count("LIST"), server.count("WATCH")), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn f1_what_is_asked_for_later_starts_with_the_next_start_or_at_once_by_choice() {
    let (server, factory, _pods) = live(&[]).await;
    let later = factory.informer_of::<Object>(config_maps());
    settle().await;
    assert_eq!(server.count("LIST /api/v1/configmaps"), 0);
    assert!(factory.wait_for_sync(LONG).await.unwrap_err().is_not_started());
    factory.start();
    later.wait_for_sync(LONG).await.unwrap();
    // By itself.
    let nodes = factory.informer_of::<Object>(nodes());
    nodes.start();
    nodes.wait_for_sync(LONG).await.unwrap();

    let factory = builder(&server).start_at_once().build().unwrap();
    factory.informer_of::<Object>(config_maps()).wait_for_sync(LONG).await.unwrap();
}

/// Two controllers that wait for one informer begin in the same order in each run of a rehearsal.
#[tokio::test(start_paused = true)]
async fn callers_that_wait_for_the_sync_wake_in_the_order_in_which_they_came() {
    let (_server, factory, _pods) = live(&[]).await;
    let maps = factory.informer_of::<Object>(config_maps());
    let order = Arc::new(Mutex::new(Vec::new()));
    let waits = (0..20).map(|at| {
        let (maps, order) = (maps.clone(), order.clone());
        tokio::spawn(async move {
            maps.wait_for_sync(LONG).await.unwrap();
            order.lock().unwrap().push(at);
        })
    });
    let waits: Vec<_> = waits.collect();
    settle().await;
    maps.start();
    for wait in waits {
        wait.await.unwrap();
    }
    assert!(order.lock().unwrap().iter().copied().eq(0..20), "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn f1_a_stopped_informer_is_replaced_by_a_new_one() {
    let (server, factory, informer) = live(&["shop/a"]).await;
    soon(informer.stop()).await;
    let next = started(&factory).await;
    assert!(informer.is_stopped() && !next.is_stopped());
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &next).await;
    assert_eq!(informer.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn f2_options_of_the_selection() {
    let server = Server::new();
    let web = json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "nodeName": "node-1" } });
    server.put("pods", "shop/web", web.clone());
    server.put("pods", "shop/db", json!({ "spec": { "nodeName": "node-1" } }));
    server.put("pods", "front/web", web.clone());
    server.put("pods", "back/web", web);
    let factory = builder(&server)
        .tweak_list_options(|resource, query| {
            assert_eq!(*resource, ResourceType::of::<Pod>());
            query.push(("tweaked".to_owned(), "yes".to_owned()));
        })
        .build()
        .unwrap()
        .in_namespaces(["shop", "front"])
        .with_labels("app=web")
        .unwrap()
        .with_fields("spec.nodeName=node-1")
        .unwrap();
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    let mut keys: Vec<_> = informer.snapshot().objects().map(|object| object.key().to_string()).collect();
    keys.sort();
    assert_eq!(keys, ["front/web", "shop/web"]);
    until("two watches run", || server.count("WATCH") == 2).await;
    let mut log = server.log();
    log.retain(|line| !line.starts_with("GET"));
    log.sort();
    let selected = "fieldSelector=spec.nodeName=node-1 labelSelector=app=web";
    assert_eq!(
        log,
        [
            format!("LIST /api/v1/namespaces/front/pods {selected} tweaked=yes"),
            format!("LIST /api/v1/namespaces/shop/pods {selected} tweaked=yes"),
            format!(
                "WATCH /api/v1/namespaces/front/pods allowWatchBookmarks=true {selected} resourceVersion=104 timeoutSeconds tweaked=yes"
            ),
            format!(
                "WATCH /api/v1/namespaces/shop/pods allowWatchBookmarks=true {selected} resourceVersion=104 timeoutSeconds tweaked=yes"
            ),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn f2_a_tweak_that_panics_is_a_failure_like_any_other() {
    let server = Server::new();
    let factory = builder(&server).tweak_list_options(|_, _| panic!("as the test wants it")).build().unwrap();
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    let missing = informer.wait_for_sync(Duration::from_secs(5)).await.unwrap_err();
    assert!(missing.to_string().contains("tweaks list options panicked"), "{missing}");
    assert!(matches!(informer.status(), Status::Retrying { .. }));
}

#[tokio::test(start_paused = true)]
async fn f2_the_layout_changes_nothing_but_the_cost() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "spec": { "containers": [] } }));
    let layouts = [Layout::Packed, Layout::Bytes, Layout::Decoded];
    for (layout, hot, kept) in
        [(0, 0, false), (0, 1 << 20, true), (1, 0, false), (1, 1 << 20, true), (2, 0, true)]
    {
        let layout = layouts[layout];
        let factory = builder(&server).layout(layout).hot_bytes(hot).build().unwrap();
        let informer = factory.informer::<Pod>();
        factory.start();
        informer.wait_for_sync(LONG).await.unwrap();
        let seen = std::sync::Arc::downgrade(informer.lister().get("shop/a").unwrap().unwrap().value());
        assert_eq!(seen.strong_count() > 0, kept, "{layout:?} with {hot} bytes");
        assert_eq!(informer.lister().list().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn f3_waiting_names_what_is_missing_and_why() {
    let server = Server::new();
    server.deny("pods", 403, "Forbidden");
    server.hold("configmaps");
    let factory = factory(&server);
    let pods = factory.informer_of::<Object>(pods());
    let config_maps = factory.informer_of::<Object>(config_maps());
    factory.start();
    let begin = tokio::time::Instant::now();
    let missing = factory.wait_for_sync(Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(begin.elapsed(), Duration::from_secs(5));
    assert!(missing.is_denied());
    let mut names: Vec<_> =
        missing.missing().iter().map(|missing| missing.resource.plural.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["configmaps", "pods"]);
    let text = missing.to_string();
    assert!(text.contains("pods.v1 (all namespaces): denied: ") && text.contains("Forbidden"), "{text}");
    assert!(text.contains("configmaps.v1 (all namespaces): connecting"), "{text}");

    // A caller need not wait for a permission.
    let begin = tokio::time::Instant::now();
    assert!(factory.wait_for_sync_or_denial(LONG).await.unwrap_err().is_denied());
    assert!(pods.wait_for_sync_or_denial(LONG).await.is_err());
    assert_eq!(begin.elapsed(), Duration::ZERO);

    server.allow("pods");
    server.release("configmaps");
    factory.wait_for_sync(LONG).await.unwrap();
    assert!(pods.is_synced() && config_maps.is_synced());
}

/// It returned `Ok` at once, so that a program which forgot to start read empty caches.
#[tokio::test(start_paused = true)]
async fn f3_waiting_for_what_was_not_started_is_an_error() {
    let server = Server::new();
    let factory = factory(&server);
    assert!(factory.wait_for_sync(LONG).await.is_ok(), "there is nothing to wait for");
    let pods = factory.in_namespace("shop").informer_of::<Object>(pods());
    assert_eq!(pods.status(), Status::NotStarted);
    pods.start();
    pods.wait_for_sync(LONG).await.unwrap();
    let never = factory.with_labels("app=web").unwrap().informer_of::<Object>(nodes());
    let begin = tokio::time::Instant::now();
    for waited in [factory.wait_for_sync(LONG).await, factory.wait_for_sync_or_denial(LONG).await] {
        let missing = waited.unwrap_err();
        assert!(missing.is_not_started() && !missing.is_denied());
        let text = "not synced: nodes.v1 (all namespaces, labels app=web): not started";
        assert_eq!(missing.to_string(), text);
    }
    assert_eq!(begin.elapsed(), Duration::ZERO);
    // Somebody may be about to start the one informer that is waited for.
    assert!(never.wait_for_sync(Duration::from_secs(1)).await.unwrap_err().is_not_started());
    assert_eq!(begin.elapsed(), Duration::from_secs(1));
    drop(never);
    assert!(factory.wait_for_sync(LONG).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn f3_waiting_needs_no_polling() {
    let server = Server::new();
    server.hold("pods");
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    let waiting = informer.clone();
    let wait = tokio::spawn(async move { waiting.wait_for_sync(LONG).await });
    settle().await;
    let begin = tokio::time::Instant::now();
    server.release("pods");
    wait.await.unwrap().unwrap();
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn f6_all_faces_share_one_watch_and_one_cache() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "spec": { "nodeName": "node-1", "containers": [] } }));
    let factory = factory(&server);
    // Metadata alone would do, until somebody asks for more.
    let metadata = factory.informer_of::<PartialObjectMeta>(pods());
    let typed = factory.informer::<Pod>();
    let dynamic = factory.informer_of::<DynamicObject>(pods());
    let metadata_again = factory.informer_of::<PartialObjectMeta>(pods());
    factory.start();
    factory.wait_for_sync(LONG).await.unwrap();
    until("the watch runs", || server.count("WATCH") > 0).await;
    assert_eq!((server.count("LIST"), server.count("WATCH")), (1, 1));
    assert!(!server.log().iter().any(|line| line.ends_with("(metadata)")), "{:?}", server.log());
    let pod = typed.lister().get("shop/a").unwrap().unwrap();
    assert_eq!(pod.spec.as_ref().unwrap().node_name.as_deref(), Some("node-1"));
    assert_eq!(dynamic.lister().get("shop/a").unwrap().unwrap().data["spec"]["nodeName"], "node-1");
    assert_eq!(metadata.lister().get("shop/a").unwrap().unwrap().metadata.name.as_deref(), Some("a"));
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &metadata).await;
    assert_eq!([typed.len(), dynamic.len(), metadata_again.len()], [2; 3]);
    // One stops for all.
    soon(dynamic.stop()).await;
    assert!(typed.is_stopped() && metadata.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn f6_metadata_alone_is_fetched_alone() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "spec": { "nodeName": "node-1", "containers": [] } }));
    let factory = factory(&server);
    let metadata = factory.informer_of::<PartialObjectMeta>(pods());
    factory.start();
    metadata.wait_for_sync(LONG).await.unwrap();
    assert!(server.log().iter().all(|line| line.ends_with("(metadata)") || line.starts_with("GET")));
    assert_eq!(metadata.lister().get("shop/a").unwrap().unwrap().metadata.name.as_deref(), Some("a"));
    // Too late to be upgraded: the whole is another watch, and from then on everybody's.
    let typed = factory.informer::<Pod>();
    typed.start();
    typed.wait_for_sync(LONG).await.unwrap();
    assert!(typed.lister().get("shop/a").unwrap().unwrap().spec.is_some());
    assert_eq!(server.count("LIST"), 2);
    assert!(factory.informer_of::<PartialObjectMeta>(pods()).is_synced());
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &typed).await;
    caught_up(&server, &metadata).await;
    assert_eq!(server.count("LIST"), 2);
}

/// It fetched whole objects, of which it showed the metadata.
#[tokio::test(start_paused = true)]
async fn f6_a_type_of_metadata_fetches_metadata() {
    type Meta = kube_core::metadata::PartialObjectMeta<Pod>;
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "spec": { "nodeName": "node-1", "containers": [] } }));
    let factory = factory(&server);
    let [first, second] = [factory.informer::<Meta>(), factory.informer_of::<Meta>(pods())];
    let metadata = factory.informer_of::<PartialObjectMeta>(pods());
    factory.start();
    factory.wait_for_sync(LONG).await.unwrap();
    assert!(server.log().iter().all(|line| line.ends_with("(metadata)") || line.starts_with("GET")));
    assert_eq!(server.count("LIST"), 1);
    assert_eq!([first.len(), second.len(), metadata.len()], [1; 3]);
    assert_eq!(first.lister().get("shop/a").unwrap().unwrap().metadata.name.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn f8_handlers_and_indexes_can_come_at_any_time() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let (recorder, log) = Recorder::new();
    let registration = informer.add_handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    let by_name = informer.add_index(|object| [object.key().name().to_owned()]);
    server.put("pods", "shop/b", json!({}));
    log.until("add shop/b@102").await;
    assert_eq!(by_name.get("b").len(), 1);
}

/// Outside of a runtime there is an error to handle, and no panic.
#[test]
fn f1_outside_of_a_runtime_there_are_errors() {
    let server = Server::new();
    assert!(builder(&server).build().is_err());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let factory = runtime.block_on(async { factory(&server) });
    let informer = factory.informer_of::<Object>(pods());
    assert!(informer.add_handler(Recorder::new().0).is_err());
    assert!(informer.subscribe().resync(Duration::from_secs(1)).changes().is_err());
    assert!(informer.changes().is_ok());
}
