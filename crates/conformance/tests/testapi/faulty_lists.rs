//! L: lists that go wrong.

use std::time::Duration;

use conformance::{Needs, Rig, Told, status};
use informer::{Cause, Object, Report, Status};
use testapi::Verb;
use testapi::faults::{Bytes, Fault, Refusal};

use crate::SERVER;
use crate::clauses::{config_maps, is_live, names};

/// A list of config maps.
fn lists() -> testapi::faults::Matcher {
    Verb::List.of("configmaps")
}

#[tokio::test]
async fn l3_an_expired_relist_is_followed_at_once_by_one_of_any_version() {
    let Some(rig) = Rig::shared(SERVER, "l3_expired").await else { return };
    rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    let expired = rig.faults().on(lists()).once(Fault::Refuse(Refusal::Expired));
    rig.wire.expire_next_watch();
    rig.proxy.cut();
    rig.wire.until_listed(3).await;
    assert_eq!(expired.hits(), 1);
    let versions: Vec<_> = rig.wire.lists().iter().map(|list| list.version().to_owned()).collect();
    assert_eq!(versions, ["", rig.wire.watches()[0].version(), ""]);
    status(&informer, is_live).await;
    assert_eq!(names(&informer), ["a"]);
}

#[tokio::test]
async fn l8_a_table_is_refused_with_a_clear_error() {
    let Some(rig) = Rig::shared(SERVER, "l8_table").await else { return };
    rig.create("a").await;
    let tables = rig.faults().on(lists()).always(Fault::AsTable);
    let factory = rig.factory();
    let informer = factory.informer_of::<Object>(config_maps());
    factory.start();
    let reached = status(&informer, |status| matches!(status, Status::Retrying { .. })).await;
    let Status::Retrying { cause: Cause::Undecodable(reason), .. } = reached else { panic!("{reached}") };
    assert!(reason.contains("kind") || reason.contains("Table"), "{reason}");
    assert!(!informer.is_synced() && informer.is_empty());
    tables.disarm();
    status(&informer, is_live).await;
    assert_eq!(names(&informer), ["a"]);
}

#[tokio::test]
async fn l11_h9_a_list_that_breaks_anywhere_is_listed_again_and_told_once() {
    let Some(rig) = Rig::shared(SERVER, "l11_breaks").await else { return };
    for number in 0..20 {
        rig.create(&format!("object-{number:02}")).await;
    }
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    // At the start, in the head, within items, near the end.
    let breaks = [0, 1, 40, 300, 1_000, 1_700, 2_500].map(|bytes| Fault::CutAfter(Bytes(bytes)));
    let ends = [10, 700, 2_200].map(|bytes| Fault::EndAfter(Bytes(bytes)));
    for (round, fault) in breaks.into_iter().chain(ends).enumerate() {
        let name = format!("new-{round}");
        rig.wire.expire_next_watch();
        rig.proxy.refuse();
        rig.create(&name).await;
        rig.delete(&format!("object-{round:02}")).await;
        let broken = rig.faults().on(lists()).once(fault.clone());
        rig.proxy.resume();
        let expected = [format!("missed object-{round:02}"), format!("added {name}")];
        assert_eq!(told.next::<2>().await, expected, "{fault:?}");
        assert_eq!(broken.hits(), 1, "{fault:?}");
        // The list is told before its watch is asked for, which is not the one to expire.
        status(&informer, is_live).await;
    }
    assert!(told.is_silent());
}

#[tokio::test]
async fn l12_an_older_list_is_not_applied() {
    let Some(rig) = Rig::shared(SERVER, "l12_older").await else { return };
    rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    rig.update("a", "new").await;
    let version = rig.update("a", "newer").await;
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    let mut told = Told::every(&informer);
    told.first_content().await;
    let mut reports = informer.reports();
    let back = rig.faults().on(lists()).once(Fault::RevisionBack { after: 0, by: 3 });
    rig.wire.expire_next_watch();
    rig.proxy.cut();
    rig.wire.until_listed(3).await;
    status(&informer, is_live).await;
    assert_eq!(back.hits(), 1);
    assert!(informer.resource_version().is_at_least(&version));
    let went_back = |cause: &Cause| matches!(cause, Cause::WentBack { .. });
    assert_eq!(crate::causes(&mut reports).iter().filter(|cause| went_back(cause)).count(), 1);
    assert!(told.is_silent());
}

