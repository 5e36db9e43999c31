//! W: watches that go wrong.

use std::time::Duration;

use conformance::{Asked, Rig, Told, status, within};
use informer::Cause;
use testapi::Verb;
use testapi::faults::{Events, Fault, Matcher, Refusal, StreamError};

use crate::SERVER;
use crate::clauses::{is_live, names};

/// A watch of config maps.
fn watches() -> Matcher {
    Verb::Watch.of("configmaps")
}

/// The notifications are complete and in order despite the faults; returns the reported causes.
async fn survives(rig: &Rig, fault: impl Into<Vec<Fault>>, relists: usize) -> Vec<Cause> {
    rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let mut reports = informer.reports();
    let fault = rig.faults().on(watches()).once(fault);
    rig.proxy.cut();
    let mut expected = Vec::new();
    for number in 0..5 {
        rig.create(&format!("b-{number}")).await;
        expected.push(format!("added b-{number}"));
    }
    assert_eq!(told.summaries(5).await, expected);
    assert_eq!(fault.hits(), 1);
    status(&informer, is_live).await;
    assert!(told.is_silent());
    assert_eq!(rig.wire.lists().len(), 1 + relists, "lists");
    crate::causes(&mut reports)
}

#[tokio::test]
async fn w4_watches_that_end_at_once_are_paced() {
    let Some(rig) = Rig::shared(SERVER, "w4_short").await else { return };
    rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    let mut reports = informer.reports();
    let short = rig.faults().on(watches()).times(4, Fault::EndAfter(Events(0)));
    let begun = std::time::Instant::now();
    rig.proxy.cut();
    short.hit_times(4).await;
    status(&informer, is_live).await;
    let version = rig.create("b").await;
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    // 20 ms doubling, with jitter: three pauses at least.
    assert!(begun.elapsed() >= Duration::from_millis(60), "{:?}", begun.elapsed());
    assert!(crate::causes(&mut reports).contains(&Cause::ShortWatch));
    // After a few of them a list finds out whether it is the version's fault.
    assert!(rig.wire.lists().len() <= 2, "{:?}", rig.wire.lists());
}

#[tokio::test]
async fn w5_429_at_the_start_of_a_watch_leads_to_the_same_watch() {
    let Some(rig) = Rig::shared(SERVER, "w5_429_start").await else { return };
    let causes = survives(&rig, Fault::Refuse(Refusal::TooManyRequests { retry_after: 1 }), 0).await;
    assert!(
        causes.iter().any(|cause| matches!(cause, Cause::Refused(status) if status.code == 429)),
        "{causes:?}"
    );
    let watches = rig.wire.watches();
    assert_eq!(watches[1].version(), watches[2].version());
}

#[tokio::test]
async fn w5_429_within_a_watch_leads_to_the_same_watch() {
    let Some(rig) = Rig::shared(SERVER, "w5_429_within").await else { return };
    let error = StreamError::TooManyRequests { retry_after: 1 };
    let causes = survives(&rig, Fault::ErrorAfter(1, error), 0).await;
    assert!(
        causes.iter().any(|cause| matches!(cause, Cause::ErrorEvent(status) if status.code == 429)),
        "{causes:?}"
    );
}

#[tokio::test]
async fn w6_410_at_the_start_of_a_watch_leads_to_a_list() {
    let Some(rig) = Rig::shared(SERVER, "w6_410_start").await else { return };
    let causes = survives(&rig, Fault::Refuse(Refusal::Expired), 1).await;
    assert!(causes.iter().any(|cause| matches!(cause, Cause::VersionUnavailable(_))), "{causes:?}");
    assert_eq!(rig.wire.lists()[1].version(), rig.wire.watches()[1].version(), "nothing older than seen");
}

#[tokio::test]
async fn w6_410_within_a_watch_leads_to_a_list() {
    let Some(rig) = Rig::shared(SERVER, "w6_410_within").await else { return };
    let causes = survives(&rig, Fault::ErrorAfter(2, StreamError::Expired), 1).await;
    assert!(causes.iter().any(|cause| matches!(cause, Cause::VersionUnavailable(_))), "{causes:?}");
}

