//! D, H and M: what an informer can be asked, how waits end, and how handlers come and go.

use std::pin::pin;
use std::time::Duration;

use conformance::{Rig, Told, status, within};
use futures_util::StreamExt;
use informer::{Object, ResourceVersion, Status, WhenFull};

use super::{config_maps, is_live};
use crate::SERVER;

#[tokio::test]
async fn m1_what_an_informer_has_done_is_counted_and_gone_with_it() {
    let Some(rig) = Rig::shared(SERVER, "m1_counted").await else { return };
    rig.create("a").await;
    rig.create("b").await;
    let factory = rig.factory();
    let informer = rig.synced(&factory).await;
    rig.create("c").await;
    rig.update("a", "new").await;
    rig.delete("b").await;
    let last = rig.create("d").await;
    informer.at_least(&last, conformance::DEADLINE).await.unwrap();
    let metrics = informer.metrics();
    assert_eq!((metrics.objects, metrics.list_items, metrics.unreadable), (3, 2, 0));
    assert_eq!((metrics.requests.lists, metrics.requests.watches), (1, 1));
    let events = metrics.events;
    assert_eq!((events.added, events.modified, events.deleted, events.errors), (2, 1, 1, 0));
    assert!(metrics.received_bytes > 1_000 && metrics.held_bytes > 0);
    assert!(metrics.is_synced && is_live(&metrics.status));
    assert!(metrics.relists.values().sum::<u64>() == 0, "{:?}", metrics.relists);

    rig.wire.expire_next_watch();
    rig.proxy.cut();
    rig.wire.until_listed(2).await;
    status(&informer, is_live).await;
    assert_eq!(informer.metrics().relists.values().sum::<u64>(), 1);
    assert_eq!(factory.metrics().informers.len(), 1);
    informer.stop().await;
    drop(informer);
    assert_eq!(factory.metrics().informers.len(), 0);
}

#[tokio::test]
async fn m2_the_status_tells_how_it_goes() {
    let Some(rig) = Rig::shared(SERVER, "m2_status").await else { return };
    rig.create("a").await;
    let factory = rig.factory();
    let informer = factory.informer_of::<Object>(config_maps());
    let mut changes = pin!(informer.status_changes());
    let mut until = async |what: &str, is_it: fn(&Status) -> bool| {
        let wanted = async { while !is_it(&changes.next().await.expect("the informer has not ended")) {} };
        within(what, wanted).await;
    };
    factory.start();
    until("live", is_live).await;
    rig.proxy.refuse();
    until("retrying", |status| matches!(status, Status::Retrying { .. })).await;
    rig.proxy.resume();
    until("live again", is_live).await;
    informer.stop().await;
    assert!(matches!(informer.status(), Status::Stopped));
    within("the end of the stream", async { while changes.next().await.is_some() {} }).await;
}

#[tokio::test]
async fn d5_f4_a_stop_ends_every_wait() {
    let Some(rig) = Rig::shared(SERVER, "d5_waits").await else { return };
    let informer = rig.synced(&rig.factory()).await;
    let mut changes = informer.changes().unwrap();
    let never: ResourceVersion = "9000000000000000".into();
    let (stopped, reached, told) = within("all of them", async {
        tokio::join!(informer.stop(), informer.at_least(&never, conformance::DEADLINE), async {
            while changes.next().await.is_some() {}
        },)
    })
    .await;
    let ((), ()) = (stopped, told);
    assert!(reached.unwrap_err().is_stopped());
    rig.proxy.idle().await;
}

#[tokio::test]
async fn d3_d1_h10_two_relists_that_nobody_reads_delete_once() {
    let Some(rig) = Rig::shared(SERVER, "d3_unread").await else { return };
    for name in ["a", "b", "c"] {
        rig.create(name).await;
    }
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    for (round, name) in ["a", "b"].into_iter().enumerate() {
        rig.wire.expire_next_watch();
        rig.proxy.refuse();
        rig.delete(name).await;
        rig.proxy.resume();
        rig.wire.until_listed(round + 2).await;
        status(&informer, is_live).await;
    }
    rig.create("a").await;
    assert_eq!(told.next().await, ["missed a", "missed b", "added a"]);
    assert!(told.is_silent());
}

#[tokio::test]
async fn d4_r2_a_resync_brings_nothing_back() {
    let Some(rig) = Rig::shared(SERVER, "d4_resync").await else { return };
    rig.create("a").await;
    rig.create("b").await;
    let informer = rig.synced(&rig.factory()).await;
    let resynced =
        informer.subscribe().every_change(1_000, WhenFull::Coalesce).resync(Duration::from_millis(50));
    // The reader checks that a resync is never news, and never of what is gone.
    let mut told = Told::new(resynced.changes().unwrap());
    told.first_content().await;
    for value in ["1", "2", "3"] {
        rig.update("a", value).await;
    }
    rig.delete("b").await;
    rig.wire.expire_next_watch();
    rig.proxy.cut();
    rig.wire.until_listed(2).await;
    let mut rounds = 0;
    while rounds < 5 || told.story().view().len() > 1 {
        rounds += usize::from(told.next::<1>().await == ["resynced a"]);
    }
    assert_eq!(told.story().view().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h13_f4_subscriptions_come_and_go_while_it_changes_and_stops() {
    let Some(rig) = Rig::shared(SERVER, "h13_come_and_go").await else { return };
    rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    let readers: Vec<_> = (0..40)
        .map(|number| {
            let informer = informer.clone();
            tokio::spawn(async move {
                let mut joined = 0;
                // Refused when it has stopped, and what ran ends with it.
                while let Ok(changes) = informer.changes() {
                    joined += 1;
                    let mut told = pin!(changes.take(1 + (number + joined) % 5));
                    while told.next().await.is_some() {}
                }
                joined
            })
        })
        .collect();
    for value in 0..100 {
        rig.update("a", &value.to_string()).await;
    }
    informer.stop().await;
    for reader in readers {
        let joined = within("the end of a reader", reader).await.expect("no panic");
        assert!(joined > 0);
    }
    drop(informer);
    rig.proxy.idle().await;
}
