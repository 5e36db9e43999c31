//! Discovery and OpenAPI in the words of a real server (a kube-apiserver 1.36).

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, VARY};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use serve::{Serve, ServeOptions};
use std::sync::Arc;

use crate::fixture::Fixed;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_BETA: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

async fn get(path: &str, headers: &[(http::HeaderName, &str)]) -> (StatusCode, HeaderMap, String) {
    let mut request = Request::get(path).header("host", "127.0.0.1:6443");
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let serve = Serve::new(Arc::new(Fixed), ServeOptions::default());
    let answer = serve.read(&request.body(()).unwrap().into_parts().0).await;
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
}

async fn json_of(path: &str) -> Value {
    let (code, headers, text) = get(path, &[]).await;
    assert_eq!(code, StatusCode::OK, "{path}: {text}");
    assert_eq!(headers[CONTENT_TYPE], "application/json", "{path}");
    assert_eq!(headers[CACHE_CONTROL], "no-cache, private", "{path}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn groups_and_versions_are_told_in_their_order() {
    assert_eq!(
        json_of("/api").await,
        json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]})
    );
    let apps = json!({
        "name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}});
    let shop = json!({
        "name": "shop.example.com",
        "versions": [{"groupVersion": "shop.example.com/v1", "version": "v1"},
                     {"groupVersion": "shop.example.com/v1beta1", "version": "v1beta1"}],
        "preferredVersion": {"groupVersion": "shop.example.com/v1", "version": "v1"}});
    let expected = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [apps, shop]});
    assert_eq!(json_of("/apis").await, expected);
    assert_eq!(json_of("/apis/").await, expected);
    let mut one = shop;
    one["kind"] = "APIGroup".into();
    one["apiVersion"] = "v1".into();
    assert_eq!(json_of("/apis/shop.example.com").await, one);
}

#[tokio::test]
async fn resources_are_told_with_what_is_below_them_and_the_hashes_of_a_real_server() {
    let verbs = json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
    let core = json_of("/api/v1").await;
    assert_eq!(
        core,
        json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
            {"name": "bindings", "singularName": "binding", "namespaced": true, "kind": "Binding", "verbs": ["create"]},
            {"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": verbs,
             "shortNames": ["po"], "categories": ["all"], "storageVersionHash": "xPOwRZ+Yhw8="},
            {"name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": "v1",
             "kind": "Eviction", "verbs": ["create"]},
            {"name": "pods/status", "singularName": "", "namespaced": true, "kind": "Pod",
             "verbs": ["get", "patch", "update"]},
        ]})
    );
    let shop = json_of("/apis/shop.example.com/v1beta1").await;
    assert_eq!(shop["apiVersion"], "v1");
    assert_eq!(shop["resources"][0]["storageVersionHash"], "1eOuwF5L+ZU=", "of v1, which is stored");
}

#[tokio::test]
async fn aggregated_discovery_says_everything_once_and_then_that_nothing_changed() {
    let (code, headers, text) = get("/apis", &[(ACCEPT, AGGREGATED)]).await;
    assert_eq!(code, StatusCode::OK);
    assert_eq!(headers[CONTENT_TYPE], AGGREGATED);
    assert_eq!(
        (&headers[CACHE_CONTROL], &headers[VARY]),
        (&"public".parse().unwrap(), &"Accept".parse().unwrap())
    );
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
    assert_eq!(list["items"][0]["metadata"], json!({"name": "apps"}));
    let deployments = &list["items"][0]["versions"][0];
    assert_eq!(deployments["freshness"], "Current");
    assert_eq!(
        deployments["resources"][0]["responseKind"],
        json!({"group": "", "version": "", "kind": "Deployment"})
    );
    assert_eq!(deployments["resources"][0]["scope"], "Namespaced");
    let widgets = &list["items"][1]["versions"][1]["resources"][0];
    let kind = json!({"group": "shop.example.com", "version": "v1beta1", "kind": "Widget"});
    assert_eq!(widgets["responseKind"], kind, "custom resources say their group");

    let tag = headers[ETAG].to_str().unwrap();
    assert_eq!(tag.len(), 130, "a hash in quotes: {tag}");
    let (code, headers, text) = get("/apis", &[(ACCEPT, AGGREGATED), (IF_NONE_MATCH, tag)]).await;
    assert_eq!((code, text.as_str()), (StatusCode::NOT_MODIFIED, ""));
    assert_eq!(headers[ETAG], tag);

    let (_, _, text) = get("/api", &[(ACCEPT, AGGREGATED)]).await;
    let core: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(core["items"][0]["metadata"], json!({}));
    let eviction = &core["items"][0]["versions"][0]["resources"][1]["subresources"][0];
    let kind = json!({"group": "policy", "version": "v1", "kind": "Eviction"});
    assert_eq!(eviction["responseKind"], kind);
}

