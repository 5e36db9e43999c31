//! What the past refuses, and in which words.

use kubediff_history::{Batch, History, Reader, Settings};
use serde_json::{Value, json};

use super::past::{Past, program};
use crate::page::browser::{self, Page};
use crate::queries::shop::Shop;

/// Method, path, code, reason, and a part of the message.
const REFUSALS: &[(&str, &str, u16, &str, &str)] = &[
    (
        "POST",
        "/api/v1/namespaces/shop/configmaps",
        405,
        "MethodNotAllowed",
        "prod as of 2026-03-01T14:45:00Z",
    ),
    (
        "PUT",
        "/api/v1/namespaces/shop/configmaps/app",
        405,
        "MethodNotAllowed",
        "nothing can be changed in the past",
    ),
    ("PATCH", "/api/v1/namespaces/shop/configmaps/app", 405, "MethodNotAllowed", "nothing can be changed"),
    ("DELETE", "/api/v1/namespaces/shop/configmaps/app", 405, "MethodNotAllowed", "nothing can be changed"),
    ("DELETE", "/api/v1/namespaces/shop/configmaps", 405, "MethodNotAllowed", "nothing can be changed"),
    (
        "PATCH",
        "/apis/apps/v1/namespaces/shop/deployments/cart?dryRun=All",
        405,
        "MethodNotAllowed",
        "`kubediff diff`",
    ),
    (
        "PUT",
        "/apis/apps/v1/namespaces/shop/deployments/cart/scale",
        405,
        "MethodNotAllowed",
        "nothing can be changed",
    ),
    (
        "POST",
        "/api/v1/namespaces/shop/pods/cart-a/eviction",
        405,
        "MethodNotAllowed",
        "nothing can be changed",
    ),
    ("POST", "/api/v1/namespaces", 405, "MethodNotAllowed", "nothing can be changed"),
    (
        "GET",
        "/api/v1/namespaces/shop/pods/cart-a/log",
        405,
        "MethodNotAllowed",
        "logs are not in the history",
    ),
    ("GET", "/api/v1/namespaces/shop/pods/cart-a/exec", 405, "MethodNotAllowed", "commands cannot be run"),
    ("POST", "/api/v1/namespaces/shop/pods/cart-a/exec", 405, "MethodNotAllowed", "commands cannot be run"),
    ("GET", "/api/v1/namespaces/shop/pods/cart-a/attach", 405, "MethodNotAllowed", "attached"),
    ("POST", "/api/v1/namespaces/shop/pods/cart-a/portforward", 405, "MethodNotAllowed", "ports of the past"),
    (
        "GET",
        "/api/v1/namespaces/shop/pods/cart-a/proxy/metrics",
        405,
        "MethodNotAllowed",
        "servers of the past",
    ),
    ("GET", "/api/v1/nodes/n1/proxy/stats", 405, "MethodNotAllowed", "servers of the past"),
    (
        "GET",
        "/apis/apps/v1/namespaces/shop/deployments/none",
        404,
        "NotFound",
        "deployments.apps \"none\" not found",
    ),
    ("GET", "/apis/batch/v1/jobs", 404, "", "404 page not found"),
    ("GET", "/api/v1/services", 404, "NotFound", "could not find the requested resource"),
    ("GET", "/apis/metrics.k8s.io/v1beta1/pods", 404, "", "404 page not found"),
    ("GET", "/api/v1/pods?labelSelector=a%3D%3D%3Db", 400, "BadRequest", "unable to parse requirement"),
    ("GET", "/api/v1/pods?fieldSelector=spec.nothing%3Da", 400, "BadRequest", "spec.nothing"),
    ("GET", "/api/v1/pods?continue=x", 400, "BadRequest", "continue"),
    ("GET", "/api/v1/pods?resourceVersion=10000000", 504, "Timeout", "Too large resource version"),
    ("GET", "/api/v1/pods?resourceVersion=1&resourceVersionMatch=Exact", 410, "Expired", "too old"),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 400, "BadRequest", "no object"),
];

#[test]
fn writes_and_what_needs_something_running_are_refused_in_words() {
    let shop = Shop::open();
    let past = Past::open(&shop.path, "14:45");
    for (method, path, code, reason, text) in REFUSALS {
        let answer = past.ask(method, path, "Content-Type: application/json\r\n", "");
        let status: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        assert_eq!(answer.status, *code, "{method} {path}: {}", answer.text);
        assert_eq!(status["reason"].as_str().unwrap_or_default(), *reason, "{method} {path}");
        let said = status["message"].as_str().unwrap_or(&answer.text);
        assert!(said.contains(text), "{method} {path}: {said}");
    }
    for token in ["0000", ""] {
        let other = past.ask_with(token, "GET", "/api/v1/secrets", "", "");
        assert_eq!((other.status, other.json()["reason"].as_str()), (401, Some("Unauthorized")));
    }
}

