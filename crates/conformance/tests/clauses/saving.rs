//! P: what was saved, and a restart.

use std::path::PathBuf;

use conformance::{Needs, Rig, Told, status};
use informer::kube::PartialObjectMeta;
use informer::{Informer, Object};
use kube_client::Api;
use kube_client::api::{DeleteParams, PostParams};
use tempfile::TempDir;

use super::{config_maps, is_live, names};
use crate::SERVER;

/// A place for files, and the name of one in it.
fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("config-maps");
    (directory, path)
}

/// Saves what a process sees, and ends it.
async fn saved(rig: &Rig, path: &PathBuf) {
    let factory = rig.factory();
    let informer = rig.synced(&factory).await;
    let objects = informer.save(path).await.unwrap().objects;
    assert_eq!(objects, informer.len());
    factory.shutdown().await;
}

/// The config maps `a` to `d`, and what happens to them while no process looks.
async fn before(rig: &Rig) {
    for name in ["a", "b", "c", "d"] {
        rig.create(name).await;
    }
}

async fn meanwhile(rig: &Rig) {
    rig.delete("a").await;
    rig.update("b", "one").await;
    rig.update("b", "two").await;
    rig.delete("c").await;
    rig.create("c").await;
    rig.create("e").await;
    rig.create("f").await;
    rig.delete("f").await;
}

#[tokio::test]
async fn p1_p2_a_restart_goes_on_where_the_last_process_was() {
    let Some(rig) = Rig::shared(SERVER, "p2_restart").await else { return };
    before(&rig).await;
    let (_directory, path) = place();
    saved(&rig, &path).await;
    meanwhile(&rig).await;

    let factory = rig.factory();
    let informer = factory.informer_of::<Object>(config_maps());
    let mut early = Told::every(&informer);
    assert_eq!(informer.load(&path).await.unwrap().objects, 4);
    assert_eq!(names(&informer), ["a", "b", "c", "d"]);
    assert!(!informer.is_synced());
    let at = informer.resource_version();
    let mut late = Told::every(&informer);
    let lists = rig.wire.lists().len();
    rig.synced(&factory).await;
    for told in [&mut early, &mut late] {
        assert_eq!(told.first_content().await, ["initial a", "initial b", "initial c", "initial d"]);
        let news = [
            "deleted a",
            "updated b",
            "updated b",
            "deleted c",
            "added c",
            "added e",
            "added f",
            "deleted f",
        ];
        assert_eq!(told.next().await, news);
        assert!(told.is_silent());
    }
    assert_eq!(names(&informer), ["b", "c", "d", "e"]);
    // Nothing was listed; one object was asked for, to learn how new the server is.
    let asked = rig.wire.lists().split_off(lists);
    assert_eq!(asked.iter().map(|list| list.get("limit")).collect::<Vec<_>>(), [Some("1")]);
    assert_eq!(rig.wire.watches().last().unwrap().version(), at.to_string());
}

#[tokio::test]
async fn p2_a_restart_with_an_expired_version_misses_nothing() {
    let Some(rig) = Rig::own(SERVER, "p2_expired_restart", Needs::default()).await else { return };
    before(&rig).await;
    let (_directory, path) = place();
    saved(&rig, &path).await;
    meanwhile(&rig).await;
    rig.forget_history().await;

    let factory = rig.factory();
    let informer = factory.informer_of::<Object>(config_maps());
    let mut told = Told::every(&informer);
    let mut latest = Told::new(informer.changes().unwrap());
    informer.load(&path).await.unwrap();
    rig.synced(&factory).await;
    // One net change of each, once.
    let first = [
        "initial a",
        "initial b",
        "initial c",
        "initial d",
        "initial e",
        "missed a",
        "recreated c",
        "updated b",
    ];
    assert_eq!(told.first_content().await, first);
    assert_eq!(latest.first_content().await, first);
    assert!(told.is_silent() && latest.is_silent());
    assert_eq!(names(&informer), ["b", "c", "d", "e"]);
    rig.create("g").await;
    assert_eq!(told.next().await, ["added g"]);
}

