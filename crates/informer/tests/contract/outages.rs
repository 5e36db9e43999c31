//! Servers that nobody can connect to for some time.

use std::time::Duration;

use informer::{Informer, Object, SharedInformerFactory, Status};
use tokio::time::Instant;

use crate::server::Server;
use crate::support::{factory, pods, soon, until};

const INFORMERS: usize = 58;

/// A server, and many informers of it that are live.
async fn many() -> (Server, SharedInformerFactory, Vec<Informer<Object>>) {
    let server = Server::new();
    let factory = factory(&server);
    let informers: Vec<_> = (0..INFORMERS)
        .map(|number| factory.with_labels(format!("number={number}")).unwrap().informer_of(pods()))
        .collect();
    factory.start();
    until("all watch", || informers.iter().all(is_live)).await;
    // A watch that breaks at once would have its own backoff.
    passes(Duration::from_secs(300)).await;
    (server, factory, informers)
}

fn is_live(informer: &Informer<Object>) -> bool {
    matches!(informer.status(), Status::Live { .. })
}

/// Lets so much of the paused time pass, with whatever happens meanwhile.
async fn passes(time: Duration) {
    let ended = tokio::time::timeout(time, std::future::pending::<()>()).await;
    assert!(ended.is_err());
}

#[tokio::test(start_paused = true)]
async fn w14_in_an_outage_one_probe_a_second_asks_for_all() {
    let (server, _factory, informers) = many().await;
    let before = server.log().len();
    server.go_away();
    // Each notices by a request of its own, and may ask for the version before it.
    passes(Duration::from_secs(1)).await;
    let noticed = server.log().len();
    assert!(noticed - before <= 2 * INFORMERS + 3, "{}", noticed - before);
    assert!(!informers.iter().any(is_live));
    passes(Duration::from_secs(3600)).await;
    let asked = server.log().len() - noticed;
    assert!((2800..=4900).contains(&asked), "{asked} requests in an hour");
    assert_eq!(server.log()[noticed..].iter().filter(|line| !line.ends_with("/version")).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn w14_after_an_outage_all_go_on_within_two_seconds_one_after_the_other() {
    for outage in [6, 60, 3600] {
        let (server, _factory, informers) = many().await;
        server.go_away();
        passes(Duration::from_secs(outage)).await;
        let before = server.count("WATCH");
        server.come_back();
        let back = Instant::now();
        until("the first watches", || informers.iter().any(is_live)).await;
        assert!(server.count("WATCH") - before < INFORMERS / 2, "all at once after {outage} s");
        until("all watch again", || informers.iter().all(is_live)).await;
        assert!(back.elapsed() <= Duration::from_millis(2300), "{:?} after {outage} s", back.elapsed());
        assert_eq!(server.count("WATCH") - before, INFORMERS, "once each");
    }
}

#[tokio::test(start_paused = true)]
async fn w14_an_answer_to_anybody_ends_the_outage_for_all() {
    let (server, factory, informers) = many().await;
    server.go_away();
    passes(Duration::from_secs(60)).await;
    server.come_back();
    let back = Instant::now();
    let newcomer: Informer<Object> = factory.with_labels("number=new").unwrap().informer_of(pods());
    factory.start();
    soon(newcomer.wait_for_sync(Duration::from_secs(60))).await.unwrap();
    until("all watch again", || informers.iter().all(is_live)).await;
    assert!(back.elapsed() <= Duration::from_secs(2), "{:?}", back.elapsed());
}

#[tokio::test(start_paused = true)]
async fn f4_in_an_outage_a_stop_ends_the_probes() {
    let (server, factory, _informers) = many().await;
    server.go_away();
    passes(Duration::from_secs(60)).await;
    soon(factory.shutdown()).await;
    let asked = server.log().len();
    passes(Duration::from_secs(600)).await;
    assert_eq!(server.log().len(), asked);
}
