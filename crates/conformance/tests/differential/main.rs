//! The embedded server is right because the real one says so: both are asked the same, and what they answer is compared.
//!
//! Scripts are drawn from seeds. `INFORMER_DIFFERENTIAL_SEEDS=17..18` runs some of them alone; of a script that is run
//! alone, all requests before the first difference are told.

#![expect(clippy::expect_used, clippy::panic, reason = "a test may stop at a surprise, its helpers too")]

mod cluster;
mod explained;
mod normal;
mod protobuf;
mod rarer;
mod request;
mod run;
mod script;

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use conformance::{Kind, Needs, Rig};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};

use request::{Answer, Body, Request};
use script::Templates;

/// Hundreds of scripts, thousands of requests.
const SEEDS: Range<u64> = 0..375;

/// Every so many scripts is one about the server, the others are about objects.
const ABOUT_THE_SERVER: u64 = 5;

/// The number of scripts at once: most of the time is spent waiting for watches to end.
const AT_ONCE: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_servers_answer_the_same() {
    let seeds = seeds();
    let Some(real) = Rig::own(Kind::Real, "differential", Needs::default()).await else { return };
    let Some(embedded) = Rig::own(Kind::TestApi, "differential", Needs::default()).await else { return };
    let templates = Arc::new(templates(&real).await);
    for rig in [&real, &embedded] {
        rig.define(&widgets()).await;
    }
    println!("seeds {seeds:?}");
    let mut compared = stream::iter(seeds.clone())
        .map(|seed| {
            let (templates, real, embedded) = (templates.clone(), &real, &embedded);
            async move {
                let namespace = format!("script-{seed}");
                let script = script_of(seed, &templates);
                real.add_namespace(&namespace).await;
                embedded.add_namespace(&namespace).await;
                let (real, embedded) = (real.client(), embedded.client());
                let (truth, ours) = tokio::join!(
                    run::run(&real, &namespace, &script),
                    run::run(&embedded, &namespace, &script)
                );
                (seed, script, normal::normal(&namespace, truth), normal::normal(&namespace, ours))
            }
        })
        .buffer_unordered(AT_ONCE);
    let (mut requests, mut differences, mut report) = (0, 0, String::new());
    while let Some((seed, script, truth, ours)) = compared.next().await {
        requests += script.len();
        for (number, ((request, truth), ours)) in script.iter().zip(&truth).zip(&ours).enumerate() {
            let (truth, ours) = explained::strip(request, truth, ours);
            if truth != ours {
                differences += 1;
                if differences <= 30 {
                    if seeds.end - seeds.start == 1 {
                        report.extend(
                            script[..number]
                                .iter()
                                .enumerate()
                                .map(|(at, request)| format!("\nrequest {at}: {request}")),
                        );
                    }
                    describe(&mut report, seed, number, request, &truth, &ours);
                }
                // The rest of this script depends on it.
                break;
            }
        }
    }
    println!("{requests} requests in {} scripts", seeds.end - seeds.start);
    assert!(differences == 0, "{differences} scripts with a difference; the first:\n{report}");
}

fn script_of(seed: u64, templates: &Templates) -> Vec<Request> {
    let mut script = if seed % ABOUT_THE_SERVER == ABOUT_THE_SERVER - 1 {
        cluster::script(seed)
    } else {
        script::script(seed, templates)
    };
    protobuf::ask(seed, &mut script);
    script
}

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("INFORMER_DIFFERENTIAL_SEEDS") else { return SEEDS };
    let (start, end) = text.split_once("..").expect("INFORMER_DIFFERENTIAL_SEEDS is A..B");
    let seeds = start.parse().expect("a number")..end.parse().expect("a number");
    assert!(!seeds.is_empty(), "INFORMER_DIFFERENTIAL_SEEDS={text} has no seed: nothing would be compared");
    seeds
}

