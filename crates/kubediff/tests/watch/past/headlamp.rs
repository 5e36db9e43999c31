//! Headlamp on the past: the requests of its page for a pod, in the order of the page. They are those of its source at commit 6d2b42cc
//! (2026-08-21, `frontend/src/lib/k8s`); the page itself was not run.

use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use kube_client::Client;
use kube_client::client::Body;
use serde_json::{Value, json};

use super::Town;
use super::commands::{furnished, lists};
use crate::viewers::send;

const DISCOVERY: &str = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList";
/// The lists of its overview, its sidebar and its map, of one namespace or of all.
const LISTS: &[&str] = &[
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/pods",
    "/api/v1/events",
    "/api/v1/services",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/persistentvolumeclaims",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/daemonsets",
    "/apis/batch/v1/jobs",
    "/apis/batch/v1/cronjobs",
    "/apis/networking.k8s.io/v1/ingresses",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
];

/// An answer; text where it is not JSON.
async fn ask(
    client: &Client,
    method: Method,
    path: &str,
    accept: &str,
    body: Option<Value>,
) -> (StatusCode, Value) {
    let mut request = Request::builder().method(method).uri(path).header("accept", accept);
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string().into_bytes()));
    let response = client.send(request.body(body).unwrap()).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = || String::from_utf8_lossy(&bytes).into_owned();
    (status, serde_json::from_slice(&bytes).unwrap_or_else(|_| text().into()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_of_headlamp_are_answered() {
    let name = "the_requests_of_headlamp_are_answered";
    let Some(server) = control_plane::shared_or_skip(name) else { return };
    let mut town = Town::open(server, "past-headlamp").await;
    town.record().await;
    furnished(&town).await;
    let then = town.recorded(&lists(&town)).await.to_string();
    let pod = format!("/api/v1/namespaces/{}/pods/web-1", town.namespace);
    send(&town.admin, "DELETE", &pod, json!({"gracePeriodSeconds": 0})).await;
    town.recorded(&lists(&town)).await;
    let past = town.server_of(&then);
    let client = past.client().await;
    let get = async |path: &str| ask(&client, Method::GET, path, "application/json", None).await;
    let post = async |path: &str, body: Value| {
        ask(&client, Method::POST, path, "application/json", Some(body)).await
    };

    // Whether the login works, who it is, whether the cluster is well, and what it is.
    let rules = json!({"spec": {"namespace": "default"}});
    let (status, rules) = post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules).await;
    let reads = rules["status"]["resourceRules"].as_array().unwrap();
    assert!(status == StatusCode::CREATED && reads.iter().any(|it| it["resources"][0] == "pods"), "{rules}");
    let me = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let (status, me) = post("/apis/authentication.k8s.io/v1/selfsubjectreviews", me).await;
    assert!(status == StatusCode::CREATED && me["status"]["userInfo"]["username"].is_string(), "{me}");
    assert_eq!(get("/healthz").await, (StatusCode::OK, "ok".into()));
    assert!(get("/version").await.1["gitVersion"].as_str().unwrap().starts_with('v'));
    for path in ["/api", "/apis"] {
        let (status, found) = ask(&client, Method::GET, path, DISCOVERY, None).await;
        assert_eq!((status, &found["kind"]), (StatusCode::OK, &"APIGroupDiscoveryList".into()), "{path}");
    }

    for path in LISTS {
        let (status, list) = get(&format!("{path}?limit=1000")).await;
        let is_list = list["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        assert!(status == StatusCode::OK && is_list, "{path}: {status} {list}");
    }
    // The page shows lists without figures where there are none.
    assert_eq!(get("/apis/metrics.k8s.io/v1beta1/nodes").await.0, StatusCode::NOT_FOUND);

    // The page of a pod that is gone now, with its events, and the watch by WebSocket, which is not served: the page stays as it is.
    let (_, found) = get(&pod).await;
    assert_eq!(found["metadata"]["name"], "web-1");
    let events = format!("/api/v1/namespaces/{}/events?fieldSelector=", town.namespace);
    let about = "involvedObject.kind%3DPod%2CinvolvedObject.name%3Dweb-1";
    assert_eq!(get(&format!("{events}{about}")).await.1["items"][0]["reason"], "Scheduled");
    let watch = format!(
        "/api/v1/namespaces/{}/pods?watch=1&fieldSelector=metadata.name%3Dweb-1&resourceVersion={}",
        town.namespace,
        found["metadata"]["resourceVersion"].as_str().unwrap()
    );
    let upgrade = Request::get(&watch)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", "base64.binary.k8s.io");
    let answer = client.send(upgrade.body(Body::empty()).unwrap()).await.unwrap();
    assert_ne!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);

    // Its buttons are there for what may be done: nothing may be changed, and a pod of the past has no logs.
    for (verb, below, may) in [
        ("get", "", true),
        ("list", "", true),
        ("update", "", false),
        ("patch", "", false),
        ("delete", "", false),
        ("get", "log", false),
        ("create", "exec", false),
    ] {
        let of = json!({"verb": verb, "group": "", "version": "v1", "resource": "pods", "subresource": below, "namespace": town.namespace});
        let review = json!({
            "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"resourceAttributes": of},
        });
        let (status, review) = post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).await;
        assert_eq!(
            (status, &review["status"]["allowed"]),
            (StatusCode::CREATED, &may.into()),
            "{verb} {below}"
        );
    }
    let (status, refusal) = get(&format!("{pod}/log?container=web&tailLines=100")).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(refusal["message"].as_str().unwrap().ends_with("logs are not in the history"), "{refusal}");
    town.close().await;
}