#[test]
fn what_was_not_watched_is_refused_with_the_reason() {
    let shop = Shop::open();
    let cluster = Reader::open(&shop.path).unwrap().cluster().unwrap();
    let mut history = History::open(&shop.path, &cluster, &Settings::default()).unwrap();
    let mut batch = Batch::default();
    batch.reached("deployments.apps", "1");
    batch.note("left/services", "2026-03-01T14:40:00Z");
    batch.note("open/persistentvolumes", "2026-03-01T14:30:00Z the server refuses it");
    batch.note("within", r#"{"namespaces":["hidden"]}"#);
    history.commit(&batch).unwrap();
    drop(history);
    let past = Past::open(&shop.path, "14:45");
    for (path, code, text) in [
        ("/apis/batch/v1/jobs", 403, "prod as of 2026-03-01T14:45:00Z: jobs.batch never watched"),
        ("/apis/batch/v1/namespaces/shop/jobs/one", 403, "jobs.batch never watched"),
        ("/api/v1/services", 403, "services not watched since 2026-03-01 14:40:00"),
        (
            "/api/v1/persistentvolumes",
            403,
            "persistentvolumes not watched since 2026-03-01 14:30:00: the server refuses it",
        ),
        // These are no resources of the server's own, or in another version than was watched.
        ("/api/v1/widgets", 404, "could not find the requested resource"),
        ("/apis/apps/v1beta1/deployments", 404, "could not find the requested resource"),
        ("/apis/metrics.k8s.io/v1beta1/pods", 404, "404 page not found"),
    ] {
        let answer = past.ask("GET", path, "", "");
        assert_eq!(answer.status, code, "{path}: {}", answer.text);
        assert!(answer.text.contains(text) && !answer.text.contains("hidden"), "{path}: {}", answer.text);
    }
}

#[test]
fn times_beyond_the_history_are_refused_with_what_it_covers() {
    let shop = Shop::open();
    for (time, code, text) in [
        ("13:00", 1, "nothing is known of 2026-03-01 13:00:00: the history covers 2026-03-01 13:59:00 to"),
        ("14:58", 1, "ask for a time in between, or for `now`, the last known state"),
        ("2027-01-01", 1, "is in the future"),
        ("#100000", 1, "the history has no record 100000: the last one is"),
        ("#x", 2, "`#x`"),
        ("soon", 2, "`soon` is no time"),
    ] {
        let output = program(&shop.path, time).args(["--", "true"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{time}: {said}");
        assert!(said.contains(text), "{time}: {said}");
    }
}

#[test]
fn an_address_has_a_time_that_stays_the_same() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, browser::NOW);
    for (time, code, text) in [
        ("2026-03-01T14:45:00Z", 200, "SecretList"),
        ("now", 200, "SecretList"),
        ("5", 200, "SecretList"),
        ("%235", 200, "SecretList"),
        ("14:45", 400, "the address /at/2026-03-01T14:45:00Z is that time"),
        ("-1h", 400, "/at/2026-03-01T14:00:00Z"),
        ("soon", 400, "write 2026-11-23T14:05:00Z, the number of a record, or now"),
        ("2026-03-01T13:00:00Z", 410, "the history covers"),
        ("2027-03-01T13:00:00Z", 400, "in the future"),
    ] {
        let answer = page.get(&format!("/at/{time}/api/v1/secrets"));
        // A kind that came later is none of discovery's.
        let is_known = answer.status != 404;
        assert!(is_known, "{time}");
        assert_eq!(answer.status, code, "{time}: {}", answer.text);
        assert!(answer.text.contains(text), "{time}: {}", answer.text);
    }
    // The page of the time is where it was.
    let html = page.get("/at/2026-03-01T14:45:00Z/");
    assert!(
        html.text.starts_with("<!doctype html>") || html.text.starts_with("<!DOCTYPE html>"),
        "{}",
        html.text
    );
}

#[test]
fn questions_of_clients_about_themselves_are_answered() {
    let shop = Shop::open();
    let past = Past::open(&shop.path, "14:45");
    let may = |verb: &str, group: &str, resource: &str| {
        let attributes = json!({"verb": verb, "group": group, "resource": resource, "namespace": "shop"});
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let answer = past.ask("POST", path, "Content-Type: application/json\r\n", &review.to_string());
        assert_eq!(answer.status, 201, "{}", answer.text);
        let status = answer.json()["status"].clone();
        (status["allowed"] == true, status["reason"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(may("list", "", "pods"), (true, String::new()));
    assert_eq!(may("watch", "apps", "deployments"), (true, String::new()));
    assert_eq!(may("delete", "", "pods"), (false, "this is the past: it can be read alone".to_owned()));
    assert!(!may("list", "batch", "jobs").0);
    let rules = past.ask(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        "Content-Type: application/json\r\n",
        r#"{"spec": {"namespace": "shop"}}"#,
    );
    assert!(rules.json()["status"]["resourceRules"].as_array().unwrap().len() > 4, "{}", rules.text);
}
