//! Requests of the groups L, W and S, and their time limits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use informer::transport::{Response, Transport, TransportError};
use informer::{
    BackoffConfig, FirstListChoice, Object, Report, ResourceType, SharedInformerFactory, Status,
    StreamingListChoice,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::server::{Server, status};
use super::support::{
    self, LONG, builder, cached, caught_up, config_maps, factory, live, nodes, pods, settle, soon, started,
    until,
};

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
        let factory = builder(&server).reflector(|reflector| reflector.first_list = choice).build().unwrap();
        let _informer = started(&factory).await;
        server.log().into_iter().find(|line| line.starts_with("LIST")).unwrap()
    };
    let (any, consistent) = ("LIST /api/v1/pods limit=500 resourceVersion=0", "LIST /api/v1/pods");
    assert_eq!(first_request(Some(33), FirstListChoice::Auto).await, any);
    assert_eq!(first_request(Some(34), FirstListChoice::Auto).await, consistent);
    assert_eq!(first_request(None, FirstListChoice::Auto).await, consistent);
    assert_eq!(first_request(Some(36), FirstListChoice::Any).await, any);
    assert_eq!(first_request(Some(33), FirstListChoice::Consistent).await, consistent);
}

#[tokio::test(start_paused = true)]
async fn l1_a_server_that_does_not_say_its_version_keeps_nobody_waiting() {
    let server = Server::new();
    server.hold("version");
    let factory = factory(&server);
    let informers = [
        factory.informer_of::<Object>(pods()),
        factory.with_labels("a=b").unwrap().informer_of::<Object>(pods()),
    ];
    factory.start();
    let begin = tokio::time::Instant::now();
    factory.wait_for_sync(LONG).await.unwrap();
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    assert!(informers.iter().all(informer::Informer::is_synced));
}

