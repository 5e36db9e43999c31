//! Refusals, in the words of the real server.

use http::Method;
use serde_json::{Value, json};
use serve::{Reason, Status};
use testapi::faults::{Fault, Matcher, Refusal};
use testapi::{TestApi, Verb};

use crate::client::{Answer, Client, MAPS, get, request, start, start_with};

fn deployments() -> &'static str {
    "/apis/apps/v1/namespaces/shop/deployments"
}

async fn refused(api: &TestApi, refusal: Refusal, method: Method, path: &str) -> Answer {
    api.faults().on(Matcher::any()).once(Fault::Refuse(refusal));
    let body = if method == Method::GET { "" } else { "{}" };
    Client::connect(api).await.send(request(method, path, &[], body)).await.unwrap()
}

/// Code, reason, message and details.
async fn said(api: &TestApi, refusal: Refusal, method: Method, path: &str) -> (u16, String, String, Value) {
    let mut answer = refused(api, refusal, method, path).await;
    assert_eq!(answer.headers["content-type"], "application/json");
    let status = answer.json().await;
    assert_eq!((&status["kind"], &status["apiVersion"]), (&"Status".into(), &"v1".into()));
    assert_eq!(status["code"], answer.status.as_u16());
    let text = |name: &str| status[name].as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), text("reason"), text("message"), status["details"].clone())
}

#[tokio::test]
async fn the_words_are_those_of_the_real_server() {
    let api = start().await;
    let pod = "/api/v1/namespaces/default/pods/x";
    let cases = [
        (Refusal::Unauthorized, Method::GET, pod, 401, "Unauthorized", "Unauthorized", Value::Null),
        (
            Refusal::Forbidden,
            Method::GET,
            pod,
            403,
            "Forbidden",
            r#"pods "x" is forbidden: User "system:anonymous" cannot get resource "pods" in API group "" in the namespace "default""#,
            json!({ "name": "x", "kind": "pods" }),
        ),
        (
            Refusal::Forbidden,
            Method::GET,
            "/api/v1/pods?watch=1",
            403,
            "Forbidden",
            r#"pods is forbidden: User "system:anonymous" cannot watch resource "pods" in API group "" at the cluster scope"#,
            json!({ "kind": "pods" }),
        ),
        (
            Refusal::Forbidden,
            Method::GET,
            "/apis/apps/v1/namespaces/default/deployments/x/status",
            403,
            "Forbidden",
            r#"deployments.apps "x" is forbidden: User "system:anonymous" cannot get resource "deployments/status" in API group "apps" in the namespace "default""#,
            json!({ "name": "x", "group": "apps", "kind": "deployments" }),
        ),
        (
            Refusal::Forbidden,
            Method::GET,
            "/api/v1/namespaces/default",
            403,
            "Forbidden",
            r#"namespaces "default" is forbidden: User "system:anonymous" cannot get resource "namespaces" in API group "" in the namespace "default""#,
            json!({ "name": "default", "kind": "namespaces" }),
        ),
        (
            Refusal::Forbidden,
            Method::DELETE,
            "/api/v1/namespaces/default/pods",
            403,
            "Forbidden",
            r#"pods is forbidden: User "system:anonymous" cannot deletecollection resource "pods" in API group "" in the namespace "default""#,
            json!({ "kind": "pods" }),
        ),
        (
            Refusal::Forbidden,
            Method::GET,
            "/nix",
            403,
            "Forbidden",
            r#"forbidden: User "system:anonymous" cannot get path "/nix""#,
            json!({}),
        ),
        (
            Refusal::NotFound,
            Method::GET,
            "/api/v1/pods",
            404,
            "NotFound",
            "the server could not find the requested resource",
            json!({}),
        ),
        (
            Refusal::NotFound,
            Method::GET,
            pod,
            404,
            "NotFound",
            r#"pods "x" not found"#,
            json!({ "name": "x", "kind": "pods" }),
        ),
        (
            Refusal::Conflict,
            Method::PUT,
            pod,
            409,
            "Conflict",
            r#"Operation cannot be fulfilled on pods "x": the object has been modified; please apply your changes to the latest version and try again"#,
            json!({ "name": "x", "kind": "pods" }),
        ),
        (
            Refusal::Conflict,
            Method::POST,
            deployments(),
            409,
            "AlreadyExists",
            "deployments.apps already exists",
            json!({ "group": "apps", "kind": "deployments" }),
        ),
        (
            Refusal::Expired,
            Method::GET,
            "/api/v1/pods?watch=1&resourceVersion=7",
            410,
            "Expired",
            "too old resource version: 7 (8)",
            Value::Null,
        ),
        (
            Refusal::Expired,
            Method::GET,
            "/api/v1/pods?resourceVersion=7&resourceVersionMatch=Exact",
            410,
            "Expired",
            "The resourceVersion for the provided list is too old.",
            Value::Null,
        ),
        (
            Refusal::Expired,
            Method::GET,
            "/api/v1/pods?limit=5&continue=x",
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
            Value::Null,
        ),
        (
            Refusal::Invalid,
            Method::GET,
            "/api/v1/pods?watch=1&sendInitialEvents=true",
            422,
            "Invalid",
            r#"ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"#,
            json!({
                "group": "meta.k8s.io", "kind": "ListOptions", "causes": [{
                    "reason": "FieldValueForbidden",
                    "message": "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
                    "field": "sendInitialEvents",
                }],
            }),
        ),
        (
            Refusal::NotReady { retry_after: 3 },
            Method::GET,
            "/api/v1/pods",
            429,
            "TooManyRequests",
            "storage is (re)initializing",
            json!({ "retryAfterSeconds": 3 }),
        ),
        (
            Refusal::InternalError,
            Method::GET,
            "/api/v1/pods",
            500,
            "InternalError",
            "Internal error occurred: etcdserver: request timed out",
            json!({ "causes": [{ "message": "etcdserver: request timed out" }] }),
        ),
        (
            Refusal::Unavailable,
            Method::GET,
            "/api/v1/pods",
            503,
            "ServiceUnavailable",
            "apiserver is shutting down",
            Value::Null,
        ),
        (
            Refusal::Timeout,
            Method::GET,
            "/api/v1/pods",
            504,
            "Timeout",
            "Timeout: request did not complete within the allotted timeout",
            json!({}),
        ),
    ];
    for (refusal, method, path, code, reason, message, details) in cases {
        let told = said(&api, refusal, method, path).await;
        let expected = (code, reason.to_owned(), message.to_owned(), details);
        assert_eq!(told, expected, "{refusal:?} {path}");
    }
}