fn describe(report: &mut String, seed: u64, number: usize, request: &Request, truth: &Answer, ours: &Answer) {
    let _ = writeln!(report, "\nseed {seed}, request {number}: {request}");
    if truth.status != ours.status || truth.content_type != ours.content_type {
        let _ = writeln!(
            report,
            "  real: {} {}\n  ours: {} {}",
            truth.status, truth.content_type, ours.status, ours.content_type
        );
    }
    match (&truth.body, &ours.body) {
        // Of a refusal and an object everything differs.
        (Body::Json(truth), Body::Json(ours)) if truth["kind"] != ours["kind"] => {
            let said = |answer: &Value| text(answer.get("message").or_else(|| answer.get("kind")));
            let _ = writeln!(report, "  real: {}\n  ours: {}", said(truth), said(ours));
        }
        (Body::Json(truth), Body::Json(ours)) => differences(report, "", truth, ours),
        (Body::Events(truth), Body::Events(ours)) => {
            for (at, pair) in zip_longest(truth, ours).enumerate() {
                differences(report, &format!("event {at}: "), pair.0, pair.1);
            }
        }
        (truth, ours) if truth != ours => {
            let _ = writeln!(report, "  real: {truth:?}\n  ours: {ours:?}");
        }
        _ => {}
    }
}

/// The places where two documents differ.
fn differences(report: &mut String, path: &str, truth: &Value, ours: &Value) {
    match (truth, ours) {
        (Value::Object(truth), Value::Object(ours)) => {
            let names: std::collections::BTreeSet<_> = truth.keys().chain(ours.keys()).collect();
            for name in names {
                let (truth, ours) = (truth.get(name), ours.get(name));
                if truth != ours {
                    match (truth, ours) {
                        (Some(truth), Some(ours)) => {
                            differences(report, &format!("{path}/{name}"), truth, ours)
                        }
                        (truth, ours) => {
                            let _ = writeln!(
                                report,
                                "  {path}/{name}\n    real: {}\n    ours: {}",
                                text(truth),
                                text(ours)
                            );
                        }
                    }
                }
            }
        }
        (Value::Array(truth), Value::Array(ours)) => {
            for (at, pair) in zip_longest(truth, ours).enumerate() {
                differences(report, &format!("{path}/{at}"), pair.0, pair.1);
            }
        }
        (truth, ours) if truth != ours => {
            let _ = writeln!(report, "  {path}\n    real: {truth}\n    ours: {ours}");
        }
        _ => {}
    }
}

fn text(value: Option<&Value>) -> String {
    value.map_or("(nothing)".to_owned(), Value::to_string)
}

fn zip_longest<'a>(one: &'a [Value], other: &'a [Value]) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    const NOTHING: &Value = &Value::Null;
    (0..one.len().max(other.len()))
        .map(|at| (one.get(at).unwrap_or(NOTHING), other.get(at).unwrap_or(NOTHING)))
}

/// The answers of the real server to a short deployment and a short pod.
async fn templates(real: &Rig) -> Templates {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "template" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "nginx:1" }] },
            },
        },
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "template" },
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{ "name": "web", "image": "nginx:1" }],
        },
    });
    let post =
        |path: &str, body: &Value| Request::new(http::Method::POST, path).query("dryRun", "All").body(body);
    let script = [
        post("/apis/apps/v1/namespaces/{ns}/deployments", &deployment),
        post("/api/v1/namespaces/{ns}/pods", &pod),
    ];
    let answers = run::run(&real.client(), real.namespace(), &script).await;
    let [deployment, pod] = answers.try_into().expect("two answers");
    let object = |answer: Answer| match answer.body {
        Body::Json(json) if answer.status == 201 => json,
        body => panic!("{}: {body:?}", answer.status),
    };
    Templates { deployment: object(deployment), pod: object(pod) }
}

/// A custom resource with a schema, lists with keys, a status and a scale.
fn widgets() -> Value {
    json!({
        "metadata": { "name": "widgets.diff.example.com" },
        "spec": {
            "group": "diff.example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.ready" },
                },
                "additionalPrinterColumns": [{ "name": "Size", "type": "integer", "jsonPath": ".spec.size" }],
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": {
                        "size": { "type": "integer" },
                        "replicas": { "type": "integer" },
                        "tags": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" },
                        "parts": {
                            "type": "array",
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["name"],
                            "items": { "type": "object", "required": ["name"], "properties": {
                                "name": { "type": "string" }, "count": { "type": "integer" },
                            } },
                        },
                    } },
                    "status": { "type": "object", "properties": { "ready": { "type": "integer" } } },
                } } },
            }],
        },
    })
}