#[tokio::test]
async fn p2_each_namespace_goes_on_by_itself() {
    let Some(rig) = Rig::shared(SERVER, "p2_namespaces").await else { return };
    let [kept, new, dropped] = ["p2-kept", "p2-new", "p2-dropped"];
    let maps =
        |namespace: &str| Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(rig.client(), namespace);
    for namespace in [kept, new, dropped] {
        rig.add_namespace(namespace).await;
        let map = conformance::config_map(namespace, "");
        maps(namespace).create(&PostParams::default(), &map).await.unwrap();
    }
    // Some servers put a config map of their own into each namespace.
    let fields = "metadata.name!=kube-root-ca.crt";
    let (_directory, path) = place();
    let selected = || rig.builder().build().unwrap().with_fields(fields).unwrap();
    let factory = selected().in_namespaces([kept, dropped]);
    let informer = rig.synced(&factory).await;
    informer.save(&path).await.unwrap();
    factory.shutdown().await;
    maps(kept).delete(kept, &DeleteParams::default()).await.unwrap();

    let factory = selected().in_namespaces([kept, new]);
    let informer = factory.informer_of::<Object>(config_maps());
    let mut told = Told::every(&informer);
    informer.load(&path).await.unwrap();
    assert_eq!(names(&informer), [kept]);
    rig.synced(&factory).await;
    let mut all: Vec<_> = told.summaries(4).await;
    all.sort();
    assert_eq!(all, ["deleted p2-kept", "initial p2-kept", "initial p2-new", "synced"]);
    assert_eq!(names(&informer), [new]);
}

#[tokio::test]
async fn p1_p2_metadata_is_saved_too() {
    let Some(rig) = Rig::shared(SERVER, "p2_metadata").await else { return };
    before(&rig).await;
    let (_directory, path) = place();
    let factory = rig.factory();
    let informer = factory.informer_of::<PartialObjectMeta>(config_maps());
    factory.start();
    status(&informer, is_live).await;
    informer.save(&path).await.unwrap();
    factory.shutdown().await;
    meanwhile(&rig).await;

    let whole = rig.factory().informer_of::<Object>(config_maps());
    assert!(whole.load(&path).await.unwrap_err().is_of_another());
    let factory = rig.factory();
    let informer = factory.informer_of::<PartialObjectMeta>(config_maps());
    assert_eq!(informer.load(&path).await.unwrap().objects, 4);
    let version = rig.create("g").await;
    factory.start();
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    let mut names: Vec<_> =
        informer.snapshot().objects().map(|object| object.key().name().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["b", "c", "d", "e", "g"]);
}

/// As a program that is deployed anew each day.
#[tokio::test]
async fn p1_p2_a_factory_with_a_directory_goes_on_by_itself() {
    let Some(rig) = Rig::own(SERVER, "p2_directory", Needs::default()).await else { return };
    before(&rig).await;
    let directory = TempDir::new().unwrap();
    let restarted = async || {
        let factory = rig.builder().saved_in(directory.path()).build().unwrap().in_namespace(rig.namespace());
        let informer: Informer<Object> = factory.informer_of(config_maps());
        let told = Told::every(&informer);
        rig.synced(&factory).await;
        (factory, informer, told)
    };
    let (factory, _informer, mut told) = restarted().await;
    assert_eq!(told.first_content().await, ["initial a", "initial b", "initial c", "initial d"]);
    factory.shutdown().await;

    rig.delete("a").await;
    let (factory, informer, mut told) = restarted().await;
    assert_eq!(told.first_content().await, ["initial a", "initial b", "initial c", "initial d"]);
    assert_eq!(told.next().await, ["deleted a"]);
    assert_eq!(names(&informer), ["b", "c", "d"]);
    factory.shutdown().await;

    rig.delete("b").await;
    rig.forget_history().await;
    let (factory, informer, mut told) = restarted().await;
    assert_eq!(told.first_content().await, ["initial b", "initial c", "initial d", "missed b"]);
    assert_eq!(names(&informer), ["c", "d"]);
    factory.shutdown().await;

    // Damaged: as if it were the first time.
    let file = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&file, bytes).unwrap();
    let (factory, _informer, mut told) = restarted().await;
    assert_eq!(told.first_content().await, ["initial c", "initial d"]);
    factory.shutdown().await;
}
