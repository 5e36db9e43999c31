//! Q9: informers of a share, on servers that filter by shares and on servers that do not.

use conformance::{DEADLINE, Needs, Rig, Told, status};
use informer::share::{HashRange, Share, ShareBy, hash, server_filters};
use informer::transport::KubeTransport;
use informer::{FactoryBuilder, Informer, Object, SharedInformerFactory, StreamingListChoice};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{config_maps, is_live};
use crate::SERVER;

/// Two shares that have everything together.
fn halves(by: ShareBy) -> [Share; 2] {
    [(0, 1 << 63), (1 << 63, 1 << 64)].map(|(start, end)| Share::new(by, HashRange::new(start, end).unwrap()))
}

/// A factory and its informer of config maps, live.
async fn live(
    rig: &Rig,
    builder: FactoryBuilder,
    share: &Share,
) -> (SharedInformerFactory, Informer<Object>) {
    let factory = builder.build().unwrap().in_namespace(rig.namespace()).with_share(share.clone());
    let informer = factory.informer_of(config_maps());
    factory.start();
    status(&informer, is_live).await;
    (factory, informer)
}

/// Whether the server says that it filters.
async fn filters(rig: &Rig) -> bool {
    let transport = KubeTransport::new(rig.config()).unwrap();
    server_filters(&transport, &config_maps(), Some(rig.namespace())).await.unwrap()
}

/// The names in the cache, without those of objects that the server makes.
fn names(informer: &Informer<Object>) -> Vec<String> {
    super::names(informer).into_iter().filter(|name| name != "kube-root-ca.crt").collect()
}

async fn uid(rig: &Rig, name: &str) -> String {
    rig.config_maps().get(name).await.unwrap().metadata.uid.unwrap()
}

#[tokio::test]
async fn q9_shares_divide_the_objects_of_a_server_that_does_not_filter() {
    let Some(rig) = Rig::shared(SERVER, "q9_without_gate").await else { return };
    assert!(!filters(&rig).await);
    shares_divide_the_objects(&rig, false).await;
}

#[tokio::test]
async fn q9_shares_divide_the_objects_of_a_server_that_filters() {
    let needs = Needs { shards: true, ..Needs::default() };
    let Some(rig) = Rig::own(SERVER, "q9_with_gate", needs).await else { return };
    assert!(filters(&rig).await);
    shares_divide_the_objects(&rig, true).await;
}

/// The informers have the same, whether or not the server filters.
async fn shares_divide_the_objects(rig: &Rig, server_filters: bool) {
    for number in 0..20 {
        rig.create(&format!("a-{number:02}")).await;
    }
    let mut everything = 20;
    for (round, streaming) in
        [StreamingListChoice::Never, StreamingListChoice::Always].into_iter().enumerate()
    {
        for (by, asks) in [(ShareBy::Uid, true), (ShareBy::Uid, false), (ShareBy::Namespace, true)] {
            let what = format!("{streaming:?}, {by}, {asks}");
            let mut informers = Vec::new();
            for share in halves(by) {
                let builder = rig
                    .builder()
                    .reflector(|reflector| reflector.streaming_list = streaming)
                    .ask_for_share(asks);
                let (factory, informer) = live(rig, builder, &share).await;
                informers.push((share, factory, informer));
            }
            let objects: usize = informers.iter().map(|(_, _, informer)| names(informer).len()).sum();
            assert_eq!(objects, everything, "{what}");
            // Each change reaches one share only.
            everything += 1;
            let name = format!("new-{round}-{by}-{asks}").to_lowercase();
            rig.create(&name).await;
            rig.update(&name, "one").await;
            rig.delete(&name).await;
            rig.create(&name).await;
            rig.update(&name, "two").await;
            for (share, _, informer) in &informers {
                settled(rig, informer, &what).await;
                let is_in = |value: &str| share.ranges().contains(hash(value));
                let has = match by {
                    ShareBy::Namespace => is_in(rig.namespace()),
                    _ => is_in(&uid(rig, &name).await),
                };
                assert_eq!(names(informer).contains(&name), has, "{what}");
                assert!(informer.snapshot().objects().all(|object| share.has(object)), "{what}");
                let sees_all = names(informer).len() == everything;
                let outside = informer.metrics().outside_share;
                assert_eq!(outside == 0, asks && server_filters || sees_all, "{what}: {outside}");
            }
            for (_, factory, _) in informers {
                factory.shutdown().await;
            }
        }
    }
}

