//! L14, F7, F11: custom resources whose definitions change, go and return.

use std::time::Duration;

use conformance::{Rig, status, summary, within};
use futures_util::StreamExt;
use informer::{Change, Changes, Informer, Object, ResourceType, Status, WhenFull};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Api;
use kube_client::api::{Patch, PatchParams};
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;
use serde_json::{Value, json};

use super::json;
use crate::SERVER;

/// A custom resource of a test, and the way to its objects.
#[derive(Clone, Copy)]
struct Gadgets {
    group: &'static str,
    version: &'static str,
    namespaced: bool,
}

impl Gadgets {
    /// In one version, with this schema of their spec.
    fn definition(&self, spec: &Value) -> Value {
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("gadgets.{}", self.group) },
            "spec": {
                "group": self.group,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "names": { "plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList" },
                "versions": [{
                    "name": self.version, "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": schema },
                }],
            },
        })
    }

    fn resource(&self) -> ResourceType {
        ResourceType {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            plural: "gadgets".to_owned(),
            kind: "Gadget".to_owned(),
            namespaced: self.namespaced,
        }
    }

    fn api(&self, rig: &Rig) -> Api<DynamicObject> {
        let resource = self.api_resource();
        if self.namespaced {
            Api::namespaced_with(rig.client(), rig.namespace(), &resource)
        } else {
            Api::all_with(rig.client(), &resource)
        }
    }

    fn api_resource(&self) -> ApiResource {
        let ResourceType { group, version, plural, kind, .. } = self.resource();
        let api_version = self.resource().api_version();
        ApiResource { group, version, api_version, kind, plural }
    }

    async fn create(&self, rig: &Rig, name: &str, spec: Value) {
        let object = DynamicObject::new(name, &self.api_resource()).data(json!({ "spec": spec }));
        self.api(rig).create(&Default::default(), &object).await.unwrap();
    }

    /// Gives the definition another schema.
    async fn redefine(&self, rig: &Rig, spec: &Value) {
        let definitions = Api::<CustomResourceDefinition>::all(rig.client());
        let name = format!("gadgets.{}", self.group);
        let patch = Patch::Merge(json!({ "spec": self.definition(spec)["spec"] }));
        definitions.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    }
}

/// Everything that an informer tells from now on. An update may be to the same version here, unlike in `Told`.
fn every_change(informer: &Informer<Object>) -> Changes<Object> {
    informer.subscribe().every_change(1000, WhenFull::Coalesce).changes().unwrap()
}

async fn next(changes: &mut Changes<Object>) -> Change<Object> {
    within("a change", changes.next()).await.unwrap()
}

async fn told<const N: usize>(changes: &mut Changes<Object>) -> [String; N] {
    let mut told = [const { String::new() }; N];
    for next_one in &mut told {
        *next_one = summary(&next(changes).await);
    }
    told
}

/// The spec after a change that must be an update of this object, to content that nobody wrote.
fn revised(change: &Change<Object>, name: &str) -> Value {
    assert_eq!(summary(change), format!("updated {name}"));
    let (old, new) = (change.old().unwrap(), change.new().unwrap());
    assert_eq!(old.object().resource_version(), new.resource_version());
    json(new)["spec"].clone()
}

#[tokio::test]
async fn l14_a_definition_that_changes_revises_objects_that_nobody_wrote() {
    let Some(rig) = Rig::shared(SERVER, "l14_definition").await else { return };
    let gadgets = Gadgets { group: "l14.example.com", version: "v1", namespaced: true };
    let schema = |size: Value| json!({ "type": "object", "properties": { "size": size, "note": { "type": "string" } } });
    rig.define(&gadgets.definition(&schema(json!({ "type": "integer" })))).await;
    gadgets.create(&rig, "a", json!({ "note": "x" })).await;
    gadgets.create(&rig, "b", json!({ "size": 1 })).await;
    let factory = rig
        .builder()
        .reflector(|reflector| reflector.schema_pace = Duration::from_secs(1))
        .build()
        .unwrap()
        .in_namespace(rig.namespace());
    let informer = factory.informer_of::<Object>(gadgets.resource());
    let mut changes = every_change(&informer);
    factory.start();
    let mut initial = first(&mut changes).await;
    initial.sort();
    assert_eq!(initial, ["initial a", "initial b"]);

    // A default.
    gadgets.redefine(&rig, &schema(json!({ "type": "integer", "default": 3 }))).await;
    assert_eq!(revised(&next(&mut changes).await, "a"), json!({ "note": "x", "size": 3 }));
    // Pruning: what the schema lacks is not shown.
    let size = json!({ "type": "integer", "default": 3 });
    gadgets.redefine(&rig, &json!({ "type": "object", "properties": { "size": size } })).await;
    assert_eq!(revised(&next(&mut changes).await, "a"), json!({ "size": 3 }));

    // Once each: neither another list nor a write brings it again, and `b` was no update.
    let lists = rig.wire.lists().len();
    let again = Duration::from_secs(3);
    loop {
        // A watch that is only on its way notices neither: the list for the new schema may have just ended.
        rig.wire.expire_next_watch();
        rig.proxy.cut();
        if tokio::time::timeout(again, rig.wire.until_listed(lists + 1)).await.is_ok() {
            break;
        }
    }
    gadgets.create(&rig, "c", json!({})).await;
    assert_eq!(told(&mut changes).await, ["added c"]);
}

