//! F11: resources by the names that kubectl takes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use informer::transport::{Response, Transport, TransportError};
use informer::{Catalog, DiscoveryError, Object, SharedInformerFactory};
use serde_json::{Value, json};

use super::server::Server;
use super::support::{LONG, until};

/// Answers each path with a document, and 404 to all others.
#[derive(Clone, Default)]
struct Documents {
    /// By path, and whether this is for those that take aggregated documents.
    answers: BTreeMap<(&'static str, bool), (u16, Value)>,
    /// The requests, and the refreshes of credentials.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Documents {
    fn answer(&mut self, path: &'static str, aggregated: bool, code: u16, document: Value) {
        self.answers.insert((path, aggregated), (code, document));
    }

    fn factory(&self) -> SharedInformerFactory {
        SharedInformerFactory::builder_with_transport(self.clone()).user_agent("me/1").build().unwrap()
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Transport for Documents {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        assert_eq!(request.headers()["user-agent"], "me/1");
        let accept = request.headers()["accept"].to_str().unwrap();
        let path = request.uri().path();
        self.asked.lock().unwrap().push(path.to_owned());
        let aggregated = accept.contains("g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
        let answer = |aggregated| {
            self.answers
                .iter()
                .find(|((known, form), _)| *known == path && *form == aggregated)
                .map(|it| it.1)
        };
        let found = answer(aggregated).or_else(|| answer(false)).cloned();
        let (code, body) = found.unwrap_or_else(|| (404, super::server::status(404, "NotFound")));
        let (head, ()) = http::Response::builder().status(code).body(()).unwrap().into_parts();
        let body = stream::iter([Ok(body.to_string().into())]).boxed();
        async move { Ok(Response { head, body }) }.boxed()
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        self.asked.lock().unwrap().push("REFRESH".to_owned());
        async { Ok(()) }.boxed()
    }
}

const WATCHABLE: [&str; 3] = ["get", "list", "watch"];

/// Plural, kind, short name, category, whether it has namespaces, verbs.
type Row = (&'static str, &'static str, &'static str, &'static str, bool, &'static [&'static str]);

/// By group, and by version from the preferred one on.
type Version = (&'static str, Vec<Row>);

fn world() -> Vec<(&'static str, Vec<Version>)> {
    let core: Vec<Row> = vec![
        ("pods", "Pod", "po", "all", true, &WATCHABLE),
        ("bindings", "Binding", "", "", true, &["create"]),
        ("events", "Event", "ev", "", true, &WATCHABLE),
        ("nodes", "Node", "no", "", false, &WATCHABLE),
    ];
    let pods: fn() -> Vec<Row> = || vec![("pods", "Pod", "", "", true, &WATCHABLE)];
    vec![
        ("", vec![("v1", core)]),
        ("apps", vec![("v1", vec![("deployments", "Deployment", "deploy", "all", true, &WATCHABLE)])]),
        ("events.k8s.io", vec![("v1", vec![("events", "Event", "ev", "", true, &WATCHABLE)])]),
        ("example.com", vec![("v2", pods()), ("v1", pods())]),
    ]
}

fn not_empty(text: &str) -> Vec<&str> {
    if text.is_empty() { vec![] } else { vec![text] }
}

fn aggregated() -> Documents {
    let groups = world().into_iter().map(|(group, versions)| {
        let versions = versions.into_iter().map(|(version, rows)| {
            let resources = rows.into_iter().map(|(plural, kind, short, category, namespaced, verbs)| {
                json!({
                    "resource": plural, "responseKind": { "group": group, "version": version, "kind": kind },
                    "scope": if namespaced { "Namespaced" } else { "Cluster" },
                    "singularResource": kind.to_lowercase(), "verbs": verbs, "shortNames": not_empty(short),
                    "categories": not_empty(category),
                    "subresources": [{ "subresource": "status", "verbs": ["get"] }],
                })
            });
            json!({ "version": version, "freshness": "Current", "resources": resources.collect::<Vec<_>>() })
        });
        json!({ "metadata": { "name": group }, "versions": versions.collect::<Vec<_>>() })
    });
    let mut groups: Vec<Value> = groups.collect();
    let list = |items: Vec<Value>| json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items });
    let mut documents = Documents::default();
    documents.answer("/api", true, 200, list(groups.drain(..1).collect()));
    documents.answer("/apis", true, 200, list(groups));
    documents
}

fn legacy() -> Documents {
    let mut documents = Documents::default();
    documents.answer("/api", false, 200, json!({ "kind": "APIVersions", "versions": ["v1"] }));
    let groups = world().into_iter().skip(1).map(|(group, versions)| {
        let version =
            |version: &str| json!({ "groupVersion": format!("{group}/{version}"), "version": version });
        // In another order than that of preference.
        let all: Vec<_> = versions.iter().rev().map(|(name, _)| version(name)).collect();
        json!({ "name": group, "versions": all, "preferredVersion": version(versions[0].0) })
    });
    let groups = json!({ "kind": "APIGroupList", "groups": groups.collect::<Vec<_>>() });
    documents.answer("/apis", false, 200, groups);
    for (group, versions) in world() {
        for (version, rows) in versions {
            let mut resources: Vec<_> = rows
                .into_iter()
                .map(|(plural, kind, short, category, namespaced, verbs)| {
                    json!({
                        "name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind,
                        "verbs": verbs, "shortNames": not_empty(short), "categories": not_empty(category),
                    })
                })
                .collect();
            resources
                .push(json!({ "name": "pods/status", "kind": "Pod", "namespaced": true, "verbs": ["get"] }));
            let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
            let path: &'static str = format!("{root}/{version}").leak();
            documents.answer(path, false, 200, json!({ "kind": "APIResourceList", "resources": resources }));
        }
    }
    documents
}

async fn both() -> [Catalog; 2] {
    [aggregated().factory().catalog().await.unwrap(), legacy().factory().catalog().await.unwrap()]
}

#[tokio::test]
async fn f11_names_as_kubectl_takes_them() {
    for catalog in both().await {
        let named = |name: &str| catalog.resource(name).unwrap().to_string();
        for name in [
            "deploy",
            "deployment",
            "deployments",
            "Deployment",
            "deployments.apps",
            "deploy.apps",
            "Deployment.v1.apps",
            "apps/v1/deployments",
        ] {
            assert_eq!(named(name), "deployments.v1.apps", "{name}");
        }
        // The core group and the preferred version come first.
        for name in ["pods", "po", "v1/pods", "pods.v1."] {
            assert_eq!(named(name), "pods.v1", "{name}");
        }
        assert_eq!(named("pods.example.com"), "pods.v2.example.com");
        assert_eq!(named("pods.v1.example.com"), "pods.v1.example.com");
        assert!(
            !catalog.resource("nodes").unwrap().namespaced && catalog.resource("pods").unwrap().namespaced
        );
        let all: Vec<_> = catalog.resources().map(informer::ResourceType::qualified_name).collect();
        let everything =
            ["pods", "events", "nodes", "deployments.apps", "events.events.k8s.io", "pods.example.com"];
        assert_eq!(all, everything);
        let several = catalog.named("all,po,,nodes").unwrap();
        let several: Vec<_> = several.iter().map(ToString::to_string).collect();
        assert_eq!(several, ["pods.v1", "deployments.v1.apps", "nodes.v1"]);
        assert!(catalog.unavailable().is_empty());
    }
}

#[tokio::test]
async fn f11_an_unknown_name_is_refused_with_names_like_it() {
    for catalog in both().await {
        let unknown = |name: &str| catalog.resource(name).unwrap_err();
        assert!(unknown("deplyo").is_unknown());
        for name in ["deplyo", "depl", "ployment"] {
            assert_eq!(unknown(name).similar(), ["deployments.apps"], "{name}");
        }
        assert_eq!(
            unknown("deploymentz").to_string(),
            "the server has no resource `deploymentz` that can be watched; did you mean deployments.apps?"
        );
        assert_eq!(unknown("apps/v2/deployments").similar(), ["deployments.apps"]);
        assert!(unknown("bindings").is_unknown(), "it cannot be watched");
        assert!(unknown("zzz").to_string().ends_with("name one as in `deployments.apps`"));
    }
}

#[tokio::test]
async fn f11_an_informer_by_name_is_the_one_by_type() {
    let documents = aggregated();
    let factory = documents.factory();
    let named = factory.informer_named::<Object>("deploy").await.unwrap();
    let typed = factory.informer::<k8s_openapi::api::apps::v1::Deployment>();
    assert_eq!(named.resource(), typed.resource());
    named.start();
    assert_ne!(typed.status(), informer::Status::NotStarted);
    assert_eq!(documents.asked()[..2], ["/api", "/apis"]);
    assert!(factory.informer_named::<Object>("zzz").await.unwrap_err().is_unknown());
}

/// Discovery as documents that may change, and a server for all else.
#[derive(Clone)]
struct Discoverable(Server, Arc<Mutex<Documents>>);

impl Transport for Discoverable {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        match request.uri().path() {
            "/api" | "/apis" => self.1.lock().unwrap().send(request),
            _ => self.0.send(request),
        }
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        self.0.refresh_credentials()
    }
}

