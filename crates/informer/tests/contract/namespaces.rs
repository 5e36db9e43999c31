//! F7: the world may change.

use std::time::Duration;

use futures_util::FutureExt;
use informer::kube::DynamicObject;
use informer::{Informer, Object, ResourceType, ResourceVersion, SharedInformerFactory, Status};
use serde_json::json;

use super::server::Server;
use super::support::{LONG, Log, Recorder, cached, factory, pods, settle, soon, until};

async fn of_shop(server: &Server) -> (SharedInformerFactory, Informer<Object>, informer::Registration, Log) {
    server.put("pods", "shop/a", json!({}));
    server.put("pods", "front/b", json!({}));
    let factory = factory(server).in_namespace("shop");
    let informer = factory.informer_of::<Object>(pods());
    let (recorder, log) = Recorder::new();
    let registration = informer.add_handler(recorder).unwrap();
    factory.start();
    assert!(soon(registration.synced()).await);
    until("the watch runs", || server.open() == 1).await;
    (factory, informer, registration, log)
}

#[tokio::test(start_paused = true)]
async fn f7_namespaces_are_added_and_removed_while_it_runs() {
    let server = Server::new();
    let (_factory, informer, _registration, log) = of_shop(&server).await;
    assert_eq!(log.take(), ["add shop/a@101 initial", "synced"]);
    let before = informer.resource_version();

    server.hold("pods");
    assert!(informer.add_namespace("front"));
    assert!(!informer.add_namespace("front") && !informer.add_namespace("shop"));
    settle().await;
    assert!(informer.is_synced(), "it stays synced while the new namespace is fetched");
    assert!(informer.wait_for_sync(Duration::ZERO).await.is_ok());
    server.release("pods");
    log.until("add front/b@102").await;
    until("both watches run", || server.open() == 2).await;
    assert!(informer.resource_version().is_at_least(&before));
    let (recorder, late) = Recorder::new();
    let late_registration = informer.add_handler(recorder).unwrap();
    assert!(soon(late_registration.synced()).await);
    assert_eq!(late.len(), 3);

    server.put("pods", "front/c", json!({}));
    log.until("add front/c@103").await;
    assert!(informer.remove_namespace("front").await);
    assert!(!informer.remove_namespace("front").await);
    assert_eq!(server.open(), 1);
    log.until("delete front/b@102 left").await;
    log.until("delete front/c@103 left").await;
    assert_eq!(cached(&informer), ["shop/a@101"]);
    server.put("pods", "front/d", json!({}));
    server.put("pods", "shop/e", json!({}));
    log.until("add shop/e@105").await;
    assert_eq!(log.len(), 5, "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn f7_a_namespace_removed_and_added_at_once_is_told_in_order() {
    let server = Server::new();
    let (_factory, informer, _registration, log) = of_shop(&server).await;
    log.take();
    for round in 0..20 {
        let removal = informer.remove_namespace("shop");
        if round % 2 == 0 {
            assert!(removal.await);
        } else {
            // Nobody waits for the end of the old one.
            let _ = Box::pin(removal).as_mut().now_or_never();
        }
        assert!(informer.add_namespace("shop"));
        if round % 3 > 0 {
            until("it is back", || informer.len() == 1).await;
        }
        settle().await;
    }
    until("it is back", || informer.len() == 1 && server.open() == 1).await;
    settle().await;
    let told = log.take();
    for (at, line) in told.iter().enumerate() {
        let expected = if at % 2 == 0 { "delete shop/a@101 left" } else { "add shop/a@101" };
        assert_eq!(line, expected, "{told:?}");
    }
    assert_eq!(told.len() % 2, 0);
    assert!(matches!(informer.status(), Status::Live { .. }), "{:?}", informer.status());
}

#[tokio::test(start_paused = true)]
async fn f7_a_removal_that_nobody_waits_for_is_one() {
    let server = Server::new();
    let (_factory, informer, _registration, log) = of_shop(&server).await;
    informer.add_namespace("front");
    log.until("add front/b@102").await;
    // In the middle of a list that does not end.
    server.hold_in_the_middle_of_lists("pods");
    server.expire("pods");
    settle().await;
    let _ = Box::pin(informer.remove_namespace("front")).as_mut().now_or_never();
    log.until("delete front/b@102 left").await;
    server.release("pods");
    until("the other watch runs", || server.open() == 1 && matches!(informer.status(), Status::Live { .. }))
        .await;
    assert_eq!(cached(&informer), ["shop/a@101"]);
}

#[tokio::test(start_paused = true)]
async fn f7_namespaces_can_be_chosen_before_the_start() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.put("pods", "front/b", json!({}));
    let factory = factory(&server).in_namespace("shop");
    let informer = factory.informer_of::<Object>(pods());
    assert!(informer.add_namespace("front") && !informer.add_namespace("front"));
    assert!(informer.add_namespace("back") && informer.remove_namespace("back").await);
    assert!(!informer.remove_namespace("back").await);
    settle().await;
    assert_eq!(server.log(), [""; 0], "nothing starts before the start");
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    assert_eq!(informer.len(), 2);
    assert_eq!(server.count("LIST"), 2);
}