/// The server ends a watch about a second after its definition has changed. If the watch has brought an event from after the
/// change by then, the server resumes it there, without a 410: only the schema's hash shows that the objects differ.
#[tokio::test]
async fn l14_a_watch_that_outlives_its_definition_by_an_event_is_followed_by_a_list() {
    let Some(rig) = Rig::shared(SERVER, "l14_outlived").await else { return };
    let gadgets = Gadgets { group: "l14-outlived.example.com", version: "v1", namespaced: true };
    let schema = |size: Value| json!({ "type": "object", "properties": { "size": size } });
    rig.define(&gadgets.definition(&schema(json!({ "type": "integer" })))).await;
    gadgets.create(&rig, "a", json!({})).await;
    let factory = rig
        .builder()
        .reflector(|reflector| reflector.schema_pace = Duration::from_secs(1))
        .build()
        .unwrap()
        .in_namespace(rig.namespace());
    let informer = factory.informer_of::<Object>(gadgets.resource());
    let mut changes = every_change(&informer);
    factory.start();
    assert_eq!(first(&mut changes).await, ["initial a"]);
    gadgets.redefine(&rig, &schema(json!({ "type": "integer", "default": 3 }))).await;
    let api = gadgets.api(&rig);
    let shown = async { while api.get("a").await.unwrap().data["spec"]["size"] != 3 {} };
    within("the new default", shown).await;
    // The server's cache for the new definition begins here, before the event.
    api.list(&Default::default()).await.unwrap();
    gadgets.create(&rig, "b", json!({})).await;
    // A server whose watch ends in time is listed again before it sends `b`.
    let (one, other) = (next(&mut changes).await, next(&mut changes).await);
    let (revision, added) = if summary(&one) == "added b" { (other, one) } else { (one, other) };
    assert_eq!(summary(&added), "added b");
    assert_eq!(revised(&revision, "a"), json!({ "size": 3 }));
}

async fn undefine(rig: &Rig, group: &str) {
    let definitions = Api::<CustomResourceDefinition>::all(rig.client());
    let name = format!("gadgets.{group}");
    definitions.delete(&name, &Default::default()).await.unwrap();
    let gone = async { while definitions.get_opt(&name).await.unwrap().is_some() {} };
    within("the end of the definition", gone).await;
}

fn any() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn is_denied(status: &Status) -> bool {
    matches!(status, Status::Denied { .. })
}

async fn first(changes: &mut Changes<Object>) -> Vec<String> {
    let mut first = Vec::new();
    loop {
        match summary(&next(changes).await).as_str() {
            "synced" => return first,
            other => first.push(other.to_owned()),
        }
    }
}

#[tokio::test]
async fn f7_a_definition_returns_with_another_schema() {
    let Some(rig) = Rig::shared(SERVER, "f7_schema").await else { return };
    let gadgets = Gadgets { group: "f7-schema.example.com", version: "v1", namespaced: true };
    let schema = |size: Value| json!({ "type": "object", "properties": { "size": size } });
    rig.define(&gadgets.definition(&schema(json!({ "type": "integer" })))).await;
    gadgets.create(&rig, "a", json!({ "size": 1 })).await;
    let factory = rig.factory();
    let informer = factory.informer_of::<Object>(gadgets.resource());
    let mut changes = every_change(&informer);
    factory.start();
    assert_eq!(first(&mut changes).await, ["initial a"]);
    undefine(&rig, gadgets.group).await;
    rig.define(&gadgets.definition(&schema(json!({ "type": "string", "default": "small" })))).await;
    gadgets.create(&rig, "b", json!({})).await;
    let mut both: [String; 2] = told(&mut changes).await;
    both.sort();
    assert_eq!(both[0], "added b");
    assert!(["deleted a", "missed a"].contains(&both[1].as_str()), "{both:?}");
    assert_eq!(
        json(informer.snapshot().get(format!("{}/b", rig.namespace())).unwrap().unwrap().object())["spec"],
        json!({ "size": "small" })
    );
}

