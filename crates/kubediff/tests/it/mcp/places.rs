//! The same answers from a daemon in a cluster, and from a database.

use serde_json::{Value, json};
use tokio::process::Command;

use super::assistant::{Assistant, command};
use crate::daemon::server::{Cluster, program};
use crate::page::browser::NOW;
use crate::queries::fleet::shops;
use crate::queries::shop::Shop;

#[tokio::test]
async fn the_settings_of_the_documentation_start_it() {
    let text = include_str!("../../../../../docs/kubediff.md");
    let begin = text.find("{\n      \"mcpServers\"").unwrap();
    let settings =
        serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>().next().unwrap().unwrap();
    let server = &settings["mcpServers"]["kubediff"];
    assert_eq!(server["command"], "kubediff");
    let shop = Shop::open();
    let mut starting = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    starting.args(server["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()));
    starting.current_dir(shop.path.parent().unwrap()).env_remove("KUBEDIFF_HISTORY");
    let assistant = Assistant::of(starting).await;
    assert_eq!(assistant.ask("coverage", json!({})).await["cluster"], "prod");
}

/// What depends on the clock: a daemon's goes on.
fn timeless(mut answer: Value) -> Value {
    answer["now"] = Value::Null;
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_answers_as_its_file_does() {
    let cluster = Cluster::open().await;
    let mut asking = program(&[]);
    asking.args(["mcp", "--daemon", "monitoring/kubediff", "--now", NOW]);
    asking.env("KUBECONFIG", cluster.kubeconfig());
    let of_daemon = Assistant::of(asking.into()).await;
    let of_file = Assistant::at(&cluster.shop.path, NOW).await;
    for (tool, arguments) in [
        (
            "changes",
            json!({"ns": "shop", "since": "2026-03-01T14:00:00Z", "until": "2026-03-01T15:00:00Z", "fold": true}),
        ),
        ("blame", json!({"kind": "deploy", "ns": "shop", "name": "cart", "at": "2026-03-01T14:06:00Z"})),
        ("object", json!({"kind": "deploy", "ns": "shop", "name": "cart", "at": "2026-03-01T14:06:00Z"})),
        ("objects", json!({"kind": "pods", "at": "2026-03-01T14:06:00Z"})),
        ("diff", json!({"from": "2026-03-01T14:02:00Z", "to": "2026-03-01T14:08:00Z"})),
    ] {
        let [daemon, file] = [&of_daemon, &of_file].map(|it| it.ask(tool, arguments.clone()));
        assert_eq!(timeless(daemon.await), timeless(file.await), "{tool}");
    }
    let refusal = of_daemon.refusal("changes", json!({"kind": "dragons"})).await;
    assert_eq!(refusal, of_file.refusal("changes", json!({"kind": "dragons"})).await);
    let asked = cluster.asked();
    assert_eq!(asked.command[..4], ["kubediff", "ui", "--stdio", "--of-this-daemon"]);
    assert!(of_daemon.leave().await.success());
}

#[tokio::test]
async fn a_cluster_of_a_database_answers() {
    let database = tokio::task::spawn_blocking(shops).await.unwrap();
    let mut asking = command(database.address.as_ref(), "2026-03-01T14:10:30+00:00[UTC]");
    asking.args(["--cluster", "prod"]);
    let assistant = Assistant::of(asking).await;
    let answer = assistant.ask("changes", json!({"since": "14:00"})).await;
    assert_eq!(answer["cluster"], "prod");
    let items = answer["answer"]["items"].as_array().unwrap();
    let managers: Vec<&Value> = items.iter().map(|it| &it["managers"][0]["manager"]).collect();
    assert_eq!(items.len(), 4, "{managers:?}");
    assert!(!answer.to_string().contains("staging"), "{answer}");
    let refusal = assistant.refusal("object", json!({"kind": "cm", "name": "nobody"})).await;
    assert_eq!(refusal["title"], "The history has no such thing");
}
