//! L14, F7, F11: custom resources whose definitions change, go and return.

use std::time::Duration;

use conformance::{Rig, summary, within};
use futures_util::StreamExt;
use informer::{Change, Changes, Informer, Object, ResourceType, WhenFull};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Api;
use kube_client::api::{Patch, PatchParams};
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;
use serde_json::{Value, json};

use super::json;
use crate::SERVER;

/// A custom resource of a test, and the way to its objects.
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

/// The next change is an update of this object, to content that nobody wrote.
async fn revised(changes: &mut Changes<Object>, name: &str) -> Value {
    match next(changes).await {
        Change::Updated { old, new, .. } => {
            assert_eq!((new.key().name(), old.object().uid()), (name, new.uid()));
            assert_eq!(old.object().resource_version(), new.resource_version());
            json(&new)["spec"].clone()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn l14_a_definition_that_changes_revises_objects_that_nobody_wrote() {
    let Some(rig) = Rig::shared(SERVER, "l14_definition").await else { return };
    let gadgets = Gadgets { group: "l14.example.com", version: "v1", namespaced: true };
    let schema = |size: Value| json!({ "type": "object", "properties": { "size": size, "note": { "type": "string" } } });
    rig.define(&gadgets.definition(&schema(json!({ "type": "integer" })))).await;
    gadgets.create(&rig, "a", json!({ "note": "x" })).await;
    gadgets.create(&rig, "b", json!({ "size": 1 })).await;
    let factory = rig.builder().schema_pace(Duration::from_secs(1)).build().unwrap();
    let informer = factory.informer_of::<Object>(gadgets.resource());
    let mut changes = every_change(&informer);
    factory.start();
    let mut first: [String; 2] = told(&mut changes).await;
    first.sort();
    assert_eq!(
        (first.each_ref().map(String::as_str), told(&mut changes).await),
        (["initial a", "initial b"], ["synced".to_owned()])
    );

    // A default.
    gadgets.redefine(&rig, &schema(json!({ "type": "integer", "default": 3 }))).await;
    assert_eq!(revised(&mut changes, "a").await, json!({ "note": "x", "size": 3 }));
    // Pruning: what the schema lacks is not shown.
    let size = json!({ "type": "integer", "default": 3 });
    gadgets.redefine(&rig, &json!({ "type": "object", "properties": { "size": size } })).await;
    assert_eq!(revised(&mut changes, "a").await, json!({ "size": 3 }));

    // Once each: neither another list nor a write brings it again, and `b` was no update.
    let lists = rig.wire.lists().len();
    rig.wire.expire_next_watch();
    rig.proxy.cut();
    rig.wire.until_listed(lists + 1).await;
    gadgets.create(&rig, "c", json!({})).await;
    assert_eq!(told(&mut changes).await, ["added c"]);
}