#[tokio::test]
async fn l12_w12_a_restored_server_is_reported_and_followed() {
    let rig = Rig::own(SERVER, "l12_restored", Needs::default()).await.expect("a server");
    rig.create("kept").await;
    rig.create("changed").await;
    rig.create("gone-then").await;
    let backup = rig.backup();
    rig.update("changed", "after the backup").await;
    rig.create("after-the-backup").await;
    rig.delete("gone-then").await;
    let factory = rig
        .builder()
        .reflector(|reflector| reflector.silence_limit = Duration::from_secs(1))
        .build()
        .unwrap();
    let informer = rig.synced(&factory).await;
    let seen = informer.resource_version();
    let mut told = Told::every(&informer).of_a_restored_server();
    told.first_content().await;
    let mut reports = informer.reports();

    rig.restore(&backup).await;
    rig.create("new").await;
    let mut changes = told.summaries(4).await;
    changes.sort();
    assert_eq!(changes, ["added gone-then", "added new", "missed after-the-backup", "updated changed"]);
    assert_eq!(names(&informer), ["changed", "gone-then", "kept", "new"]);
    status(&informer, is_live).await;
    let mut restored = 0;
    while let Some(report) = reports.try_recv() {
        if let Report::ServerRestored { seen: before, now } = report {
            assert!(now.is_older_than(&before) && before.is_at_least(&seen), "{before} {now}");
            restored += 1;
        }
    }
    assert_eq!(restored, 1);
}

#[tokio::test]
async fn p2_l12_a_restored_server_is_found_out_by_who_begins_with_what_was_saved() {
    let rig = Rig::own(SERVER, "p2_restored", Needs::default()).await.expect("a server");
    rig.create("kept").await;
    rig.create("changed").await;
    rig.create("gone-then").await;
    let backup = rig.backup();
    rig.update("changed", "after the backup").await;
    rig.create("after-the-backup").await;
    rig.delete("gone-then").await;
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("maps");
    let factory = rig.factory();
    rig.synced(&factory).await.save(&path).await.unwrap();
    factory.shutdown().await;

    rig.restore(&backup).await;
    let factory = rig.factory();
    let informer = factory.informer_of(config_maps());
    let mut told = Told::every(&informer).of_a_restored_server();
    informer.load(&path).await.unwrap();
    let mut reports = informer.reports();
    // No silence has to pass: the server is asked before it is watched.
    rig.synced(&factory).await;
    let first = ["initial after-the-backup", "initial changed", "initial gone-then", "initial kept"];
    let first = first.into_iter().chain(["missed after-the-backup", "updated changed"]);
    assert_eq!(told.first_content().await, first.collect::<Vec<_>>());
    assert_eq!(names(&informer), ["changed", "gone-then", "kept"]);
    assert!(matches!(reports.recv().await, Some(Report::ServerRestored { .. })));
}

#[tokio::test]
async fn l11_w16_answers_in_pieces_of_any_size_decode() {
    let Some(rig) = Rig::shared(SERVER, "w16_pieces").await else { return };
    let strange = "\u{0}\u{7f}\"\\/ä€𝄞\u{2028}\r\n\t<>&";
    rig.create_with(conformance::config_map("strange", strange)).await;
    for number in 0..5 {
        rig.create(&format!("object-{number}")).await;
    }
    for (seed, max) in [(1, 1), (2, 2), (3, 3), (4, 7), (5, 64)] {
        let pieces =
            rig.faults().on(testapi::faults::Matcher::of("configmaps")).always(Fault::Chunks { seed, max });
        let informer = rig.synced(&rig.factory()).await;
        let mut told = Told::every(&informer);
        told.first_content().await;
        rig.update("strange", &format!("{strange}{max}")).await;
        assert_eq!(told.next().await, ["updated strange"]);
        let object = informer.lister().namespace(rig.namespace()).get("strange").unwrap().unwrap();
        assert_eq!(crate::clauses::json(&object)["data"]["value"], format!("{strange}{max}"));
        assert_eq!(informer.len(), 6, "pieces of up to {max} bytes");
        assert!(pieces.hits() >= 2);
        pieces.disarm();
    }
}

#[tokio::test]
async fn w14_w5_a_server_that_is_overloaded_is_given_the_time_it_asks_for() {
    let Some(rig) = Rig::shared(SERVER, "w14_overloaded").await else { return };
    rig.create("a").await;
    let busy = rig.faults().on(lists()).times(2, Fault::Refuse(Refusal::TooManyRequests { retry_after: 1 }));
    let factory = rig.factory();
    let informer = factory.informer_of::<Object>(config_maps());
    let begun = std::time::Instant::now();
    factory.start();
    let reached = status(&informer, |status| matches!(status, Status::Retrying { .. })).await;
    let Status::Retrying { cause: Cause::Refused(refusal), .. } = reached else { panic!("{reached}") };
    assert_eq!(refusal.code, 429);
    status(&informer, is_live).await;
    assert_eq!(busy.hits(), 2);
    // The rig's own patience would be a fraction of it.
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
}
