//! C and D: the cache, its indexes and snapshots, and how a re-list gets into it.

use std::sync::Arc;

use conformance::{Rig, Told, config_map};
use informer::{Index, Informer};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube_client::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use super::{names, sync};
use crate::SERVER;

/// The config maps' values, taken apart at commas.
fn words(config_map: &ConfigMap) -> Vec<String> {
    let value = config_map.data.as_ref().and_then(|data| data.get("value"));
    value.map(|value| value.split(',').map(str::to_owned).collect()).unwrap_or_default()
}

fn found(index: &Index<ConfigMap, String>, word: &str) -> Vec<String> {
    let mut names: Vec<_> = index.get(word).iter().map(|hit| hit.key().name().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn c2_c3_f8_indexes_hold_what_is_there_and_may_come_late() {
    let Some(rig) = Rig::shared(SERVER, "c2_indexes").await else { return };
    rig.create_with(config_map("a", "red,green")).await;
    let factory = rig.factory();
    let informer: Informer<ConfigMap> = factory.informer();
    let early = informer.add_named_index("words", |map| words(map)).unwrap();
    sync(&factory, &informer).await;
    assert_eq!((found(&early, "red"), found(&early, "green")), (vec!["a".into()], vec!["a".into()]));

    let late = informer.add_index(|map| words(map));
    let version = rig.create_with(config_map("b", "green,blue")).await;
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    for index in [&early, &late] {
        assert_eq!(found(index, "green"), ["a", "b"]);
        assert_eq!(found(index, "blue"), ["b"]);
    }
    let version = rig.update("a", "green,white").await;
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    for index in [&early, &late] {
        assert_eq!((found(index, "red").len(), found(index, "white")), (0, vec!["a".to_owned()]));
        let mut keys = index.keys(&informer.snapshot());
        keys.sort();
        assert_eq!(keys.iter().map(|key| key.as_str()).collect::<Vec<_>>(), ["blue", "green", "white"]);
    }
    let taken = informer.add_named_index("words", |_| None);
    assert!(taken.is_err_and(|error| error.is_index_exists()));
    assert_eq!(found(&informer.index_named("words").unwrap(), "green"), ["a", "b"]);
}

#[tokio::test]
async fn c4_c2_a_snapshot_never_changes() {
    let Some(rig) = Rig::shared(SERVER, "c4_snapshot").await else { return };
    for name in ["a", "b", "c"] {
        rig.create_with(config_map(name, "old")).await;
    }
    let factory = rig.factory();
    let informer: Informer<ConfigMap> = factory.informer();
    let index = informer.add_index(|map| words(map));
    sync(&factory, &informer).await;
    let before = informer.snapshot();
    let version = before.resource_version();

    rig.update("a", "new").await;
    rig.delete("b").await;
    let last = rig.create_with(config_map("d", "new")).await;
    informer.at_least(&last, conformance::DEADLINE).await.unwrap();
    let after = informer.snapshot();
    assert_eq!(
        (before.len(), index.lookup(&before, "old").count(), index.lookup(&before, "new").count()),
        (3, 3, 0)
    );
    assert_eq!(
        (after.len(), index.lookup(&after, "old").count(), index.lookup(&after, "new").count()),
        (3, 1, 2)
    );
    assert_eq!(before.resource_version(), version);
    assert!(version.is_older_than(&after.resource_version()) && after.resource_version().is_at_least(&last));
}

#[tokio::test]
async fn c7_c6_listers_select() {
    let Some(rig) = Rig::shared(SERVER, "c7_listers").await else { return };
    let other = format!("{}-2", rig.namespace());
    rig.add_namespace(&other).await;
    for (name, tier) in [("a", "web"), ("b", "web"), ("c", "db")] {
        rig.create(name).await;
        rig.patch(name, json!({ "metadata": { "labels": { "tier": tier } } })).await;
    }
    let elsewhere = kube_client::Api::namespaced(rig.client(), &other);
    elsewhere.create(&Default::default(), &config_map("a", "elsewhere")).await.unwrap();
    let factory = rig.factory().everything().in_namespaces([rig.namespace(), other.as_str()]);
    let informer: Informer<ConfigMap> = factory.informer();
    sync(&factory, &informer).await;

    let lister = informer.lister();
    let here = lister.namespace(rig.namespace());
    let count = |selector: &str| here.labels(selector).unwrap().list().len();
    assert_eq!((lister.list().len(), here.list().len()), (4, 3));
    assert_eq!(
        (count("tier=web"), count("tier!=web"), count("tier in (web, db),tier"), count("!tier")),
        (2, 1, 3, 0)
    );
    assert!(here.labels("tier in").is_err());
    assert_eq!(lister.filter(|map| words(map) == ["elsewhere"]).len(), 1);
    assert_eq!(here.get("c").unwrap().unwrap().metadata.name.as_deref(), Some("c"));
    assert!(here.get("d").unwrap().is_none());
    assert!(here.labels("tier=db").unwrap().get("a").unwrap().is_none());
    // Simultaneous readers share the same object.
    let a = here.get("a").unwrap().unwrap();
    assert!(Arc::ptr_eq(a.value(), lister.get(a.key()).unwrap().unwrap().value()));

    let snapshot = lister.snapshot();
    let mut after = None;
    let mut paged = Vec::new();
    loop {
        let page = snapshot.page(after.as_ref(), 3);
        let Some(last) = page.last() else { break };
        after = Some(last.key().clone());
        paged.extend(page.iter().map(|object| object.key().clone()));
    }
    assert_eq!(paged.len(), 4);
    assert!(paged.is_sorted());
}

#[tokio::test]
async fn d7_c1_a_relist_is_one_step() {
    let Some(rig) = Rig::shared(SERVER, "d7_one_step").await else { return };
    for name in ["changes", "goes", "goes-too", "stays"] {
        rig.create(name).await;
    }
    let factory = rig.factory();
    let informer = rig.synced(&factory).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    rig.wire.expire_next_watch();
    rig.proxy.refuse();
    rig.delete("goes").await;
    rig.delete("goes-too").await;
    rig.update("changes", "1").await;
    rig.create("comes").await;
    rig.proxy.resume();

    let mut order = Vec::new();
    while order.len() < 4 {
        let [change] = told.next().await;
        assert_eq!(names(&informer), ["changes", "comes", "stays"], "at {change}");
        order.push(change);
    }
    assert_eq!(order[..2].iter().filter(|change| change.starts_with("missed")).count(), 2, "{order:?}");
    // In the order of the list.
    assert_eq!(order[2..], ["updated changes", "added comes"]);
}

#[tokio::test]
async fn c1_whoever_is_told_finds_it_in_the_cache() {
    let Some(rig) = Rig::shared(SERVER, "c1_ahead").await else { return };
    let informer = rig.synced(&rig.factory()).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    for round in 0..50 {
        let name = format!("map-{}", round % 7);
        rig.config_maps().delete(&name, &Default::default()).await.ok();
        let version = rig.create(&name).await;
        loop {
            let change = told.change().await;
            if let informer::Change::Added { new: object, .. } = change {
                let cached = informer.lister().get(object.key()).unwrap().unwrap();
                assert!(cached.resource_version().is_at_least(object.resource_version()));
                assert!(informer.resource_version().is_at_least(object.resource_version()));
                assert_eq!(object.resource_version(), &version);
                break;
            }
        }
    }
}

#[tokio::test]
async fn c13_a_value_written_back_without_managed_fields_loses_no_manager() {
    let Some(rig) = Rig::shared(SERVER, "c13_managers").await else { return };
    let maps = rig.config_maps();
    for (manager, key) in [("one", "left"), ("two", "right")] {
        let mut map = config_map("a", "");
        map.data = Some([(key.to_owned(), "1".to_owned())].into());
        maps.patch("a", &PatchParams::apply(manager), &Patch::Apply(&map)).await.unwrap();
    }
    let factory = rig.factory();
    let informer: Informer<ConfigMap> = factory.informer();
    sync(&factory, &informer).await;
    let managers = |entries: Vec<ManagedFieldsEntry>| {
        let mut names: Vec<_> = entries.into_iter().filter_map(|entry| entry.manager).collect();
        names.sort();
        names
    };
    let item = informer.lister().namespace(rig.namespace()).get("a").unwrap().unwrap();
    assert_eq!(managers(item.managed_fields().unwrap()), ["one", "two"]);
    assert_eq!(item.metadata.managed_fields, None, "an empty list would reset them");

    let mut written = ConfigMap::clone(item.value());
    written.data.get_or_insert_default().insert("middle".to_owned(), "1".to_owned());
    let parameters = PostParams { field_manager: Some("three".to_owned()), ..PostParams::default() };
    let answer = maps.replace("a", &parameters, &written).await.unwrap();
    assert_eq!(managers(answer.metadata.managed_fields.unwrap()), ["one", "three", "two"]);
}
