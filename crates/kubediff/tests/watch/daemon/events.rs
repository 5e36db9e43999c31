//! Issue 21: a daemon keeps Events, and tells no sink of them.

use std::process::Command;
use std::time::Instant;

use serde_json::json;
use testapi::Gvr;

use super::{PATIENCE, Set, lines, on_thread};

#[tokio::test(flavor = "multi_thread")]
async fn events_are_in_the_history_and_in_no_sink() {
    let set = Set::new().await;
    set.configure("watch: {}\nsecrets: {wait: 0s}\nsinks:\n  log: {file: {path: changes.log}}\n");
    set.shop.create("a", "1").await;
    let secret = json!({"metadata": {"name": "db"}, "stringData": {"password": "rQ7-late-zzKw9"}});
    set.shop.post("/api/v1/namespaces/default/secrets", secret).await;
    let config_maps = Gvr::new("v1", "configmaps");
    let map = set.shop.server.api().list(&config_maps, Some("default")).unwrap();
    let uid = map[0]["metadata"]["uid"].clone();
    let (daemon, _) = set.serve().await;
    let event = json!({
        "metadata": {"name": "a.1"}, "reason": "Stale", "message": "no login with rQ7-late-zzKw9", "type": "Warning", "count": 1,
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "a", "uid": uid},
        "source": {"component": "inspector"},
    });
    set.shop.post("/api/v1/namespaces/default/events", event).await;
    set.shop.patch("a", "2").await;
    let history = set.path("history.db");
    let asked = move || {
        let begun = Instant::now();
        loop {
            let mut log = Command::new(env!("CARGO_BIN_EXE_kubediff"));
            log.args(["log", "cm/a", "--events", "--oneline", "--history"]).arg(&history);
            let said = String::from_utf8(log.output().unwrap().stdout).unwrap();
            if said.contains("* ConfigMap default/a  Stale: no login with <hmac:")
                && said.contains("  (Warning by inspector) #")
                && said.contains(r#"data.k "1" -> "2""#)
            {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{said}");
        }
    };
    on_thread(asked).await;
    on_thread(move || daemon.end_with("-TERM")).await;
    let told = lines(&set.path("changes.log"));
    assert!(told.iter().all(|line| line["change"]["resource"] != "events"), "{told:#?}");
    assert!(!told.is_empty());
}
