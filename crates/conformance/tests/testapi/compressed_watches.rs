//! Servers that compress streaming lists and the watches that follow, one gzip member after the other.

use conformance::{config_map, impatient, status};
use informer::{Encoding, EncodingChoice, Informer, Object, SharedInformerFactory, StreamingListChoice};
use kube_client::api::{Patch, PatchParams};
use kube_client::{Api, Client};
use serde_json::json;
use testapi::faults::Fault;
use testapi::{TestApi, Verb};

use crate::clauses::{config_maps, is_live, json as value_of};

/// Hardly anything, compressed.
fn long(text: &str) -> String {
    text.repeat(20_000)
}

#[tokio::test]
async fn w16_what_a_server_compresses_member_by_member_decodes_in_either_encoding() {
    const LISTED: usize = 50;
    let server = TestApi::builder().start().await.unwrap();
    let config = server.config();
    let maps = Api::default_namespaced(Client::try_from(config.clone()).unwrap());
    let name = |number: usize| format!("long-{number:02}");
    for number in 0..LISTED {
        maps.create(&Default::default(), &config_map(&name(number), &long("\u{1f600}"))).await.unwrap();
    }
    let pieces = server.faults().on(Verb::Watch.of("configmaps"));
    let pieces = pieces.always(Fault::Chunks { seed: 7, max: 40 });
    for (round, encoding) in [EncodingChoice::Auto, EncodingChoice::Json].into_iter().enumerate() {
        let builder = impatient(SharedInformerFactory::builder(config.clone())).gzip(true);
        let builder = builder
            .encoding(encoding)
            .reflector(|reflector| reflector.streaming_list = StreamingListChoice::Always);
        let factory = builder.build().unwrap();
        let informer: Informer<Object> = factory.informer_of(config_maps());
        let mut reports = informer.reports();
        factory.start();
        status(&informer, is_live).await;
        assert_eq!(informer.len(), LISTED);
        let mut seen = informer.metrics().received_bytes;
        // The text alone is 80 KB.
        assert!(seen < LISTED as u64 * 10_000, "{encoding:?}: {seen} bytes of the list");

        // The same stream goes on, an event in each member.
        for number in 0..10 {
            let value = long(&format!("{round}"));
            let patch = Patch::Merge(json!({ "data": { "value": value } }));
            let patched = maps.patch(&name(number), &PatchParams::default(), &patch).await.unwrap();
            let version = patched.metadata.resource_version.as_deref().unwrap().into();
            informer.at_least(&version, conformance::DEADLINE).await.unwrap();
            let now = informer.metrics().received_bytes;
            assert!(now - seen < 10_000, "{encoding:?}: {} bytes of an event", now - seen);
            seen = now;
            let object = informer.lister().get(format!("default/{}", name(number))).unwrap().unwrap();
            assert!(value_of(&object)["data"]["value"] == value.as_str());
        }
        let snapshot = informer.snapshot();
        for object in snapshot.objects() {
            let in_protobuf = matches!(object.encoding(), Encoding::Protobuf(_));
            assert_eq!(in_protobuf, encoding == EncodingChoice::Auto);
            let length = value_of(object)["data"]["value"].as_str().unwrap().len();
            assert!([20_000, 80_000].contains(&length), "{object:?} has {length} bytes");
        }
        let requests = informer.metrics().requests;
        assert_eq!((requests.streaming_lists, requests.lists, requests.watches), (1, 0, 0));
        assert_eq!(reports.try_recv(), None, "{encoding:?}");
        factory.shutdown().await;
    }
    assert_eq!(pieces.hits(), 2);
}
