//! S: streaming lists that go wrong.

use std::time::Duration;

use conformance::{Asked, Needs, Rig, Told, status};
use futures_util::FutureExt;
use informer::{Cause, FactoryBuilder, Object, StreamingListChoice};
use testapi::Verb;
use testapi::faults::{Events, Fault, Matcher, Refusal};

use crate::SERVER;
use crate::clauses::{config_maps, is_live, names};

fn streams() -> Matcher {
    Verb::Watch.of("configmaps").streaming_list()
}

fn streaming(rig: &Rig) -> FactoryBuilder {
    rig.builder().reflector(|reflector| reflector.streaming_list = StreamingListChoice::Always)
}

#[tokio::test]
async fn s2_s3_nothing_is_visible_before_the_end_bookmark() {
    let Some(rig) = Rig::shared(SERVER, "s2_invisible").await else { return };
    for name in ["a", "b", "c"] {
        rig.create(name).await;
    }
    // The first events arrive, and the end of the stream does not for now.
    let held = rig.faults().on(streams()).once(Fault::StallAfter(Events(3)));
    let factory = streaming(&rig)
        .reflector(|reflector| reflector.initial_events_timeout = Duration::from_secs(2))
        .build()
        .unwrap()
        .in_namespace(rig.namespace());
    let informer = factory.informer_of::<Object>(config_maps());
    let mut told = Told::every(&informer);
    factory.start();
    held.hit().await;
    assert!(informer.is_empty() && !informer.is_synced() && told.is_silent());
    assert!(informer.wait_for_sync(Duration::ZERO).now_or_never().is_none_or(|synced| synced.is_err()));
    // It gives the stream up, and begins anew.
    assert_eq!(told.first_content().await, ["initial a", "initial b", "initial c"]);
    status(&informer, is_live).await;
}

#[tokio::test]
async fn s4_nothing_of_a_stream_that_died_leaks() {
    let Some(rig) = Rig::shared(SERVER, "s4_died").await else { return };
    for name in ["a", "b", "c"] {
        rig.create(name).await;
    }
    let died = rig.faults().on(streams()).times(2, Fault::CutAfter(Events(2)));
    let factory = streaming(&rig).build().unwrap().in_namespace(rig.namespace());
    let informer = factory.informer_of::<Object>(config_maps());
    let mut told = Told::every(&informer);
    factory.start();
    died.hit().await;
    // Gone before the next attempt can show it.
    rig.delete("a").await;
    let mut first = told.first_content().await;
    first.dedup();
    assert!(
        first == ["initial b", "initial c"] || first == ["initial a", "initial b", "initial c"],
        "{first:?}"
    );
    status(&informer, is_live).await;
    let last = rig.create("d").await;
    informer.at_least(&last, conformance::DEADLINE).await.unwrap();
    assert_eq!(names(&informer), ["b", "c", "d"]);
}

#[tokio::test]
async fn s6_a_refused_streaming_list_becomes_a_list_and_a_watch() {
    for (test, refusal) in [("s6_invalid", Refusal::Invalid), ("s6_conflict", Refusal::Conflict)] {
        let Some(rig) = Rig::shared(SERVER, test).await else { return };
        rig.create("a").await;
        let refused = rig.faults().on(streams()).always(Fault::Refuse(refusal));
        let informer = rig.synced(&streaming(&rig).build().unwrap().in_namespace(rig.namespace())).await;
        assert_eq!(names(&informer), ["a"]);
        assert_eq!(refused.hits(), 1, "{test}: what the server cannot do is remembered");
        assert_eq!(rig.wire.lists().len(), 1);
    }
}

#[tokio::test]
async fn s6_429_leads_to_the_same_streaming_list() {
    let Some(rig) = Rig::shared(SERVER, "s6_429").await else { return };
    rig.create("a").await;
    let busy = rig.faults().on(streams()).once(Fault::Refuse(Refusal::TooManyRequests { retry_after: 1 }));
    let informer = rig.synced(&streaming(&rig).build().unwrap().in_namespace(rig.namespace())).await;
    assert_eq!(names(&informer), ["a"]);
    assert_eq!(busy.hits(), 1);
    let asked = rig.wire.asked();
    assert!(asked.len() >= 2 && asked.iter().take(2).all(Asked::is_streaming_list), "{asked:?}");
}

#[tokio::test]
async fn s7_without_an_end_bookmark_it_falls_back_to_a_list() {
    let Some(rig) = Rig::shared(SERVER, "s7_no_end").await else { return };
    rig.create("a").await;
    let endless = rig.faults().on(streams()).always(Fault::NoEndBookmark);
    let factory = streaming(&rig)
        .reflector(|reflector| reflector.initial_events_timeout = Duration::from_secs(1))
        .build()
        .unwrap()
        .in_namespace(rig.namespace());
    let informer = factory.informer_of::<Object>(config_maps());
    let mut reports = informer.reports();
    factory.start();
    status(&informer, is_live).await;
    assert_eq!(names(&informer), ["a"]);
    assert!(endless.hits() >= 1);
    assert!(crate::causes(&mut reports).contains(&Cause::NoInitialEventsEnd));
    assert_eq!(rig.wire.lists().len(), 1);
}

#[tokio::test]
async fn s6_l1_a_server_without_streaming_lists_is_asked_once() {
    let needs = Needs { watch_list: false, ..Needs::default() };
    let rig = Rig::own(SERVER, "s6_without", needs).await.expect("a server");
    rig.create("a").await;
    let informer = rig.synced(&streaming(&rig).build().unwrap().in_namespace(rig.namespace())).await;
    assert_eq!(names(&informer), ["a"]);
    rig.wire.expire_next_watch();
    rig.proxy.cut();
    rig.wire.until_listed(2).await;
    let streams = rig.wire.asked().into_iter().filter(Asked::is_streaming_list).count();
    assert_eq!(streams, 1, "it is remembered");
}
