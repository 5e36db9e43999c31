//! H and R: handlers, subscriptions and resyncs.

use std::sync::Arc;
use std::time::Duration;

use conformance::{Rig, Told, status, within};
use futures_util::StreamExt;
use informer::{DeleteReason, Deleted, Existence, Handler, Informer, Item, Previous, WhenFull};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

use super::sync;
use crate::SERVER;

/// Tells of each call, after a permit for it.
struct Calls {
    told: mpsc::UnboundedSender<String>,
    permits: Arc<Semaphore>,
}

impl Calls {
    /// A handler, what it tells, and what it has to wait for.
    fn with_permits(permits: usize) -> (Self, mpsc::UnboundedReceiver<String>, Arc<Semaphore>) {
        let (told, calls) = mpsc::unbounded_channel();
        let permits = Arc::new(Semaphore::new(permits));
        (Self { told, permits: permits.clone() }, calls, permits)
    }

    fn free() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (handler, calls, _) = Self::with_permits(Semaphore::MAX_PERMITS);
        (handler, calls)
    }

    async fn tell(&self, what: &str, map: &ConfigMap) {
        self.permits.acquire().await.expect("a permit").forget();
        let name = map.metadata.name.clone().unwrap_or_default();
        // The test may have ended.
        let _ = self.told.send(format!("{what} {name}"));
        assert!(!name.starts_with("panic"), "a handler panics, as the test wants it to");
    }
}

impl Handler<ConfigMap> for Calls {
    async fn on_add(&mut self, map: Item<ConfigMap>, is_in_initial_list: bool) {
        self.tell(if is_in_initial_list { "initial" } else { "added" }, &map).await;
    }

    async fn on_update(&mut self, old: Previous<ConfigMap>, new: Item<ConfigMap>) {
        assert_ne!(old.get().expect("a config map").metadata.resource_version, new.metadata.resource_version);
        self.tell("updated", &new).await;
    }

    async fn on_delete(&mut self, deleted: Deleted<ConfigMap>) {
        self.tell(if deleted.is_missed() { "missed" } else { "deleted" }, deleted.last()).await;
    }

    async fn on_resync(&mut self, map: Item<ConfigMap>) {
        self.tell("resynced", &map).await;
    }
}

async fn call(calls: &mut mpsc::UnboundedReceiver<String>) -> String {
    within("a call", calls.recv()).await.expect("a handler")
}

#[tokio::test]
async fn h1_h2_h3_a_late_handler_gets_what_is_there_and_then_what_happens() {
    let Some(rig) = Rig::shared(SERVER, "h2_late_handler").await else { return };
    rig.create("a").await;
    let factory = rig.factory();
    let informer: Informer<ConfigMap> = factory.informer();
    let (early, mut early_calls) = Calls::free();
    let _early = informer.add_handler(early).unwrap();
    sync(&factory, &informer).await;
    let version = rig.create("b").await;
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();

    let (late, mut late_calls) = Calls::free();
    let _late = informer.add_handler(late).unwrap();
    let mut first = [call(&mut late_calls).await, call(&mut late_calls).await];
    first.sort();
    assert_eq!(first, ["initial a", "initial b"]);
    rig.update("a", "new").await;
    assert_eq!(call(&mut late_calls).await, "updated a");
    for expected in ["initial a", "added b", "updated a"] {
        assert_eq!(call(&mut early_calls).await, expected);
    }
}

#[tokio::test]
async fn h4_h5_a_handler_is_synced_when_it_has_handled_its_first_objects() {
    let Some(rig) = Rig::shared(SERVER, "h4_synced").await else { return };
    rig.create("a").await;
    rig.create("b").await;
    let factory = rig.factory();
    let informer: Informer<ConfigMap> = factory.informer();
    let (handler, mut calls, permits) = Calls::with_permits(1);
    let registration = informer.add_handler(handler).unwrap();
    sync(&factory, &informer).await;
    call(&mut calls).await;
    // The informer is synced, the handler is not: it waits in its second call.
    assert!(informer.is_synced() && !registration.is_synced());
    permits.add_permits(1);
    assert!(within("the handler's first content", registration.synced()).await);

    // A removal returns when the last call has ended.
    rig.create("c").await;
    let version = rig.create("d").await;
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    let mut removal = Box::pin(registration.remove());
    assert!(futures_util::poll!(&mut removal).is_pending() || calls.len() == 2);
    permits.add_permits(100);
    within("the removal", removal).await;
    while calls.recv().await.is_some() {}
}

