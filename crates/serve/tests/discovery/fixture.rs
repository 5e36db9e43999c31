//! A small fixed catalog: two pods, a deployment, a custom resource in two versions; and a server for it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use serve::http::{ConnectionInfo, Server, ServerOptions, Serving};
use serve::{
    Catalog, Collection, CollectionError, Column, Columns, Events, Listing, Object, Range, Resource,
    Resources, Serve, ServeOptions, ServerVersion, Subresource,
};

pub(crate) struct Fixed;

impl Catalog for Fixed {
    fn resources(&self) -> Arc<Resources> {
        Arc::new(resources().into_iter().map(Arc::new).collect())
    }

    fn collection(&self, resource: &Resource) -> Option<Arc<dyn Collection>> {
        Some(Arc::new(Still(objects(&resource.plural))))
    }

    fn version(&self) -> ServerVersion {
        ServerVersion { major: 1, minor: 36, git_version: "v1.36.3".into() }
    }

    fn schemas(&self, group: &str, version: &str) -> Option<Value> {
        (group == "shop.example.com" && version == "v1").then(|| {
            json!({"com.example.shop.v1.Widget": {
                "type": "object",
                "description": "A Widget is what the shop sells.",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": {"type": "object", "properties": {
                        "color": {"type": "string", "description": "Whatever people like."},
                    }},
                },
                "x-kubernetes-group-version-kind": [{"group": "shop.example.com", "version": "v1", "kind": "Widget"}],
            }})
        })
    }
}

fn resources() -> Vec<Resource> {
    let boxes = |texts: &[&str]| texts.iter().map(|text| Box::from(*text)).collect::<Vec<Box<str>>>();
    let verbs = boxes(&["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
    let of = |group: &str, version: &str, plural: &str, kind: &str, short: &str| Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        singular: kind.to_lowercase().into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        namespaced: true,
        short_names: boxes(&[short]),
        categories: boxes(&["all"]),
        verbs: verbs.clone(),
        subresources: Vec::new(),
        selectable: Vec::new(),
        columns: Columns::BuiltIn,
        typed_items: false,
        stored_version: None,
    };
    let status = Subresource {
        name: "status".into(),
        group_version_kind: None,
        verbs: boxes(&["get", "patch", "update"]),
    };
    let eviction = Subresource {
        name: "eviction".into(),
        group_version_kind: Some(("policy".into(), "v1".into(), "Eviction".into())),
        verbs: boxes(&["create"]),
    };
    let color = Column {
        name: "Color".into(),
        kind: "string".into(),
        format: "".into(),
        description: "".into(),
        priority: 0,
        json_path: ".spec.color".into(),
    };
    let widget = |version| Resource {
        columns: Columns::Declared(vec![color.clone()]),
        typed_items: true,
        stored_version: None,
        ..of("shop.example.com", version, "widgets", "Widget", "wd")
    };
    vec![
        Resource {
            verbs: boxes(&["create"]),
            short_names: Vec::new(),
            categories: Vec::new(),
            ..of("", "v1", "bindings", "Binding", "")
        },
        Resource { subresources: vec![eviction, status.clone()], ..of("", "v1", "pods", "Pod", "po") },
        Resource { subresources: vec![status], ..of("apps", "v1", "deployments", "Deployment", "deploy") },
        widget("v1"),
        widget("v1beta1"),
    ]
}

fn objects(plural: &str) -> Vec<Arc<Object>> {
    let object = |name: &str, rest: Value| {
        let metadata = json!({
            "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "7",
            "creationTimestamp": "2020-01-01T00:00:00Z",
        });
        let body = format!("\"metadata\":{metadata},{}", &rest.to_string()[1..]);
        Arc::new(Object {
            namespace: "default".into(),
            name: name.into(),
            revision: 7,
            labels: Default::default(),
            body: body.into(),
        })
    };
    let containers = json!([{"name": "web", "image": "nginx:1.28"}]);
    match plural {
        "pods" => vec![
            object(
                "cart-1",
                json!({
                    "spec": {"containers": containers, "nodeName": "node-1"},
                    "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.7"}], "containerStatuses": [
                        {"name": "web", "ready": true, "restartCount": 0, "state": {"running": {}}},
                    ]},
                }),
            ),
            object(
                "cart-2",
                json!({
                    "spec": {"containers": containers},
                    "status": {"phase": "Running", "containerStatuses": [
                        {"name": "web", "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
                    ]},
                }),
            ),
        ],
        "deployments" => vec![object(
            "cart",
            json!({
                "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "cart"}},
                         "template": {"spec": {"containers": containers}}},
                "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            }),
        )],
        "widgets" => vec![object("w1", json!({"spec": {"color": "blue"}}))],
        _ => Vec::new(),
    }
}

/// Objects that never change.
struct Still(Vec<Arc<Object>>);

impl Collection for Still {
    fn revision(&self) -> u64 {
        7
    }

    fn get<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        _at: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, CollectionError>> {
        Box::pin(async move { Ok(self.0.iter().find(|object| object.key() == (namespace, name)).cloned()) })
    }

    fn list<'a>(
        &'a self,
        range: &'a Range,
        _at: Option<u64>,
    ) -> BoxFuture<'a, Result<Listing, CollectionError>> {
        let wanted =
            |object: &&Arc<Object>| range.namespace.as_ref().is_none_or(|only| *only == object.namespace);
        let objects = self.0.iter().filter(wanted).cloned().collect();
        Box::pin(async move { Ok(Listing::of(7, objects)) })
    }

    fn events(&self, _after: u64) -> Result<Box<dyn Events>, CollectionError> {
        Err(CollectionError::Gone)
    }
}

/// Serves the catalog on a free port.
pub(crate) async fn serve(options: ServerOptions) -> Serving {
    let serve = Arc::new(Serve::new(Arc::new(Fixed), ServeOptions::default()));
    let server = Server::bind(options).await.unwrap();
    server.serve(move |request: http::Request<bytes::Bytes>, _: ConnectionInfo| {
        let serve = serve.clone();
        async move { serve.read(&request.into_parts().0).await }
    })
}
