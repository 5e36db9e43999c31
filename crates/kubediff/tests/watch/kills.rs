//! Issue 19, "Done when": a daemon that is killed and reloaded again and again, with receivers that fail and one that never
//! answers, loses nothing and doubles nothing.
//!
//! `cargo xtask soak killed` does this 200 times.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use fastrand::Rng;
use http::{Request, Response, StatusCode};
use kubediff_history::{Filter, Page, Reader, Scope};
use serde_json::Value;
use serve::full;
use serve::http::{Server, ServerOptions, Serving};

use crate::nats::{Nats, header};
use crate::session::{PATIENCE, Session};
use crate::shop::Shop;

const KILLS: u32 = 4;
const OBJECTS: usize = 24;

/// A receiver that refuses 3 % of the requests with 500, 1 % with 429, and answers 503 to 2 % after it has taken them.
struct Receiver {
    serving: Serving,
    /// `(id, change)` of each record, as often as it came.
    got: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Receiver {
    async fn open(seed: u64) -> Self {
        let got = Arc::new(Mutex::new(Vec::new()));
        let random = Mutex::new(Rng::with_seed(seed));
        let server = Server::bind(ServerOptions::default()).await.unwrap();
        let taken = got.clone();
        let answer = move |request: Request<Bytes>, _| {
            let (status, takes) = match random.lock().unwrap().u32(..100) {
                0..3 => (StatusCode::INTERNAL_SERVER_ERROR, false),
                3 => (StatusCode::TOO_MANY_REQUESTS, false),
                4..6 => (StatusCode::SERVICE_UNAVAILABLE, true),
                _ => (StatusCode::NO_CONTENT, true),
            };
            if takes {
                let body: Value = serde_json::from_slice(request.body()).unwrap();
                let records = body["changes"].as_array().unwrap().iter().map(identified);
                taken.lock().unwrap().extend(records);
            }
            let mut response = Response::new(full(Bytes::new()));
            *response.status_mut() = status;
            async move { response }
        };
        Self { serving: server.serve(answer), got }
    }

    fn has(&self, name: &str) -> bool {
        self.got.lock().unwrap().iter().any(|(_, change)| change["name"] == name)
    }
}

fn identified(record: &Value) -> (String, Value) {
    (record["id"].as_str().unwrap().to_owned(), record["change"].clone())
}

/// A receiver that takes connections and requests, and answers none.
async fn hanging() -> Serving {
    let server = Server::bind(ServerOptions::default()).await.unwrap();
    server.serve(|_: Request<Bytes>, _| std::future::pending::<Response<serve::Body>>())
}

/// The cluster, and what the test has done to it.
struct Truth {
    shop: Shop,
    random: Rng,
    /// The value of each object that exists. No value is written twice.
    now: BTreeMap<String, u64>,
    written: u64,
}

impl Truth {
    async fn write(&mut self, count: usize) {
        for _ in 0..count {
            let name = format!("c-{}", self.random.usize(..OBJECTS));
            self.written += 1;
            let value = self.written.to_string();
            match self.now.get(&name) {
                None => self.shop.create(&name, &value).await,
                Some(_) if self.random.u32(..12) == 0 => {
                    self.shop.delete(&name).await;
                    self.now.remove(&name);
                    continue;
                }
                Some(_) => self.shop.patch(&name, &value).await,
            }
            self.now.insert(name, self.written);
        }
    }
}

async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn serve(kubeconfig: &Path, config: &Path, until_it_watches: bool) -> Session {
    let (kubeconfig, config) = (kubeconfig.to_owned(), config.to_owned());
    on_thread(move || {
        let mut session = Session::serve(&kubeconfig, &config);
        if until_it_watches {
            session.note("watching 1 resource");
        }
        session
    })
    .await
}

/// Waits until the history has this many records more.
async fn recorded(history: &Path, more: u64, before: u64) {
    let last = || Reader::open(history).ok().and_then(|mut reader| reader.last().ok().flatten());
    let begun = Instant::now();
    while last().is_none_or(|(last, _)| last.0 < before + more) {
        assert!(begun.elapsed() < PATIENCE, "no {more} records after {before}: {:?}", last());
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k1_k6_a_daemon_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    let kills: u32 = std::env::var("INFORMER_SOAK").map_or(KILLS, |times| times.parse().unwrap());
    let seed = fastrand::u64(..);
    println!("seed {seed}, {kills} times");
    let folder = tempfile::tempdir().unwrap();
    let (config, history) = (folder.path().join("kubediff.yaml"), folder.path().join("history.db"));
    let (receiver, silent) = (Receiver::open(seed).await, hanging().await);
    let mut nats = Nats::start("a_daemon_that_is_killed", &[]).await;
    let stream = nats.as_ref().map(|nats| {
        let page = include_str!("../../../../docs/streams.md");
        let mut examples =
            page.split("```yaml\nsinks:\n").skip(1).filter_map(|text| text.split("```").next());
        let example = examples.find(|text| text.contains("jetstream:")).unwrap();
        example.replace("nats://127.0.0.1:4222", &nats.url())
    });
    let text = |wait: u64| {
        let sinks = format!(
            "watch: {{resources: [cm]}}\nhistory: {{path: history.db}}\nlisten: null\nsecrets: {{wait: {wait}ms}}\nsinks:\n  \
             hook: {{webhook: {{url: 'http://{}/hook'}}}}\n  silent: {{webhook: {{url: 'http://{}/hook', timeout: 5m}}}}\n  \
             log: {{file: {{path: sink.jsonl}}}}\n",
            receiver.serving.address(),
            silent.address()
        );
        sinks + stream.as_deref().unwrap_or_default()
    };
    std::fs::write(&config, text(100)).unwrap();
    let shop = Shop::open().await;
    let kubeconfig = shop.kubeconfig().to_owned();
    let mut truth = Truth { shop, random: Rng::with_seed(seed), now: BTreeMap::new(), written: 0 };

    // Every object comes after the first list is stored, so that each has a record of its addition.
    let mut daemon = serve(&kubeconfig, &config, true).await;
    truth.shop.create("the-beginning", "0").await;
    truth.now.insert("the-beginning".to_owned(), 0);
    recorded(&history, 1, 0).await;
    let (mut reloads, mut watches) = (0, true);
    for kill in 0..kills {
        let before = Reader::open(&history).unwrap().last().unwrap().map_or(0, |(last, _)| last.0);
        // Enough that some are recorded, although changes of one object within a moment are merged.
        let count = truth.random.usize(40..150);
        truth.write(count).await;
        if truth.random.u32(..6) == 0 {
            // A daemon that starts reads the whole file.
            let new = folder.path().join("new.yaml");
            std::fs::write(&new, text(100 + u64::from(kill))).unwrap();
            std::fs::rename(&new, &config).unwrap();
            if !watches {
                // Until a process asks for hangups, the system ends it by one.
                daemon = on_thread(move || {
                    daemon.note("watching 1 resource");
                    daemon
                })
                .await;
            }
            daemon.signal("-HUP");
            reloads += 1;
            truth.write(count / 2).await;
        }
        // A kill comes at any time: before, while and after these changes are recorded, and while the daemon starts.
        if truth.random.bool() {
            recorded(&history, truth.random.u64(1..3), before).await;
        }
        on_thread(move || daemon.kill()).await;
        if let Some(nats) = nats.as_mut().filter(|_| truth.random.bool()) {
            nats.kill();
            nats.begin().await;
        }
        let count = truth.random.usize(..10);
        truth.write(count).await;
        watches = truth.random.u32(..3) != 0;
        daemon = serve(&kubeconfig, &config, watches).await;
    }
    on_thread(move || daemon.kill()).await;
    let daemon = serve(&kubeconfig, &config, true).await;
    truth.shop.create("the-end", "0").await;
    truth.now.insert("the-end".to_owned(), 0);
    while !receiver.has("the-end")
        || !lines(folder.path()).iter().any(|(_, change)| change["name"] == "the-end")
    {
        tokio::task::yield_now().await;
    }
    let mut streamed = Vec::new();
    while let Some(nats) = &nats {
        streamed = nats.messages().await;
        if streamed.iter().any(|message| change(message)["name"] == "the-end") {
            break;
        }
        tokio::task::yield_now().await;
    }
    let (_, said, status) = on_thread(move || daemon.end_with("-TERM")).await;
    assert_eq!(status.code(), Some(0), "seed {seed}: {said:?}");

    let mut reader = Reader::open(&history).unwrap();
    assert_eq!(reader.check().unwrap().problems, [""; 0], "seed {seed}");
    let state = reader.state(&Scope::default(), None).unwrap();
    let state: BTreeMap<String, u64> = state
        .iter()
        .map(|version| {
            let object = version.body.value();
            (version.object.name.clone(), object["data"]["k"].as_str().unwrap().parse().unwrap())
        })
        .collect();
    assert_eq!(state, truth.now, "seed {seed}: the history's state is not the cluster's");
    let records = all_records(&mut reader);
    is_a_legal_story(&records, seed);
    let wanted: Vec<(String, &Value)> = records.iter().map(|record| (key(record), record)).collect();
    for (sink, got) in [("hook", receiver.got.lock().unwrap().clone()), ("log", lines(folder.path()))] {
        every_record_came(&wanted, &got, &format!("seed {seed}, {sink}"));
    }
    if nats.is_some() {
        let got: Vec<_> =
            streamed.iter().map(|message| (header(message, "ce-id").to_owned(), change(message))).collect();
        every_record_came(&wanted, &got, &format!("seed {seed}, stream"));
        let numbers: Vec<u64> = got.iter().map(|(_, change)| change["number"].as_u64().unwrap()).collect();
        assert!(
            numbers.is_sorted_by(|one, next| one < next),
            "seed {seed}: not each once and in order: {numbers:?}"
        );
    }
    println!("{} writes, {} records, {reloads} reloads", truth.written, records.len());
}

fn change(message: &async_nats::jetstream::Message) -> Value {
    serde_json::from_slice(&message.payload).unwrap()
}

fn all_records(reader: &mut Reader) -> Vec<Value> {
    let (mut all, mut page) = (Vec::new(), Page::oldest(500));
    loop {
        let found = reader.records(&Filter::default(), &page).unwrap();
        all.extend(found.records.iter().map(|record| serde_json::to_value(record).unwrap()));
        match found.records.last() {
            Some(last) if found.more => page = Page::oldest(500).after(last.number()),
            _ => return all,
        }
    }
}

/// The records of each object follow each other: an addition, updates from the value before to a later one, a deletion.
fn is_a_legal_story(records: &[Value], seed: u64) {
    let mut values: HashMap<&str, Option<u64>> = HashMap::new();
    let mut exists: HashSet<&str> = HashSet::new();
    for record in records {
        let name = record["name"].as_str().unwrap();
        let told = format!("seed {seed}: {record}");
        match record["change"].as_str().unwrap() {
            "added" => {
                assert!(exists.insert(name), "{told}");
                values.insert(name, None);
            }
            "deleted" => assert!(exists.remove(name), "{told}"),
            "recreated" => {
                assert!(exists.contains(name), "{told}");
                values.insert(name, None);
            }
            "updated" => {
                assert!(exists.contains(name), "{told}");
                let number = |side: &str| record["diff"][0][side].as_str().unwrap().parse::<u64>().unwrap();
                let (old, new) = (number("old"), number("new"));
                assert!(old < new, "{told}");
                if let Some(former) = values[name] {
                    assert_eq!(former, old, "{told}");
                }
                values.insert(name, Some(new));
            }
            other => panic!("{other}: {told}"),
        }
    }
}

/// The fields that no two records have in common. A deletion that a restart found has the version of the last state.
fn key(record: &Value) -> String {
    format!("{} {} {}", record["change"], record["name"], record["rv"])
}

/// Each record reached the sink, those of one object in their order, and each id stands for one record.
fn every_record_came(wanted: &[(String, &Value)], got: &[(String, Value)], sink: &str) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut of_id: HashMap<&str, String> = HashMap::new();
    for (at, (id, change)) in got.iter().enumerate().filter(|(_, (_, change))| change["change"] != "gap") {
        let key = key(change);
        let former = of_id.entry(id).or_insert_with(|| key.clone());
        assert_eq!(*former, key, "{sink}: {id} was given twice");
        first.entry(id).or_insert(at);
    }
    let place: HashMap<&str, usize> = of_id.iter().map(|(id, key)| (key.as_str(), first[id])).collect();
    let twice = |key: &str| {
        got.iter()
            .filter(|(_, change)| self::key(change) == key)
            .map(|(id, change)| format!("{id} {change}"))
            .collect::<Vec<_>>()
    };
    for (id, key) in &of_id {
        assert_eq!(first[id], place[key.as_str()], "{sink}: a record has two ids: {:#?}", twice(key));
    }
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (key, record) in wanted {
        let at = *place.get(key.as_str()).unwrap_or_else(|| panic!("{sink}: it did not get {record}"));
        let former = last.insert(record["name"].as_str().unwrap(), at);
        assert!(former.is_none_or(|former| former < at), "{sink}: out of order: {record}");
    }
}

/// The records in the file of the file sink, whose last line may be cut off.
fn lines(folder: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(folder.join("sink.jsonl")).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .map(|record| identified(&record))
        .collect()
}