/// Waits until the informer has heard of everything so far: of a write to an object that it has.
async fn settled(rig: &Rig, informer: &Informer<Object>, value: &str) {
    if let Some(name) = names(informer).into_iter().find(|name| name.starts_with("a-")) {
        let version = rig.update(&name, value).await;
        informer.at_least(&version, DEADLINE).await.unwrap();
    }
}

/// The reference to an owner; a server takes any.
async fn owned_by(rig: &Rig, owner: &str) -> Value {
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid(rig, owner).await, "controller": true,
    });
    json!({ "metadata": { "ownerReferences": [reference] } })
}

#[tokio::test]
async fn q9_an_object_goes_with_the_share_of_its_owner() {
    let Some(rig) = Rig::shared(SERVER, "q9_owners").await else { return };
    // Two owners in different shares.
    let mut owners = [None, None];
    for number in 0.. {
        let name = format!("owner-{number}");
        rig.create(&name).await;
        let half = usize::from(hash(&uid(&rig, &name).await) >= 1 << 63);
        owners[half].get_or_insert(name);
        if owners.iter().all(Option::is_some) {
            break;
        }
    }
    let [lower, upper] = owners.map(Option::unwrap);
    for name in ["a-1", "a-2", "a-3"] {
        rig.create(name).await;
    }
    rig.patch("a-1", owned_by(&rig, &lower).await).await;
    rig.patch("a-2", owned_by(&rig, &upper).await).await;
    for streaming in [StreamingListChoice::Never, StreamingListChoice::Always] {
        let [mine, theirs] = halves(ShareBy::ControllerUid);
        // The server is not asked: it could not know.
        let builder =
            || rig.builder().reflector(|reflector| reflector.streaming_list = streaming).ask_for_share(true);
        let (mine, informer) = live(&rig, builder(), &mine).await;
        let (theirs, other) = live(&rig, builder(), &theirs).await;
        let mut told = Told::every(&informer);
        assert_eq!((names(&informer), names(&other)), (vec!["a-1".to_owned()], vec!["a-2".to_owned()]));
        assert_eq!(told.next().await, ["initial a-1", "synced"]);
        // Adopted, given away, orphaned, and back.
        let adopted = owned_by(&rig, &lower).await;
        rig.patch("a-3", adopted.clone()).await;
        rig.patch("a-1", owned_by(&rig, &upper).await).await;
        rig.patch("a-3", json!({ "metadata": { "ownerReferences": null } })).await;
        let version = rig.patch("a-1", adopted).await;
        for informer in [&informer, &other] {
            informer.at_least(&version, DEADLINE).await.unwrap();
        }
        assert_eq!(told.next().await, ["added a-3", "unclear a-1", "unclear a-3", "added a-1"]);
        assert_eq!((names(&informer), names(&other)), (vec!["a-1".to_owned()], vec!["a-2".to_owned()]));
        mine.shutdown().await;
        theirs.shutdown().await;
    }
}

#[tokio::test]
async fn q9_p1_a_restart_with_another_share_lists() {
    let Some(rig) = Rig::shared(SERVER, "q9_restart").await else { return };
    for number in 0..12 {
        rig.create(&format!("a-{number:02}")).await;
    }
    let directory = TempDir::new().unwrap();
    let [lower, upper] = halves(ShareBy::Uid);
    let run = async |share: &Share| {
        let (factory, informer) = live(&rig, rig.builder().saved_in(directory.path()), share).await;
        let names = names(&informer);
        let restarted = informer.metrics().requests.lists + informer.metrics().requests.streaming_lists == 0;
        factory.shutdown().await;
        (names, restarted)
    };
    let (first, from_file) = run(&lower).await;
    assert!(!from_file);
    let (second, from_file) = run(&upper).await;
    assert!(!from_file);
    assert_eq!(first.len() + second.len(), 12);
    assert!(first.iter().all(|name| !second.contains(name)));
    // Each share has a file of its own.
    for (share, names) in [(&lower, &first), (&upper, &second)] {
        let (again, from_file) = run(share).await;
        assert_eq!((&again, from_file), (names, true));
    }
}
