//! What goes over the wire: requests of the groups L, W and S, and how long it may take.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use informer::transport::{Response, Transport, TransportError};
use informer::{
    BackoffConfig, FirstListChoice, Object, Report, SharedInformerFactory, Status, StreamingListChoice,
};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::server::{Server, status};
use super::support::{LONG, builder, cached, caught_up, factory, live, pods, settle, soon, started, until};

#[tokio::test(start_paused = true)]
async fn l1_w1_a_consistent_list_then_a_watch_with_bookmarks_from_its_version() {
    let (server, _factory, _informer) = live(&["shop/a"]).await;
    assert_eq!(
        server.log(),
        [
            "GET /version",
            "LIST /api/v1/pods",
            "WATCH /api/v1/pods allowWatchBookmarks=true resourceVersion=101 timeoutSeconds",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn l1_an_older_server_is_asked_for_any_state_in_pages() {
    let first_request = |minor: Option<u32>, choice: FirstListChoice| async move {
        let server = Server::new();
        server.set_minor(minor);
        let factory = builder(&server).first_list(choice).build().unwrap();
        let _informer = started(&factory).await;
        server.log().into_iter().find(|line| line.starts_with("LIST")).unwrap()
    };
    let (any, consistent) = ("LIST /api/v1/pods limit=500 resourceVersion=0", "LIST /api/v1/pods");
    assert_eq!(first_request(Some(33), FirstListChoice::ByServer).await, any);
    assert_eq!(first_request(Some(34), FirstListChoice::ByServer).await, consistent);
    assert_eq!(first_request(None, FirstListChoice::ByServer).await, consistent);
    assert_eq!(first_request(Some(36), FirstListChoice::Any).await, any);
    assert_eq!(first_request(Some(33), FirstListChoice::Consistent).await, consistent);
}

#[tokio::test(start_paused = true)]
async fn l1_a_server_that_does_not_say_its_version_keeps_nobody_waiting() {
    let server = Server::new();
    server.hold("version");
    let factory = factory(&server);
    let informers =
        [factory.informer_of::<Object>(pods()), factory.with_labels("a=b").informer_of::<Object>(pods())];
    factory.start();
    let begin = tokio::time::Instant::now();
    factory.wait_for_sync(LONG).await.unwrap();
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    assert!(informers.iter().all(informer::Informer::is_synced));
}

#[tokio::test(start_paused = true)]
async fn l2_w6_after_410_the_list_asks_for_nothing_older() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &informer).await;
    server.expire("pods");
    until("it was listed again", || server.count("LIST") == 2).await;
    assert!(server.log().contains(&"LIST /api/v1/pods resourceVersion=102".to_owned()), "{:?}", server.log());
}

#[tokio::test(start_paused = true)]
async fn w3_a_clean_end_is_followed_by_a_watch_from_the_last_version() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let mut reports = informer.reports();
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &informer).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    let begin = tokio::time::Instant::now();
    server.end_watches("pods");
    until("it is watched again", || server.count("WATCH") == 2).await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
    let last = server.log().pop().unwrap();
    assert_eq!(last, "WATCH /api/v1/pods allowWatchBookmarks=true resourceVersion=102 timeoutSeconds");
    assert!(matches!(reports.try_recv(), Ok(Report::Disconnected(informer::Cause::Ended))));
}

#[tokio::test(start_paused = true)]
async fn s1_s5_the_request_of_a_streaming_list_which_is_then_the_watch() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    let factory = builder(&server).streaming_list(StreamingListChoice::Always).build().unwrap();
    let informer = started(&factory).await;
    assert_eq!(cached(&informer), ["shop/a@101"]);
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &informer).await;
    let stream = "WATCH /api/v1/pods allowWatchBookmarks=true";
    let asks = "resourceVersionMatch=NotOlderThan sendInitialEvents=true timeoutSeconds";
    assert_eq!(server.log(), ["GET /version".to_owned(), format!("{stream} {asks}")]);
    // A re-list names the last version seen.
    server.expire("pods");
    until("it streams again", || server.count("WATCH") == 2).await;
    let last = server.log().pop().unwrap();
    assert_eq!(last, format!("{stream} resourceVersion=102 {asks}"));
    // What follows its end is a plain watch.
    until("it is live", || matches!(informer.status(), Status::Live { .. })).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    server.end_watches("pods");
    until("it is watched again", || server.count("WATCH") == 3).await;
    assert_eq!(server.log().pop().unwrap(), format!("{stream} resourceVersion=102 timeoutSeconds"));
    assert_eq!(server.count("LIST"), 0);
}