#[tokio::test(start_paused = true)]
async fn f7_who_looks_at_all_namespaces_adds_none() {
    let server = Server::new();
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    assert!(!informer.add_namespace("shop"));
    factory.start();
    assert!(!informer.add_namespace("shop") && !informer.remove_namespace("shop").await);
}

#[tokio::test(start_paused = true)]
async fn f7_a_namespace_that_is_denied_leaves_the_others_alone() {
    let server = Server::new();
    let (_factory, informer, _registration, log) = of_shop(&server).await;
    server.deny("pods/front", 403, "Forbidden");
    informer.add_namespace("front");
    until("it is denied", || matches!(informer.status(), Status::Denied { .. })).await;
    let version = server.put("pods", "shop/c", json!({}));
    log.until(&format!("add shop/c@{version}")).await;
    assert!(informer.remove_namespace("front").await);
    assert!(matches!(informer.status(), Status::Live { .. }), "{:?}", informer.status());
    let version = ResourceVersion::new(&version.to_string());
    informer.at_least(&version, LONG).await.unwrap();
}

fn carts() -> ResourceType {
    ResourceType {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        plural: "carts".to_owned(),
        kind: "Cart".to_owned(),
        namespaced: true,
    }
}

#[tokio::test(start_paused = true)]
async fn f7_custom_resources_come_and_go_with_their_definitions() {
    let server = Server::new();
    let factory = factory(&server);
    let informer = factory.informer_of::<DynamicObject>(carts());
    factory.start();
    let missing = factory.wait_for_sync_or_denial(LONG).await.unwrap_err();
    assert!(missing.is_denied(), "{missing}");
    // Ten minutes without the definition: no loop of errors.
    let requests = server.log().len();
    for _ in 0..600 {
        tokio::time::advance(Duration::from_secs(1)).await;
        settle_a_little().await;
    }
    let asked = server.log().len() - requests;
    assert!((10..=25).contains(&asked), "{asked} requests in ten minutes");

    server.define("carts", "Cart");
    server.put("carts", "shop/cart", json!({}));
    informer.wait_for_sync(LONG).await.unwrap();
    until("it is live", || matches!(informer.status(), Status::Live { .. })).await;
    assert_eq!(server.count("LIST /apis/example.com/v1/carts"), server.count("LIST"));
    // The definition goes, and its objects before it.
    server.delete("carts", "shop/cart");
    server.undefine("carts");
    until("it is denied", || matches!(informer.status(), Status::Denied { .. })).await;
    assert_eq!(informer.len(), 0);
    server.define("carts", "Cart");
    server.put("carts", "shop/new", json!({}));
    // A caller that knows that it is back need not wait.
    informer.retry_now();
    settle().await;
    assert_eq!(informer.len(), 1);
    assert!(matches!(informer.status(), Status::Live { .. }));
}

async fn settle_a_little() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