#[tokio::test(start_paused = true)]
async fn an_upgraded_server_is_asked_for_json_when_it_is_back() {
    let (server, factory, _informer) = live(&["shop/a"]).await;
    let watched_anew_after = |seconds: u64, watches: usize| {
        let server = server.clone();
        async move {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            server.end_watches("pods");
            until("it is watched again", || server.count("WATCH") == watches).await;
            (server.accepted(), server.count("GET /version"))
        }
    };
    let protobuf = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(server.accepted(), protobuf);
    server.set_minor(Some(99));
    // Many that come back at once take one answer.
    assert_eq!(watched_anew_after(5, 2).await, (protobuf.to_owned(), 1));
    assert_eq!(watched_anew_after(6, 3).await, ("application/json".to_owned(), 2));
    // It says nothing for now, and is what it was.
    server.set_minor(None);
    assert_eq!(watched_anew_after(11, 4).await, ("application/json".to_owned(), 3));
    server.set_minor(Some(36));
    assert_eq!(watched_anew_after(11, 5).await, (protobuf.to_owned(), 4));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_never_comes_delays_nothing_twice() {
    let (server, _factory, _informer) = live(&["shop/a"]).await;
    server.hold("version");
    tokio::time::advance(Duration::from_secs(360)).await;
    let watched_anew = |watches: usize| {
        let server = server.clone();
        async move {
            let begin = tokio::time::Instant::now();
            server.end_watches("pods");
            until("it is watched again", || server.count("WATCH") == watches).await;
            begin.elapsed()
        }
    };
    let first = watched_anew(2).await;
    assert!((10..11).contains(&first.as_secs()), "{first:?}");
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(watched_anew(3).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn who_stops_while_the_version_is_asked_for_leaves_the_question_to_others() {
    let server = Server::new();
    server.hold("version");
    let factory = factory(&server);
    let first = factory.with_labels("a=b").unwrap().informer_of::<Object>(pods());
    first.start();
    until("the version is asked for", || server.count("GET /version") == 1).await;
    let second = factory.informer_of::<Object>(pods());
    second.start();
    settle().await;
    drop(first);
    until("it is asked for again", || server.count("GET /version") == 2).await;
    server.release("version");
    soon(second.wait_for_sync(LONG)).await.unwrap();
    assert_eq!(server.accepted(), "application/vnd.kubernetes.protobuf,application/json");
}

#[tokio::test(start_paused = true)]
async fn w12_a_version_that_never_comes_does_not_use_up_the_time_of_each_answer() {
    for limit in [500, 2_000] {
        let server = Server::new();
        server.put("pods", "shop/a", json!({}));
        let factory = builder(&server)
            .reflector(|reflector| reflector.response_timeout = Duration::from_millis(limit))
            .build()
            .unwrap();
        let informer = started(&factory).await;
        server.hold("version");
        tokio::time::advance(Duration::from_secs(30)).await;
        server.end_watches("pods");
        // The question takes all the time of the first attempt; the second has none.
        until("it is watched again", || server.count("WATCH") == 2).await;
        until("it is live", || matches!(informer.status(), Status::Live { .. })).await;
    }
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
    assert!(matches!(reports.try_recv(), Some(Report::Disconnected(informer::Cause::Ended))));
}

#[tokio::test(start_paused = true)]
async fn s1_s5_the_request_of_a_streaming_list_which_is_then_the_watch() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    let factory = builder(&server)
        .reflector(|reflector| reflector.streaming_list = StreamingListChoice::Always)
        .build()
        .unwrap();
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
    // A plain watch follows its end.
    until("it is live", || matches!(informer.status(), Status::Live { .. })).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    server.end_watches("pods");
    until("it is watched again", || server.count("WATCH") == 3).await;
    assert_eq!(server.log().pop().unwrap(), format!("{stream} resourceVersion=102 timeoutSeconds"));
    assert_eq!(server.count("LIST"), 0);
}

#[tokio::test(start_paused = true)]
async fn s6_a_server_that_refuses_streaming_lists_is_listed() {
    let server = Server::with(|options| options.serve.streaming_lists = false);
    server.put("pods", "shop/a", json!({}));
    let factory = builder(&server)
        .reflector(|reflector| reflector.streaming_list = StreamingListChoice::Always)
        .build()
        .unwrap();
    let informer = started(&factory).await;
    assert_eq!((informer.len(), server.count("LIST")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn s9_an_empty_collection_is_a_content() {
    let server = Server::new();
    let factory = builder(&server)
        .reflector(|reflector| reflector.streaming_list = StreamingListChoice::Always)
        .build()
        .unwrap();
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
    for object in raw.lister().list() {
        let object = object.decode::<serde_json::Value>().unwrap();
        assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("Pod"), &json!("v1")));
    }
    assert_eq!(factory.informer::<Pod>().lister().list().len(), 2);
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
    let factory = builder(&server).reflector(|reflector| reflector.backoff = slow).build().unwrap();
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
        .reflector(|reflector| {
            reflector.silence_limit = Duration::MAX;
            reflector.denied_retry = LONG * 1_000_000;
            reflector.min_watch_timeout = Duration::MAX;
        })
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
        let (head, ()) = http::Response::new(()).into_parts();
        if request.uri().path() == "/openapi/v3" {
            // Of no informer.
            return async move { Ok(Response { head, body: stream::empty().boxed() }) }.boxed();
        }
        let body =
            stream::iter([Ok(line.into())]).chain(stream::pending()).inspect(move |_| _ = &open).boxed();
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
        .reflector(|reflector| {
            reflector.streaming_list = StreamingListChoice::Always;
            reflector.first_list = FirstListChoice::Consistent;
        })
        .build()
        .unwrap();
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    until("it waits", || matches!(informer.status(), Status::Retrying { .. })).await;
    settle().await;
    // The test's and the transport's own.
    assert_eq!(Arc::strong_count(&open), 2);
}

#[tokio::test(start_paused = true)]
async fn w14_each_informer_can_have_its_own_backoff() {
    let server = Server::new();
    for plural in ["pods", "nodes"] {
        server.deny(plural, 503, "ServiceUnavailable");
    }
    let factory = factory(&server);
    let pods = factory.informer_of::<Object>(pods());
    let nodes = factory.informer_of::<Object>(nodes());
    let second = Duration::from_secs(1);
    let steady = BackoffConfig { first: second, longest: second, jitter: 0.0, reset_after: LONG };
    pods.set_backoff(steady.clone()).unwrap();
    factory.start();
    settle().await;
    assert!(pods.set_backoff(steady).unwrap_err().is_already_started());
    for attempt in 1..=20 {
        assert!(
            matches!(pods.status(), Status::Retrying { attempt: at, wait, .. } if (at, wait) == (attempt, second))
        );
        tokio::time::advance(second).await;
        settle_a_little().await;
    }
    assert_eq!(server.count("LIST /api/v1/pods"), 21);
    assert!((3..=6).contains(&server.count("LIST /api/v1/nodes")), "the others double: {:?}", nodes.status());
}

#[tokio::test(start_paused = true)]
async fn w12_how_long_an_answer_may_take_can_be_set() {
    let server = Server::new();
    let factory = builder(&server)
        .reflector(|reflector| reflector.response_timeout = Duration::from_secs(7))
        .build()
        .unwrap();
    server.hold("pods");
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    let begin = tokio::time::Instant::now();
    until("it waits", || matches!(informer.status(), Status::Retrying { .. })).await;
    assert_eq!(begin.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn s7_how_long_the_end_of_the_initial_events_may_take_can_be_set() {
    let server = Server::new();
    let factory = builder(&server)
        .reflector(|reflector| {
            reflector.streaming_list = StreamingListChoice::Always;
            reflector.initial_events_timeout = Duration::from_secs(7);
        })
        .build()
        .unwrap();
    server.hold("pods");
    let _informer = factory.informer_of::<Object>(pods());
    factory.start();
    let begin = tokio::time::Instant::now();
    until("it is listed", || server.count("LIST") == 1).await;
    assert_eq!(begin.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn l1_the_size_of_a_page_and_the_name_of_the_program_can_be_set() {
    let server = Server::new();
    let builder = builder(&server)
        .reflector(|reflector| {
            reflector.first_list = FirstListChoice::Any;
            reflector.page_size = 7;
        })
        .user_agent("shop/1.2");
    let _informer = started(&builder.build().unwrap()).await;
    assert_eq!(server.count("LIST /api/v1/pods limit=7 resourceVersion=0"), 1, "{:?}", server.log());
    assert_eq!(server.user_agents().into_iter().collect::<Vec<_>>(), ["shop/1.2"]);
    let two_lines = support::builder(&server).user_agent("two\nlines").build().err();
    assert!(two_lines.unwrap().to_string().contains("user agent"));
}

#[tokio::test(start_paused = true)]
async fn s6_what_a_server_cannot_do_is_remembered_for_all_informers_and_tried_again_later() {
    let server = Server::with(|options| options.serve.streaming_lists = false);
    server.put("pods", "shop/a", json!({}));
    server.put("configmaps", "shop/b", json!({}));
    let factory = builder(&server)
        .reflector(|reflector| reflector.streaming_list = StreamingListChoice::Always)
        .build()
        .unwrap();
    let asked = || server.log().iter().filter(|line| line.contains("sendInitialEvents")).count();
    let pods = started(&factory).await;
    assert_eq!(asked(), 1);
    let config_maps = factory.informer_of::<Object>(config_maps());
    let nodes = factory.informer_of::<Object>(nodes());
    factory.start();
    factory.wait_for_sync(LONG).await.unwrap();
    assert_eq!((asked(), config_maps.len(), server.count("LIST")), (1, 1, 3));
    // A request that was not sent is not counted.
    let requests = config_maps.metrics().requests;
    assert_eq!((requests.streaming_lists, requests.lists), (0, 1));
    assert_eq!(config_maps.metrics().relists.values().sum::<u64>(), 0, "its first list");

    // Other groups may be of other servers.
    let deployments = factory.informer_of::<Object>(ResourceType::of::<Deployment>());
    factory.start();
    deployments.wait_for_sync(LONG).await.unwrap();
    assert_eq!(asked(), 2);

    let relist = async || {
        server.put("pods", "shop/a", json!({}));
        caught_up(&server, &pods).await;
        let lists = server.count("LIST /api/v1/pods");
        server.expire("pods");
        until("it is listed again", || server.count("LIST /api/v1/pods") > lists).await;
    };
    relist().await;
    assert_eq!(asked(), 2);
    // Bookmarks keep the watches alive meanwhile.
    for _ in 0..61 {
        tokio::time::advance(Duration::from_secs(60)).await;
        for plural in ["pods", "nodes", "configmaps", "deployments"] {
            server.bookmark(plural);
        }
        settle().await;
    }
    relist().await;
    assert_eq!(asked(), 3, "an hour later it may have learnt it");
    drop(nodes);
}

#[tokio::test(start_paused = true)]
async fn w15_what_the_server_will_never_list_is_denied_and_asked_for_slowly() {
    let server = Server::new();
    server.deny("pods", 400, "BadRequest");
    let factory = factory(&server).with_fields("spec.nodeName=x").unwrap();
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    let begin = tokio::time::Instant::now();
    let error = factory.wait_for_sync_or_denial(LONG).await.unwrap_err();
    assert!(error.is_denied() && begin.elapsed() < Duration::from_secs(1), "{error}");
    tokio::time::advance(Duration::from_secs(29)).await;
    settle().await;
    assert_eq!(server.count("LIST"), 1);
    server.allow("pods");
    until("it is live", || matches!(informer.status(), Status::Live { .. })).await;
}
