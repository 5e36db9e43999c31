//! Moments of a real cluster: what the past answers equals what the server answered then.
//!
//! `cargo xtask soak --only equals --times 200` looks at 200 moments, with more life between them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use control_plane::ControlPlane;
use fastrand::Rng;
use http::Request;
use jiff::Timestamp;
use kube_client::Client;
use serde_json::{Value, json};

use super::{Town, kubectl_is_missing, output};
use crate::session::PATIENCE;
use crate::viewers::send;

const MOMENTS: usize = 20;
/// The number of writes between two moments, in the test command and in a soak.
const STEPS: [Range<usize>; 2] = [3..12, 20..60];
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

fn definition(column: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tickets.past.example.com"},
        "spec": {
            "group": "past.example.com", "scope": "Namespaced",
            "names": {"plural": "tickets", "singular": "ticket", "kind": "Ticket", "listKind": "TicketList", "shortNames": ["tk"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "additionalPrinterColumns": [{"name": column, "type": "string", "jsonPath": ".spec.seat"}],
            }],
        },
    })
}

/// An answer, and how it was asked for.
struct Kept {
    path: String,
    accept: &'static str,
    answer: Value,
}

/// What the server answered at a moment; the moment is between two times.
struct Moment {
    from: Timestamp,
    to: Timestamp,
    kept: Vec<Kept>,
    /// What kubectl printed, by its arguments.
    printed: BTreeMap<String, String>,
}

pub(super) async fn ask(client: &Client, path: &str, accept: &str) -> Value {
    let request = Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
    client.request(request).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Without versions and the descriptions of columns, and of Secrets with the lengths of values and without labels, which are hidden.
pub(super) fn leveled(mut answer: Value, path: &str) -> Value {
    fn level(value: &mut Value, without: &[&str]) {
        match value {
            Value::Array(list) => list.iter_mut().for_each(|it| level(it, without)),
            Value::Object(map) => {
                map.retain(|name, _| !without.contains(&name.as_str()));
                map.values_mut().for_each(|it| level(it, without));
            }
            _ => {}
        }
    }
    let hidden: &[&str] = if path.contains("/secrets") { &["labels"] } else { &[] };
    level(&mut answer, &[&["resourceVersion", "continue"], hidden].concat());
    for column in answer["columnDefinitions"].as_array_mut().into_iter().flatten() {
        column["description"] = Value::Null;
    }
    let is_secrets = answer["kind"] == "SecretList";
    for item in answer["items"].as_array_mut().into_iter().flatten().filter(|_| is_secrets) {
        for value in item["data"].as_object_mut().into_iter().flat_map(|data| data.values_mut()) {
            let bytes = BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap();
            let mark = std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_prefix("<hmac:"));
            let length = mark.map(|mark| mark.split(' ').nth(1).unwrap().parse().unwrap());
            *value = length.unwrap_or(bytes.len()).into();
        }
    }
    answer
}

struct Life<'a> {
    town: &'a Town<'a>,
    random: Rng,
    made: BTreeMap<String, Vec<String>>,
}

impl Life<'_> {
    fn path(&self, kind: &str) -> String {
        let root = match kind {
            "deployments" => "/apis/apps/v1",
            "tickets" => "/apis/past.example.com/v1",
            _ => "/api/v1",
        };
        format!("{root}/namespaces/{}/{kind}", self.town.namespace)
    }

    fn body(&mut self, kind: &str, name: &str) -> Value {
        let word = format!("w{}", self.random.u32(..1_000));
        let labels = json!({"even": (self.random.bool()).to_string(), "app": name});
        let mut object = json!({"metadata": {"name": name, "labels": labels}});
        let template = json!({"containers": [{"name": "web", "image": format!("web:{word}")}]});
        match kind {
            "configmaps" => object["data"] = json!({ "word": word }),
            "secrets" => {
                object["data"] = json!({"password": BASE64_STANDARD.encode(format!("{word}-{word}"))})
            }
            "pods" => object["spec"] = template,
            "tickets" => object["spec"] = json!({ "seat": word }),
            "services" => object["spec"] = json!({"ports": [{"port": 80}], "selector": {"app": word}}),
            _ => {
                let labels = json!({ "app": name });
                object["spec"] = json!({
                    "replicas": self.random.u32(0..5), "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": template},
                });
            }
        }
        if kind == "tickets" {
            object["apiVersion"] = "past.example.com/v1".into();
            object["kind"] = "Ticket".into();
        }
        object
    }

    /// Makes, changes or deletes something.
    async fn step(&mut self) {
        let kinds = ["configmaps", "secrets", "pods", "deployments", "services", "tickets"];
        let kind = kinds[self.random.usize(..kinds.len())];
        let path = self.path(kind);
        let names = self.made.entry(kind.to_owned()).or_default().clone();
        let one = (!names.is_empty()).then(|| names[self.random.usize(..names.len())].clone());
        match (self.random.u8(..10), one) {
            (0..2, Some(name)) => {
                let now = json!({"gracePeriodSeconds": 0});
                send(&self.town.admin, "DELETE", &format!("{path}/{name}"), now).await;
                self.made.get_mut(kind).unwrap().retain(|known| *known != name);
            }
            (2..7, Some(name)) => {
                let mut patch = self.body(kind, &name);
                // Images of pods alone can be changed.
                if kind == "pods" || kind == "services" {
                    patch["spec"] = Value::Null;
                    patch.as_object_mut().unwrap().remove("spec");
                }
                let request = Request::patch(format!("{path}/{name}"))
                    .header("content-type", "application/merge-patch+json")
                    .body(patch.to_string().into_bytes())
                    .unwrap();
                let _: Value = self.town.admin.request(request).await.unwrap();
            }
            _ => {
                let name = format!("n{:06x}", self.random.u32(..1 << 24));
                let body = self.body(kind, &name);
                self.town.post(&path, body).await;
                self.made.get_mut(kind).unwrap().push(name);
            }
        }
    }

    fn lists(&self) -> Vec<String> {
        let kinds = ["configmaps", "secrets", "pods", "deployments", "services", "tickets"];
        kinds.iter().map(|kind| self.path(kind)).collect()
    }

    /// What the server answers now.
    async fn look(&mut self) -> Moment {
        let from = self.town.recorded(&self.lists()).await;
        let mut kept = Vec::new();
        for path in self.lists() {
            let selector = if path.ends_with("/secrets") { "" } else { "labelSelector=even%3Dtrue" };
            let even = format!("{path}?{selector}");
            let page = format!("{path}?limit=2");
            for (path, accept) in [
                (&path, "application/json"),
                (&even, "application/json"),
                (&page, "application/json"),
                (&path, TABLE),
                (&path, METADATA),
            ] {
                let answer = ask(&self.town.admin, path, accept).await;
                kept.push(Kept { path: path.clone(), accept, answer });
            }
        }
        let mut printed = BTreeMap::new();
        if !kubectl_is_missing() {
            let namespace = &self.town.namespace;
            for arguments in [
                format!("get pods -n {namespace} -o wide"),
                format!("get deploy -n {namespace} -o wide"),
                format!("get svc -n {namespace} -o wide"),
                format!("get cm -n {namespace}"),
                format!("get tk -n {namespace} --show-labels"),
                format!("get deploy -n {namespace} -l even=true -o name --sort-by=.metadata.name"),
            ] {
                let mut command = Command::new("kubectl");
                command.args(arguments.split(' ')).env("KUBECONFIG", self.town.server.kubeconfig());
                command.env("KUBECACHEDIR", self.town.folder.path().join("cache"));
                printed.insert(arguments, output(command));
            }
        }
        Moment { from, to: Timestamp::now(), kept, printed }
    }
}

