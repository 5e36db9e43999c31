//! A password that is rotated: nothing of it is stored or sent, in whichever order the Secret and its copies are written.

use std::path::Path;

use http::Method;
use kubediff_history::{Filter, Page, Reader, Scope};
use serde_json::{Value, json};

use crate::session::Session;
use crate::shop::Shop;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// How many writes of other objects lie between the two. More for a measurement: `ROTATIONS=100`, each with all distances.
const DISTANCES: [usize; 5] = [0, 1, 5, 25, 100];

fn value(at: usize) -> String {
    format!("rQ7-{at:05}-zzKw9")
}

/// What the history and the file sink have, as text.
fn everything(folder: &Path) -> (String, usize) {
    let mut reader = Reader::open(folder.join("history.db")).unwrap();
    let mut text = std::fs::read_to_string(folder.join("sink.jsonl")).unwrap();
    let mut page = Page::oldest(500);
    let mut count = 0;
    loop {
        let found = reader.records(&Filter::default(), &page).unwrap();
        count += found.records.len();
        text += &serde_json::to_string(&found.records).unwrap();
        let Some(last) = found.records.last().filter(|_| found.more) else { break };
        page = Page::oldest(500).after(last.number());
    }
    for version in reader.state(&Scope::default(), None, None, 10_000).unwrap().objects {
        text += &version.body.value().to_string();
    }
    (text, count)
}

#[tokio::test(flavor = "multi_thread")]
async fn k3_a_rotated_password_is_nowhere_whichever_is_written_first() {
    let rounds: usize = std::env::var("ROTATIONS").map_or(1, |rounds| rounds.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("kubediff.yaml");
    let sinks = "sinks: {out: {file: {path: sink.jsonl}}}";
    std::fs::write(
        &config,
        format!("watch: {{resources: [cm, secrets]}}\nhistory: {{path: history.db}}\nlisten: null\nsecrets: {{wait: 3s}}\n{sinks}\n"),
    )
    .unwrap();
    let shop = Shop::open().await;
    let kubeconfig = shop.kubeconfig().to_owned();
    let daemon = tokio::task::spawn_blocking(move || {
        let mut session = Session::serve(&kubeconfig, &config);
        session.note("watching");
        session
    });
    let daemon = daemon.await.unwrap();

    let mut written = 0;
    for at in 0..rounds * 4 * DISTANCES.len() {
        let distance = DISTANCES[at % DISTANCES.len()];
        let (secret_first, created) = (at / DISTANCES.len() % 2 == 1, at / DISTANCES.len() / 2 % 2 == 1);
        let name = if created { format!("db-{at}") } else { "db".to_owned() };
        let (method, path) = match created || written == 0 {
            true => (Method::POST, String::new()),
            false => (Method::PATCH, format!("/{name}")),
        };
        let secret: Value = json!({"metadata": {"name": name}, "stringData": {"password": value(at)}});
        let map = json!({"metadata": {"name": name}, "data": {"url": format!("pg://app:{}@db/", value(at))}});
        let mut writes = [(MAPS, map), (SECRETS, secret)];
        if secret_first {
            writes.reverse();
        }
        for (resource, object) in writes {
            shop.send(method.clone(), &format!("{resource}{path}"), object).await;
            for other in 0..distance {
                let name = format!("other-{at}-{resource}-{other}").replace('/', "-");
                shop.create(name.trim_matches('-'), "of no interest").await;
            }
        }
        written += 1;
    }
    // The end waits for what is held.
    tokio::task::spawn_blocking(move || daemon.end_with("-TERM")).await.unwrap();
    let (text, records) = everything(folder.path());
    assert!(records >= written, "{records} records of {written} rotations");
    let leaks: Vec<usize> = (0..written).filter(|at| text.contains(&value(*at))).collect();
    assert!(leaks.is_empty(), "{} of {written} values are in the clear: {leaks:?}", leaks.len());
    assert!(text.contains("pg://app:<hmac:"), "the rest of the text is there");
}
