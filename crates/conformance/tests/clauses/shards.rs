//! Shards: a share of a collection, by a hash of uid or namespace. Alpha in Kubernetes 1.36 and 1.37, behind the gate
//! `ShardedListAndWatch` (KEP-5866); docs/KUBERNETES.md has the rules. [`shares`](super::shares) has the informers of a share;
//! here `tweak_list_options` asks for one, so that the server alone filters.

use std::collections::BTreeSet;

use conformance::{Needs, Rig, custom_resource, impatient, status};
use http::Request;
use informer::{Informer, Object, SharedInformerFactory, StreamingListChoice};
use kube_client::api::PostParams;
use kube_client::core::{ApiResource, DynamicObject};
use kube_client::{Api, Error};
use serde_json::{Value, json};

use super::{config_maps, is_live, names};
use crate::SERVER;

const LOWER: &str = "'0x0000000000000000', '0x8000000000000000'";
const UPPER: &str = "'0x8000000000000000', '0x10000000000000000'";

/// The selector of one range of hashes.
fn range(field: &str, bounds: &str) -> String {
    format!("shardRange(object.metadata.{field}, {bounds})")
}

/// 64-bit FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The answer to a list with a selector.
async fn list(rig: &Rig, path: &str, selector: &str, accept: &str) -> Result<Value, Error> {
    let query =
        form_urlencoded::Serializer::new(String::new()).append_pair("shardSelector", selector).finish();
    let request = Request::get(format!("{path}?{query}")).header("accept", accept).body(Vec::new());
    rig.client().request(request.unwrap()).await
}

fn listed(list: &Value) -> BTreeSet<String> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

const JSON: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

#[tokio::test]
async fn a_shard_is_what_hashes_into_its_range_in_lists_and_watches() {
    let needs = Needs { shards: true, ..Needs::default() };
    let Some(rig) = Rig::own(SERVER, "shards", needs).await else { return };
    for number in 0..20 {
        rig.create(&format!("a-{number:02}")).await;
    }
    let path = format!("/api/v1/namespaces/{}/configmaps", rig.namespace());
    let everything = list(&rig, &path, "", JSON).await.unwrap();
    assert_eq!((listed(&everything).len(), &everything["metadata"]["shardInfo"]), (20, &Value::Null));
    let in_lower = |item: &&Value| hash(item["metadata"]["uid"].as_str().unwrap()) < 1 << 63;
    let lower = everything["items"].as_array().unwrap().iter().filter(in_lower);
    let lower: BTreeSet<String> =
        lower.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    let upper: BTreeSet<String> = listed(&everything).difference(&lower).cloned().collect();
    assert!(!lower.is_empty() && !upper.is_empty(), "{lower:?} {upper:?}");

    // A list of objects repeats the selector; one of metadata does not, but is a shard too.
    for (bounds, expected) in [(LOWER, &lower), (UPPER, &upper)] {
        let selector = range("uid", bounds);
        for (accept, said) in [(JSON, json!({ "selector": selector })), (METADATA, Value::Null)] {
            let answer = list(&rig, &path, &selector, accept).await.unwrap();
            assert_eq!((&listed(&answer), &answer["metadata"]["shardInfo"]), (expected, &said), "{accept}");
        }
    }
    // Several ranges of one field; the answer has them in the server's form.
    let both = range("uid", LOWER) + "||" + &range("uid", UPPER);
    let answer = list(&rig, &path, &both, JSON).await.unwrap();
    assert_eq!(listed(&answer).len(), 20);
    let said = format!("{} || {}", range("uid", LOWER), range("uid", UPPER));
    assert_eq!(answer["metadata"]["shardInfo"]["selector"], said);
    // By the namespace's name, a namespace is in one shard.
    let bounds = if hash(rig.namespace()) < 1 << 63 { LOWER } else { UPPER };
    assert_eq!(listed(&list(&rig, &path, &range("namespace", bounds), JSON).await.unwrap()).len(), 20);

    // An informer of a shard, by a list and by a stream.
    for streaming in [StreamingListChoice::Never, StreamingListChoice::Always] {
        let halves = [LOWER, UPPER].map(|bounds| {
            let selector = range("uid", bounds);
            let builder = impatient(SharedInformerFactory::builder(rig.config()));
            let builder = builder
                .reflector(|reflector| reflector.streaming_list = streaming)
                .tweak_list_options(move |_, query| {
                    query.push(("shardSelector".to_owned(), selector.clone()));
                });
            let factory = builder.build().unwrap().in_namespace(rig.namespace());
            let informer: Informer<Object> = factory.informer_of(config_maps());
            factory.start();
            (factory, informer)
        });
        for (_, informer) in &halves {
            status(informer, is_live).await;
        }
        let before = rig.config_maps().list(&Default::default()).await.unwrap().items.len();
        assert_eq!(halves.iter().map(|(_, informer)| informer.len()).sum::<usize>(), before);
        // Each change reaches the shard of its object, and no other.
        let new = format!("new-{streaming:?}").to_lowercase();
        let version = rig.create(&new).await;
        let uid = rig.config_maps().get(&new).await.unwrap().metadata.uid.unwrap();
        let [mine, other] = if hash(&uid) < 1 << 63 { [0, 1] } else { [1, 0] };
        halves[mine].1.at_least(&version, conformance::DEADLINE).await.unwrap();
        assert!(names(&halves[mine].1).contains(&new));
        // The other shard's next event shows that it was told of none.
        let theirs = names(&halves[other].1);
        let version = rig.update(theirs[0].as_str(), &new).await;
        halves[other].1.at_least(&version, conformance::DEADLINE).await.unwrap();
        assert_eq!(names(&halves[other].1), theirs);
        for (factory, _) in halves {
            factory.shutdown().await;
        }
    }

    // Custom resources: their lists do not say of which shard they are.
    let (definition, resource) = custom_resource("shards.test.dev", "Shop");
    rig.define(&serde_json::to_value(definition).unwrap()).await;
    let resource = ApiResource {
        group: resource.group,
        version: resource.version,
        api_version: "shards.test.dev/v1".to_owned(),
        kind: resource.kind,
        plural: resource.plural,
    };
    let shops = Api::<DynamicObject>::namespaced_with(rig.client(), rig.namespace(), &resource);
    let mut expected = BTreeSet::new();
    for number in 0..20 {
        let shop = DynamicObject::new(&format!("s-{number:02}"), &resource);
        let shop = shops.create(&PostParams::default(), &shop).await.unwrap();
        if hash(shop.metadata.uid.as_deref().unwrap()) < 1 << 63 {
            expected.insert(shop.metadata.name.unwrap());
        }
    }
    let path = format!("/apis/shards.test.dev/v1/namespaces/{}/shops", rig.namespace());
    let answer = list(&rig, &path, &range("uid", LOWER), JSON).await.unwrap();
    assert_eq!((listed(&answer), &answer["metadata"]["shardInfo"]), (expected, &Value::Null));
}

