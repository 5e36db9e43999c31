//! Records that wait for a receiver that is down, when a value becomes known meanwhile.

use std::sync::atomic::Ordering;
use std::time::Instant;

use http::StatusCode;
use kubediff_history::{Filter, Page, Reader};
use serde_json::json;

use super::{Hook, PATIENCE, Set, on_thread};

/// How the value becomes known.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    /// By its Secret.
    Secret,
    /// By its Secret, and the daemon starts again.
    SecretBeforeRestart,
    /// By `history scrub`.
    Value,
    /// Its path is scrubbed.
    Path,
}

/// The backlog of a receiver that was down: a value has become known in between. Nothing is delivered before the Secrets are listed.
#[tokio::test(flavor = "multi_thread")]
async fn k3_what_is_known_by_now_is_hidden_in_what_is_delivered_after_a_restart() {
    backlog_is_hidden(Known::SecretBeforeRestart).await;
}

/// The third attack: the batch that waits in memory.
#[tokio::test(flavor = "multi_thread")]
async fn k3_what_is_known_by_now_is_hidden_in_what_was_tried_before() {
    backlog_is_hidden(Known::Secret).await;
}

/// The fourth attack: a scrub by command.
#[tokio::test(flavor = "multi_thread")]
async fn k3_what_was_scrubbed_is_hidden_in_what_was_tried_before() {
    for known in [Known::Value, Known::Path] {
        backlog_is_hidden(known).await;
    }
}

async fn backlog_is_hidden(known: Known) {
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
    let end = Instant::now() + PATIENCE;
    let records = async |least: usize| {
        loop {
            assert!(Instant::now() < end, "no {least} records");
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
    while hook.refused.load(Ordering::Relaxed) == 0 {
        assert!(Instant::now() < end, "no attempt");
        tokio::task::yield_now().await;
    }
    if let Known::Value | Known::Path = known {
        std::fs::write(set.path("value"), PASSWORD).unwrap();
        let mut scrub = std::process::Command::new(env!("CARGO_BIN_EXE_kubediff"));
        scrub.args(["history", "scrub"]).arg(set.path("history.db"));
        match known {
            Known::Value => scrub.arg("--value").arg(set.path("value")),
            _ => scrub.args(["--path", "data.*"]),
        };
        on_thread(move || assert!(scrub.output().unwrap().status.success())).await;
    } else {
        let secret = json!({"metadata": {"name": "db"}, "stringData": {"password": PASSWORD}});
        set.shop.post("/api/v1/namespaces/default/secrets", secret).await;
        records(2).await;
    }
    let daemon = if known == Known::SecretBeforeRestart {
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
        if body.contains("pg://app:<hmac:") || known == Known::Path && body.contains("<hmac:") {
            break;
        }
    };
    on_thread(is_masked).await;
    on_thread(move || daemon.end_with("-TERM")).await;
}
