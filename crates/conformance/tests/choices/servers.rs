//! Servers that are not what `https` with HTTP/2 expects.

use conformance::{config_map, impatient, status};
use informer::{Cause, Http2, HttpVersion, Informer, Object, SharedInformerFactory, Status};
use kube_client::{Api, Client, Config};
use testapi::TestApi;

use crate::clauses::{config_maps, is_live, names};

fn factory(config: Config) -> SharedInformerFactory {
    let builder = impatient(SharedInformerFactory::builder(config));
    builder.http_version(HttpVersion::Http2(Http2::default())).build().unwrap()
}

#[tokio::test]
async fn over_plain_http_the_server_has_to_know() {
    let server = TestApi::builder().start().await.unwrap();
    let config = server.config();
    let maps = Api::default_namespaced(Client::try_from(config.clone()).unwrap());
    maps.create(&Default::default(), &config_map("a", "")).await.unwrap();
    let factory = factory(config);
    let informer: Informer<Object> = factory.informer_of(config_maps());
    let others: Vec<Informer<Object>> = (0..9)
        .map(|number| factory.with_labels(format!("number={number}")).unwrap().informer_of(config_maps()))
        .collect();
    factory.start();
    for informer in others.iter().chain([&informer]) {
        status(informer, is_live).await;
    }
    assert_eq!(names(&informer), ["a"]);
    // One for the client that wrote, one for all informers.
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_server_that_speaks_http_1_only_is_a_status() {
    let server = TestApi::builder().tls().http1_only().start().await.unwrap();
    let factory = factory(server.config());
    let informer: Informer<Object> = factory.informer_of(config_maps());
    factory.start();
    let retrying = status(&informer, |status| matches!(status, Status::Retrying { attempt: 2.., .. })).await;
    let Status::Retrying { cause: Cause::Unreachable(reason), .. } = retrying else { panic!("{retrying}") };
    assert!(reason.contains("HTTP/2") || reason.contains("ApplicationProtocol"), "{reason}");
}
