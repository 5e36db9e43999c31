//! Which requests meet a fault, in which order, and what can be seen of it.

use testapi::Verb;
use testapi::faults::{Events, Fault, Fired, Matcher, Refusal};

use crate::client::{MAPS, create, get, nothing, start, start_with, within};

const GONE: Fault = Fault::Refuse(Refusal::Unavailable);

async fn status(api: &testapi::TestApi, path: &str) -> u16 {
    get(api, path).await.status.as_u16()
}

#[tokio::test]
async fn once_is_once_times_are_counted_and_always_stays() {
    let api = start().await;
    let list = || api.faults().on(Verb::List.of("configmaps"));
    list().once(GONE);
    assert_eq!([status(&api, MAPS).await, status(&api, MAPS).await], [503, 200]);
    list().times(2, GONE);
    assert_eq!(
        [status(&api, MAPS).await, status(&api, MAPS).await, status(&api, MAPS).await],
        [503, 503, 200]
    );
    let always = list().always(GONE);
    for _ in 0..5 {
        assert_eq!(status(&api, MAPS).await, 503);
    }
    assert_eq!((always.met(), always.hits()), (5, 5));
    always.disarm();
    assert_eq!(status(&api, MAPS).await, 200);
}

#[tokio::test]
async fn counted_faults_for_the_same_requests_happen_one_after_the_other() {
    let api = start().await;
    for refusal in [Refusal::Timeout, Refusal::Forbidden, Refusal::Expired] {
        api.faults().on(Verb::List.of("configmaps")).once(Fault::Refuse(refusal));
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(status(&api, MAPS).await);
    }
    assert_eq!(seen, [504, 403, 410, 200]);
}

#[tokio::test]
async fn faults_for_always_happen_in_addition() {
    let api = start_with(3).await;
    let chunks = api.faults().on(Verb::Watch.of("configmaps")).always(Fault::Chunks { seed: 1, max: 3 });
    let end = api.faults().on(Verb::Watch.of("configmaps")).once(Fault::EndAfter(Events(2)));
    let mut watch = get(&api, &format!("{MAPS}?watch=true")).await;
    let chunk = watch.chunk().await.unwrap().unwrap();
    assert!(chunk.len() <= 3);
    let rest = watch.bytes().await.unwrap();
    assert_eq!(rest.iter().filter(|byte| **byte == b'\n').count(), 2);
    assert_eq!((chunks.hits(), end.hits()), (1, 1));
}

#[tokio::test]
async fn the_nth_request_is_counted_from_when_the_fault_is_armed() {
    let api = start().await;
    assert_eq!(status(&api, MAPS).await, 200);
    api.faults().on(Verb::List.of("configmaps").from_nth(3)).once(GONE);
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(status(&api, MAPS).await);
    }
    assert_eq!(seen, [200, 200, 503, 200, 200]);
}

#[tokio::test]
async fn requests_count_that_an_older_fault_has_met() {
    let api = start().await;
    let list = || Verb::List.of("configmaps");
    api.faults().on(list()).once(Fault::Refuse(Refusal::Timeout));
    api.faults().on(list().from_nth(2)).once(GONE);
    assert_eq!(
        [status(&api, MAPS).await, status(&api, MAPS).await, status(&api, MAPS).await],
        [504, 503, 200]
    );
}

