//! Layers of a program around the clients of a factory, and who retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use conformance::{impatient, status};
use http::Request;
use informer::{
    Cause, FactoryBuilder, Http2, HttpVersion, Object, Report, SharedInformerFactory, StreamingListChoice,
};
use kube_client::Client;
use kube_client::client::Body;
use testapi::faults::{Fault, Refusal};
use testapi::{TestApi, Verb};
use tower::util::MapRequestLayer;

use crate::clauses::{config_maps, is_live};

const VERSIONS: fn() -> [HttpVersion; 2] = || [HttpVersion::Http1, HttpVersion::Http2(Http2::default())];

#[tokio::test]
async fn f2_w15_with_a_layer_credentials_are_read_again_over_either_http_version() {
    for version in VERSIONS() {
        let server = TestApi::builder().tls().token("right", "jane").start().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "wrong").unwrap();
        let mut config = server.config();
        config.auth_info.token = None;
        config.auth_info.token_file = Some(file.to_str().unwrap().to_owned());

        let seen = Arc::new(AtomicUsize::new(0));
        let counter = seen.clone();
        let layer = MapRequestLayer::new(move |request: Request<Body>| {
            assert!(!request.headers().contains_key(http::header::AUTHORIZATION), "a layer saw credentials");
            counter.fetch_add(1, Ordering::Relaxed);
            request
        });
        let builder = SharedInformerFactory::builder(config).http_version(version).client_layer(layer);
        let factory = impatient(builder).build().unwrap();
        std::fs::write(&file, "right").unwrap();
        let informer = factory.informer_of::<Object>(config_maps());
        factory.start();
        status(&informer, is_live).await;

        let refused =
            server.requests().all().iter().filter(|it| it.status.is_some_and(|it| it == 401)).count();
        assert!(refused > 0, "{version:?}: the first credentials were not refused");
        let answered = server.requests().all().len();
        let seen = seen.load(Ordering::Relaxed);
        assert!(seen >= answered, "{version:?}: the layer saw {seen} of {answered} requests");
        factory.shutdown().await;
    }
}

/// The lists that a server got, and the refusals that an informer reported, until it was live.
async fn overloaded(make: impl Fn(kube_client::Config) -> FactoryBuilder) -> (usize, usize) {
    let server = TestApi::builder().start().await.unwrap();
    let lists = Verb::List.of("configmaps");
    server.faults().on(lists.clone()).times(3, Fault::Refuse(Refusal::Timeout));
    let config = server.config();
    assert!(config.default_retry, "kube has switched its retries off by default");
    let factory = impatient(make(config))
        .reflector(|reflector| reflector.streaming_list = StreamingListChoice::Never)
        .build()
        .unwrap();
    let informer = factory.informer_of::<Object>(config_maps());
    let mut reports = informer.reports();
    factory.start();
    status(&informer, is_live).await;
    let mut refusals = 0;
    while let Some(report) = reports.try_recv() {
        refusals += usize::from(matches!(report, Report::Disconnected(Cause::Refused(_))));
    }
    (server.requests().count(&lists), refusals)
}

#[tokio::test]
async fn w14_retries_of_kube_do_not_stack_on_those_of_an_informer() {
    for version in VERSIONS() {
        let own = overloaded(|config| SharedInformerFactory::builder(config).http_version(version)).await;
        assert_eq!(own, (4, 3), "{version:?}: lists, reported refusals");
    }
    // A ready-made client shows neither its settings nor its retries: the documentation says so.
    let client = |config| SharedInformerFactory::builder_with_client(Client::try_from(config).unwrap());
    assert_eq!(overloaded(client).await, (4, 0), "lists, reported refusals");
    let without = |mut config: kube_client::Config| {
        config.default_retry = false;
        SharedInformerFactory::builder_with_client(Client::try_from(config).unwrap())
    };
    assert_eq!(overloaded(without).await, (4, 3), "lists, reported refusals");
}
