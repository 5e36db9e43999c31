//! M2: the status as a stream, and as lines of a log.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;
use std::time::Duration;

use futures_util::StreamExt;
use informer::{Object, Report, Status};
use serde_json::json;
use tracing::Level;

use super::server::Server;
use super::support::{caught_up, factory, pods, settle, soon, started, until};

/// The log of this thread, for as long as this value lives.
pub(crate) struct Log {
    /// Where severity ends.
    level: Level,
}

thread_local! {
    static LOGGED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Writes down what is logged on a thread that listens.
struct Listener;

impl Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.as_mut().map_or(Ok(bytes.len()), |logged| logged.write(bytes)))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Listens to what is at least as severe as `level`. The subscriber is one for all threads: with one per thread,
    /// tracing may miss a line that another thread was the first to log.
    pub(crate) fn from(level: Level) -> Self {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| {
            let subscriber = tracing_subscriber::fmt()
                .with_max_level(Level::TRACE)
                .with_ansi(false)
                .without_time()
                .with_target(false)
                .with_writer(|| Listener)
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
        LOGGED.set(Some(Vec::new()));
        Self { level }
    }

    pub(crate) fn take(&self) -> Vec<String> {
        let logged = LOGGED.replace(Some(Vec::new())).unwrap();
        let severe = |line: &&str| line.split_once(' ').unwrap().0.parse::<Level>().unwrap() <= self.level;
        String::from_utf8(logged).unwrap().lines().map(str::trim).filter(severe).map(str::to_owned).collect()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        LOGGED.set(None);
    }
}

/// One informer of pods whose server refuses for so many attempts.
async fn troubled(server: &Server, code: u16, reason: &str, requests: usize) {
    let before = server.log().len();
    server.deny("pods", code, reason);
    until("it was tried often", || server.log().len() >= before + requests).await;
}