#[tokio::test]
async fn the_form_of_discovery_is_what_the_client_takes() {
    let all = format!("{AGGREGATED},{AGGREGATED_BETA},application/json");
    let (_, headers, _) = get("/apis", &[(ACCEPT, &all)]).await;
    assert_eq!(headers[CONTENT_TYPE], AGGREGATED);
    let (code, headers, text) =
        get("/apis", &[(ACCEPT, &format!("{AGGREGATED_BETA},application/json"))]).await;
    assert_eq!((code, &headers[CONTENT_TYPE]), (StatusCode::OK, &"application/json".parse().unwrap()));
    assert!(text.contains("APIGroupList"), "{text}");
    for refused in [AGGREGATED_BETA, "text/html"] {
        let (code, _, text) = get("/apis", &[(ACCEPT, refused)]).await;
        assert_eq!(code, StatusCode::NOT_ACCEPTABLE, "{refused}: {text}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_told_as_a_page_or_as_a_status() {
    for path in ["/nope", "/apis/nope", "/apis/nope/v1", "/apis/shop.example.com/v9", "/healthz/", "/openapi"]
    {
        let (code, headers, text) = get(path, &[]).await;
        assert_eq!((code, text.as_str()), (StatusCode::NOT_FOUND, "404 page not found\n"), "{path}");
        assert_eq!(headers[CONTENT_TYPE], "text/plain; charset=utf-8", "{path}");
    }
    for path in ["/apis/apps/v9", "/api/v2"] {
        let (code, _, text) = get(path, &[]).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(code, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(status["message"], "the server could not find the requested resource", "{path}");
        assert_eq!(status["details"], json!({}), "{path}");
    }
}

#[tokio::test]
async fn a_server_says_that_it_is_well_and_what_it_is() {
    for path in ["/healthz", "/livez", "/readyz", "/healthz/ping"] {
        let (code, _, text) = get(path, &[]).await;
        assert_eq!((code, text.as_str()), (StatusCode::OK, "ok"), "{path}");
    }
    let version = json_of("/version").await;
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
    assert_eq!(version["gitVersion"], "v1.36.3");
    let paths = json_of("/").await;
    let paths: Vec<&str> =
        paths["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert!(paths.is_sorted(), "{paths:?}");
    for path in ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/openapi/v3", "/version"] {
        assert!(paths.contains(&path), "{path} of {paths:?}");
    }
}

#[tokio::test]
async fn openapi_says_what_kubectl_asks_of_it() {
    let index = json_of("/openapi/v3").await;
    let url = index["paths"]["apis/shop.example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    assert!(url.starts_with("/openapi/v3/apis/shop.example.com/v1?hash="), "{url}");
    assert!(index["paths"]["api/v1"].is_object());

    let document = json_of(url).await;
    assert_eq!(document["openapi"], "3.0.0");
    let path = "/apis/shop.example.com/v1/namespaces/{namespace}/widgets/{name}";
    let patch = &document["paths"][path]["patch"];
    assert_eq!(patch["x-kubernetes-action"], "patch");
    let kind = json!({"group": "shop.example.com", "version": "v1", "kind": "Widget"});
    assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
    let parameters: Vec<&Value> =
        patch["parameters"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(parameters, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let schema = "#/components/schemas/com.example.shop.v1.Widget";
    assert_eq!(
        document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"],
        schema
    );

    let (code, ..) = get("/openapi/v3/apis/nope/v1", &[]).await;
    assert_eq!(code, StatusCode::NOT_FOUND);
    let (code, ..) = get(url, &[(ACCEPT, "text/html")]).await;
    assert_eq!(code, StatusCode::NOT_ACCEPTABLE);
}
