//! Issue 12, first item 2: a reader that sleeps while many objects change several times loses nothing without a word.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::session::Session;
use crate::shop::Shop;

const OBJECTS: usize = 1_500;

/// Creates, changes twice and deletes each of many objects while nobody reads; then what was read, by object: how many
/// changes its lines stand for, and whether any was merged. And what was said on standard error.
async fn told_after_sleep(buffer: &str, padding: usize) -> (BTreeMap<String, (u64, bool)>, Vec<String>) {
    let shop = Shop::open().await;
    let arguments = ["-A", "-o", "json", "--buffer", buffer, "cm"];
    let mut session = Session::asleep(shop.kubeconfig(), &arguments);
    let padding = "x".repeat(padding);
    let name = |number: usize| format!("c-{number}");
    for number in 0..OBJECTS {
        shop.create(&name(number), &padding).await;
    }
    for round in ["1", "2"] {
        for number in 0..OBJECTS {
            shop.patch(&name(number), &format!("{round}{padding}")).await;
        }
    }
    for number in 0..OBJECTS {
        shop.delete(&name(number)).await;
    }
    shop.create("the-end", "").await;
    let reading = tokio::task::spawn_blocking(move || {
        if buffer_is_small(&padding) {
            session.note("the reader of the output is slow");
        }
        session.wake();
        session.line_of_many(&["the-end"], usize::MAX);
        session.interrupt()
    });
    let (lines, notes, status) = reading.await.unwrap();
    assert!(status.success(), "{status} {notes:?}");
    let mut told: BTreeMap<String, (u64, bool)> = BTreeMap::new();
    for line in lines {
        let change: Value = serde_json::from_str(&line).unwrap();
        let merged = change["merged"].as_u64();
        let object = told.entry(change["name"].as_str().unwrap().to_owned()).or_default();
        object.0 += merged.unwrap_or(1);
        object.1 |= merged.is_some();
    }
    assert_eq!(told.remove("the-end"), Some((1, false)));
    (told, notes)
}

fn buffer_is_small(padding: &str) -> bool {
    padding.len() > 1_000
}

#[tokio::test(flavor = "multi_thread")]
async fn within_the_bound_a_slow_reader_gets_everything() {
    let (told, notes) = told_after_sleep("64", 10).await;
    assert_eq!(told.len(), OBJECTS);
    assert!(told.values().all(|told| *told == (4, false)), "{told:#?}");
    assert!(!notes.iter().any(|note| note.contains("merged")), "{notes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_bound_a_slow_reader_is_told_what_was_merged() {
    let (told, notes) = told_after_sleep("1", 4_000).await;
    assert_eq!(told.len(), OBJECTS, "no object is left out");
    assert!(told.values().all(|(changes, _)| *changes == 4), "{told:#?}");
    assert!(told.values().any(|(_, merged)| *merged), "{told:#?}");
    assert!(
        notes.iter().any(|note| note.contains("merged into others, because the reader")),
        "the summary counts them: {notes:?}"
    );
}

/// The eighth attack: only a second Ctrl-C ended it, and a second SIGTERM was waited out.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_sigterm_ends_it_although_nobody_reads() {
    let shop = Shop::open().await;
    let mut session = Session::asleep(shop.kubeconfig(), &["-A", "-o", "json", "--buffer", "1", "cm"]);
    let padding = "x".repeat(4_000);
    for number in 0..OBJECTS {
        shop.create(&format!("c-{number}"), &padding).await;
    }
    for number in 0..OBJECTS {
        shop.patch(&format!("c-{number}"), &format!("1{padding}")).await;
    }
    let ended = tokio::task::spawn_blocking(move || {
        session.note("the reader of the output is slow");
        session.signal("-TERM");
        session.note("another signal ends without it");
        session.signal("-TERM");
        session.wait().1
    });
    assert_eq!(ended.await.unwrap().code(), Some(130));
}
