//! Names of fields that a Secret has for values, and that the configuration names.

use std::time::Instant;

use http::Method;
use serde_json::json;

use super::{PATIENCE, Set, lines, on_thread};

/// The third attack: a Secret with the names of annotations switched off the rules for them.
#[tokio::test(flavor = "multi_thread")]
async fn k4_a_secret_keeps_no_rule_from_its_field() {
    let set = Set::new().await;
    set.configure(
        "watch: {resources: [cm, secrets]}\nnoise: {ignore: [{paths: ['metadata.annotations[\"acme.io/n0ise-v2\"]']}]}\n\
         sinks:\n  log: {file: {path: log}}\nroutes:\n- match: {paths: ['metadata.annotations[\"acme.io/appr0ved-by\"]']}\n  \
         sinks: [log]\n- match: {resources: [cm], names: [quiet, last]}\n  sinks: [log]\n",
    );
    let names = json!({"metadata": {"name": "names"},
        "stringData": {"a": "acme.io/appr0ved-by", "b": "acme.io/n0ise-v2", "c": "Max2Surge-x"}});
    set.shop.post("/api/v1/namespaces/default/secrets", names).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["routed", "quiet"] {
        set.shop.create(name, "1").await;
    }
    let (daemon, _) = set.serve().await;
    for (name, annotation) in [("quiet", "acme.io/n0ise-v2"), ("routed", "acme.io/appr0ved-by")] {
        let patch = json!({"metadata": {"annotations": {annotation: "x"}}});
        set.shop.send(Method::PATCH, &format!("{maps}/{name}"), patch).await;
    }
    set.shop.create("last", "1").await;
    let path = set.path("log");
    let seen = on_thread(move || {
        let begun = Instant::now();
        loop {
            let all = if path.exists() { lines(&path) } else { Vec::new() };
            let seen: Vec<String> = all.iter().map(|line| line["change"]["name"].to_string()).collect();
            if seen.iter().any(|name| name.contains("last")) {
                return seen;
            }
            assert!(begun.elapsed() < PATIENCE, "{all:#?}");
            std::thread::yield_now();
        }
    })
    .await;
    assert_eq!(seen, ["\"routed\"", "\"last\""]);
    on_thread(move || daemon.end_with("-TERM")).await;
}
