//! How things end: D5, F4, and what becomes of handlers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use informer::{Handler, Informer, Item, Object, ResourceVersion, Status};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::server::Server;
use super::support::{
    LONG, Log, Recorder, factory, live, pods, settle, soon, started, tasks, until, until_synced,
};

/// Everybody who can wait for something of an informer, waiting.
async fn waiters(informer: &Informer<Object>) -> JoinSet<&'static str> {
    let mut waiters = JoinSet::new();
    let waiting = informer.clone();
    waiters.spawn(async move {
        assert!(waiting.wait_for_sync(Duration::MAX).await.is_err());
        "wait_for_sync"
    });
    let waiting = informer.clone();
    waiters.spawn(async move {
        let reached = waiting.at_least(&ResourceVersion::new("999999"), Duration::MAX).await;
        assert!(reached.unwrap_err().is_stopped());
        "at_least"
    });
    let mut changes = informer.changes().unwrap();
    waiters.spawn(async move {
        assert!(changes.next().await.is_none());
        "changes"
    });
    let registration = informer.add_handler(Recorder::new().0).unwrap();
    waiters.spawn(async move {
        assert!(!soon(registration.synced()).await);
        "registration.synced"
    });
    let mut status = Box::pin(informer.status_changes());
    waiters.spawn(async move {
        let mut last = None;
        while let Some(status) = status.next().await {
            last = Some(status);
        }
        assert_eq!(last, Some(Status::Stopped));
        "status_changes"
    });
    let mut reports = informer.reports();
    waiters.spawn(async move {
        while reports.recv().await.is_some() {}
        "reports"
    });
    settle().await;
    assert!(waiters.try_join_next().is_none());
    waiters
}

