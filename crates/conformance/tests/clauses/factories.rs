//! F: factories, what informers share, what they may look at, and their end.

use std::time::Duration;

use conformance::{Rig, Told, config_map, custom_resource, status, within};
use informer::kube::PartialObjectMeta;
use informer::{Informer, Keep, Object, Status, Transform};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Api;
use kube_client::api::{Patch, PatchParams};
use kube_core::discovery::ApiResource;
use kube_core::{DynamicObject, ResourceExt};
use serde_json::json;

use super::{config_maps, is_live, names, sync};
use crate::SERVER;

#[tokio::test]
async fn f1_f6_all_views_of_a_resource_share_one_watch() {
    let Some(rig) = Rig::shared(SERVER, "f6_views").await else { return };
    rig.create_with(config_map("a", "text")).await;
    let factory = rig.factory();
    let typed: Informer<ConfigMap> = factory.informer();
    let again: Informer<ConfigMap> = factory.informer();
    let dynamic = factory.informer_of::<DynamicObject>(config_maps());
    let metadata = factory.informer_of::<PartialObjectMeta>(config_maps());
    sync(&factory, &typed).await;
    let here = |name: &str| format!("{}/{name}", rig.namespace());
    assert_eq!(typed.lister().get(here("a")).unwrap().unwrap().data.as_ref().unwrap()["value"], "text");
    assert_eq!(dynamic.lister().get(here("a")).unwrap().unwrap().data["data"]["value"], "text");
    assert_eq!(metadata.lister().get(here("a")).unwrap().unwrap().name_any(), "a");
    assert_eq!((again.len(), rig.wire.lists().len()), (1, 1));
    factory.start();
    rig.create("b").await;
    let mut told = Told::every(&factory.informer_of(config_maps()));
    assert_eq!(told.first_content().await[0], "initial a");
    rig.wire.until_listed(1).await;
    assert_eq!((rig.wire.lists().len(), rig.wire.watches().len()), (1, 1));
}

#[tokio::test]
async fn f6_a_metadata_informer_fetches_metadata_only() {
    let Some(rig) = Rig::shared(SERVER, "f6_metadata").await else { return };
    rig.create_with(config_map("a", "secret")).await;
    let factory = rig.factory();
    let informer = factory.informer_of::<PartialObjectMeta>(config_maps());
    sync(&factory, &informer).await;
    let version = rig.create_with(config_map("b", "secret")).await;
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    for object in informer.snapshot().objects() {
        let json = super::json(object);
        assert_eq!((&json["kind"], json.get("data")), (&json!("PartialObjectMetadata"), None), "{object:?}");
    }
    let listed = informer.lister().namespace(rig.namespace()).get("a").unwrap().unwrap();
    assert!(listed.metadata.uid.is_some());
    rig.delete("a").await;
    let version = rig.update("b", "other").await;
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    assert_eq!(informer.len(), 1);
}

#[tokio::test]
async fn f2_d6_selectors_and_transforms_choose_the_objects() {
    let Some(rig) = Rig::shared(SERVER, "f2_options").await else { return };
    for name in ["a", "b", "bad", "dropped"] {
        rig.create(name).await;
    }
    let one = rig.synced(&rig.factory().with_fields("metadata.name=b").unwrap()).await;
    assert_eq!(names(&one), ["b"]);

    let transform = Transform::drop_managed_fields().then(Transform::json(|map| {
        map["data"]["value"] = "changed".into();
        match map["metadata"]["name"].as_str() {
            Some("bad") => Err("not this one".into()),
            Some("dropped") => Ok(Keep::No),
            _ => Ok(Keep::Yes),
        }
    }));
    let factory = rig.builder().transform(transform.clone()).build().unwrap().in_namespace(rig.namespace());
    let informer = factory.informer_of::<Object>(config_maps());
    let mut reports = informer.reports();
    sync(&factory, &informer).await;
    assert_eq!(names(&informer), ["a", "b"]);
    for map in informer.lister().list() {
        let json = super::json(&map);
        assert_eq!(
            (&json["data"]["value"], json["metadata"].get("managedFields")),
            (&json!("changed"), None)
        );
    }
    let informer::Report::Quarantined { key, .. } = reports.recv().await.unwrap() else { panic!() };
    assert_eq!(key.unwrap().name(), "bad");
    // Once it has begun it is too late for another.
    assert!(informer.set_transform(transform).is_err_and(|error| error.is_already_started()));
}

#[tokio::test]
async fn f2_f7_namespaces_come_and_go() {
    let Some(rig) = Rig::shared(SERVER, "f7_namespaces").await else { return };
    let spaces = ["f7-one", "f7-two", "f7-three"];
    for space in spaces {
        rig.add_namespace(space).await;
        let maps = Api::namespaced(rig.client(), space);
        maps.create(&Default::default(), &config_map(&format!("in-{space}"), "")).await.unwrap();
    }
    let informer = rig.synced(&rig.factory().everything().in_namespaces(spaces[..2].iter().copied())).await;
    let mut told = Told::every(&informer);
    assert_eq!(told.first_content().await, ["initial in-f7-one", "initial in-f7-two"]);

    assert!(informer.add_namespace("f7-three") && !informer.add_namespace("f7-three"));
    assert_eq!(told.next().await, ["added in-f7-three"]);
    assert!(informer.remove_namespace("f7-one").await && !informer.remove_namespace("f7-one").await);
    assert_eq!(told.next().await, ["left in-f7-one"]);
    let maps = Api::<ConfigMap>::namespaced(rig.client(), "f7-one");
    maps.delete("in-f7-one", &Default::default()).await.unwrap();
    let maps = Api::<ConfigMap>::namespaced(rig.client(), "f7-three");
    maps.delete("in-f7-three", &Default::default()).await.unwrap();
    assert_eq!(told.next().await, ["deleted in-f7-three"]);
    assert_eq!(names(&informer), ["in-f7-two"]);
}

