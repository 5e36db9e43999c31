//! W: watching.

use std::time::Duration;

use conformance::{Needs, Rig, Told, config_map, status};
use informer::{Cause, Report, Status};
use serde_json::json;

use super::{is_live, json, names};
use crate::SERVER;

#[tokio::test]
async fn w1_c5_events_come_in_order_and_bookmarks_count() {
    let Some(rig) = Rig::shared(SERVER, "w1_in_order").await else { return };
    // Servers send a bookmark shortly before they end a watch.
    rig.wire.end_watches_after(4);
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    assert_eq!(told.next().await, ["synced"]);
    rig.create("a").await;
    rig.create("b").await;
    rig.update("a", "1").await;
    rig.delete("b").await;
    let last = rig.update("a", "2").await;
    let expected = ["added a", "added b", "updated a", "deleted b", "updated a"];
    assert_eq!(told.next().await, expected);
    assert!(informer.resource_version().is_at_least(&last));

    // Nothing changes here any more, but elsewhere: only a bookmark can tell of that.
    rig.add_namespace("w1-elsewhere").await;
    let elsewhere = kube_client::Api::namespaced(rig.client(), "w1-elsewhere");
    let created = elsewhere.create(&Default::default(), &config_map("x", "")).await.unwrap();
    let version = created.metadata.resource_version.as_deref().unwrap().into();
    assert!(last.is_older_than(&version));
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    assert!(told.is_silent());
}

#[tokio::test]
async fn w3_a_clean_end_is_no_trouble() {
    let Some(rig) = Rig::shared(SERVER, "w3_clean_end").await else { return };
    rig.wire.end_watches_after(2);
    let informer = rig.synced(&rig.factory()).await;
    let mut reports = informer.reports();
    let mut told = Told::every(&informer);
    told.first_content().await;
    let version = rig.create("a").await;
    rig.wire.until("three watches", |asked| asked.iter().filter(|asked| asked.is_watch()).count() >= 3).await;

    rig.create("b").await;
    assert_eq!(told.next().await, ["added a", "added b"]);
    assert_eq!(rig.wire.lists().len(), 1);
    let watches = rig.wire.watches();
    assert!(watches[0].version() < watches[1].version());
    assert!(informer::ResourceVersion::from(watches[1].version()).is_at_least(&version));
    while let Some(report) = reports.try_recv() {
        assert_eq!(report, Report::Disconnected(Cause::Ended));
    }
}

#[tokio::test]
async fn w5_a_server_that_is_down_is_waited_for() {
    let Some(rig) = Rig::own(SERVER, "w5_server_down", Needs::default()).await else { return };
    rig.create("a").await;
    // Without the proxy, which accepts connections whatever becomes of them.
    let builder = conformance::impatient(rig.builder_of(rig.direct_config()));
    let informer = rig.synced(&builder.build().unwrap().in_namespace(rig.namespace())).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let mut reports = informer.reports();
    rig.stop().await;
    let refused = status(&informer, |status| matches!(status, Status::Retrying { attempt: 3.., .. })).await;
    let Status::Retrying { cause: Cause::Unreachable(reason), .. } = refused else { panic!("{refused}") };
    assert!(["refused", "being probed"].iter().any(|why| reason.contains(why)), "{reason}");
    assert_eq!(names(&informer), ["a"]);

    rig.start().await;
    status(&informer, is_live).await;
    rig.create("b").await;
    assert_eq!(told.next().await, ["added b"]);
    // The watch goes on where it was, unless the server has a cache already that begins later.
    let expired = std::iter::from_fn(|| reports.try_recv())
        .filter(|report| matches!(report, Report::Disconnected(Cause::VersionUnavailable(_))))
        .count();
    assert_eq!(rig.wire.lists().len(), 1 + expired);
}

#[tokio::test]
async fn w6_l2_d2_h10_what_was_missed_is_found_by_a_relist() {
    let Some(rig) = Rig::own(SERVER, "w6_expired_watch", Needs::default()).await else { return };
    for name in ["changes", "goes", "returns", "stays"] {
        rig.create(name).await;
    }
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let mut reports = informer.reports();

    rig.proxy.refuse();
    rig.update("changes", "1").await;
    rig.update("goes", "not seen by anybody").await;
    rig.delete("goes").await;
    rig.delete("returns").await;
    rig.create("returns").await;
    rig.create("comes-and-goes").await;
    rig.delete("comes-and-goes").await;
    rig.create("comes").await;
    rig.forget_history().await;
    rig.proxy.resume();

    let mut changes = told.next::<4>().await;
    assert_eq!(changes[0], "missed goes", "deletions come first");
    changes.sort();
    assert_eq!(changes, ["added comes", "missed goes", "recreated returns", "updated changes"]);
    status(&informer, is_live).await;
    assert!(told.is_silent());
    let [_, relist] = rig.wire.lists().try_into().unwrap();
    assert_eq!(relist.version(), rig.wire.watches()[0].version());
    let mut expired = 0;
    while let Some(report) = reports.try_recv() {
        let Report::Disconnected(Cause::VersionUnavailable(status)) = report else { continue };
        assert!(status.is_expired(), "{status}");
        expired += 1;
    }
    assert_eq!(expired, 1);
}

