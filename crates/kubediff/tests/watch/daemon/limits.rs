//! Limits that the system sets to the daemon.

use std::process::Command;

use http::StatusCode;
use kubediff_history::{Filter, Page, Reader};

use super::{Set, get, on_thread};

/// The fourth attack: `ulimit -f` ended the daemon by a signal.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_file_sizes_is_waited_for_and_told() {
    if cfg!(not(target_os = "linux")) {
        println!("not shown: limits of another process can be set on Linux only");
        return;
    }
    let set = Set::new().await;
    set.configure("watch: {resources: [cm]}\nsinks: {out: stdout}\n");
    set.shop.create("a", "1").await;
    let (daemon, address) = set.serve().await;
    let id = daemon.id().to_string();
    let limit = |size: &str| {
        let fsize = format!("--fsize={size}:unlimited");
        assert!(Command::new("prlimit").args(["--pid", &id, &fsize]).status().unwrap().success());
    };
    limit("4096");
    set.shop.patch("a", "2").await;
    let daemon = on_thread(move || {
        let mut daemon = daemon;
        daemon.note("the file has reached its limit");
        daemon
    })
    .await;
    // The endpoint hears of it a moment later.
    while get(&address, "/readyz").await.0 != StatusCode::SERVICE_UNAVAILABLE {
        tokio::task::yield_now().await;
    }
    limit("unlimited");
    let status = on_thread(move || {
        let mut daemon = daemon;
        daemon.note("the history can be written again");
        daemon.end_with("-TERM").2
    })
    .await;
    assert!(status.success());
    let mut reader = Reader::open(set.path("history.db")).unwrap();
    let changes = reader.records(&Filter::default(), &Page::oldest(100)).unwrap().records;
    assert_eq!(changes.len(), 1, "{changes:#?}");
}
