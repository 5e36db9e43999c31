//! Servers that are newer than the messages that are known here: what they have added comes in JSON or not at all.

use std::time::Duration;

use conformance::{config_map, impatient, within};
use futures_util::StreamExt;
use informer::kube::PartialObjectMeta;
use informer::{
    Encoding, EncodingChoice, FirstListChoice, Informer, Object, ResourceType, SharedInformerFactory,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_client::{Api, Client, Config};
use testapi::TestApi;
use testapi::faults::{Bytes, Fault, Matcher, Refusal};

use crate::clauses::sync;

/// A server with a config map.
async fn server(minor: u32) -> (TestApi, Config) {
    let server = TestApi::builder().version(minor).start().await.unwrap();
    let config = server.config();
    write(&config, "listed").await;
    (server, config)
}

async fn write(config: &Config, name: &str) {
    let maps = Api::default_namespaced(Client::try_from(config.clone()).unwrap());
    maps.create(&Default::default(), &config_map(name, "")).await.unwrap();
}

fn factory(config: &Config, encoding: EncodingChoice) -> SharedInformerFactory {
    impatient(SharedInformerFactory::builder(config.clone())).encoding(encoding).build().unwrap()
}

/// How an object came that was listed, and one that the watch brought.
async fn encodings(config: &Config, factory: &SharedInformerFactory) -> [&'static str; 2] {
    let informer: Informer<Object> = factory.informer_of(ResourceType::of::<ConfigMap>());
    sync(factory, &informer).await;
    write(config, "watched").await;
    let encoding = |name: &str| {
        let snapshot = informer.snapshot();
        let object = snapshot.objects().find(|object| object.key().name() == name)?;
        Some(if matches!(object.encoding(), Encoding::Protobuf(_)) { "protobuf" } else { "json" })
    };
    let mut changes = informer.subscribe().changes().unwrap();
    let watched = async {
        while encoding("watched").is_none() {
            changes.next().await;
        }
    };
    within("what was written", watched).await;
    ["listed", "watched"].map(|name| encoding(name).unwrap())
}

fn version() -> Matcher {
    Matcher::of_path("/version")
}

#[tokio::test]
async fn a_newer_server_is_asked_for_json() {
    let (server, config) = server(99).await;
    let factory = factory(&config, EncodingChoice::Auto);
    assert_eq!(encodings(&config, &factory).await, ["json", "json"]);
    // One answer is enough for all.
    let (_pods, _secrets): (Informer<Pod>, Informer<Secret>) = (factory.informer(), factory.informer());
    factory.start();
    factory.wait_for_sync(Duration::from_secs(60)).await.unwrap();
    assert_eq!(server.requests().count(&version()), 1);
}

#[tokio::test]
async fn the_metadata_of_a_newer_server_comes_in_protobuf() {
    let (_server, config) = server(99).await;
    let factory = factory(&config, EncodingChoice::Auto);
    let informer = factory.informer_of::<PartialObjectMeta>(ResourceType::of::<ConfigMap>());
    sync(&factory, &informer).await;
    let snapshot = informer.snapshot();
    let encodings: Vec<_> = snapshot.objects().map(|object| object.encoding()).collect();
    assert!(matches!(encodings[..], [Encoding::Protobuf(_)]), "{encodings:?}");
}

#[tokio::test]
async fn a_server_whose_messages_are_known_is_asked_for_protobuf() {
    for minor in [33, 37] {
        let (_server, config) = server(minor).await;
        let protobuf = factory(&config, EncodingChoice::Auto);
        assert_eq!(encodings(&config, &protobuf).await, ["protobuf", "protobuf"], "1.{minor}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_say_its_version_is_asked_for_protobuf() {
    let nonsense = Fault::EndAfter(Bytes(5));
    for fault in [Fault::Refuse(Refusal::Forbidden), Fault::Refuse(Refusal::NotFound), nonsense] {
        let (server, config) = server(99).await;
        let asked = server.faults().on(version()).always(fault.clone());
        let factory = factory(&config, EncodingChoice::Auto);
        assert_eq!(encodings(&config, &factory).await, ["protobuf", "protobuf"], "{fault:?}");
        // And is not asked again with each request.
        assert_eq!(asked.hits(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn as_long_as_a_version_is_not_answered_the_server_is_asked_for_json() {
    for fault in
        [Fault::Disconnect, Fault::Refuse(Refusal::Unavailable), Fault::Refuse(Refusal::Unauthorized)]
    {
        let (server, config) = server(36).await;
        // The first to know which list to send, and that of the list.
        let _ = server.faults().on(version()).times(2, fault.clone());
        let factory = factory(&config, EncodingChoice::Auto);
        assert_eq!(encodings(&config, &factory).await, ["json", "protobuf"], "{fault:?}");
    }
}

#[tokio::test]
async fn who_chooses_json_need_not_know() {
    let (server, config) = server(99).await;
    let builder = SharedInformerFactory::builder(config.clone())
        .reflector(|reflector| reflector.first_list = FirstListChoice::Consistent);
    let factory = builder.encoding(EncodingChoice::Json).build().unwrap();
    assert_eq!(encodings(&config, &factory).await, ["json", "json"]);
    assert_eq!(server.requests().count(&version()), 0);
}