#[tokio::test]
async fn w12_a_connection_that_went_silent_is_found_out() {
    let Some(rig) = Rig::shared(SERVER, "w12_silent").await else { return };
    let factory = rig
        .builder()
        .reflector(|reflector| reflector.silence_limit = Duration::from_secs(2))
        .build()
        .unwrap();
    let informer = rig.synced(&factory).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    status(&informer, is_live).await;
    let mut reports = informer.reports();
    rig.proxy.freeze();
    rig.create("a").await;
    assert_eq!(told.next().await, ["added a"]);
    let silent = Report::Disconnected(Cause::Silent(Duration::from_secs(2)));
    assert_eq!(reports.recv().await.unwrap(), silent);
}

#[tokio::test]
async fn w13_a_deletion_is_complete() {
    let Some(rig) = Rig::shared(SERVER, "w13_deletion").await else { return };
    let created = rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let last = rig.update("a", "last").await;
    told.next::<1>().await;
    rig.delete("a").await;
    let informer::Change::Deleted(deleted) = told.change().await else { panic!() };
    assert!(!deleted.is_missed());
    assert_eq!(json(deleted.last())["data"]["value"], "last");
    // The version is that of the deletion, which the cache has reached.
    let version = deleted.last().resource_version();
    assert!(created.is_older_than(&last) && last.is_older_than(version));
    assert!(informer.resource_version().is_at_least(version));
}

#[tokio::test]
async fn w13_f2_an_object_that_leaves_the_selector_is_deleted() {
    let Some(rig) = Rig::shared(SERVER, "w13_selector").await else { return };
    rig.create("in").await;
    rig.patch("in", json!({ "metadata": { "labels": { "tier": "web" } } })).await;
    rig.create("out").await;
    let informer = rig.synced(&rig.factory().with_labels("tier in (web, cache)").unwrap()).await;
    let mut told = Told::every(&informer);
    assert_eq!(told.first_content().await, ["initial in"]);

    rig.patch("out", json!({ "metadata": { "labels": { "tier": "cache" } } })).await;
    assert_eq!(told.next().await, ["added out"]);
    rig.patch("in", json!({ "metadata": { "labels": { "tier": "db" } } })).await;
    let informer::Change::Deleted(deleted) = told.change().await else { panic!() };
    assert_eq!((deleted.key().name(), deleted.is_missed()), ("in", false));
    // The notification has the last state that matched.
    assert_eq!(deleted.last().labels().value("tier"), Some("web"));
    assert_eq!(names(&informer), ["out"]);
    rig.patch("in", json!({ "metadata": { "labels": { "tier": "web" } } })).await;
    assert_eq!(told.next().await, ["added in"]);
}

#[tokio::test]
async fn w16_big_and_strange_objects_decode_with_and_without_gzip() {
    let Some(rig) = Rig::shared(SERVER, "w16_big_objects").await else { return };
    let plain = rig.synced(&rig.factory()).await;
    // Just below the limit of 1 MiB, in characters of all lengths, with escapes at every place.
    let strange: String = "\u{0}\u{7f}\"\\/ä€𝄞\u{2028}\r\n\t<>&".chars().cycle().take(250_000).collect();
    let long = "x".repeat(1_000_000);
    let mut version = rig.create_with(config_map("strange", &strange)).await;
    for index in 0..4 {
        version = rig.create_with(config_map(&format!("long-{index}"), &long)).await;
    }
    let zipped = rig.synced(&rig.builder().gzip(true).build().unwrap().in_namespace(rig.namespace())).await;
    for informer in [&plain, &zipped] {
        informer.at_least(&version, conformance::DEADLINE).await.unwrap();
        assert_eq!(names(informer), ["long-0", "long-1", "long-2", "long-3", "strange"]);
        let get =
            |name: &str| json(&informer.lister().namespace(rig.namespace()).get(name).unwrap().unwrap());
        assert!(get("strange")["data"]["value"] == strange.as_str());
        assert!(get("long-3")["data"]["value"] == long.as_str());
    }
    // The same in the stream that is compressed.
    let version = rig.update("strange", &format!("{strange}!")).await;
    zipped.at_least(&version, conformance::DEADLINE).await.unwrap();
    let object = zipped.lister().namespace(rig.namespace()).get("strange").unwrap().unwrap();
    assert!(json(&object)["data"]["value"].as_str().unwrap().ends_with('!'));
}
