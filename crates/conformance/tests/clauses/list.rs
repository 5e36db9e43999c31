//! L: listing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use conformance::{Needs, Rig, Told, status, within};
use informer::{FirstListChoice, Keep, Object, Status, Transform};
use serde_json::Value;

use super::{is_live, json, names};
use crate::SERVER;

#[tokio::test]
async fn l1_c5_the_first_list_is_recent_and_the_watch_follows_it() {
    let Some(rig) = Rig::shared(SERVER, "l1_first_list").await else { return };
    let version = rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;

    // The list was asked for without a version, and has what was written before.
    let [list] = rig.wire.lists().try_into().unwrap();
    assert_eq!((list.version(), list.get("limit")), ("", None));
    assert!(informer.resource_version().is_at_least(&version));
    let mut told = Told::every(&informer);
    assert_eq!(told.first_content().await, ["initial a"]);

    let version = rig.update("a", "new").await;
    assert_eq!(told.next().await, ["updated a"]);
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    let [watch] = rig.wire.watches().try_into().unwrap();
    assert_eq!(watch.get("allowWatchBookmarks"), Some("true"));
    assert!(informer.resource_version().is_at_least(&watch.version().into()));
}

#[tokio::test]
async fn l1_any_state_is_listed_at_zero_where_it_is_asked_for() {
    let Some(rig) = Rig::shared(SERVER, "l1_any_state").await else { return };
    let version = rig.create("a").await;
    let informer = rig
        .synced(
            &rig.builder()
                .reflector(|reflector| reflector.first_list = FirstListChoice::Any)
                .build()
                .unwrap()
                .in_namespace(rig.namespace()),
        )
        .await;
    let [list] = rig.wire.lists().try_into().unwrap();
    assert_eq!((list.version(), list.get("limit")), ("0", Some("500")));
    // Any state it may have been, but the watch brings what is missing.
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    assert_eq!(names(&informer), ["a"]);
}

/// A re-list of an unchanged cluster leads to no notification.
#[tokio::test]
async fn l2_l6_l10_w6_h9_h3_d6_a_relist_without_news_tells_nothing() {
    let Some(rig) = Rig::shared(SERVER, "l2_relist_without_news").await else { return };
    for name in ["a", "b", "c"] {
        rig.create(name).await;
    }
    let transformed = Arc::new(AtomicUsize::new(0));
    let counter = transformed.clone();
    let transform = Transform::json(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(Keep::Yes)
    });
    let informer =
        rig.synced(&rig.builder().transform(transform).build().unwrap().in_namespace(rig.namespace())).await;
    let mut told = Told::every(&informer);
    assert_eq!(told.first_content().await, ["initial a", "initial b", "initial c"]);

    rig.wire.expire_next_watch();
    rig.proxy.cut();
    rig.wire.until_listed(2).await;
    let [first, relist] = rig.wire.lists().try_into().unwrap();
    // Not older than what was seen, and not in pages: the watch cache can answer.
    assert_eq!(first.version(), "");
    assert_eq!(relist.version(), rig.wire.watches()[0].version());
    assert_eq!((relist.get("limit"), relist.get("resourceVersionMatch")), (None, None));

    rig.create("d").await;
    assert_eq!(told.next().await, ["added d"]);
    assert!(told.is_silent());
    assert_eq!(transformed.load(Ordering::Relaxed), 4, "one for each version");
}

#[tokio::test]
async fn l3_w6_d2_h10_an_expired_list_starts_over_once() {
    let Some(rig) = Rig::own(SERVER, "l3_expired_list", Needs::default()).await else { return };
    rig.create("goes").await;
    rig.create("stays").await;
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;

    rig.proxy.refuse();
    rig.delete("goes").await;
    rig.create("comes").await;
    rig.forget_history().await;
    // A server answers a list at a version with 410 only where exactly that version is asked for.
    rig.wire.edit(|asked| {
        if !asked.is_watch() && !asked.version().is_empty() {
            asked.set("resourceVersionMatch", "Exact");
        }
        false
    });
    rig.proxy.resume();
    assert_eq!(told.next().await, ["missed goes", "added comes"]);
    status(&informer, is_live).await;
    let versions: Vec<_> = rig.wire.lists().iter().map(|list| list.version().to_owned()).collect();
    let last = rig.wire.watches()[0].version().to_owned();
    assert_eq!(versions, ["", &last, ""]);
    assert_eq!(names(&informer), ["comes", "stays"]);
}