async fn all_return(mut waiters: JoinSet<&'static str>) {
    let mut returned = Vec::new();
    while let Some(waiter) = tokio::time::timeout(LONG, waiters.join_next()).await.unwrap_or_else(|_| {
        panic!("only {returned:?} returned");
    }) {
        returned.push(waiter.unwrap());
    }
    assert_eq!(returned.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn d5_a_stop_wakes_everybody_who_waits() {
    for how in 0..4 {
        let server = Server::new();
        server.hold("pods");
        let token = tokio_util::sync::CancellationToken::new();
        let factory = super::support::builder(&server).stop_token(token.clone()).build().unwrap();
        let informer = factory.informer_of::<Object>(pods());
        factory.start();
        let waiters = waiters(&informer).await;
        match how {
            0 => soon(informer.stop()).await,
            1 => soon(factory.shutdown()).await,
            2 => token.cancel(),
            _ => factory.shutdown_within(LONG).await.unwrap(),
        }
        all_return(waiters).await;
        assert_eq!(informer.status(), Status::Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn d5_whoever_comes_after_the_stop_does_not_wait_either() {
    let (_server, _factory, informer) = live(&["shop/a"]).await;
    soon(informer.stop()).await;
    assert!(informer.reports().recv().await.is_none());
    let status: Vec<_> = informer.status_changes().collect().await;
    assert_eq!(status, [Status::Stopped]);
    // A synced cache stays synced, and can be read.
    assert!(informer.wait_for_sync(LONG).await.is_ok());
    assert_eq!(informer.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn d5_what_is_pending_when_the_informer_stops_is_told_by_a_stream() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let mut changes = informer.changes().unwrap();
    until_synced(&mut changes).await;
    server.put("pods", "shop/b", json!({}));
    until("it is pending", || changes.backlog() == 1).await;
    soon(informer.stop()).await;
    assert!(changes.next().await.is_some());
    assert!(changes.next().await.is_none());
    assert!(changes.next().await.is_none());
}

/// Waits in each call, and says when it is over.
struct Gated {
    gate: Arc<Notify>,
    log: Log,
}

impl Handler<Object> for Gated {
    async fn on_add(&mut self, object: Item<Object>, _: bool) {
        self.log.push(format!("{} begins", object.key()));
        self.gate.notified().await;
        self.log.push(format!("{} ends", object.key()));
    }
}

async fn gated(informer: &Informer<Object>) -> (informer::Registration, Arc<Notify>, Log) {
    let (gate, log) = (Arc::new(Notify::new()), Log::default());
    let handler = Gated { gate: gate.clone(), log: log.clone() };
    let registration = informer.add_handler(handler).unwrap();
    until("the first call has begun", || log.len() == 1).await;
    (registration, gate, log)
}

#[tokio::test(start_paused = true)]
async fn f4_a_stop_waits_for_the_call_under_way_and_begins_no_other() {
    let (_server, factory, informer) = live(&["shop/a", "shop/b", "shop/c"]).await;
    let (registration, gate, log) = gated(&informer).await;
    let mut shutdown = Box::pin(factory.shutdown());
    assert!(tokio::time::timeout(Duration::from_secs(100), &mut shutdown).await.is_err());
    gate.notify_one();
    soon(shutdown).await;
    assert_eq!(log.len(), 2, "{:?}", log.lines());
    assert!(!soon(registration.synced()).await);
}

#[tokio::test(start_paused = true)]
async fn f4_a_bounded_stop_drops_calls_that_do_not_end() {
    let before = tasks();
    let (server, factory, informer) = live(&["shop/a", "shop/b"]).await;
    let (registration, _gate, log) = gated(&informer).await;
    let not_ended = factory.shutdown_within(Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(
        not_ended.to_string(),
        "not ended within 5 s: pods.v1 (all namespaces): a handler call (dropped)"
    );
    assert_eq!(log.len(), 1);
    assert!(!soon(registration.synced()).await);
    until("no task is left", || tasks() == before).await;
    assert_eq!(server.open(), 0);
    factory.shutdown_within(Duration::from_secs(5)).await.expect("nothing is left to be dropped");
}

#[tokio::test(start_paused = true)]
async fn f4_one_informer_can_be_stopped_within_a_limit() {
    let (server, factory, informer) = live(&["shop/a"]).await;
    let others = factory.informer_of::<Object>(super::support::config_maps());
    others.start();
    others.wait_for_sync(LONG).await.unwrap();
    let (_registration, _gate, _log) = gated(&informer).await;
    assert!(!informer.stop_within(Duration::from_secs(5)).await.unwrap_err().still_runs());
    assert!(informer.is_stopped() && !others.is_stopped());
    assert_eq!(server.open(), 1);
    others.stop_within(Duration::from_secs(5)).await.unwrap();
}

/// A shutdown also waits for handlers that were removed before and have not ended.
#[tokio::test(start_paused = true)]
async fn f4_a_shutdown_waits_for_what_was_dropped_before() {
    let (_server, factory, informer) = live(&["shop/a"]).await;
    let (registration, gate, log) = gated(&informer).await;
    drop((registration, informer));
    settle().await;
    let mut shutdown = Box::pin(factory.shutdown());
    assert!(tokio::time::timeout(Duration::from_secs(100), &mut shutdown).await.is_err());
    gate.notify_one();
    soon(shutdown).await;
    assert_eq!(log.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn f4_nothing_is_left_after_a_shutdown() {
    let before = tasks();
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.put("configmaps", "shop/a", json!({}));
    let factory = factory(&server);
    let informer = started(&factory).await;
    let object = Arc::downgrade(informer.lister().get("shop/a").unwrap().unwrap().object());
    let in_namespaces =
        factory.in_namespaces(["shop", "front"]).informer_of::<Object>(super::support::config_maps());
    let registration =
        informer.subscribe().resync(Duration::from_secs(60)).handler(Recorder::new().0).unwrap();
    in_namespaces.add_handler(Recorder::new().0).unwrap().detach();
    let never_started = factory.with_labels("app=web").unwrap().informer_of::<Object>(pods());
    in_namespaces.start();
    in_namespaces.wait_for_sync(LONG).await.unwrap();
    until("three watches run", || server.open() == 3).await;
    assert!(tasks() > before + 5);
    soon(factory.shutdown()).await;
    assert_eq!(server.open(), 0);
    until("no task is left", || tasks() == before).await;
    assert!(object.strong_count() > 0, "the cache can still be read");
    drop((informer, in_namespaces, registration, never_started));
    assert_eq!(object.strong_count(), 0, "memory is held");
    drop(factory);
}

#[tokio::test(start_paused = true)]
async fn f4_a_stop_in_the_middle_of_anything_ends_everything() {
    let before = tasks();
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..200 {
        let server = Server::new();
        server.put_many("pods", (0..50).map(|number| format!("shop/{number}")));
        match random.u8(..5) {
            0 => server.hold("pods"),
            1 => server.hold_in_the_middle_of_lists("pods"),
            2 => server.deny("pods", 403, "Forbidden"),
            3 => server.hold("version"),
            _ => {}
        }
        let factory = factory(&server);
        let informer = factory.informer_of::<Object>(pods());
        let registration = informer.add_handler(Recorder::new().0).unwrap();
        factory.start();
        for _ in 0..random.u8(..100) {
            tokio::task::yield_now().await;
        }
        match random.u8(..3) {
            0 => tokio::time::timeout(LONG, factory.shutdown()).await.unwrap(),
            1 => tokio::time::timeout(LONG, informer.stop()).await.unwrap(),
            _ => {}
        }
        drop((registration, informer, factory));
        until("no task is left", || tasks() == before && server.open() == 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn f4_what_is_asked_for_after_the_shutdown_is_stopped() {
    let (server, factory, _informer) = live(&[]).await;
    soon(factory.shutdown()).await;
    let requests = server.log().len();
    let late = factory.informer_of::<Object>(super::support::config_maps());
    factory.start();
    assert!(late.is_stopped() && late.add_handler(Recorder::new().0).is_err());
    assert!(late.wait_for_sync(LONG).await.is_err());
    assert!(!late.add_namespace("shop"));
    soon(factory.shutdown()).await;
    assert_eq!(server.log().len(), requests);
}

#[tokio::test(start_paused = true)]
async fn f4_a_flood_does_not_keep_anybody_from_stopping() {
    let server = Server::new();
    server.flood("pods");
    let factory = factory(&server);
    let informer = started(&factory).await;
    settle().await;
    soon(informer.stop()).await;
    assert_eq!(server.open(), 0);
}