#[tokio::test]
async fn f7_f11_a_definition_returns_with_another_version() {
    let Some(rig) = Rig::shared(SERVER, "f7_version").await else { return };
    let v1 = Gadgets { group: "f7-version.example.com", version: "v1", namespaced: true };
    let v2 = Gadgets { version: "v2", ..v1 };
    rig.define(&v1.definition(&any())).await;
    v1.create(&rig, "a", json!({})).await;
    let factory = rig.factory();
    let named = factory.informer_named::<Object>("gadgets.f7-version.example.com").await.unwrap();
    assert_eq!(*named.resource(), v1.resource());
    let mut changes = every_change(&named);
    // This one was made for a version, and is of all namespaces besides: it has a cache of its own.
    let fixed = factory.everything().informer_of::<Object>(v1.resource());
    factory.start();
    assert_eq!(first(&mut changes).await, ["initial a"]);
    undefine(&rig, v1.group).await;
    rig.define(&v2.definition(&any())).await;
    v2.create(&rig, "b", json!({})).await;
    let mut both: [String; 2] = told(&mut changes).await;
    both.sort();
    assert_eq!(both[0], "added b");
    assert!(["deleted a", "missed a"].contains(&both[1].as_str()), "{both:?}");
    assert_eq!(*named.resource(), v2.resource());
    v2.create(&rig, "c", json!({})).await;
    assert_eq!(told(&mut changes).await, ["added c"]);
    status(&fixed, is_denied).await;
    assert_eq!(*fixed.resource(), v1.resource());
}

#[tokio::test]
async fn f11_a_version_that_is_no_longer_served_is_followed_with_updates() {
    let Some(rig) = Rig::shared(SERVER, "f11_served").await else { return };
    let v1 = Gadgets { group: "f11.example.com", version: "v1", namespaced: true };
    let mut definition = v1.definition(&any());
    rig.define(&definition).await;
    v1.create(&rig, "a", json!({ "size": 1 })).await;
    let factory = rig.factory();
    let named = factory.informer_named::<Object>("gadgets.f11.example.com").await.unwrap();
    let mut changes = every_change(&named);
    factory.start();
    assert_eq!(first(&mut changes).await, ["initial a"]);
    // Objects stay in `v1`, but are read as `v2`.
    let mut other = definition["spec"]["versions"][0].clone();
    (other["name"], other["storage"]) = (json!("v2"), json!(false));
    definition["spec"]["versions"][0]["served"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().push(other);
    let definitions = Api::<CustomResourceDefinition>::all(rig.client());
    let patch = Patch::Merge(json!({ "spec": definition["spec"] }));
    definitions.patch("gadgets.f11.example.com", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(revised(&next(&mut changes).await, "a"), json!({ "size": 1 }));
    let key = format!("{}/a", rig.namespace());
    assert_eq!(
        json(named.snapshot().get(&key).unwrap().unwrap().object())["apiVersion"],
        "f11.example.com/v2"
    );
    let v2 = Gadgets { version: "v2", ..v1 };
    assert_eq!(*named.resource(), v2.resource());
    v2.create(&rig, "b", json!({})).await;
    assert_eq!(told(&mut changes).await, ["added b"]);
}

#[tokio::test]
async fn f7_f11_a_definition_returns_with_another_scope() {
    let Some(rig) = Rig::shared(SERVER, "f7_scope").await else { return };
    let factory = rig.factory();
    let namespaced = Gadgets { group: "f7-scope.example.com", version: "v1", namespaced: true };
    let of_cluster = Gadgets { namespaced: false, ..namespaced };
    rig.define(&namespaced.definition(&any())).await;
    namespaced.create(&rig, "a", json!({})).await;
    let named = factory.informer_named::<Object>("gadgets.f7-scope.example.com").await.unwrap();
    let mut changes = every_change(&named);
    // Of all namespaces: the path of the requests is that of a resource of the cluster.
    let everywhere = factory.everything().informer_of::<Object>(namespaced.resource());
    let mut of_all = every_change(&everywhere);
    factory.start();
    assert_eq!(first(&mut changes).await, ["initial a"]);
    assert_eq!(first(&mut of_all).await, ["initial a"]);

    undefine(&rig, namespaced.group).await;
    rig.define(&of_cluster.definition(&any())).await;
    of_cluster.create(&rig, "b", json!({})).await;
    for changes in [&mut changes, &mut of_all] {
        let mut both: [String; 2] = told(changes).await;
        both.sort();
        assert_eq!(both[0], "added b");
        assert!(["deleted a", "missed a"].contains(&both[1].as_str()), "{both:?}");
    }
    assert!(named.snapshot().get("b").unwrap().is_some());
    assert!(!named.resource().namespaced);

    // And back. The path of the cluster is that of all namespaces: only discovery shows that it is another resource.
    undefine(&rig, namespaced.group).await;
    status(&named, is_denied).await;
    rig.define(&namespaced.definition(&any())).await;
    rig.add_namespace("f7-scope-other").await;
    let other =
        Api::<DynamicObject>::namespaced_with(rig.client(), "f7-scope-other", &namespaced.api_resource());
    let elsewhere = DynamicObject::new("x", &namespaced.api_resource()).data(json!({ "spec": {} }));
    other.create(&Default::default(), &elsewhere).await.unwrap();
    namespaced.create(&rig, "c", json!({})).await;
    let mut both: [String; 2] = told(&mut changes).await;
    both.sort();
    assert_eq!(both[0], "added c");
    assert!(["deleted b", "missed b"].contains(&both[1].as_str()), "{both:?}");
    assert!(named.resource().namespaced);
    assert_eq!(super::names(&named), ["c"]);
}