/// Without a watch cache the server answers from etcd, which has pages.
#[tokio::test]
async fn l4_l6_pages_that_expire_become_one_list() {
    let needs = Needs { watch_cache: false, ..Needs::default() };
    let Some(rig) = Rig::own(SERVER, "l4_expired_pages", needs).await else { return };
    let all = ["a", "b", "c", "d", "e"];
    for name in all {
        rig.create(name).await;
    }
    // The request for the second page waits until what the first one was read from is gone.
    let (asks_for_second, second_asked) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let mut asks_for_second = Some(asks_for_second);
    rig.wire.edit(move |asked| {
        if asked.get("limit").is_some() {
            asked.set("limit", "2");
        }
        if asked.get("continue").is_some()
            && let Some(asks) = asks_for_second.take()
        {
            asks.send(()).unwrap();
            may_go_on.recv().unwrap();
        }
        false
    });
    let factory = rig
        .builder()
        .reflector(|reflector| reflector.first_list = FirstListChoice::Any)
        .build()
        .unwrap()
        .in_namespace(rig.namespace());
    let informer = factory.informer_of::<Object>(super::config_maps());
    factory.start();
    within("the second page", second_asked).await.unwrap();
    rig.update("e", "new").await;
    rig.compact().await;
    go_on.send(()).unwrap();
    rig.synced(&factory).await;
    assert_eq!(names(&informer), all);

    let [first, second, full] = rig.wire.lists().try_into().unwrap();
    assert_eq!((first.version(), first.get("limit")), ("0", Some("500")));
    assert_eq!((second.version(), second.get("resourceVersionMatch")), ("", None));
    assert_eq!((full.version(), full.get("limit"), full.get("continue")), ("0", None, None));

    // Pages are what this server needs: a re-list asks for them too.
    rig.wire.expire_next_watch();
    rig.proxy.cut();
    rig.wire.until_listed(4).await;
    let relist = &rig.wire.lists()[3];
    assert_eq!(
        (relist.get("limit"), relist.get("resourceVersionMatch")),
        (Some("500"), Some("NotOlderThan"))
    );
    assert_eq!(relist.version(), rig.wire.watches()[0].version());
}

#[tokio::test]
async fn l5_a_version_that_the_server_has_not_reached_is_left_out() {
    let Some(rig) = Rig::shared(SERVER, "l5_too_large_version").await else { return };
    rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    rig.wire.expire_next_watch();
    rig.wire.edit(|asked| {
        let is_relist = !asked.is_watch() && !asked.version().is_empty();
        if is_relist {
            asked.set("resourceVersion", "9000000000000000");
        }
        is_relist
    });
    let mut reports = informer.reports();
    rig.proxy.cut();
    rig.wire.until_listed(3).await;
    let versions: Vec<_> = rig.wire.lists().iter().map(|list| list.version().to_owned()).collect();
    assert_eq!(versions, ["", rig.wire.watches()[0].version(), ""]);
    status(&informer, is_live).await;
    let mut unavailable = Vec::new();
    while let Some(report) = reports.try_recv() {
        if let informer::Report::Disconnected(informer::Cause::VersionUnavailable(status)) = report {
            unavailable.push(status.is_too_large_resource_version());
        }
    }
    assert_eq!(unavailable, [false, true], "the expired watch, then the list");
}

#[tokio::test]
async fn l11_a_broken_list_leaves_no_trace() {
    let needs = Needs { watch_cache: false, ..Needs::default() };
    let Some(rig) = Rig::own(SERVER, "l11_broken_list", needs).await else { return };
    for name in ["a", "b", "c", "d"] {
        rig.create(name).await;
    }
    // The connection is gone before the second page of a list can be asked for.
    let (cuts, mut cut) = tokio::sync::mpsc::unbounded_channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    rig.wire.edit(move |asked| {
        if asked.get("limit").is_some() {
            asked.set("limit", "2");
        }
        if asked.get("continue").is_some() {
            cuts.send(()).unwrap();
            may_go_on.recv().unwrap();
        }
        false
    });
    let factory = rig
        .builder()
        .reflector(|reflector| reflector.first_list = FirstListChoice::Any)
        .build()
        .unwrap()
        .in_namespace(rig.namespace());
    let informer = factory.informer_of::<Object>(super::config_maps());
    let mut told = Told::every(&informer);
    factory.start();
    within("the second page", cut.recv()).await.unwrap();
    rig.proxy.refuse();
    go_on.send(()).unwrap();
    status(&informer, |status| matches!(status, Status::Retrying { .. })).await;
    assert!(informer.is_empty() && !informer.is_synced() && told.is_silent());

    rig.proxy.resume();
    // Each page of the second attempt passes.
    within("the second page", cut.recv()).await.unwrap();
    go_on.send(()).unwrap();
    assert_eq!(told.first_content().await, ["initial a", "initial b", "initial c", "initial d"]);
    status(&informer, is_live).await;

    // The same in a re-list, which a watch from before a compaction leads to: readers keep what they had, and the next list tells each change once.
    rig.compact().await;
    rig.wire.expire_next_watch();
    rig.proxy.refuse();
    rig.delete("a").await;
    rig.update("c", "new").await;
    rig.proxy.resume();
    within("the second page", cut.recv()).await.unwrap();
    rig.proxy.refuse();
    go_on.send(()).unwrap();
    status(&informer, |status| matches!(status, Status::Retrying { .. })).await;
    assert_eq!(names(&informer), ["a", "b", "c", "d"]);
    assert!(told.is_silent());
    rig.proxy.resume();
    within("the second page", cut.recv()).await.unwrap();
    go_on.send(()).unwrap();
    assert_eq!(told.next().await, ["missed a", "updated c"]);
    assert!(told.is_silent());
}

#[tokio::test]
async fn l13_listed_and_watched_objects_are_equal() {
    let Some(rig) = Rig::shared(SERVER, "l13_equal").await else { return };
    let watching = rig.synced(&rig.factory()).await;
    let version = rig.create("a").await;
    watching.at_least(&version, conformance::DEADLINE).await.unwrap();
    let listing = rig.synced(&rig.factory()).await;
    let [watched, listed] = [&watching, &listing]
        .map(|informer| json(&informer.lister().get(format!("{}/a", rig.namespace())).unwrap().unwrap()));
    assert_eq!(watched, listed);
    assert_eq!((&listed["apiVersion"], &listed["kind"]), (&Value::from("v1"), &Value::from("ConfigMap")));
}