#[tokio::test(start_paused = true)]
async fn m2_the_log_has_each_change_once_and_not_each_retry() {
    let log = Log::from(Level::INFO);
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.deny("pods", 503, "ServiceUnavailable");
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    troubled(&server, 503, "ServiceUnavailable", 10).await;
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].starts_with("WARN ") && lines[0].contains("503"), "{lines:?}");
    assert!(lines[0].contains("resource=pods.v1") && lines[0].contains("namespace=all"), "{lines:?}");

    // Something else is wrong now; and then the first again, which is known.
    troubled(&server, 403, "Forbidden", 10).await;
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].starts_with("ERROR ") && lines[0].contains("403"), "{lines:?}");
    troubled(&server, 503, "ServiceUnavailable", 10).await;
    assert_eq!(log.take(), [""; 0]);

    server.allow("pods");
    until("it is live", || matches!(informer.status(), Status::Live { .. })).await;
    let lines = log.take();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("INFO the informer is synced"), "{lines:?}");
    assert!(lines[1].starts_with("INFO the informer is live again"), "{lines:?}");

    // Watches that end and expire are no change.
    for _ in 0..10 {
        tokio::time::advance(Duration::from_secs(300)).await;
        server.put("pods", "shop/b", json!({}));
        caught_up(&server, &informer).await;
        server.end_watches("pods");
        settle().await;
    }
    server.expire("pods");
    until("it was listed again", || server.count("LIST /api/v1/pods resource") > 0).await;
    settle().await;
    assert_eq!(log.take(), [""; 0]);

    // The same trouble is news after health.
    tokio::time::advance(Duration::from_secs(60)).await;
    troubled(&server, 503, "ServiceUnavailable", 10).await;
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    soon(factory.shutdown()).await;
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].starts_with("INFO the informer stopped"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn m2_a_resource_that_does_not_exist_yet_is_a_warning() {
    let log = Log::from(Level::INFO);
    let server = Server::new();
    server.deny("pods", 404, "NotFound");
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    troubled(&server, 404, "NotFound", 5).await;
    let lines = log.take();
    assert!(lines.len() == 1 && lines[0].starts_with("WARN "), "{lines:#?}");
    drop(informer);
}

#[tokio::test(start_paused = true)]
async fn m2_no_log_has_anything_of_an_object() {
    let log = Log::from(Level::TRACE);
    let server = Server::new();
    let secret = "c2VjcmV0LW9mLXRoZS1zaG9w";
    server.put("pods", "shop/a", json!({ "data": { "password": secret } }));
    let factory = factory(&server);
    let informer = started(&factory).await;
    server.put("pods", "shop/a", json!({ "data": { "password": secret, "more": 1 } }));
    caught_up(&server, &informer).await;
    let unreadable = format!(
        r#"{{"type":"ADDED","object":{{"metadata":{{"name":"b","namespace":"shop","resourceVersion":7}},"data":"{secret}"}}}}"#
    );
    server.send_line("pods", &format!("{unreadable}\n"));
    server.send_line("pods", &format!("{secret}\n"));
    server.expire("pods");
    until("it was listed again", || server.count("LIST") == 2).await;
    soon(factory.shutdown()).await;
    let lines = log.take();
    assert!(lines.iter().any(|line| line.contains("Quarantined")), "{lines:#?}");
    assert_eq!(lines.iter().find(|line| line.contains(secret)), None);
}

#[tokio::test(start_paused = true)]
async fn m2_the_status_is_a_stream_that_ends_when_the_informer_stops() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.deny("pods", 503, "ServiceUnavailable");
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    let changes = informer.status_changes();
    let observer = tokio::spawn(changes.collect::<Vec<_>>());
    let is = |wanted: fn(&Status) -> bool| {
        let informer = informer.clone();
        async move {
            until("the status is reached", || wanted(&informer.status())).await;
            // A watcher of the status sees it too.
            settle().await;
        }
    };
    settle().await;
    factory.start();
    is(|status| matches!(status, Status::Retrying { attempt: 3, .. })).await;
    server.allow("pods");
    is(|status| matches!(status, Status::Live { .. })).await;
    // A watch that ends at once would be a trouble of its own.
    tokio::time::advance(Duration::from_secs(60)).await;
    server.deny("pods", 403, "Forbidden");
    is(|status| matches!(status, Status::Denied { .. })).await;
    server.allow("pods");
    is(|status| matches!(status, Status::Live { .. })).await;
    informer.stop().await;

    let seen = soon(observer).await.unwrap();
    let mut states: Vec<_> = seen.iter().filter(|status| !is_on_the_way(status)).map(name).collect();
    states.dedup();
    assert_eq!(states, ["retrying", "live", "denied", "live", "stopped"], "{seen:?}");
    let causes = seen.iter().filter_map(|status| match status {
        Status::Retrying { cause, attempt, wait } => Some((cause.name(), *attempt, *wait > Duration::ZERO)),
        _ => None,
    });
    let retries = [("refused", 1, true), ("refused", 2, true), ("refused", 3, true)];
    assert_eq!(causes.collect::<Vec<_>>(), retries);
    assert!(seen.windows(2).all(|two| two[0] != two[1]), "no change: {seen:?}");
}

fn is_on_the_way(status: &Status) -> bool {
    matches!(status, Status::NotStarted | Status::Connecting | Status::Syncing { .. })
}

fn name(status: &Status) -> &'static str {
    match status {
        Status::Connecting => "connecting",
        Status::Syncing { .. } => "syncing",
        Status::Live { .. } => "live",
        Status::Retrying { .. } => "retrying",
        Status::Denied { .. } => "denied",
        Status::Stopped => "stopped",
        _ => "another",
    }
}

#[tokio::test(start_paused = true)]
async fn m2_reports_that_nobody_reads_are_counted_and_hold_nothing_up() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    let factory = factory(&server);
    let informer = started(&factory).await;
    let mut reports = informer.reports();
    for number in 0..300 {
        let object =
            format!(r#"{{"metadata":{{"name":"x{number}","namespace":"shop","resourceVersion":7}}}}"#);
        server.send_line("pods", &format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n"));
    }
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &informer).await;
    assert_eq!(reports.missed(), 0, "not known before the next look");
    let mut read = 0;
    while let Some(report) = reports.try_recv() {
        assert!(matches!(report, Report::Quarantined { key: Some(_), .. }));
        read += 1;
    }
    assert_eq!((read, reports.missed()), (256, 44));
    informer.stop().await;
    let last: Vec<_> = reports.by_ref().collect().await;
    assert!(last.is_empty() && reports.next().await.is_none(), "it has ended, and stays so: {last:?}");
}