#[tokio::test(start_paused = true)]
async fn f11_an_informer_stays_with_its_version_while_that_is_served() {
    let server = Server::new();
    server.set_schema("apis/example.com/v1", "A");
    server.define("pods", "Pod");
    let documents = Arc::new(Mutex::new(aggregated()));
    let transport = Discoverable(server.clone(), documents.clone());
    let factory =
        SharedInformerFactory::builder_with_transport(transport).user_agent("me/1").build().unwrap();
    let informer = factory.informer_named::<Object>("example.com/v1/pods").await.unwrap();
    informer.start();
    informer.wait_for_sync(LONG).await.unwrap();
    documents.lock().unwrap().asked();
    // The server prefers v2, and any change of the schema makes the informer ask discovery.
    server.set_schema("apis/example.com/v1", "B");
    let discoveries = || documents.lock().unwrap().asked.lock().unwrap().len();
    until("discovery is asked", || discoveries() == 2).await;
    until("the list for the schema", || server.count("LIST /apis/example.com/v1/pods") == 2).await;
    assert_eq!(informer.resource().version, "v1");
    assert_eq!(server.count("LIST /apis/example.com/v2"), 0);

    // No longer served: the preferred version takes its place.
    let Documents { answers, asked } = aggregated();
    let without = |document: &Value| {
        let mut document = document.clone();
        for group in document["items"].as_array_mut().unwrap() {
            let is_example = group["metadata"]["name"] == "example.com";
            let versions = group["versions"].as_array_mut().unwrap();
            versions.retain(|version| !is_example || version["version"] == "v2");
        }
        document
    };
    let answers =
        answers.iter().map(|(path, (code, document))| (*path, (*code, without(document)))).collect();
    *documents.lock().unwrap() = Documents { answers, asked };
    server.deny("pods", 404, "NotFound");
    until("it is missed", || informer.resource().version == "v2").await;
    server.allow("pods");
    until("the list of v2", || server.count("LIST /apis/example.com/v2/pods") > 0).await;
}

