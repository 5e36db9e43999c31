//! Issue 22, networks: a database that says nothing for long. The daemon waits, merges what is too much to wait, says so, and loses nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kubediff_history::{Filter, Gap, Location, Page, Reader, Record, Scope, migrate_database};
use postgres_server::{Durability, Network, Server};

use crate::session::{PATIENCE, Session};
use crate::shop::Shop;

const OBJECTS: usize = 8;
const ROUNDS: usize = 60;
/// All versions of such objects together are more than waits, and take minutes afterwards.
const MUCH: usize = 250_000;

/// The memory of a process, in MiB.
fn memory(of: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{of}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() >> 10
}

fn all(reader: &mut Reader) -> Vec<Record> {
    let filter = Filter { gaps: true, ..Filter::default() };
    let (mut records, mut page) = (Vec::new(), Page::oldest(1_000));
    loop {
        let found = reader.records(&filter, &page).unwrap();
        records.extend(found.records);
        match records.last() {
            Some(last) if found.more => page = page.after(last.number()),
            _ => return records,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_falls_silent_is_waited_for_and_nothing_is_lost() {
    let is_long = std::env::var_os("INFORMER_SOAK").is_some();
    let (silence, bytes) =
        if is_long { (Duration::from_secs(60), MUCH) } else { (Duration::from_secs(5), 100) };
    let server = Server::start(Durability::None).unwrap();
    let database = server.create_database().unwrap();
    let location = Location::parse(&server.address(&database)).unwrap();
    if let Location::Database(address) = &location {
        migrate_database(address).unwrap();
    }
    let network = Network::before(server.port()).unwrap();
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    let config = folder.path().join("kubediff.yaml");
    let text = format!(
        "cluster: prod\nwatch: {{resources: [cm]}}\nlisten: null\n\
         history: {{path: history.db, postgres: {{url: 'postgres://postgres@127.0.0.1:{}/{database}'}}}}\n",
        network.port()
    );
    std::fs::write(&config, text).unwrap();
    let kubeconfig = shop.kubeconfig().to_owned();
    let started = tokio::task::spawn_blocking(move || {
        let mut session = Session::serve(&kubeconfig, &config);
        session.note("watching");
        session
    });
    let session = started.await.unwrap();
    let name = |index: usize| format!("c-{index}");
    for index in 0..OBJECTS {
        shop.create(&name(index), "0").await;
    }
    let mut reader = Reader::at(&location, Some("prod")).unwrap();
    let begun = Instant::now();
    while reader.size().unwrap().changes < OBJECTS as u64 {
        assert!(begun.elapsed() < PATIENCE);
        tokio::task::yield_now().await;
    }

    network.fall_silent();
    let (silent, before) = (Instant::now(), memory(session.id()));
    let padding = "x".repeat(bytes);
    for round in 0..ROUNDS {
        for index in 0..OBJECTS {
            shop.patch(&name(index), &format!("{round}{padding}")).await;
        }
    }
    let (mut most, mut patches) = (before, ROUNDS);
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    while silent.elapsed() < silence {
        ticks.tick().await;
        shop.patch(&name(0), &format!("tick {patches}")).await;
        patches += 1;
        most = most.max(memory(session.id()));
    }
    println!("{} MiB before, {most} MiB at most in {:?}", before, silent.elapsed());
    network.speak();
    shop.patch(&name(0), "the last").await;

    // Each object's records stand for all of its changes.
    let wanted: BTreeMap<String, usize> =
        (0..OBJECTS).map(|index| (name(index), 1 + if index == 0 { patches + 1 } else { ROUNDS })).collect();
    let (mut told, mut merged, mut gaps);
    let begun = Instant::now();
    loop {
        (told, merged, gaps) = (BTreeMap::<String, usize>::new(), 0, Vec::new());
        for record in all(&mut reader) {
            match record {
                Record::Change(change) => {
                    merged += usize::from(change.merged > 1);
                    *told.entry(change.object.name).or_default() += usize::try_from(change.merged).unwrap();
                }
                Record::Gap(gap) => gaps.push(gap),
                _ => {}
            }
        }
        if told == wanted {
            break;
        }
        assert!(begun.elapsed() < 5 * PATIENCE, "{told:?}, not {wanted:?}");
        ticks.tick().await;
    }
    println!("{merged} records stand for several changes");
    assert_eq!(merged > 0, is_long, "what is much cannot wait");
    // Whether a commit failed, or only waited for another question that did, is a matter of the moment.
    let is_told = |gap: &Gap| gap.reason.starts_with("the database was away; changes of one object");
    assert!(gaps.len() < 2 && gaps.iter().all(is_told), "{gaps:#?}");
    assert!(most < before + 128, "{before} MiB, then {most}");
    let states = reader.state(&Scope::default(), None).unwrap();
    let cart = states.iter().find(|it| it.object.name == name(0)).unwrap();
    assert!(String::from_utf8_lossy(cart.body.bytes()).contains("the last"));
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
    let ended = tokio::task::spawn_blocking(move || session.end_with("-TERM")).await.unwrap();
    assert!(ended.2.success(), "{ended:#?}");
}