#[tokio::test(start_paused = true)]
async fn s6_a_server_that_refuses_streaming_lists_is_listed() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.refuse_streaming_lists();
    let factory = builder(&server).streaming_list(StreamingListChoice::Always).build().unwrap();
    let informer = started(&factory).await;
    assert_eq!((informer.len(), server.count("LIST")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn s9_an_empty_collection_is_a_content() {
    let server = Server::new();
    let factory = builder(&server).streaming_list(StreamingListChoice::Always).build().unwrap();
    let informer = started(&factory).await;
    assert!(informer.is_synced() && informer.is_empty());
}

#[tokio::test(start_paused = true)]
async fn l13_listed_and_watched_objects_look_the_same() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "spec": { "containers": [] } }));
    let factory = factory(&server);
    let raw = started(&factory).await;
    server.put("pods", "shop/b", json!({ "kind": "Pod", "apiVersion": "v1", "spec": { "containers": [] } }));
    caught_up(&server, &raw).await;
    for object in raw.lister().list().unwrap() {
        let object = object.decode::<serde_json::Value>().unwrap();
        assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("Pod"), &json!("v1")));
    }
    assert_eq!(factory.informer::<Pod>().lister().list().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn l9_a_long_list_shows_how_far_it_is_and_nothing_of_its_content() {
    let server = Server::new();
    server.put_many("pods", (0..20_000).map(|number| format!("shop/{number:05}")));
    server.hold_in_the_middle_of_lists("pods");
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    until(
        "half of it is there",
        || matches!(informer.status(), Status::Syncing { received } if (5_000..15_000).contains(&received)),
    )
    .await;
    assert_eq!((informer.len(), informer.is_synced()), (0, false));
    server.release("pods");
    informer.wait_for_sync(LONG).await.unwrap();
    assert_eq!(informer.len(), 20_000);
}

#[tokio::test(start_paused = true)]
async fn w15_after_401_the_credentials_are_read_before_the_next_request() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let before = server.log().len();
    server.deny("pods", 401, "Unauthorized");
    until("it is denied", || matches!(informer.status(), Status::Denied { .. })).await;
    let log = &server.log()[before..];
    let verbs: Vec<_> = log.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(&verbs[..3], ["WATCH", "REFRESH", "WATCH"], "{log:?}");
    assert_eq!(verbs.len(), 3, "denied for good: {log:?}");
    server.allow("pods");
    until("it is live", || matches!(informer.status(), Status::Live { .. })).await;
}

#[tokio::test(start_paused = true)]
async fn w14_every_wait_ends_at_once_when_the_informer_stops() {
    let server = Server::new();
    server.deny("pods", 503, "ServiceUnavailable");
    let slow = BackoffConfig { first: LONG, longest: LONG, ..BackoffConfig::default() };
    let factory = builder(&server).backoff(slow).build().unwrap();
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    until("it waits", || matches!(informer.status(), Status::Retrying { .. })).await;
    let begin = tokio::time::Instant::now();
    soon(informer.stop()).await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn w12_silence_is_found_out_however_often_somebody_asks_to_retry() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let requests = server.log().len();
    for _ in 0..200 {
        tokio::time::advance(Duration::from_secs(1)).await;
        informer.retry_now();
        settle_a_little().await;
    }
    assert!(server.log().len() > requests, "200 s of silence");
}

#[tokio::test(start_paused = true)]
async fn w14_whoever_knows_better_need_not_wait() {
    let server = Server::new();
    server.deny("pods", 503, "ServiceUnavailable");
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    until("it waits", || matches!(informer.status(), Status::Retrying { .. })).await;
    server.allow("pods");
    let begin = tokio::time::Instant::now();
    informer.retry_now();
    settle().await;
    assert!(informer.is_synced());
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn w12_limits_may_be_as_long_as_they_like() {
    let server = Server::new();
    let factory = builder(&server)
        .silence_limit(Duration::MAX)
        .denied_retry(LONG * 1_000_000)
        .min_watch_timeout(Duration::MAX)
        .build()
        .unwrap();
    let informer = started(&factory).await;
    server.put("pods", "shop/a", json!({}));
    caught_up(&server, &informer).await;
    server.deny("pods", 403, "Forbidden");
    until("it is denied", || matches!(informer.status(), Status::Denied { .. })).await;
    assert!(!informer.is_stopped());
}

async fn settle_a_little() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// A transport with a bug.
struct Panics;

impl Transport for Panics {
    fn send(&self, _: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        panic!("as the test wants it")
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        panic!("as the test wants it")
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_fails_says_so() {
    let factory = SharedInformerFactory::builder_with_transport(Panics).build().unwrap();
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    let begin = tokio::time::Instant::now();
    assert!(factory.wait_for_sync(LONG).await.is_err());
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert!(informer.is_stopped());
    soon(factory.shutdown()).await;
}

/// Answers with an error event, and then keeps the response open.
struct Busy(Arc<()>);

impl Transport for Busy {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        let open = self.0.clone();
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let busy = json!({ "type": "ERROR", "object": status(429, "TooManyRequests") });
        let line = if watch { format!("{busy}\n") } else { String::new() };
        let body =
            stream::iter([Ok(line.into())]).chain(stream::pending()).inspect(move |_| _ = &open).boxed();
        let (head, ()) = http::Response::new(()).into_parts();
        async move { Ok(Response { head, body }) }.boxed()
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        async { Ok(()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn w5_what_a_busy_server_leaves_open_is_closed_before_the_wait() {
    let open = Arc::new(());
    let factory = SharedInformerFactory::builder_with_transport(Busy(open.clone()))
        .streaming_list(StreamingListChoice::Always)
        .first_list(FirstListChoice::Consistent)
        .build()
        .unwrap();
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    until("it waits", || matches!(informer.status(), Status::Retrying { .. })).await;
    settle().await;
    // The test's and the transport's own.
    assert_eq!(Arc::strong_count(&open), 2);
}