#[tokio::test]
async fn only_what_matches_is_met() {
    let api = start_with(2).await;
    let object = &format!("{MAPS}/a");
    let other = &format!("{MAPS}/b");
    let all = "/api/v1/configmaps";
    let page = &format!("{MAPS}?limit=1");
    let matchers: [(Matcher, [u16; 5]); 9] = [
        (Matcher::any(), [503, 503, 503, 503, 503]),
        (Verb::Get.of("configmaps"), [200, 503, 503, 200, 200]),
        (Verb::List.of("configmaps"), [503, 200, 200, 503, 503]),
        (Matcher::of("pods"), [200; 5]),
        (Matcher::of("configmaps.apps"), [200; 5]),
        (Matcher::of("configmaps").named("a"), [200, 503, 200, 200, 200]),
        (Verb::List.of("configmaps").in_namespace("default"), [503, 200, 200, 200, 503]),
        (Matcher::any().with_query("limit", |limit| limit == "1"), [200, 200, 200, 200, 503]),
        (Matcher::any().when("b", |call| call.path.ends_with("/b")), [200, 200, 503, 200, 200]),
    ];
    for (matcher, expected) in matchers {
        let armed = api.faults().on(matcher.clone()).always(GONE);
        let mut seen = [0; 5];
        for (at, path) in [MAPS, object, other, all, page].into_iter().enumerate() {
            seen[at] = status(&api, path).await;
        }
        assert_eq!(seen, expected, "{matcher:?}");
        armed.disarm();
    }
}

#[tokio::test]
async fn a_fault_that_only_a_watch_can_have_waits_for_one() {
    let api = start_with(2).await;
    let cut = api.faults().on(Matcher::of("configmaps")).once(Fault::CutAfter(Events(1)));
    assert_eq!(get(&api, MAPS).await.json().await["items"].as_array().unwrap().len(), 2);
    assert_eq!(cut.met(), 0);
    let mut watch = get(&api, &format!("{MAPS}?watch=true")).await;
    watch.events(1).await;
    assert!(watch.event().await.is_err());
    assert_eq!(cut.met(), 1);
}

#[tokio::test]
async fn a_fault_that_is_met_has_not_hit_before_it_takes_effect() {
    let api = start_with(1).await;
    let cut = api.faults().on(Verb::Watch.of("configmaps")).once(Fault::CutAfter(Events(2)));
    let mut watch = get(&api, &format!("{MAPS}?watch=true")).await;
    assert_eq!(watch.events(1).await, ["ADDED a"]);
    assert_eq!((cut.met(), cut.hits()), (1, 0));
    assert!(nothing(cut.hit()).await);
    create(&api, "b");
    within(cut.hit()).await;
    within(api.faults().hit()).await;
    assert_eq!((cut.hits(), api.faults().hits()), (1, 1));
}

#[tokio::test]
async fn what_is_armed_and_what_has_fired_can_be_seen() {
    let api = start().await;
    assert!(api.faults().armed().is_empty());
    api.faults().on(Verb::List.of("configmaps").in_namespace("default")).times(2, GONE);
    assert_eq!(
        api.faults().armed(),
        ["list configmaps in namespace default: met 0 of 2 times [Refuse(Unavailable)]"]
    );
    get(&api, "/api/v1/pods").await;
    get(&api, MAPS).await;
    assert_eq!(api.faults().fired(), [Fired { fault: GONE, request: 2 }]);
    get(&api, MAPS).await;
    assert!(api.faults().armed().is_empty(), "used up");
    assert_eq!(api.faults().fired().len(), 2);
}

#[tokio::test]
async fn clearing_ends_everything() {
    let api = start().await;
    let armed = api.faults().on(Matcher::any()).always(GONE);
    api.faults().hide("configmaps");
    api.faults().clear();
    assert_eq!(status(&api, MAPS).await, 200);
    assert!(api.faults().armed().is_empty());
    assert_eq!(armed.met(), 0);
}

#[tokio::test]
async fn history_is_compacted_just_before_a_watch_asks_for_it() {
    let api = start_with(1).await;
    let before = api.api().revision();
    create(&api, "b");
    api.faults().on(Verb::Watch.of("configmaps").from_nth(2)).once(Fault::Compact);
    let path = format!("{MAPS}?watch=true&resourceVersion={before}");
    assert_eq!(get(&api, &path).await.events(1).await, ["ADDED b"]);
    let mut watch = get(&api, &path).await;
    assert_eq!(watch.events(1).await, ["ERROR Expired"]);
    assert_eq!(watch.event().await.unwrap(), None);
}