#[tokio::test]
async fn those_that_ask_for_patience_say_how_long() {
    let api = start().await;
    let cases = [
        (Refusal::TooManyRequests { retry_after: 5 }, "5"),
        (Refusal::NotReady { retry_after: 3 }, "3"),
        (Refusal::Unavailable, "1"),
    ];
    for (refusal, seconds) in cases {
        let answer = refused(&api, refusal, Method::GET, "/api/v1/pods").await;
        assert_eq!(answer.headers["retry-after"], seconds, "{refusal:?}");
    }
    let answer = refused(&api, Refusal::InternalError, Method::GET, "/api/v1/pods").await;
    assert!(!answer.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn an_overloaded_server_refuses_in_plain_text() {
    let api = start().await;
    let refusal = Refusal::TooManyRequests { retry_after: 1 };
    let mut answer = refused(&api, refusal, Method::GET, "/api/v1/pods").await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(answer.bytes().await.unwrap(), b"Too many requests, please try again later.\n");
}

#[tokio::test]
async fn a_script_may_refuse_in_its_own_words() {
    let api = start_with(1).await;
    let status = Status::new(Reason::Forbidden, "not on Sundays").about("", "configmaps", "a").retry_after(9);
    api.faults().on(Matcher::any().writing()).once(Fault::Answer(Box::new(status)));
    // Requests that read are not meant.
    assert_eq!(get(&api, MAPS).await.status, 200);
    let delete = request(Method::DELETE, &format!("{MAPS}/a"), &[], "");
    let mut answer = Client::connect(&api).await.send(delete).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.headers["retry-after"]), (403, &"9".parse().unwrap()));
    assert_eq!(answer.json().await["message"], "not on Sundays");
    assert_eq!(api.api().list(&crate::client::maps(), None).unwrap().len(), 1, "it was not deleted");
}

#[tokio::test]
async fn a_permission_comes_and_goes() {
    let api = TestApi::builder().token("t", "jane").token("u", "root").start().await.unwrap();
    let ask = async |token: &str, path: &str| {
        let bearer = format!("Bearer {token}");
        let request = request(Method::GET, path, &[("authorization", &bearer)], "");
        Client::connect(&api).await.send(request).await.unwrap().status.as_u16()
    };
    let denied = api.faults().deny(Verb::List.of("configmaps").by_user("jane"));
    assert_eq!(ask("t", MAPS).await, 403);
    assert_eq!(ask("u", MAPS).await, 200);
    assert_eq!(ask("t", "/api/v1/pods").await, 200);
    denied.disarm();
    assert_eq!(ask("t", MAPS).await, 200);
}