#[tokio::test]
async fn a_selector_that_is_none_is_refused() {
    let needs = Needs { shards: true, ..Needs::default() };
    let Some(rig) = Rig::own(SERVER, "no_shards", needs).await else { return };
    let path = format!("/api/v1/namespaces/{}/configmaps", rig.namespace());
    for selector in [
        "everything".to_owned(),
        range("name", LOWER),
        range("uid", "'0x0', '0x8000000000000000'"),
        range("uid", "'0x8000000000000000', '0x0000000000000000'"),
        format!("{} || {}", range("uid", LOWER), range("namespace", UPPER)),
        format!("!{}", range("uid", LOWER)),
    ] {
        match list(&rig, &path, &selector, JSON).await {
            Err(Error::Api(status)) => {
                assert_eq!(
                    (status.code, status.reason.as_str()),
                    (500, ""),
                    "{selector}: {}",
                    status.message
                );
                assert!(
                    status.message.starts_with("invalid shard selector: "),
                    "{selector}: {}",
                    status.message
                );
            }
            answer => panic!("{selector}: {answer:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_without_the_gate_ignores_any_shard_selector() {
    let Some(rig) = Rig::shared(SERVER, "without_shards").await else { return };
    rig.create("a").await;
    let path = format!("/api/v1/namespaces/{}/configmaps", rig.namespace());
    for selector in ["nonsense", &range("uid", "'0x0000000000000000', '0x0000000000000001'")] {
        let answer = list(&rig, &path, selector, JSON).await.unwrap();
        assert!(listed(&answer).contains("a"), "{selector}");
        assert_eq!(answer["metadata"].get("shardInfo"), None, "{selector}");
    }
}
