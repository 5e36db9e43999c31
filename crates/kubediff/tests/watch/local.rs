//! The third attack: what the daemon does on its own machine: standard output, files, the size of its history, the end.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kubediff_history::{Filter, Page, Reader};
use serde_json::Value;

use crate::daemon::get;
use crate::session::Session;
use crate::shop::Shop;

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(180);

async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Starts the daemon; its address, when it watches. Nobody reads its standard output.
async fn serve(shop: &Shop, folder: &Path, settings: &str) -> (Session, String) {
    let (kubeconfig, config) = (shop.kubeconfig().to_owned(), folder.join("kubediff.yaml"));
    let fixed = "listen: 127.0.0.1:0\nwatch: {resources: [cm]}\n";
    std::fs::write(&config, format!("{fixed}{settings}")).unwrap();
    on_thread(move || {
        let mut daemon = Session::serve_asleep(&kubeconfig, &config);
        let note = daemon.note("health and metrics are on ");
        daemon.note("watching");
        (daemon, note.split("are on ").nth(1).unwrap().to_owned())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn k6_standard_output_that_nobody_reads_is_visible_and_does_not_keep_the_daemon_from_ending() {
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    shop.create("a", "").await;
    let settings = "history: {path: history.db}\nsinks: {out: {stdout: {}}}\n";
    let (mut daemon, address) = serve(&shop, folder.path(), settings).await;
    // More than a pipe holds.
    for number in 0..40 {
        shop.patch("a", &format!("{number} {}", "x".repeat(5_000))).await;
    }
    let blocked = "ok; the sink out: it has been busy with one batch for 5 s\n";
    let begin = Instant::now();
    while get(&address, "/readyz").await.1 != blocked {
        assert!(begin.elapsed() < PATIENCE, "{}", get(&address, "/status").await.1);
        tokio::task::yield_now().await;
    }
    let (mut unread, said, status) = on_thread(move || {
        let unread = daemon.unread();
        let (_, said, status) = daemon.end_with("-TERM");
        (unread, said, status)
    })
    .await;
    assert!(status.success(), "{said:?}");
    let mut text = String::new();
    unread.read_to_string(&mut text).unwrap();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let last = whole
        .lines()
        .last()
        .map_or(0, |line| serde_json::from_str::<Value>(line).unwrap()["number"].as_u64().unwrap());
    let sinks = Reader::open(folder.path().join("history.db")).unwrap().sinks().unwrap();
    assert!(last < 40 && sinks[0].position.0 <= last, "{last} {sinks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sink_writes_has_no_character_that_a_terminal_acts_on() {
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    shop.create("a", "").await;
    let settings = "history: {path: history.db}\nsinks: {log: {file: {path: changes.log}}}\n";
    let (daemon, _) = serve(&shop, folder.path(), settings).await;
    let text = "\u{9b}31m \u{90} \u{9c} \u{85} \u{7f} \u{202e} \u{2066} \u{200b} \u{feff} \u{e0041}";
    shop.patch("a", text).await;
    let begin = Instant::now();
    let line = loop {
        let log = std::fs::read_to_string(folder.path().join("changes.log")).unwrap_or_default();
        match log.split_once('\n') {
            Some((line, _)) => break line.to_owned(),
            None => assert!(begin.elapsed() < PATIENCE, "nothing was written"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["change"]["diff"][0]["new"], text);
    assert!(
        line.contains(r"\u009b31m \u0090 \u009c \u0085 \u007f \u202e \u2066 \u200b \ufeff \udb40\udc41"),
        "{line}"
    );
    assert!(!text.chars().any(|c| c != ' ' && !c.is_ascii_graphic() && line.contains(c)), "{line}");
    on_thread(move || daemon.end_with("-TERM")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k5_the_history_keeps_its_number_of_changes_across_restarts() {
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    shop.create("a", "").await;
    let settings = "history: {path: history.db, retention: {changes: 20}}\n";
    let stored = || {
        let mut reader = Reader::open(folder.path().join("history.db")).unwrap();
        let found = reader.records(&Filter::default(), &Page::oldest(1_000)).unwrap().records;
        (found.len(), found.last().map_or(0, |record| record.number().0))
    };
    let mut written = 0;
    for _ in 0..2 {
        let (daemon, _) = serve(&shop, folder.path(), settings).await;
        for number in 0..60 {
            shop.patch("a", &number.to_string()).await;
        }
        written += 60;
        let begin = Instant::now();
        while stored().1 < written {
            assert!(begin.elapsed() < PATIENCE, "{:?}", stored());
            tokio::task::yield_now().await;
        }
        on_thread(move || daemon.kill()).await;
    }
    let (daemon, _) = serve(&shop, folder.path(), settings).await;
    let begin = Instant::now();
    while stored().0 > 20 {
        assert!(begin.elapsed() < PATIENCE, "{:?}", stored());
        tokio::task::yield_now().await;
    }
    on_thread(move || daemon.end_with("-TERM")).await;
}

#[test]
fn a_time_zone_that_does_not_exist_is_said_once() {
    for (zone, expected) in [("Nowhere/Bad", 1), (":/etc/passwd", 1), ("Europe/Berlin", 0), ("", 0)] {
        let mut schema = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        let output = schema.args(["config", "schema"]).env("TZ", zone).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let lines = said.lines().filter(|line| line.contains("is no time zone: times are in UTC"));
        assert_eq!(lines.count(), expected, "{zone}: {said}");
        assert!(output.status.success());
    }
}