#[tokio::test]
async fn w7_another_error_within_a_watch_leads_to_a_list() {
    let Some(rig) = Rig::shared(SERVER, "w7_internal").await else { return };
    let causes = survives(&rig, Fault::ErrorAfter(2, StreamError::InternalError), 1).await;
    assert!(
        causes.iter().any(|cause| matches!(cause, Cause::ErrorEvent(status) if status.code == 500)),
        "{causes:?}"
    );
}

#[tokio::test]
async fn w7_an_internal_error_is_retried_without_a_list_by_choice() {
    let Some(rig) = Rig::shared(SERVER, "w7_retried").await else { return };
    rig.create("a").await;
    let factory = rig
        .builder()
        .reflector(|reflector| reflector.internal_error_retry = Duration::from_secs(60))
        .build()
        .unwrap();
    let informer = rig.synced(&factory).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let error = rig.faults().on(watches()).once(Fault::ErrorAfter(1, StreamError::InternalError));
    rig.proxy.cut();
    rig.create("b").await;
    error.hit().await;
    rig.create("c").await;
    assert_eq!(told.next().await, ["added b", "added c"]);
    assert_eq!(rig.wire.lists().len(), 1);
}

#[tokio::test]
async fn w8_what_cannot_be_read_is_reported_and_skipped_and_the_next_good_version_clears_it() {
    for (test, fault) in [("w8_wrong_kind", Fault::WrongKind(1)), ("w8_truncated", Fault::Truncate(1))] {
        let Some(rig) = Rig::shared(SERVER, test).await else { return };
        rig.create("a").await;
        let informer = rig.synced(&rig.factory()).await;
        let mut told = Told::every(&informer);
        told.first_content().await;
        let mut reports = informer.reports();
        let _bad = rig.faults().on(watches()).once(fault);
        rig.proxy.cut();
        rig.create("b").await;
        rig.update("a", "bad").await;
        rig.create("c").await;
        let mut changes = told.summaries(2).await;
        changes.retain(|change| !change.starts_with("undecodable"));
        assert!(changes.starts_with(&["added b".to_owned()]), "{test}: {changes:?}");
        rig.update("a", "good").await;
        let object = informer.lister().namespace(rig.namespace());
        loop {
            let change = told.change().await;
            let _ = change;
            if crate::clauses::json(&object.get("a").unwrap().unwrap())["data"]["value"] == "good" {
                break;
            }
        }
        assert_eq!(names(&informer), ["a", "b", "c"], "{test}");
        assert!(informer.quarantined().is_empty(), "{test}");
        let mut said = Vec::new();
        while let Some(report) = reports.try_recv() {
            said.push(format!("{report:?}"));
        }
        assert!(!said.is_empty(), "{test}");
        // Bodies may be Secrets.
        assert!(said.iter().all(|said| !said.contains("bad")), "{test}: {said:?}");
    }
}

#[tokio::test]
async fn w17_a_garbled_deletion_leads_to_a_list() {
    let Some(rig) = Rig::shared(SERVER, "w17_garbled").await else { return };
    rig.create("a").await;
    rig.create("b").await;
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let garbled = rig.faults().on(watches()).once(Fault::Garble(0));
    rig.proxy.cut();
    rig.delete("b").await;
    garbled.hit().await;
    assert_eq!(told.next().await, ["missed b"]);
    status(&informer, is_live).await;
    assert_eq!(names(&informer), ["a"]);
    assert_eq!(rig.wire.lists().len(), 2);
}

#[tokio::test]
async fn w10_an_object_deleted_because_it_cannot_be_read_is_gone_after_a_list() {
    let Some(rig) = Rig::shared(SERVER, "w10_store_read").await else { return };
    rig.create("broken").await;
    rig.create("whole").await;
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let error = rig.faults().on(watches()).once(Fault::ErrorAfter(0, StreamError::StoreRead));
    rig.proxy.cut();
    rig.delete("broken").await;
    error.hit().await;
    assert_eq!(told.next().await, ["missed broken"]);
    status(&informer, is_live).await;
    assert_eq!(names(&informer), ["whole"]);
    assert_eq!(rig.wire.lists().len(), 2);
}

