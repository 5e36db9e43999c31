//! HTTP/2, where one connection is for everything.

use std::time::Duration;

use conformance::{Needs, Rig, Told, config_map, status, within};
use informer::{Cause, FactoryBuilder, Http2, HttpVersion, Informer, Object, Report};
use serde_json::json;

use super::{config_maps, is_live, names, sync};
use crate::SERVER;

fn over_http2(rig: &Rig, options: Http2) -> FactoryBuilder {
    rig.builder().http_version(HttpVersion::Http2(options))
}

#[tokio::test]
async fn f4_w1_over_http2_all_watches_share_a_connection_and_a_stop_closes_it() {
    let Some(rig) = Rig::shared(SERVER, "f4_http2").await else { return };
    rig.create("a").await;
    let factory = over_http2(&rig, Http2::default()).build().unwrap().in_namespace(rig.namespace());
    let informer = rig.synced(&factory).await;
    let secrets = factory.informer::<k8s_openapi::api::core::v1::Secret>();
    sync(&factory, &secrets).await;
    let mut told = Told::every(&informer);
    assert_eq!(told.first_content().await, ["initial a"]);
    rig.create("b").await;
    rig.update("a", "1").await;
    rig.delete("b").await;
    assert_eq!(told.next().await, ["added b", "updated a", "deleted b"]);
    status(&secrets, is_live).await;
    assert_eq!(rig.proxy.connections(), 1);
    within("the shutdown", factory.shutdown()).await;
    rig.proxy.idle().await;
}

#[tokio::test]
async fn f1_over_http2_many_watches_need_few_connections() {
    let Some(rig) = Rig::shared(SERVER, "f1_http2").await else { return };
    let factory = over_http2(&rig, Http2::default()).build().unwrap().in_namespace(rig.namespace());
    let informers: Vec<Informer<Object>> = (0..130)
        .map(|number| factory.with_labels(format!("number={number}")).unwrap().informer_of(config_maps()))
        .collect();
    factory.start();
    for informer in &informers {
        status(informer, is_live).await;
    }
    // A hundred watches on one connection, so that those nobody reads cannot use up its window, and the rest.
    assert_eq!(rig.proxy.connections(), 2);
    for number in [0, 65, 129] {
        let mut map = config_map(&format!("map-{number}"), "");
        map.metadata.labels = Some([("number".to_owned(), number.to_string())].into());
        let version = rig.create_with(map).await;
        informers[number].at_least(&version, conformance::DEADLINE).await.unwrap();
        assert_eq!(names(&informers[number]), [format!("map-{number}")]);
    }
    // All of them recover from a fault that breaks all of them at once. On a busy machine, a first list may have been asked for twice.
    let listed = rig.wire.lists().len();
    assert!(listed >= 130, "{listed}");
    rig.proxy.cut();
    for number in [0, 65, 129] {
        let version = rig.update(&format!("map-{number}"), "new").await;
        informers[number].at_least(&version, conformance::DEADLINE).await.unwrap();
    }
    assert_eq!(rig.wire.lists().len(), listed, "no watch needs a list");
}

#[tokio::test]
async fn w12_over_http2_a_ping_finds_the_connection_dead() {
    let Some(rig) = Rig::shared(SERVER, "w12_http2").await else { return };
    let mut options = Http2::default();
    options.ping_interval = Duration::from_millis(500);
    options.ping_timeout = Duration::from_secs(2);
    let informer =
        rig.synced(&over_http2(&rig, options).build().unwrap().in_namespace(rig.namespace())).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let mut reports = informer.reports();
    rig.proxy.freeze();
    rig.create("a").await;
    assert_eq!(told.next().await, ["added a"]);
    let Report::Disconnected(Cause::Broken(reason)) = reports.recv().await.unwrap() else { panic!() };
    assert!(reason.contains("ping was not answered within 2s"), "{reason}");
    assert_eq!(rig.wire.lists().len(), 1, "the watch goes on where it was");
}

#[tokio::test]
async fn w5_over_http2_a_restarted_server_is_found_again() {
    let Some(rig) = Rig::own(SERVER, "w5_http2", Needs::default()).await else { return };
    let informer =
        rig.synced(&over_http2(&rig, Http2::default()).build().unwrap().in_namespace(rig.namespace())).await;
    let mut told = Told::every(&informer);
    told.first_content().await;
    let mut reports = informer.reports();
    rig.restart().await;
    rig.create("a").await;
    assert_eq!(told.next().await, ["added a"]);
    status(&informer, is_live).await;
    assert!(matches!(reports.try_recv(), Some(Report::Disconnected(_))));
    rig.kill_restart().await;
    rig.create("b").await;
    assert_eq!(told.next().await, ["added b"]);
    status(&informer, is_live).await;
    assert_eq!(names(&informer), ["a", "b"]);
}

#[tokio::test]
async fn w15_over_http2_new_credentials_need_no_new_connection() {
    let Some(rig) = Rig::shared(SERVER, "w15_http2").await else { return };
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "expired").unwrap();
    let mut config = rig.config();
    config.auth_info.token = None;
    config.auth_info.token_file = Some(token.path().to_str().unwrap().to_owned());
    let builder = conformance::impatient(rig.builder_of(config));
    let factory = builder
        .http_version(HttpVersion::Http2(Http2::default()))
        .build()
        .unwrap()
        .in_namespace(rig.namespace());
    std::fs::write(token.path(), rig.token()).unwrap();
    let informers: Vec<Informer<Object>> = (0..20)
        .map(|number| factory.with_labels(format!("number={number}")).unwrap().informer_of(config_maps()))
        .collect();
    factory.start();
    for informer in &informers {
        status(informer, is_live).await;
    }
    assert_eq!(rig.proxy.connections(), 1);
}

#[tokio::test]
async fn w16_over_http2_big_objects_come_through_with_and_without_gzip() {
    let Some(rig) = Rig::shared(SERVER, "w16_http2").await else { return };
    let mut version = rig.create("small").await;
    // More than the windows of a stream and of the connection.
    for index in 0..8 {
        version = rig.create_with(config_map(&format!("long-{index}"), &"long".repeat(250_000))).await;
    }
    for gzip in [false, true] {
        let factory =
            over_http2(&rig, Http2::default()).gzip(gzip).build().unwrap().in_namespace(rig.namespace());
        let informer = rig.synced(&factory).await;
        informer.at_least(&version, conformance::DEADLINE).await.unwrap();
        assert_eq!(informer.len(), 9);
        version = rig.patch("small", json!({ "data": { "value": "äöü".repeat(150_000) } })).await;
        informer.at_least(&version, conformance::DEADLINE).await.unwrap();
        rig.patch("small", json!({ "data": { "value": "" } })).await;
        assert_eq!(rig.proxy.connections(), 1);
        within("the shutdown", factory.shutdown()).await;
        rig.proxy.idle().await;
    }
}
