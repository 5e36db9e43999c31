//! The third attack: files of a history that are removed or damaged beside the daemon that writes them.

use std::time::Instant;

use http::StatusCode;
use kubediff_history::{Filter, Page, Reader};

use super::{PATIENCE, Set, get, on_thread};

/// Waits until so many records are stored.
async fn recorded(address: &str, records: u64) {
    while !get(address, "/status").await.1.contains(&format!(r#""records":{records}"#)) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k1_a_log_or_lock_that_is_removed_beside_the_daemon_ends_it_and_what_it_had_recorded_is_there() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm]}\n");
    let (daemon, address) = set.serve().await;
    set.shop.create("a", "1").await;
    recorded(&address, 1).await;
    let records = || {
        let mut reader = Reader::open(set.path("history.db")).unwrap();
        reader.records(&Filter::default(), &Page::oldest(9)).unwrap().records.len()
    };
    let mut running = daemon;
    // The fourth attack: without the lock a second daemon writes to the history, too.
    for (before, removed) in [(1, &["-wal", "-shm"][..]), (2, &["-lock"])] {
        for end in removed {
            std::fs::remove_file(set.path(&format!("history.db{end}"))).unwrap();
        }
        set.shop.create(&format!("b{before}"), "1").await;
        let (said, status) = on_thread(move || running.wait()).await;
        let said = said.join("\n");
        assert!(
            said.contains("was replaced, removed or cut while it was written") && !status.success(),
            "{said}"
        );
        assert_eq!(records(), before);
        // The next start finds the rest.
        running = set.serve().await.0;
        let end = Instant::now() + PATIENCE;
        while records() == before && Instant::now() < end {
            tokio::task::yield_now().await;
        }
        assert_eq!(records(), before + 1);
    }
    on_thread(move || running.end_with("-TERM")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k6_a_damaged_history_is_a_reason_not_to_be_ready_and_is_said_once() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm]}\nsinks:\n  log: {file: {path: changes.log}}\n");
    set.shop.create("a", "1").await;
    let (daemon, address) = set.serve().await;
    while get(&address, "/readyz").await.0 != StatusCode::OK {
        tokio::task::yield_now().await;
    }
    // The record of a deletion needs the state before it. A scrub reads that, too, a second after the start.
    let foreign = rusqlite::Connection::open(set.path("history.db")).unwrap();
    while foreign.execute("UPDATE versions SET frame = x'00'", []).unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    drop(foreign);
    set.shop.delete("a").await;
    let reason = loop {
        match get(&address, "/readyz").await {
            (StatusCode::SERVICE_UNAVAILABLE, reason) => break reason,
            _ => tokio::task::yield_now().await,
        }
    };
    assert!(reason.contains("is damaged") && reason.contains("restore a backup"), "{reason}");
    assert!(get(&address, "/status").await.1.contains(r#""ready":false"#));
    // It records all the same.
    set.shop.create("b", "1").await;
    recorded(&address, 3).await;
    let (_, said, _) = on_thread(move || daemon.end_with("-TERM")).await;
    let times = said.iter().filter(|line| line.contains("recording goes on")).count();
    assert_eq!(times, 1, "{said:#?}");
}