impl Moment {
    /// A time in each of its seconds: ages of the server are of one of them. Each answer has one request.
    fn seconds(&self) -> Vec<String> {
        let whole =
            (self.from.as_second() + 1..=self.to.as_second()).map(|at| Timestamp::from_second(at).unwrap());
        std::iter::once(self.from).chain(whole).map(|time| time.to_string()).collect()
    }
}

/// Whether a text is one of those that were found.
fn is_same(expected: &str, found: &[String]) -> bool {
    found.iter().any(|found| found == expected)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_equals_what_the_server_answered() {
    let name = "the_past_equals_what_the_server_answered";
    // Others count the resources of the one that they share.
    let Some(server) = ControlPlane::builder().start_or_skip(name) else { return };
    let soak = std::env::var("INFORMER_SOAK").ok().map(|times| times.parse().unwrap());
    let (count, [short, long]) = (soak.unwrap_or(MOMENTS), STEPS);
    let steps = if soak.is_some() { long } else { short };
    let seed = fastrand::u64(..);
    println!("seed {seed}, {count} moments");
    let mut town = Town::open(&server, "past-equality").await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    town.post(path, definition("Seat")).await;
    let served = async {
        loop {
            let found = town.get(&format!("{path}/tickets.past.example.com")).await;
            let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
            if conditions.iter().any(|it| it["type"] == "Established" && it["status"] == "True") {
                let request = Request::get("/apis/past.example.com/v1").body(Vec::new()).unwrap();
                if town.admin.request::<Value>(request).await.is_ok() {
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, served).await.unwrap();
    town.record().await;
    let mut life = Life { town: &town, random: Rng::with_seed(seed), made: BTreeMap::new() };
    let mut moments = Vec::new();
    for at in 0..count {
        if at == count / 2 {
            // The columns of a custom resource are those of the time, too.
            let patch = Request::patch(format!("{path}/tickets.past.example.com"))
                .header("content-type", "application/merge-patch+json")
                .body(json!({"spec": definition("Place")["spec"]}).to_string().into_bytes())
                .unwrap();
            let _: Value = town.admin.request(patch).await.unwrap();
        }
        for _ in 0..life.random.usize(steps.clone()) {
            life.step().await;
        }
        moments.push(life.look().await);
    }

    for (at, moment) in moments.iter().enumerate() {
        let note = format!("seed {seed}, moment {at}, {}", moment.from);
        let times = moment.seconds();
        let pasts: Vec<_> = times.iter().map(|time| town.server_of(time)).collect();
        let mut clients = Vec::new();
        for past in &pasts {
            clients.push(past.client().await);
        }
        for Kept { path, accept, answer } in &moment.kept {
            let expected = leveled(answer.clone(), path).to_string();
            let mut found = Vec::new();
            for client in &clients {
                found.push(leveled(ask(client, path, accept).await, path).to_string());
            }
            assert!(is_same(&expected, &found), "{note}: {path} {accept}\n{expected}\n{}", found[0]);
        }
        for (arguments, expected) in &moment.printed {
            let kubectl: Vec<&str> = std::iter::once("kubectl").chain(arguments.split(' ')).collect();
            let found: Vec<String> = times.iter().map(|time| output(town.at(time, &kubectl))).collect();
            assert!(is_same(expected, &found), "{note}: kubectl {arguments}\n{expected}\n{}", found[0]);
        }
    }
    let columns = |moment: &Moment| {
        let table =
            moment.kept.iter().rev().find(|it| it.accept == TABLE && it.path.ends_with("/tickets")).unwrap();
        table.answer["columnDefinitions"][1]["name"].clone()
    };
    assert_eq!((columns(&moments[0]), columns(&moments[count - 1])), (json!("Seat"), json!("Place")));
    town.close().await;
}
