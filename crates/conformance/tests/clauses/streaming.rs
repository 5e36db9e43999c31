//! S: streaming lists.

use conformance::{Asked, Needs, Rig, Told, status};
use informer::{Cause, Report, SharedInformerFactory, StreamingListChoice};

use super::{is_live, names};
use crate::SERVER;

fn streaming(rig: &Rig) -> SharedInformerFactory {
    rig.builder()
        .reflector(|reflector| reflector.streaming_list = StreamingListChoice::Always)
        .build()
        .expect("a factory")
        .in_namespace(rig.namespace())
}

#[tokio::test]
async fn s1_s5_l13_one_stream_brings_the_content_and_then_the_changes() {
    let Some(rig) = Rig::shared(SERVER, "s1_streaming_list").await else { return };
    let version = rig.create("a").await;
    let informer = rig.synced(&streaming(&rig)).await;
    assert!(informer.resource_version().is_at_least(&version));
    let mut told = Told::every(&informer);
    assert_eq!(told.first_content().await, ["initial a"]);
    rig.update("a", "new").await;
    rig.create("b").await;
    rig.delete("a").await;
    assert_eq!(told.next().await, ["updated a", "added b", "deleted a"]);

    let [stream] = rig.wire.asked().try_into().expect("one request");
    let parameters = ["watch", "sendInitialEvents", "resourceVersionMatch", "allowWatchBookmarks"];
    let expected = ["true", "true", "NotOlderThan", "true"].map(Some);
    assert_eq!(parameters.map(|name| stream.get(name)), expected);
    assert_eq!(stream.version(), "");
    assert!(stream.get("timeoutSeconds").is_some());
}

#[tokio::test]
async fn s5_a_stream_that_ends_is_followed_by_a_plain_watch() {
    let Some(rig) = Rig::shared(SERVER, "s5_plain_watch").await else { return };
    rig.wire.end_watches_after(2);
    let informer = rig.synced(&streaming(&rig)).await;
    let mut told = Told::every(&informer);
    rig.wire.until("another watch", |asked| asked.len() >= 2).await;
    rig.create("a").await;
    assert_eq!(told.next().await, ["synced", "added a"]);
    let kinds: Vec<_> = rig.wire.asked().iter().map(Asked::is_streaming_list).collect();
    assert_eq!(kinds[..2], [true, false]);
    assert_eq!(rig.wire.lists(), []);
}

#[tokio::test]
async fn s9_an_empty_collection_is_synced() {
    let Some(rig) = Rig::shared(SERVER, "s9_empty").await else { return };
    let informer = rig.synced(&streaming(&rig)).await;
    assert!(informer.is_empty() && !informer.resource_version().is_unset());
    assert_eq!(Told::every(&informer).next().await, ["synced"]);
    assert_eq!(rig.wire.lists(), []);
}

#[tokio::test]
async fn s1_s8_h9_the_content_outlives_its_stream() {
    let Some(rig) = Rig::shared(SERVER, "s8_outlives").await else { return };
    rig.create("a").await;
    rig.create("b").await;
    let informer = rig.synced(&streaming(&rig)).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let seen = informer.resource_version();

    rig.wire.expire_next_watch();
    rig.proxy.refuse();
    status(&informer, |status| !is_live(status)).await;
    assert_eq!(names(&informer), ["a", "b"]);
    rig.delete("b").await;
    rig.proxy.resume();
    assert_eq!(told.next().await, ["missed b"]);
    status(&informer, is_live).await;
    assert!(told.is_silent());
    let again = rig.wire.asked().into_iter().rfind(Asked::is_streaming_list).expect("a stream");
    assert_eq!(again.version(), seen.to_string());
    assert_eq!(rig.wire.lists(), []);
}

#[tokio::test]
async fn s6_a_server_without_streaming_lists_is_listed() {
    let needs = Needs { watch_list: false, ..Needs::default() };
    let Some(rig) = Rig::own(SERVER, "s6_refused", needs).await else { return };
    rig.create("a").await;
    let factory = streaming(&rig);
    let informer = factory.informer_of::<informer::Object>(super::config_maps());
    let mut reports = informer.reports();
    rig.synced(&factory).await;
    let report = reports.recv().await.expect("a report");
    let Report::Disconnected(Cause::Refused(refusal)) = report else { panic!("{report:?}") };
    assert_eq!(refusal.code, 422, "{refusal}");
    assert_eq!(names(&informer), ["a"]);

    // It is remembered: the next content is listed at once.
    status(&informer, is_live).await;
    rig.proxy.refuse();
    rig.delete("a").await;
    rig.forget_history().await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    rig.proxy.resume();
    assert_eq!(told.next().await, ["missed a"]);
    let asked = rig.wire.asked();
    assert_eq!(asked.iter().filter(|asked| asked.is_streaming_list()).count(), 1);
    assert_eq!(rig.wire.lists().len(), 2);
}