#[tokio::test]
async fn h5_h7_a_handler_that_goes_or_panics_leaves_the_others_alone() {
    let Some(rig) = Rig::shared(SERVER, "h5_h7_others").await else { return };
    let factory = rig.factory();
    let informer: Informer<ConfigMap> = factory.informer();
    let [(removed, mut removed_calls), (dropped, mut dropped_calls), (stays, mut calls)] =
        [Calls::free(), Calls::free(), Calls::free()];
    let removed = informer.add_handler(removed).unwrap();
    let dropped = informer.add_handler(dropped).unwrap();
    let _stays = informer.add_handler(stays).unwrap();
    sync(&factory, &informer).await;
    rig.create("panic").await;
    for calls in [&mut removed_calls, &mut dropped_calls, &mut calls] {
        assert_eq!(call(calls).await, "added panic");
    }
    removed.remove().await;
    drop(dropped);
    assert_eq!(within("the end of the handler", removed_calls.recv()).await, None);
    assert_eq!(within("the end of the handler", dropped_calls.recv()).await, None);
    // It has panicked, and goes on.
    rig.create("a").await;
    assert_eq!(call(&mut calls).await, "added a");

    informer.stop().await;
    assert_eq!(within("the end of the handler", calls.recv()).await, None);
}

#[tokio::test]
async fn h6_a_stopped_informer_takes_no_handlers() {
    let Some(rig) = Rig::shared(SERVER, "h6_stopped").await else { return };
    let factory = rig.factory();
    let informer: Informer<ConfigMap> = factory.informer();
    let (handler, _calls) = Calls::free();
    let registration = informer.add_handler(handler).unwrap();
    sync(&factory, &informer).await;
    informer.stop().await;
    let (late, _late_calls) = Calls::free();
    assert!(informer.add_handler(late).is_err_and(|error| error.is_stopped()));
    assert!(informer.changes().is_err_and(|error| error.is_stopped()));
    within("the removal", registration.remove()).await;
}

#[tokio::test]
async fn h8_h1_a_stuck_handler_delays_nobody() {
    let Some(rig) = Rig::shared(SERVER, "h8_stuck").await else { return };
    let factory = rig.factory();
    let informer: Informer<ConfigMap> = factory.informer();
    let (stuck, mut stuck_calls, permits) = Calls::with_permits(0);
    let _stuck = informer.add_handler(stuck).unwrap();
    let (other, mut calls) = Calls::free();
    let _other = informer.subscribe().every_change(1_000, WhenFull::Coalesce).handler(other).unwrap();
    sync(&factory, &informer).await;
    for name in ["a", "b"] {
        rig.create(name).await;
        assert_eq!(call(&mut calls).await, format!("added {name}"));
    }
    for value in 0..20 {
        rig.update("b", &value.to_string()).await;
        assert_eq!(call(&mut calls).await, "updated b");
    }
    rig.delete("a").await;
    assert_eq!(call(&mut calls).await, "deleted a");
    // The waiting changes were coalesced: one change per object, however many there were.
    permits.add_permits(100);
    let told = [call(&mut stuck_calls).await, call(&mut stuck_calls).await, call(&mut stuck_calls).await];
    assert_eq!(told.iter().filter(|told| told.ends_with("a")).count(), 2, "{told:?}");
    assert!(told.contains(&"added b".to_owned()), "{told:?}");
}

#[tokio::test]
async fn h10_h11_deleted_and_made_again_is_told_apart() {
    let Some(rig) = Rig::shared(SERVER, "h11_recreated").await else { return };
    rig.create("goes").await;
    rig.create("returns").await;
    let informer = rig.synced(&rig.factory()).await;
    let mut merged = Told::every(&informer);
    let split = informer.subscribe().every_change(100, WhenFull::Coalesce).split_recreated();
    let mut split = Told::new(split.changes().unwrap());
    merged.first_content().await;
    split.first_content().await;

    rig.wire.expire_next_watch();
    rig.proxy.refuse();
    for name in ["goes", "returns"] {
        rig.delete(name).await;
    }
    rig.create("returns").await;
    rig.proxy.resume();
    assert_eq!(merged.next().await, ["missed goes", "recreated returns"]);
    assert_eq!(split.next().await, ["missed goes", "missed returns", "added returns"]);
    status(&informer, super::is_live).await;
    // Once more nothing has changed, so nothing is told once more.
    rig.wire.expire_next_watch();
    rig.proxy.cut();
    rig.wire.until_listed(3).await;
    rig.create("comes").await;
    assert_eq!((merged.next().await, split.next().await), (["added comes".into()], ["added comes".into()]));
}

#[tokio::test]
async fn h12_a_filter_turns_updates_into_additions_and_deletions() {
    let Some(rig) = Rig::shared(SERVER, "h12_filter").await else { return };
    rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    let filtered = informer
        .subscribe()
        .every_change(100, WhenFull::Coalesce)
        .filter(|map| map.labels().value("tier") == Some("web"));
    let mut told = Told::new(filtered.changes().unwrap());
    let tier = async |name: &str, tier: &str| {
        rig.patch(name, json!({ "metadata": { "labels": { "tier": tier } } })).await;
    };
    tier("a", "web").await;
    rig.update("a", "new").await;
    tier("a", "db").await;
    tier("a", "cache").await;
    tier("a", "web").await;
    rig.delete("a").await;
    let expected = ["synced", "added a", "updated a", "left a", "added a", "deleted a"];
    assert_eq!(told.next().await, expected);
}