/// The version goes on while a namespace that was added later is not there yet.
#[tokio::test(start_paused = true)]
async fn c5_f7_a_namespace_added_later_does_not_hold_the_version_back() {
    let server = Server::new();
    let (_factory, informer, _registration, _log) = of_shop(&server).await;
    server.deny("pods/front", 403, "Forbidden");
    informer.add_namespace("front");
    until("it is denied", || matches!(informer.status(), Status::Denied { .. })).await;
    let version = ResourceVersion::new(&server.put("pods", "shop/c", json!({})).to_string());
    informer.at_least(&version, LONG).await.unwrap();
}

/// The watch of one namespace always has another event to read, and the retry of another namespace becomes due.
#[tokio::test(start_paused = true)]
async fn w15_f7_a_flood_in_one_namespace_delays_no_retry_of_another() {
    let server = Server::new();
    let (_factory, informer, _registration, _log) = of_shop(&server).await;
    server.deny("pods/front", 403, "Forbidden");
    informer.add_namespace("front");
    until("it is denied", || matches!(informer.status(), Status::Denied { .. })).await;
    server.flood("pods");
    server.end_watches("pods");
    server.allow("pods/front");
    let requests = || server.log().iter().filter(|line| line.contains("front")).count();
    let denied = requests();
    // `until` would read some thousand events in each of its steps.
    for _ in 0..300 {
        tokio::task::yield_now().await;
        tokio::time::advance(Duration::from_secs(1)).await;
        if requests() > denied {
            return;
        }
    }
    panic!("no retry in five minutes: {:?}", informer.status());
}

/// There was no way to wait for it: the informer stays synced, and the plain `at_least` counts it only once it is there.
#[tokio::test(start_paused = true)]
async fn f10_a_namespace_that_was_added_later_can_be_waited_for() {
    let server = Server::new();
    let (_factory, informer, _registration, _log) = of_shop(&server).await;
    let second = Duration::from_secs(1);
    assert!(informer.wait_for_namespace("front", second).await.unwrap_err().is_not_selected());
    server.deny("pods/front", 403, "Forbidden");
    informer.add_namespace("front");
    let late = informer.wait_for_namespace("front", second).await.unwrap_err();
    assert!(late.is_timeout() && matches!(late.status(), Status::Denied { .. }), "{late}");
    let version = ResourceVersion::new(&server.put("pods", "front/c", json!({})).to_string());
    assert!(informer.at_least_in("front", &version, second).await.unwrap_err().is_timeout());
    // The others are not held up, nor mistaken for it.
    informer.wait_for_namespace("shop", Duration::ZERO).await.unwrap();
    let there = ResourceVersion::new(&server.put("pods", "shop/d", json!({})).to_string());
    informer.at_least_in("shop", &there, LONG).await.unwrap();
    informer.at_least(&there, LONG).await.unwrap();

    let waiting = informer.clone();
    let wait = tokio::spawn(async move { waiting.wait_for_namespace("front", LONG).await });
    settle().await;
    server.allow("pods/front");
    informer.retry_now();
    wait.await.unwrap().unwrap();
    informer.at_least_in("front", &version, LONG).await.unwrap();
    assert_eq!(informer.len(), 4);

    // A caller that waits for a namespace gets an error when it is removed.
    server.hold("pods");
    informer.add_namespace("back");
    let waiting = informer.clone();
    let wait = tokio::spawn(async move { waiting.wait_for_namespace("back", LONG).await });
    settle().await;
    assert!(informer.remove_namespace("back").await);
    assert!(wait.await.unwrap().unwrap_err().is_not_selected());
}