#[tokio::test]
async fn w11_h1_older_and_repeated_events_are_dropped() {
    let twice = [Fault::Duplicate(0), Fault::Duplicate(2)];
    let older = [Fault::RevisionBack { after: 2, by: 1_000 }];
    for (test, faults, updates) in [("w11_twice", twice.to_vec(), 5), ("w11_older", older.to_vec(), 4)] {
        let Some(rig) = Rig::shared(SERVER, test).await else { return };
        rig.create("a").await;
        let informer = rig.synced(&rig.factory()).await;
        let mut told = Told::every(&informer);
        told.first_content().await;
        let armed = rig.faults().on(watches()).once(faults);
        rig.proxy.cut();
        for value in ["1", "2", "3", "4", "5"] {
            rig.update("a", value).await;
        }
        let last = rig.create("b").await;
        informer.at_least(&last, conformance::DEADLINE).await.unwrap();
        let mut changes = vec!["updated a".to_owned(); updates];
        changes.push("added b".to_owned());
        assert_eq!(told.summaries(updates + 1).await, changes, "{test}");
        assert!(armed.hits() > 0, "{test}");
    }
}

#[tokio::test]
async fn w1_w3_w16_a_watch_that_breaks_anywhere_goes_on_where_it_was() {
    let Some(rig) = Rig::shared(SERVER, "w16_breaks").await else { return };
    rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let mut count = 0;
    for bytes in [1, 17, 100, 333, 700, 900] {
        let broken = rig.faults().on(watches()).once(Fault::CutAfter(testapi::faults::Bytes(bytes)));
        rig.proxy.cut();
        for _ in 0..5 {
            rig.create(&format!("b-{count}")).await;
            assert_eq!(told.next().await, [format!("added b-{count}")], "cut after {bytes} bytes");
            count += 1;
        }
        assert_eq!(broken.hits(), 1, "cut after {bytes} bytes");
    }
    assert_eq!(rig.wire.lists().len(), 1);
}

#[tokio::test]
async fn w12_a_watch_that_is_stalled_is_found_out() {
    let Some(rig) = Rig::shared(SERVER, "w12_stalled").await else { return };
    let factory = rig
        .builder()
        .reflector(|reflector| reflector.silence_limit = Duration::from_secs(1))
        .build()
        .unwrap();
    let informer = rig.synced(&factory).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let mut reports = informer.reports();
    let _stalled = rig.faults().on(watches()).once(Fault::StallAfter(Events(0)));
    rig.proxy.cut();
    rig.create("a").await;
    assert_eq!(told.next().await, ["added a"]);
    let silent = Cause::Silent(Duration::from_secs(1));
    assert!(crate::causes(&mut reports).contains(&silent));
}

#[tokio::test]
async fn w2_the_timeout_of_a_watch_is_drawn_from_its_range() {
    let Some(rig) = Rig::shared(SERVER, "w2_timeout").await else { return };
    let factory = rig
        .builder()
        .reflector(|reflector| reflector.min_watch_timeout = Duration::from_secs(600))
        .build()
        .unwrap();
    let informer = rig.synced(&factory).await;
    for count in 2..10 {
        let ended = async {
            while rig.faults().running(watches()).end() == 0 {
                tokio::task::yield_now().await;
            }
        };
        within("a watch that runs", ended).await;
        let is_next = move |asked: &[Asked]| asked.iter().filter(|asked| asked.is_watch()).count() >= count;
        rig.wire.until("another watch", is_next).await;
    }
    let mut drawn = std::collections::BTreeSet::new();
    for watch in rig.wire.watches() {
        let seconds: u64 = watch.get("timeoutSeconds").unwrap().parse().unwrap();
        assert!((600..=1_200).contains(&seconds), "{seconds}");
        drawn.insert(seconds);
    }
    assert!(drawn.len() > 1, "{drawn:?}");
    drop(informer);
}

#[tokio::test]
async fn w15_a_resource_that_is_hidden_is_denied_and_comes_back() {
    let Some(rig) = Rig::shared(SERVER, "w15_hidden").await else { return };
    rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    rig.faults().hide("configmaps");
    let is_denied = |status: &informer::Status| matches!(status, informer::Status::Denied { status } if status.code == 404);
    status(&informer, is_denied).await;
    assert_eq!(names(&informer), ["a"], "what is known stays");
    rig.faults().show("configmaps");
    status(&informer, is_live).await;
    rig.create("b").await;
    assert_eq!(told.next().await, ["added b"]);
}
