//! C9, C10, L10, L13: however objects come and are kept, they are the same.

use std::collections::BTreeMap;
use std::time::Duration;

use conformance::{Needs, Rig, config_map, status};
use informer::{
    Encoding, EncodingChoice, FactoryBuilder, Informer, Layout, Object, ResourceType, SharedInformerFactory,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::discovery::{Discovery, Scope, verbs};
use serde_json::{Value, json};

use super::{is_live, json as value_of};
use crate::SERVER;

/// Everything that can be listed and watched.
async fn everything(rig: &Rig) -> Vec<ResourceType> {
    let discovery = Discovery::new(rig.client()).run_aggregated().await.expect("discovery");
    let mut all = Vec::new();
    for group in discovery.groups() {
        for (resource, can) in group.recommended_resources() {
            if can.supports_operation(verbs::LIST) && can.supports_operation(verbs::WATCH) {
                all.push(ResourceType::discovered(&resource, can.scope == Scope::Namespaced));
            }
        }
    }
    all
}

async fn synced(
    builder: FactoryBuilder,
    all: &[ResourceType],
) -> (SharedInformerFactory, Vec<Informer<Object>>) {
    let factory = builder.build().expect("a factory");
    let informers = all.iter().map(|resource| factory.informer_of(resource.clone())).collect();
    factory.start();
    factory.wait_for_sync(Duration::from_secs(120)).await.expect("first contents");
    (factory, informers)
}

fn content(informer: &Informer<Object>) -> BTreeMap<String, Value> {
    let snapshot = informer.snapshot();
    snapshot.objects().map(|object| (object.key().to_string(), value_of(object))).collect()
}

/// Without what Kubernetes renews by itself between two looks.
fn settled(mut objects: BTreeMap<String, Value>, other: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    objects.retain(|key, object| {
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        other.get(key).is_some_and(|other| version(other) == version(object))
    });
    objects
}

#[tokio::test]
async fn c9_l13_whatever_a_server_has_is_the_same_in_either_encoding_and_each_layout() {
    // Of its own, because others write to the shared one between the two looks.
    let Some(rig) = Rig::own(SERVER, "c9_encodings", Needs::default()).await else { return };
    let data = json!({ "text": "\u{e9} \"quoted\" \\ \n </script> \u{1f600}", "empty": "", "n": "0" });
    rig.create_with(serde_json::from_value(json!({ "metadata": { "name": "text" }, "data": data })).unwrap())
        .await;
    for number in 0..150 {
        rig.create_with(config_map(&format!("many-{number}"), &format!("value {number}"))).await;
    }
    let all = everything(&rig).await;
    let whole = || SharedInformerFactory::builder(rig.config());
    let (packed, in_protobuf) = synced(whole().layout(Layout::Packed), &all).await;
    let plain = whole().layout(Layout::Bytes).encoding(EncodingChoice::Json);
    let (plain, in_json) = synced(plain, &all).await;

    let (mut objects, mut protobuf) = (0, 0);
    for (packed, plain) in in_protobuf.iter().zip(&in_json) {
        let (ours, theirs) = (content(packed), content(plain));
        // Kubernetes makes and ends these objects by itself, possibly between the two reads.
        if !["leases", "events", "ipaddresses"].contains(&packed.resource().plural.as_str()) {
            let keys = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(&ours), keys(&theirs), "{}", packed.resource());
        }
        let (ours, theirs) = (settled(ours.clone(), &theirs), settled(theirs, &ours));
        assert_eq!(ours, theirs, "{}", packed.resource());
        objects += ours.len();
        let is_protobuf =
            |object: &&std::sync::Arc<Object>| matches!(object.encoding(), Encoding::Protobuf(_));
        protobuf += packed.snapshot().objects().filter(is_protobuf).count();
        assert_eq!(plain.snapshot().objects().filter(is_protobuf).count(), 0);
        // The reported bytes are the received bytes and the cache's own overhead.
        let came: usize = plain.snapshot().objects().map(|object| object.json().unwrap().len()).sum();
        let beside = plain.held_bytes().checked_sub(came).unwrap_or_else(|| panic!("{}", plain.resource()));
        assert!(beside <= 1_000 * plain.len() + 20_000, "{beside} beside {came}: {}", plain.resource());
    }
    println!("{objects} objects of {} resources, {protobuf} of them in protobuf", all.len());
    assert!(protobuf > 150, "{protobuf} of {objects}");
    packed.shutdown().await;
    plain.shutdown().await;
}

#[tokio::test]
async fn c9_c10_l10_typed_looks_selectors_and_relists_agree_in_each_layout() {
    let Some(rig) = Rig::shared(SERVER, "c9_layouts").await else { return };
    for number in 0..200 {
        let labels = json!({ "parity": if number % 2 == 0 { "even" } else { "odd" } });
        let data = json!({ "value": format!("{number} {}", "the same text in each of them ".repeat(40)) });
        let name = format!("many-{number}");
        let object = json!({ "metadata": { "name": name, "labels": labels }, "data": data });
        rig.create_with(serde_json::from_value(object).unwrap()).await;
    }
    let mut seen = Vec::new();
    for (layout, encoding) in [
        (Layout::Packed, EncodingChoice::Auto),
        (Layout::Packed, EncodingChoice::Json),
        (Layout::Bytes, EncodingChoice::Auto),
        (Layout::Decoded, EncodingChoice::Auto),
    ] {
        let factory =
            rig.builder().layout(layout).encoding(encoding).build().unwrap().in_namespace(rig.namespace());
        let informer: Informer<ConfigMap> = factory.informer();
        factory.start();
        // With a watch that is there to be cut: what is only on its way would not notice.
        status(&informer, is_live).await;
        // A re-list without news is dropped before anything is kept of it.
        let held = informer.held_bytes();
        rig.wire.expire_next_watch();
        rig.proxy.cut();
        rig.wire.until_listed(2 * (seen.len() + 1)).await;
        let version = rig.update("many-1", &format!("news {}", seen.len())).await;
        informer.at_least(&version, conformance::DEADLINE).await.unwrap();
        assert!(informer.held_bytes() <= held + 2_000, "{} after {held}", informer.held_bytes());
        let snapshot = informer.snapshot();
        let mut found: Vec<ConfigMap> = informer
            .lister()
            .labels("parity=even")
            .unwrap()
            .list()
            .iter()
            .map(|object| (**object).clone())
            .collect();
        found.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        // At rest: what was looked at is hot in each layout.
        seen.push((found, snapshot.len(), informer.held_bytes() - informer.metrics().hot_bytes));
        factory.shutdown().await;
    }
    let [first, others @ ..] = &seen[..] else { unreachable!("four were pushed") };
    assert_eq!((first.0.len(), first.1 >= 200), (100, true));
    for other in others {
        assert_eq!((&other.0, other.1), (&first.0, first.1));
    }
    // Text that repeats itself packs well; as bytes there are 1.2 KB of it in each.
    assert!(first.2 * 2 < seen[2].2, "{} packed, {} as bytes", first.2, seen[2].2);
}