/// One API server behind the server is down: its resources are unknown, the others are not.
#[tokio::test]
async fn f11_what_is_not_available_is_left_out_and_named() {
    let mut documents = legacy();
    documents.answer("/apis/example.com/v1", false, 503, super::server::status(503, "ServiceUnavailable"));
    documents.answer("/apis/example.com/v2", false, 404, super::server::status(404, "NotFound"));
    let catalog = documents.factory().catalog().await.unwrap();
    assert_eq!(catalog.unavailable(), ["example.com/v2", "example.com/v1"]);
    assert_eq!(catalog.resources().count(), 5);
    let error = catalog.resource("pods.example.com").unwrap_err();
    assert!(
        error.to_string().ends_with("It did not report its resources in example.com/v2, example.com/v1"),
        "{error}"
    );

    let stale = json!({ "kind": "APIGroupDiscoveryList", "items": [
        { "metadata": { "name": "metrics.k8s.io" }, "versions": [{ "version": "v1", "freshness": "Stale" }] },
    ] });
    let mut documents = aggregated();
    documents.answer("/apis", true, 200, stale);
    assert_eq!(documents.factory().catalog().await.unwrap().unavailable(), ["metrics.k8s.io/v1"]);
}

#[tokio::test(start_paused = true)]
async fn f11_a_server_that_does_not_say_is_an_error_of_its_own() {
    let failed = async |documents: &Documents| -> DiscoveryError {
        let error = documents.factory().resource("pods").await.unwrap_err();
        assert!(!error.is_unknown(), "{error}");
        error
    };
    let mut documents = aggregated();
    documents.answer("/api", true, 401, super::server::status(401, "Unauthorized"));
    let error = informer::error_chain(&failed(&documents).await);
    assert!(error.contains("Unauthorized"), "{error}");
    assert_eq!(documents.asked(), ["/api", "REFRESH", "/api"], "credentials are read again once");
    let mut documents = aggregated();
    documents.answer("/apis", true, 200, json!({ "kind": "Table" }));
    assert!(failed(&documents).await.to_string().contains("is undecodable"));
    let mut documents = legacy();
    documents.answer("/api/v1", false, 200, json!("?"));
    assert!(failed(&documents).await.to_string().contains("is undecodable"));
}