#[tokio::test]
async fn h14_under_a_label_selector_the_server_is_asked_whether_an_object_was_deleted() {
    let Some(rig) = Rig::shared(SERVER, "h14_selector").await else { return };
    for name in ["relabelled", "deleted", "recreated"] {
        rig.create(name).await;
        rig.patch(name, json!({ "metadata": { "labels": { "tier": "web" } } })).await;
    }
    let informer = rig.synced(&rig.factory().with_labels("tier=web").unwrap()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let gone = async |told: &mut Told| {
        let informer::Change::Deleted(gone) = told.change().await else { panic!("no deletion") };
        assert_eq!((gone.reason(), gone.is_certain()), (DeleteReason::DeletedOrDeselected, false));
        gone
    };

    rig.patch("relabelled", json!({ "metadata": { "labels": { "tier": "db" } } })).await;
    let relabelled = gone(&mut told).await;
    let Existence::Exists { resource_version } = within("an answer", relabelled.confirm()).await.unwrap()
    else {
        panic!("it was only relabelled")
    };
    assert!(
        relabelled.last().resource_version().compare(&resource_version).is_some_and(|order| order.is_le())
    );

    rig.delete("deleted").await;
    let deleted = gone(&mut told).await;
    assert_eq!(within("an answer", deleted.confirm()).await.unwrap(), Existence::Gone);

    rig.delete("recreated").await;
    let recreated = gone(&mut told).await;
    rig.create("recreated").await;
    let existence = within("an answer", recreated.confirm()).await.unwrap();
    assert!(existence.is_gone());
    let Existence::Recreated { uid } = existence else { panic!("{existence:?}") };
    assert_ne!(&uid, recreated.last().uid());

    // A deletion that a list finds has no clearer reason.
    rig.wire.expire_next_watch();
    rig.proxy.refuse();
    rig.create("other").await;
    rig.patch("other", json!({ "metadata": { "labels": { "tier": "web" } } })).await;
    rig.proxy.resume();
    assert_eq!(told.next().await, ["added other"]);
    rig.wire.expire_next_watch();
    rig.proxy.refuse();
    rig.patch("other", json!({ "metadata": { "labels": null } })).await;
    rig.proxy.resume();
    let missed = gone(&mut told).await;
    assert!(!within("an answer", missed.confirm()).await.unwrap().is_gone());
}

#[tokio::test]
async fn h14_a_removed_namespace_is_no_deletion() {
    let Some(rig) = Rig::shared(SERVER, "h14_namespace").await else { return };
    let other = format!("{}-other", rig.namespace());
    rig.add_namespace(&other).await;
    rig.create("stays").await;
    let factory = rig.factory().in_namespaces([rig.namespace(), other.as_str()]);
    let informer = rig.synced(&factory).await;
    let namespace = rig.namespace().to_owned();
    let mut told = Told::every(&informer);
    while !matches!(told.change().await, informer::Change::Synced) {}
    assert!(informer.remove_namespace(&namespace).await);
    while let informer::Change::Deleted(gone) = told.change().await {
        assert_eq!(gone.reason(), DeleteReason::LeftView);
        if gone.key().name() == "stays" {
            assert!(!within("an answer", gone.confirm()).await.unwrap().is_gone());
            break;
        }
    }
}

#[tokio::test]
async fn r1_a_resync_is_for_those_who_asked_for_it() {
    let Some(rig) = Rig::shared(SERVER, "r1_resync").await else { return };
    rig.create("a").await;
    let informer = rig.synced(&rig.factory()).await;
    let mut plain = Told::every(&informer);
    let mut resynced = Told::new(informer.subscribe().resync(Duration::from_millis(300)).changes().unwrap());
    assert_eq!(resynced.next().await, ["initial a", "synced", "resynced a", "resynced a"]);
    assert_eq!(plain.next().await, ["initial a", "synced"]);
    assert!(plain.is_silent());
}

#[tokio::test]
async fn h2_f1_a_handler_that_was_added_before_the_start_sees_everything() {
    let Some(rig) = Rig::shared(SERVER, "h2_before_the_start").await else { return };
    rig.create("a").await;
    let factory = rig.factory();
    let informer = factory.informer_of::<informer::Object>(super::config_maps());
    let mut changes = informer.changes().unwrap();
    assert_eq!(rig.wire.asked(), []);
    factory.start();
    factory.start();
    let first = within("a change", changes.next()).await.unwrap();
    assert_eq!(conformance::summary(&first), "initial a");
    rig.wire.until_listed(1).await;
    assert_eq!(rig.wire.asked().len(), 2, "one list, one watch");
}
