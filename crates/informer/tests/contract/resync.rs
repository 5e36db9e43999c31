//! Group R: resyncs; and D4, that a resync is never news.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use informer::{Change, Object};
use serde_json::json;

use super::server::Server;
use super::support::{
    Recorder, builder, config_maps, factory, live, next, pods, settle, short, soon, until, until_synced,
};

const MINUTE: Duration = Duration::from_secs(60);

/// Lets time pass, with a bookmark each half minute as servers send them.
async fn pass(server: &Server, time: Duration) {
    for _ in 0..time.as_secs() / 30 {
        tokio::time::advance(Duration::from_secs(30)).await;
        server.bookmark("pods");
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_each_handler_has_its_own_period() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b"]).await;
    let mut logs = Vec::new();
    for minutes in [0, 1, 5] {
        let (recorder, log) = Recorder::new();
        let registration = informer.subscribe().resync(MINUTE * minutes).handler(recorder).unwrap();
        assert!(soon(registration.synced()).await);
        log.take();
        logs.push((registration, log));
    }
    let counts = || logs.iter().map(|(_, log)| log.len()).collect::<Vec<_>>();
    pass(&server, MINUTE * 4).await;
    assert_eq!(counts(), [0, 8, 0]);
    pass(&server, MINUTE * 2).await;
    assert_eq!(counts(), [0, 12, 2]);
    assert!(logs[1].1.has("resync shop/a@101"));
}

#[tokio::test(start_paused = true)]
async fn r1_the_factory_has_a_period_for_those_who_choose_none() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.put("configmaps", "shop/a", json!({}));
    let factory = builder(&server).resync(MINUTE).resync_of(config_maps(), MINUTE * 3).build().unwrap();
    let mut logs = Vec::new();
    for resource in [pods(), config_maps()] {
        let (recorder, log) = Recorder::new();
        logs.push((factory.informer_of::<Object>(resource).add_handler(recorder).unwrap(), log));
    }
    let (recorder, never) = Recorder::new();
    let _never =
        factory.informer_of::<Object>(pods()).subscribe().resync(Duration::ZERO).handler(recorder).unwrap();
    factory.start();
    for (registration, log) in &logs {
        assert!(soon(registration.synced()).await);
        log.take();
    }
    pass(&server, Duration::from_secs(210)).await;
    assert_eq!(logs.iter().map(|(_, log)| log.len()).collect::<Vec<_>>(), [3, 1]);
    assert!(!never.lines().iter().any(|line| line.starts_with("resync")), "{:?}", never.lines());
}

#[tokio::test(start_paused = true)]
async fn r2_a_resync_waits_while_a_relist_runs() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let (recorder, log) = Recorder::new();
    let registration = informer.subscribe().resync(MINUTE).handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    log.take();
    tokio::time::advance(Duration::from_secs(50)).await;
    server.hold_in_the_middle_of_lists("pods");
    server.expire("pods");
    settle().await;
    tokio::time::advance(Duration::from_secs(15)).await;
    settle().await;
    assert_eq!(log.lines(), [""; 0], "no resync in the middle of a list");
    server.release("pods");
    settle().await;
    assert_eq!(log.lines(), ["resync shop/a@101"]);
}

#[tokio::test(start_paused = true)]
async fn r2_a_list_that_fails_does_not_hold_a_resync_up() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let (recorder, log) = Recorder::new();
    let registration = informer.subscribe().resync(MINUTE).handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    log.take();
    tokio::time::advance(Duration::from_secs(50)).await;
    server.hold("pods");
    server.expire("pods");
    settle().await;
    tokio::time::advance(Duration::from_secs(15)).await;
    settle().await;
    assert_eq!(log.lines(), [""; 0], "no resync while a list is asked for");
    // The list fails, and does so from then on.
    server.deny("pods", 503, "ServiceUnavailable");
    server.release("pods");
    settle().await;
    assert_eq!(log.lines(), ["resync shop/a@101"]);
}

#[tokio::test(start_paused = true)]
async fn r2_live_changes_go_before_what_is_left_of_a_resync() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b", "shop/c", "shop/d"]).await;
    let mut changes = informer.subscribe().resync(MINUTE).changes().unwrap();
    until_synced(&mut changes).await;
    tokio::time::advance(MINUTE).await;
    assert!(matches!(next(&mut changes).await, Change::Resynced(_)));
    server.put("pods", "shop/new", json!({}));
    until("it is in the cache", || informer.len() == 5).await;
    assert_eq!(short(&next(&mut changes).await), "add shop/new@105");
    for _ in 0..3 {
        assert!(matches!(next(&mut changes).await, Change::Resynced(_)));
    }
    assert!(changes.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn d4_r2_a_resync_brings_nothing_back() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b", "shop/c"]).await;
    let mut changes = informer.subscribe().resync(MINUTE).changes().unwrap();
    until_synced(&mut changes).await;
    tokio::time::advance(MINUTE).await;
    // The round has begun, with all three as they were.
    let Change::Resynced(first) = next(&mut changes).await else { panic!("no resync") };
    let rest: Vec<_> =
        ["shop/a", "shop/b", "shop/c"].into_iter().filter(|key| *key != first.key().as_str()).collect();
    let updated = server.put("pods", rest[0], json!({}));
    server.delete("pods", rest[1]);
    until("both are in the cache", || informer.len() == 2).await;
    let mut told = vec![short(&next(&mut changes).await), short(&next(&mut changes).await)];
    told.sort();
    assert!(told[0].starts_with(&format!("delete {}", rest[1])), "{told:?}");
    assert!(told[1].ends_with(&format!("-> {}@{updated}", rest[0])), "{told:?}");
    assert!(changes.next().now_or_never().is_none(), "the older state, or what was deleted");
}

#[tokio::test(start_paused = true)]
async fn r1_a_period_shorter_than_its_round_starves_nobody() {
    let server = Server::new();
    server.put_many("pods", (0..50).map(|number| format!("shop/{number}")));
    let factory = factory(&server);
    let informer = super::support::started(&factory).await;
    let mut changes = informer.subscribe().resync(Duration::from_millis(1)).changes().unwrap();
    until_synced(&mut changes).await;
    for _ in 0..10 {
        for _ in 0..20 {
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(matches!(next(&mut changes).await, Change::Resynced(_)));
        }
        let version = server.put("pods", "shop/0", json!({}));
        until("it is in the cache", || {
            informer.lister().get("shop/0").unwrap().unwrap().resource_version().to_string()
                == version.to_string()
        })
        .await;
        assert!(matches!(next(&mut changes).await, Change::Updated { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn r1_a_period_may_be_as_long_as_it_likes() {
    let (_server, _factory, informer) = live(&["shop/a"]).await;
    let mut changes = informer.subscribe().resync(Duration::MAX).changes().unwrap();
    until_synced(&mut changes).await;
    assert!(changes.next().now_or_never().is_none());
}
