//! Issue 23, 4: the recipes of docs/webhooks.md, with the daemon and servers that hold the rules which the receivers document.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use serve::full;
use serve::http::{Server, ServerOptions};

use crate::daemon::{get, on_thread};
use crate::session::{PATIENCE, Session};
use crate::shop::Shop;

const PAGE: &str = include_str!("../../../../docs/webhooks.md");
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// The webhooks of the page, by their names, as lines below `sinks:`.
fn recipes() -> BTreeMap<String, String> {
    let fenced = PAGE.split("```yaml\nsinks:\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    fenced.map(|text| (text.split(':').next().unwrap().trim().to_owned(), text.to_owned())).collect()
}

/// What is against the rules of a receiver, if something is.
fn fault(receiver: &str, request: &Request<Bytes>) -> Option<String> {
    let body: Value = match serde_json::from_slice(request.body()) {
        Ok(body) => body,
        Err(error) => return Some(format!("no JSON: {error}")),
    };
    let text = |pointer: &str, most: usize| {
        let text = body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let is_fine = !text.is_empty() && text.encode_utf16().count() <= most;
        (!is_fine).then(|| format!("{pointer}: {} characters of 1 to {most}", text.len()))
    };
    let only = |value: &Value, names: &[&str]| {
        let keys = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        keys.filter(|name| !names.contains(name)).map(|name| format!("unknown field {name}")).next()
    };
    let is_time = |value: &Value| value.as_str().is_some_and(|time| time.parse::<jiff::Timestamp>().is_ok());
    let not = |is_fine: bool, what: &str| (!is_fine).then(|| what.to_owned());
    let all_texts = |value: &Value| value.as_object().is_some_and(|map| map.values().all(Value::is_string));
    let faults = match receiver {
        "grafana" => {
            let tags = body["tags"].as_array();
            vec![
                text("/text", usize::MAX),
                not(body["time"].as_i64().is_some_and(|time| time > 1_700_000_000_000), "time in ms"),
                not(tags.is_some_and(|tags| tags.iter().all(Value::is_string)), "tags are texts"),
                not(request.headers()["authorization"] == "Bearer glsa_x", "401"),
            ]
        }
        "teams" => {
            let card = &body["attachments"][0];
            let blocks = card["content"]["body"].as_array();
            let is_block = |it: &Value| {
                it["type"] == "TextBlock" && it["text"].as_str().is_some_and(|text| !text.is_empty())
            };
            vec![
                not(request.body().len() <= 28 << 10, "28 KB"),
                not(body["type"] == "message", "type"),
                not(card["contentType"] == "application/vnd.microsoft.card.adaptive", "contentType"),
                not(
                    card["content"]["type"] == "AdaptiveCard" && card["content"]["version"].is_string(),
                    "card",
                ),
                not(blocks.is_some_and(|blocks| blocks.iter().all(is_block)), "blocks with text"),
            ]
        }
        "discord" => {
            let embeds = body.get("embeds").map_or(0, |embeds| embeds.as_array().map_or(11, Vec::len));
            vec![
                text("/content", 2_000),
                only(&body, &["content", "embeds", "allowed_mentions"]),
                not(embeds <= 10, "at most ten embeds"),
                if embeds > 0 { text("/embeds/0/description", 4_096) } else { None },
                not(body["allowed_mentions"] == json!({"parse": []}), "it would ping people"),
            ]
        }
        "pagerduty" => {
            let severities = ["critical", "error", "warning", "info"];
            let payload = &body["payload"];
            vec![
                not(body["routing_key"] == KEY, "routing_key of 32 characters"),
                not(["trigger", "resolve"].iter().any(|it| body["event_action"] == *it), "event_action"),
                text("/dedup_key", 255),
                text("/payload/summary", 1_024),
                text("/payload/source", usize::MAX),
                not(severities.iter().any(|it| payload["severity"] == *it), "severity"),
                not(is_time(&payload["timestamp"]), "timestamp"),
                not(payload["custom_details"].is_object(), "custom_details"),
            ]
        }
        "alertmanager" => {
            let alert = &body[0];
            vec![
                not(body.as_array().is_some_and(|alerts| alerts.len() == 1), "an array"),
                only(alert, &["labels", "annotations", "startsAt", "endsAt", "generatorURL"]),
                text("/0/labels/alertname", usize::MAX),
                not(all_texts(&alert["labels"]) && all_texts(&alert["annotations"]), "labels are texts"),
                not(is_time(&alert["startsAt"]), "startsAt"),
            ]
        }
        _ => vec![],
    };
    faults.into_iter().flatten().next()
}

/// Receivers at the paths of their names: what they took, and what was wrong.
struct Receivers {
    serving: serve::http::Serving,
    took: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
    faults: Arc<Mutex<Vec<String>>>,
}

impl Receivers {
    async fn open() -> Self {
        let (took, faults) =
            (Arc::<Mutex<BTreeMap<String, Vec<String>>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let server = Server::bind(ServerOptions::default()).await.unwrap();
        let (takes, finds) = (took.clone(), faults.clone());
        let answer = move |request: Request<Bytes>, _| {
            let receiver = request.uri().path().trim_start_matches('/').to_owned();
            let fault = fault(&receiver, &request);
            let (status, text) = match (&*receiver, fault) {
                (_, Some(fault)) => {
                    finds.lock().unwrap().push(format!("{receiver}: {fault}"));
                    (StatusCode::BAD_REQUEST, fault)
                }
                ("discord", None) => (StatusCode::NO_CONTENT, String::new()),
                ("teams" | "pagerduty", None) => (StatusCode::ACCEPTED, String::new()),
                _ => (StatusCode::OK, String::new()),
            };
            if status.is_success() {
                let body = String::from_utf8(request.body().to_vec()).unwrap();
                takes.lock().unwrap().entry(receiver).or_default().push(body);
            }
            let mut response = Response::new(full(Bytes::from(text)));
            *response.status_mut() = status;
            async move { response }
        };
        Self { serving: server.serve(answer), took, faults }
    }

    /// Waits until each of them has taken a body with this text.
    async fn until(&self, names: &[String], text: &str) {
        let mut ticks = tokio::time::interval(std::time::Duration::from_millis(20));
        let wait = async {
            loop {
                ticks.tick().await;
                let faults = self.faults.lock().unwrap();
                assert!(faults.is_empty(), "{faults:#?}");
                let took = self.took.lock().unwrap();
                let has = |name: &String| {
                    took.get(name).is_some_and(|bodies| bodies.iter().any(|body| body.contains(text)))
                };
                if names.iter().all(has) {
                    return;
                }
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        assert!(waited.is_ok(), "no {text:?} in {:#?}", self.took.lock().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_recipe_holds_the_rules_of_its_receiver() {
    let (shop, receivers, folder) =
        (Shop::open().await, Receivers::open().await, tempfile::tempdir().unwrap());
    let base = format!("http://{}", receivers.serving.address());
    let mut config = "cluster: prod\nwatch: {resources: [cm, deploy]}\nlisten: 127.0.0.1:0\n\
                      history: {path: history.db}\nsinks:\n"
        .to_owned();
    let recipes = recipes();
    let names: Vec<String> = recipes.keys().filter(|name| *name != "own").cloned().collect();
    assert_eq!(names, ["alertmanager", "discord", "grafana", "pagerduty", "teams"]);
    for (name, text) in &recipes {
        let lines = text.lines().map(|line| match line.trim_start().starts_with("url: ") {
            true => format!("      url: {base}/{name}\n"),
            false => format!("{line}\n").replace("/etc/kubediff/", ""),
        });
        config.extend(lines);
    }
    std::fs::write(folder.path().join("grafana"), "Bearer glsa_x\n").unwrap();
    std::fs::write(folder.path().join("pagerduty"), format!("{KEY}\n")).unwrap();
    let file = folder.path().join("kubediff.yaml");
    std::fs::write(&file, config).unwrap();
    let start = || {
        let (kubeconfig, file) = (shop.kubeconfig().to_owned(), file.clone());
        on_thread(move || {
            let mut session = Session::serve(&kubeconfig, &file);
            let note = session.note("health and metrics are on ");
            session.note("watching");
            (session, note.split("are on ").nth(1).unwrap().to_owned())
        })
    };
    let (daemon, _) = start().await;
    shop.create("odd", "1").await;
    receivers.until(&names, "odd").await;
    // Whatever a text has.
    for odd in
        ["\"}]}, {\"a\": [", "back\\slash {{ text }} {% raw %}", "two\nlines\t@everyone <b>", "😀 ü \u{2028}"]
    {
        shop.patch("odd", odd).await;
    }
    shop.patch("odd", &"😀 long \" ".repeat(5_000)).await;
    shop.patch("odd", "the last one").await;
    receivers.until(&names, "the last one").await;
    // A gap has no object.
    on_thread(move || daemon.end_with("-TERM")).await;
    shop.send(Method::DELETE, "/api/v1/namespaces/default/configmaps/odd", Value::Null).await;
    let (daemon, address) = start().await;
    receivers.until(&names, "was not watched").await;
    receivers.until(&names, "deleted").await;
    let status: Value = serde_json::from_str(&get(&address, "/status").await.1).unwrap();
    for name in &names {
        assert_eq!(status["sinks"][name]["dead"], 0, "{status}");
    }
    on_thread(move || daemon.end_with("-TERM")).await;
}