#[tokio::test]
async fn f3_w15_waiting_names_what_is_missing_and_why() {
    let Some(rig) = Rig::shared(SERVER, "f3_waiting").await else { return };
    let factory = rig.factory();
    let present = factory.informer::<Secret>();
    let (_, resource) = custom_resource("nowhere.example.com", "Ghost");
    let missing = factory.informer_of::<DynamicObject>(resource.clone());
    factory.start();
    let error = factory.wait_for_sync_or_denial(Duration::from_secs(60)).await.unwrap_err();
    assert!(error.is_denied());
    let text = error.to_string();
    assert!(text.contains("ghosts.v1.nowhere.example.com") && text.contains("denied"), "{text}");
    assert!(matches!(missing.status(), Status::Denied { status } if status.is_not_found()));
    present.wait_for_sync(Duration::from_secs(60)).await.unwrap();
    let error = factory.wait_for_sync(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.missing().iter().map(|it| it.resource.clone()).collect::<Vec<_>>(), [resource]);
}

#[tokio::test]
async fn f4_a_shutdown_leaves_no_connection() {
    let Some(rig) = Rig::shared(SERVER, "f4_shutdown").await else { return };
    let factory = rig.factory();
    let maps = rig.synced(&factory).await;
    let secrets = factory.informer::<Secret>();
    sync(&factory, &secrets).await;
    status(&maps, is_live).await;
    status(&secrets, is_live).await;
    assert!(rig.proxy.connections() >= 1);
    within("the shutdown", factory.shutdown()).await;
    assert!(maps.is_stopped() && secrets.is_stopped());
    rig.proxy.idle().await;
}

#[tokio::test]
async fn f5_the_last_handle_closes_the_watch() {
    let Some(rig) = Rig::shared(SERVER, "f5_last_handle").await else { return };
    let factory = rig.factory();
    let maps = rig.synced(&factory).await;
    status(&maps, is_live).await;
    let before = rig.proxy.connections();
    let lister = maps.lister();
    drop(maps);
    let version = rig.create("a").await;
    let again = factory.informer_of::<Object>(config_maps());
    again.at_least(&version, conformance::DEADLINE).await.unwrap();
    drop((lister, again));
    within("the end of the watch", rig.proxy.until(|open| open < before)).await;
    // The next request for an informer makes a new one.
    let maps = rig.synced(&factory).await;
    assert_eq!((names(&maps), rig.wire.lists().len()), (vec!["a".to_owned()], 2));
}

/// Waits until the server serves a custom resource.
async fn define(rig: &Rig, definition: &CustomResourceDefinition) {
    let definitions = Api::<CustomResourceDefinition>::all(rig.client());
    let manager = PatchParams::apply("conformance");
    let mut definition = definition.clone();
    definition.metadata.managed_fields = None;
    definitions.patch(&definition.name_any(), &manager, &Patch::Apply(&definition)).await.unwrap();
}

#[tokio::test]
async fn f7_w15_f6_a_custom_resource_appears_disappears_and_returns() {
    let Some(rig) = Rig::shared(SERVER, "f7_custom_resource").await else { return };
    let (definition, resource) = custom_resource("f7.example.com", "Widget");
    let factory = rig.factory();
    let informer = factory.informer_of::<DynamicObject>(resource.clone());
    let mut told = Told::every(&factory.informer_of(resource.clone()));
    factory.start();
    status(&informer, |status| matches!(status, Status::Denied { .. })).await;

    define(&rig, &definition).await;
    status(&informer, is_live).await;
    assert_eq!(told.next().await, ["synced"]);
    let api_resource = ApiResource {
        group: resource.group.clone(),
        version: resource.version.clone(),
        api_version: resource.api_version(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
    };
    let widgets = Api::<DynamicObject>::namespaced_with(rig.client(), rig.namespace(), &api_resource);
    let widget = DynamicObject::new("a", &api_resource).data(json!({ "spec": { "size": 1 } }));
    widgets.create(&Default::default(), &widget).await.unwrap();
    assert_eq!(told.next().await, ["added a"]);
    assert_eq!(
        informer.lister().namespace(rig.namespace()).get("a").unwrap().unwrap().data["spec"]["size"],
        1
    );

    // With the definition its objects go, and then the resource.
    let definitions = Api::<CustomResourceDefinition>::all(rig.client());
    definitions.delete(&definition.name_any(), &Default::default()).await.unwrap();
    status(&informer, |status| matches!(status, Status::Denied { .. })).await;
    let requests = rig.wire.asked().len();
    // At the pace of `denied_retry`: no loop.
    rig.wire.until("two more requests", |asked| asked.len() >= requests + 2).await;
    define(&rig, &definition).await;
    status(&informer, is_live).await;
    let [gone] = told.next().await;
    assert!(["deleted a", "missed a"].contains(&gone.as_str()), "{gone}");
    widgets.create(&Default::default(), &widget).await.unwrap();
    assert_eq!(told.next().await, ["added a"]);
}