#[tokio::test(start_paused = true)]
async fn f10_an_informer_of_all_namespaces_answers_for_each() {
    let (server, _factory, informer) = super::support::live(&["shop/a"]).await;
    informer.wait_for_namespace("front", Duration::ZERO).await.unwrap();
    let version = ResourceVersion::new(&server.put("pods", "front/b", json!({})).to_string());
    informer.at_least_in("front", &version, LONG).await.unwrap();
    assert_eq!(informer.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn w8_m1_of_a_namespace_that_is_removed_nothing_stays() {
    let server = Server::new();
    for key in ["shop/a", "front/a", "front/b"] {
        server.put("pods", key, json!({ "text": "x".repeat(5_000) }));
    }
    let builder = super::support::builder(&server).item_limit(2_000);
    let factory = builder.build().unwrap().in_namespaces(["shop", "front"]);
    let informer = super::support::started(&factory).await;
    assert_eq!(informer.quarantined().len(), 3);
    assert!(informer.remove_namespace("front").await);
    let keys: Vec<_> = informer.quarantined().iter().map(|entry| entry.key.to_string()).collect();
    assert_eq!(keys, ["shop/a"]);
    assert_eq!(informer.metrics().quarantined, 1);
    // Nor of one that was removed before it began.
    for _ in 0..20 {
        assert!(informer.add_namespace("front"));
        let _ = Box::pin(informer.remove_namespace("front")).as_mut().now_or_never();
    }
    settle().await;
    assert_eq!(informer.quarantined().len(), 1);
    assert!(informer.remove_namespace("shop").await);
    settle().await;
    assert_eq!((informer.quarantined().len(), informer.metrics().last_update_age), (0, None));
}

/// The empty name stands for all namespaces, as client-go's `NamespaceAll` does: wherever a namespace is taken.
#[tokio::test(start_paused = true)]
async fn f7_an_empty_namespace_means_all_namespaces() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.put("pods", "front/b", json!({}));
    let all = factory(&server);
    let narrowed = all.in_namespaces(["shop", "front"]);
    for factory in [
        all.in_namespace(""),
        all.in_namespaces(["", "shop"]),
        all.in_namespace("").in_namespaces([""]),
        super::support::builder(&server).build().unwrap().in_namespace(""),
    ] {
        assert!(factory.selection().is_everything(), "{}", factory.selection());
        let informer = factory.informer_of::<Object>(pods());
        informer.start();
        informer.wait_for_sync(LONG).await.unwrap();
        assert_eq!(cached(&informer), ["front/b@102", "shop/a@101"]);
        assert!(informer.selects_namespace(Some("")) && informer.selects_namespace(Some("shop")));
        assert!(!informer.add_namespace("") && !informer.add_namespace("shop"));
        informer.wait_for_namespace("", LONG).await.unwrap();
        informer.at_least_in("", &"102".into(), LONG).await.unwrap();
        let lister = informer.lister();
        assert_eq!(lister.namespace("").list().len(), 2);
        assert_eq!(lister.namespace("shop").namespace("").list().len(), 2);
        assert!(lister.namespace("").get("shop/a").unwrap().is_some());
        let everything = informer::Selector::EVERYTHING;
        assert_eq!(informer.snapshot().select(Some(""), &everything).count(), 2);
    }
    // It narrows nothing.
    assert_eq!(narrowed.in_namespace("").selection(), narrowed.selection());
    assert_eq!(narrowed.in_namespaces(["", "shop"]).selection(), narrowed.selection());
    assert!(server.count("LIST /api/v1/namespaces") == 0, "{:?}", server.log());
}

#[tokio::test(start_paused = true)]
async fn f7_an_informer_of_some_namespaces_can_add_and_remove_all_of_them() {
    let server = Server::new();
    let (_factory, informer, _registration, log) = of_shop(&server).await;
    assert_eq!(log.take(), ["add shop/a@101 initial", "synced"]);
    assert!(!informer.selects_namespace(Some("")));
    assert!(informer.at_least_in("", &"1".into(), LONG).await.unwrap_err().is_not_selected());
    assert!(informer.add_namespace(""));
    log.until("add front/b@102").await;
    informer.wait_for_namespace("", LONG).await.unwrap();
    assert!(!informer.add_namespace("") && !informer.add_namespace("back"), "it covers all namespaces");
    assert!(informer.remove_namespace("").await);
    log.until("delete front/b@102 left").await;
    assert_eq!(cached(&informer), ["shop/a@101"]);
}
