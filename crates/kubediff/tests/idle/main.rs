//! Issue 12: an idle cluster is silent. `kubediff serve` runs in this process, against an API server in this process, on a
//! clock that the test moves: an hour of it takes seconds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod cluster;
mod daemon;

use std::time::Duration;

use kubediff_history::{Filter, KindName, Page, Record, Scope};
use tokio::task::LocalSet;

use crate::cluster::{Cluster, EVERY, Written};
use crate::daemon::Daemon;

const HOUR: Duration = Duration::from_secs(3_600);

/// Lets the cluster go on for a time as an idle one does. Returns the writes.
async fn idle(cluster: &mut Cluster, daemon: &Daemon, time: Duration) -> Written {
    let before = daemon.taken().await;
    let mut written = Written::default();
    let rounds = time.as_secs() / EVERY.as_secs();
    for round in 1..=rounds {
        tokio::time::advance(EVERY).await;
        cluster.go_on(&mut written);
        // It takes what comes together, by the clock of the machine: to wait for it each time would take long.
        if round % 3 == 0 || round == rounds {
            daemon.has_taken(before + written.total()).await;
        }
    }
    written
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_an_idle_cluster_is_silent_and_then_one_change_is_one_message() {
    let test = async {
        let mut cluster = Cluster::start().await;
        let daemon = Daemon::start(&cluster, "").await;
        let before = daemon.noise().await;
        // On a busy machine, a list comes so late that its resource has a gap in the beginning.
        let mut history = daemon.history();
        let start = history.last().unwrap().unwrap().0;
        let written = idle(&mut cluster, &daemon, HOUR).await;

        // Each write was counted, under the rule that says why nobody was told of it.
        let mut counted = daemon.noise().await;
        for (rule, count) in before {
            *counted.get_mut(&rule).unwrap() -= count;
        }
        counted.retain(|_, count| *count > 0);
        assert_eq!(counted, written.by_rule());
        assert!(written.total() > 8_000, "an hour has more than that: {}", written.total());
        daemon.assert_told(0);
        let mut since_start = || {
            let everything = Filter { gaps: true, ..Filter::default() };
            let mut records = history.records(&everything, &Page::newest(10)).unwrap().records;
            records.retain(|record| record.number() > start);
            records
        };
        let records = since_start();
        assert!(records.is_empty(), "{records:#?}");
        // The state that was left out is the current one all the same.
        let scope = Scope {
            kinds: vec![KindName { group: None, resource: "leases".to_owned() }],
            ..Scope::default()
        };
        let version = cluster.version_of_lease("node-7");
        let is_current = async || {
            let leases = daemon.history().state(&scope, None).unwrap();
            leases.iter().any(|lease| lease.object.name == "node-7" && lease.rv == version)
        };
        daemon.until(is_current).await;

        cluster.set_image("shop/cart:2");
        daemon.has_told(1).await;
        idle(&mut cluster, &daemon, HOUR / 6).await;
        daemon.assert_told(1);
        let records = since_start();
        let [Record::Change(change)] = &records[..] else { panic!("{records:#?}") };
        assert_eq!(change.object.name, "cart");
        assert!(change.summary.starts_with("image web 1 -> 2"), "{}", change.summary);
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn without_its_noise_rules_the_same_cluster_is_not_silent() {
    let test = async {
        let mut cluster = Cluster::start().await;
        let daemon = Daemon::start(&cluster, "noise: {show: [all]}\n").await;
        let written = idle(&mut cluster, &daemon, HOUR / 60).await;
        let total = usize::try_from(written.total()).unwrap();
        assert!(total > 120, "{total}");
        daemon.has_told(total).await;
        assert!(daemon.noise().await.is_empty());
    };
    LocalSet::new().run_until(test).await;
}
