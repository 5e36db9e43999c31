//! What waits for a receiver that is down, when a value becomes known meanwhile.

use http::StatusCode;
use kubediff_history::{Filter, Page, Reader};
use serde_json::json;

use super::{Hook, PATIENCE, Set, on_thread};

/// The backlog of a receiver that was down: a value has become known in between. Nothing is delivered before the Secrets are listed.
#[tokio::test(flavor = "multi_thread")]
async fn k3_what_is_known_by_now_is_hidden_in_what_is_delivered_after_a_restart() {
    backlog_is_hidden(true).await;
}

/// The third attack: the batch that waits in memory.
#[tokio::test(flavor = "multi_thread")]
async fn k3_what_is_known_by_now_is_hidden_in_what_was_tried_before() {
    backlog_is_hidden(false).await;
}

async fn backlog_is_hidden(restarts: bool) {
    const PASSWORD: &str = "rQ7-late-zzKw9";
    let set = Set::new().await;
    let hook = Hook::open().await;
    *hook.status.lock().unwrap() = StatusCode::SERVICE_UNAVAILABLE;
    set.configure(
        "watch: {resources: [cm, secrets]}\nsecrets: {wait: 0s}\nsinks:\n  hook: {webhook: {url: {file: url}}}\n",
    );
    std::fs::write(set.path("url"), hook.url()).unwrap();
    set.shop.create("a", "before").await;
    let (daemon, _) = set.serve().await;
    let records = async |least: usize| {
        loop {
            let mut reader = Reader::open(set.path("history.db")).unwrap();
            let found = reader.records(&Filter::default(), &Page::oldest(100)).unwrap().records;
            if found.len() >= least {
                return serde_json::to_string(&found).unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    set.shop.patch("a", &format!("pg://app:{PASSWORD}@db")).await;
    assert!(records(1).await.contains(PASSWORD), "nobody knew it");
    let secret = json!({"metadata": {"name": "db"}, "stringData": {"password": PASSWORD}});
    set.shop.post("/api/v1/namespaces/default/secrets", secret).await;
    records(2).await;
    let daemon = if restarts {
        on_thread(move || daemon.end_with("-TERM")).await;
        *hook.status.lock().unwrap() = StatusCode::NO_CONTENT;
        set.serve().await.0
    } else {
        *hook.status.lock().unwrap() = StatusCode::NO_CONTENT;
        daemon
    };
    // Records of different objects come in any order.
    let is_masked = move || loop {
        let body = hook.got.recv_timeout(PATIENCE).unwrap().to_string();
        assert!(!body.contains(PASSWORD), "{body}");
        if body.contains("pg://app:<hmac:") {
            break;
        }
    };
    on_thread(is_masked).await;
    on_thread(move || daemon.end_with("-TERM")).await;
}
