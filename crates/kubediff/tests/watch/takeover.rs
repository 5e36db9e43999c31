//! Issue 22, 3: of two daemons of a cluster one records, and the other one goes on where it ends.
//!
//! `cargo xtask soak takeover` does this 200 times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fastrand::Rng;
use http::{Method, Request};
use http_body_util::BodyExt;
use kubediff_history::{Filter, Location, Number, Origin, Page, Reader, Record, Verb};
use postgres_server::{Durability, Server};
use serde_json::{Value, json};

use crate::session::{PATIENCE, Session};
use crate::shop::Shop;

const TAKEOVERS: u32 = 4;
const OBJECTS: usize = 30;
/// How often something is written.
const PACE: Duration = Duration::from_millis(2);
/// The most that is written and not recorded, on a machine that records slower than this writes.
const AHEAD: u64 = 4_000;
const LOOK: Duration = Duration::from_millis(50);
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A database, and the files of daemons.
struct Place {
    server: Server,
    database: String,
    address: String,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let server = Server::start(Durability::Full).unwrap();
        let database = server.create_database().unwrap();
        let address = server.address(&database);
        let made = kubediff(&["history", "migrate", &address]);
        assert!(made.contains("tables"), "{made}");
        Self { server, database, address, folder: tempfile::tempdir().unwrap() }
    }

    /// The configuration of a daemon that has this key.
    fn config(&self, key: &str) -> PathBuf {
        let config = self.folder.path().join(format!("{key}.yaml"));
        let text = format!(
            "cluster: prod\nwatch: {{resources: [cm]}}\nlisten: 127.0.0.1:0\nkeyFile: {key}\n\
             history: {{path: {key}.db, postgres: {{url: '{}'}}}}\n",
            self.address
        );
        std::fs::write(&config, text).unwrap();
        config
    }

    fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.database, sql).unwrap()
    }

    /// The term of a process that does not run any more would last for 10 s.
    fn end_term(&self) {
        self.sql("UPDATE kubediff.terms SET expires_at = clock_timestamp() - interval '1 second'");
    }

    /// The number of the next record.
    fn next(&self) -> u64 {
        self.sql("SELECT value FROM kubediff.meta WHERE name = 'next'").parse().unwrap()
    }

    fn reader(&self) -> Reader {
        Reader::at(&Location::parse(&self.address).unwrap(), Some("prod")).unwrap()
    }
}

/// Both outputs of `kubediff ARGUMENTS`.
fn kubediff(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kubediff")).args(arguments).output().unwrap();
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
}

/// One of the daemons.
struct Daemon {
    session: Session,
    address: String,
}

impl Daemon {
    /// Starts one, which is ready.
    fn start(name: &str, kubeconfig: &Path, config: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command.args(["serve", "-c"]).arg(config).env("KUBECONFIG", kubeconfig).env("HOSTNAME", name);
        let mut session = Session::program(command);
        let line = session.note("health and metrics are on");
        let address = format!("http://{}", line.rsplit_once("http://").unwrap().1.trim());
        Self { session, address }
    }

    fn status(&self) -> String {
        kubediff(&["status", "--address", &self.address])
    }

    /// Waits until it is ready, and its status has a text.
    fn until(&self, text: &str) {
        let since = Instant::now();
        loop {
            let status = self.status();
            if status.starts_with("ready\n") && status.contains(text) {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "no {text:?}: {status}");
        }
    }
}

/// What the server has: each version of each object, by uid, and the objects that are gone.
#[derive(Default)]
struct Written {
    versions: BTreeMap<String, BTreeSet<u64>>,
    deleted: BTreeSet<String>,
}

/// Reads until it is to stop how far the cluster is recorded.
fn follow(mut reader: Reader, recorded: &AtomicU64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        recorded.store(recorded_until(&mut reader), Ordering::Relaxed);
        std::thread::park_timeout(LOOK);
    }
}

/// The version until which the ConfigMaps are recorded.
fn recorded_until(reader: &mut Reader) -> u64 {
    reader.positions().unwrap().get("configmaps@*").map_or(0, |version| version.parse().unwrap())
}

/// Writes until it is to stop.
async fn write(shop: Arc<Shop>, seed: u64, recorded: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Written {
    let mut random = Rng::with_seed(seed);
    let mut written = Written::default();
    let mut there: BTreeMap<String, String> = BTreeMap::new();
    let mut ticks = tokio::time::interval(PACE);
    let (mut count, mut last) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        if last > recorded.load(Ordering::Relaxed) + AHEAD {
            continue;
        }
        count += 1;
        let name = format!("m{}", random.usize(..OBJECTS));
        let path = format!("{CONFIG_MAPS}/{name}");
        let data = json!({"metadata": {"name": name}, "data": {"k": count.to_string()}});
        let deletes = random.u8(..10) == 0;
        let (method, path, body) = match there.contains_key(&name) {
            false => (Method::POST, CONFIG_MAPS, data.to_string()),
            true if deletes => (Method::DELETE, &*path, String::new()),
            true => (Method::PATCH, &*path, data.to_string()),
        };
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let is_deletion = method == Method::DELETE;
        let request = Request::builder().method(method).uri(path).header("content-type", content);
        let answer = shop.server.api().handle(request.body(Bytes::from(body)).unwrap()).await;
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        if is_deletion {
            written.deleted.insert(there.remove(&name).unwrap());
            continue;
        }
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        let object: Value = serde_json::from_slice(&bytes).unwrap();
        let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
        there.insert(name, text("uid"));
        last = text("resourceVersion").parse().unwrap();
        written.versions.entry(text("uid")).or_default().insert(last);
    }
    written
}

/// Nobody writes any more when this ends, be it by a failure.
struct Ends(Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Each version was recorded once, by a watch, and there is no gap after the first record.
fn judge(reader: &mut Reader, written: &Written, seed: u64) {
    let mut found = Written::default();
    let (mut page, mut count) = (Page::oldest(10_000), 0);
    let all = Filter { gaps: true, ..Filter::default() };
    loop {
        let records = reader.records(&all, &page).unwrap();
        for record in records.records {
            page = page.after(record.number());
            count += 1;
            assert_eq!(record.number(), Number(count), "seed {seed}");
            let change = match record {
                Record::Change(change) => change,
                Record::Gap(gap) => panic!("seed {seed}: a gap: {gap:?}"),
                _ => continue,
            };
            assert_eq!((change.origin, change.merged), (Origin::Watch, 1), "seed {seed}: {change:?}");
            let uid = change.object.uid.clone();
            let is_new = match change.verb {
                Verb::Deleted => found.deleted.insert(uid),
                _ => {
                    let version = change.rv.as_ref().unwrap().parse().unwrap();
                    found.versions.entry(uid).or_default().insert(version)
                }
            };
            assert!(is_new, "seed {seed}: recorded twice: {change:?}");
        }
        if !records.more {
            break;
        }
    }
    assert_eq!(found.deleted, written.deleted, "seed {seed}");
    for (uid, versions) in &written.versions {
        assert_eq!(found.versions.get(uid), Some(versions), "seed {seed}: {uid}");
    }
    assert_eq!(found.versions.len(), written.versions.len(), "seed {seed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn k11_a_takeover_loses_nothing_and_records_nothing_twice() {
    let takeovers: u32 = std::env::var("INFORMER_SOAK").map_or(TAKEOVERS, |times| times.parse().unwrap());
    let seed = fastrand::u64(..);
    println!("seed {seed}, {takeovers} takeovers");
    let shop = Arc::new(Shop::open().await);
    let stop = Arc::new(AtomicBool::new(false));
    let kubeconfig = shop.kubeconfig().to_owned();
    let ends = Ends(stop.clone());
    let (run, first) = tokio::sync::oneshot::channel();
    let daemons = tokio::task::spawn_blocking(move || {
        let ends = ends;
        let place = Place::new();
        let config = place.config("key");
        let mut leader = Daemon::start("a", &kubeconfig, &config);
        leader.until("configmaps   watched");
        // Nothing was written before: a gap at the beginning would be one.
        run.send(place.reader()).unwrap();
        let mut standby = Daemon::start("b", &kubeconfig, &config);
        for takeover in 0..takeovers {
            standby.until("would list 0 resources again");
            // Each of them in the first three.
            let waits = takeover % 10 == 9;
            let way = if waits { 0 } else { (seed + u64::from(takeover)) % 3 };
            let since = Instant::now();
            let name = if takeover % 2 == 0 { "a" } else { "b" };
            let former = match way {
                0 => {
                    leader.session.kill();
                    // Now and then, the other one waits for the end of the term.
                    if !waits {
                        place.end_term();
                    }
                    None
                }
                1 => {
                    let (_, notes, status) = leader.session.end_with("-TERM");
                    assert!(status.success(), "{notes:?}");
                    None
                }
                _ => {
                    leader.session.freeze();
                    place.end_term();
                    Some(leader)
                }
            };
            let next = place.next();
            while place.next() == next {
                assert!(since.elapsed() < PATIENCE, "nobody records: {}", standby.status());
            }
            println!("takeover {takeover}, way {way}: the next commit after {:?}", since.elapsed());
            standby.until("history: ");
            leader = standby;
            standby = match former {
                // It wakes up, and finds that it has lost its term.
                Some(former) => {
                    former.session.signal("-CONT");
                    former
                }
                None => Daemon::start(name, &kubeconfig, &config),
            };
        }
        standby.until("would list 0 resources again");
        drop(ends);
        (place, [leader, standby])
    });
    let reader = first.await.unwrap();
    let recorded = Arc::<AtomicU64>::default();
    let following = std::thread::spawn({
        let (recorded, stop) = (recorded.clone(), stop.clone());
        move || follow(reader, &recorded, &stop)
    });
    let since = Instant::now();
    let written = write(shop.clone(), seed, recorded, stop).await;
    let count = written.versions.values().map(BTreeSet::len).sum::<usize>() + written.deleted.len();
    println!("{count} writes in {:?}", since.elapsed());
    following.join().unwrap();
    let (place, daemons) = daemons.await.unwrap();
    tokio::task::spawn_blocking(move || {
        let last = written.versions.values().flatten().max().copied().unwrap();
        let since = Instant::now();
        let mut reader = place.reader();
        while recorded_until(&mut reader) < last {
            assert!(since.elapsed() < PATIENCE, "{:?} of {last}", reader.positions());
            std::thread::park_timeout(LOOK);
        }
        for daemon in daemons {
            let (_, notes, status) = daemon.session.end_with("-TERM");
            assert!(status.success(), "{notes:?}");
        }
        judge(&mut reader, &written, seed);
        assert_eq!(reader.check().unwrap().problems, [""; 0]);
    })
    .await
    .unwrap();
}

/// A daemon's way to its API server, which can be cut.
struct Way {
    kubeconfig: tempfile::NamedTempFile,
    relaying: tokio::task::JoinHandle<()>,
}

impl Way {
    async fn open(shop: &Shop) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (own, port) = (listener.local_addr().unwrap().port().to_string(), shop.server.url());
        let port = port.rsplit_once(':').unwrap().1.trim_end_matches('/').to_owned();
        let kubeconfig = tempfile::NamedTempFile::new().unwrap();
        let text = std::fs::read_to_string(shop.kubeconfig()).unwrap();
        std::fs::write(kubeconfig.path(), text.replace(&format!(":{port}"), &format!(":{own}"))).unwrap();
        let to = format!("127.0.0.1:{port}");
        let relaying = tokio::spawn(async move {
            // They end with this task.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut from, _)) = listener.accept().await {
                let to = to.clone();
                connections.spawn(async move {
                    let mut to = tokio::net::TcpStream::connect(to).await.unwrap();
                    drop(tokio::io::copy_bidirectional(&mut from, &mut to).await);
                });
            }
        });
        Self { kubeconfig, relaying }
    }
}

/// All records, as words.
fn records(place: &Place) -> Vec<String> {
    let all = Filter { gaps: true, ..Filter::default() };
    let found = place.reader().records(&all, &Page::oldest(10_000)).unwrap().records;
    let words = |record| match record {
        Record::Gap(gap) => format!("gap: {}", gap.reason),
        Record::Change(change) => {
            format!("{} {:?} by {:?}", change.object.name, change.verb, change.origin).to_lowercase()
        }
        _ => "another".to_owned(),
    };
    found.into_iter().map(words).collect()
}

/// Waits until the log has a record.
fn until(place: &Place, wanted: &str) -> Vec<String> {
    let since = Instant::now();
    loop {
        let records = records(place);
        if records.iter().any(|record| record == wanted) {
            return records;
        }
        assert!(since.elapsed() < PATIENCE, "no {wanted:?}: {records:#?}");
        std::thread::park_timeout(LOOK);
    }
}

/// Runs the work on a thread that may block, with requests to a shop.
async fn at<T: Send + 'static>(
    shop: &Arc<Shop>,
    work: impl FnOnce(&dyn Fn(&str, &str)) -> T + Send + 'static,
) -> T {
    let (shop, runtime) = (shop.clone(), tokio::runtime::Handle::current());
    let work = move || {
        work(&|name, data| {
            runtime.block_on(async {
                match data {
                    "1" => shop.create(name, data).await,
                    _ => shop.patch(name, data).await,
                }
            });
        })
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_sees_nothing_lends_its_term_and_one_with_another_key_never_leads() {
    let shop = Arc::new(Shop::open().await);
    let way = Way::open(&shop).await;
    let (seeing, blind) = (shop.kubeconfig().to_owned(), way.kubeconfig.path().to_owned());
    let place = at(&shop, move |write| {
        let place = Place::new();
        let config = place.config("key");
        let leader = Daemon::start("a", &blind, &config);
        leader.until("configmaps   watched");
        write("cart", "1");
        until(&place, "cart added by watch");

        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command
            .args(["serve", "-c"])
            .arg(place.config("other"))
            .env("KUBECONFIG", &seeing)
            .env("HOSTNAME", "c");
        let (notes, status) = Session::program(command).wait();
        let said = notes.last().unwrap();
        assert!(said.contains("give both processes the same file as `keyFile`"), "{notes:?}");
        assert!(!status.success());

        let standby = Daemon::start("b", &seeing, &config);
        standby.until("configmaps   watched");
        // It is recorded, so the standby knows how far the leader is.
        write("pay", "1");
        standby.until("would list 0 resources again");
        (place, leader, standby)
    })
    .await;
    way.relaying.abort();
    at(&shop, move |write| {
        let (place, leader, standby) = place;
        write("cart", "2");
        // Nobody ends, and nobody's term is over.
        standby.until("history: ");
        let records = until(&place, "cart updated by watch");
        assert_eq!(records, ["cart added by watch", "pay added by watch", "cart updated by watch"]);
        drop(leader);
        let (_, notes, status) = standby.session.end_with("-TERM");
        assert!(status.success(), "{notes:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_went_back_is_noticed_and_has_a_gap() {
    let shop = Arc::new(Shop::open().await);
    let kubeconfig = shop.kubeconfig().to_owned();
    at(&shop, move |write| {
        let place = Place::new();
        let leader = Daemon::start("a", &kubeconfig, &place.config("key"));
        leader.until("configmaps   watched");
        write("cart", "1");
        until(&place, "cart added by watch");
        let (server, database) = (&place.server, &place.database);
        let alone = |allowed: bool| {
            let allow = format!("ALTER DATABASE {database} ALLOW_CONNECTIONS {allowed}");
            let end = format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
            );
            server.sql("postgres", &allow).unwrap();
            server.sql("postgres", &end).unwrap();
        };
        alone(false);
        let backup = server.copy_database(database).unwrap();
        alone(true);
        write("cart", "2");
        write("pay", "1");
        until(&place, "pay added by watch");
        // Somebody restores the backup.
        alone(false);
        server.sql("postgres", &format!("ALTER DATABASE {database} RENAME TO lost")).unwrap();
        server.sql("postgres", &format!("ALTER DATABASE {backup} RENAME TO {database}")).unwrap();
        write("cart", "3");
        let records = until(&place, "pay added by restart");
        let gap = "gap: the database lost acknowledged records";
        let away = |record: &&String| !record.contains("was away");
        let records: Vec<&str> = records.iter().filter(away).map(String::as_str).collect();
        assert_eq!(records, ["cart added by watch", gap, "cart updated by restart", "pay added by restart"]);
        assert_eq!(place.reader().check().unwrap().problems, [""; 0]);
        let (_, notes, status) = leader.session.end_with("-TERM");
        assert!(status.success(), "{notes:?}");
        let said = "has lost acknowledged records";
        assert!(notes.iter().any(|note| note.contains(said)), "{notes:?}");
    })
    .await;
}

/// The primary server fails, and one takes its place that lacks what it acknowledged last: alone, or with the process that recorded it.
#[tokio::test(flavor = "multi_thread")]
async fn an_asynchronous_replica_that_takes_over_has_a_gap_for_what_it_lacks() {
    for leader_fails in [false, true] {
        let shop = Arc::new(Shop::open().await);
        let kubeconfig = shop.kubeconfig().to_owned();
        at(&shop, move |write| {
            let mut place = Place::new();
            let replica = place.server.standby().unwrap();
            place.server.configure("synchronous_standby_names = ''").unwrap();
            let hosts = format!("127.0.0.1:{},127.0.0.1:{}", place.server.port(), replica.port());
            place.address =
                format!("postgres://postgres@{hosts}/{}?target_session_attrs=read-write", place.database);
            let config = place.config("key");
            let leader = Daemon::start("a", &kubeconfig, &config);
            leader.until("configmaps   watched");
            write("cart", "1");
            until(&place, "cart added by watch");
            let standby = Daemon::start("b", &kubeconfig, &config);
            standby.until("configmaps   watched");
            // It is recorded, so the standby knows how far the leader is.
            write("bag", "1");
            standby.until("would list 0 resources again");
            let follows = |count, which: &str| {
                let since = Instant::now();
                let replicas = format!("SELECT count(*) FROM pg_stat_replication WHERE {which}");
                while place.server.sql("postgres", &replicas).unwrap() != count {
                    assert!(since.elapsed() < PATIENCE, "the replica");
                }
            };
            follows("1", "replay_lsn = pg_current_wal_lsn()");
            replica.sql("postgres", "ALTER SYSTEM SET primary_conninfo = ''").unwrap();
            replica.sql("postgres", "SELECT pg_reload_conf()").unwrap();
            // A replica that lags for a moment is not gone.
            follows("0", "true");
            write("cart", "2");
            write("pay", "1");
            until(&place, "pay added by watch");
            // The standby has seen both, and has forgotten them: they are recorded. A change that comes to the standby later would be kept, and nothing lost.
            let (begun, mut since) = (Instant::now(), Instant::now());
            while since.elapsed() < Duration::from_secs(3) {
                if !standby.status().contains("keeps 0 changes") {
                    since = Instant::now();
                }
                assert!(begun.elapsed() < PATIENCE, "the standby keeps changes");
            }
            let leader = (!leader_fails).then_some(leader);
            place.server.kill().unwrap();
            replica.promote().unwrap();
            place.server = replica;
            if leader_fails {
                place.end_term();
            }
            write("cart", "3");
            let records = until(&place, "pay added by restart");
            let away = |record: &&String| !record.contains("was away");
            let records: Vec<&str> = records.iter().filter(away).map(String::as_str).collect();
            println!("{leader_fails}: {records:#?}");
            let gap = "gap: the database lost acknowledged records";
            let [first, second] = ["cart added by watch", "bag added by watch"];
            assert_eq!(records, [first, second, gap, "cart updated by restart", "pay added by restart"]);
            assert_eq!(place.reader().check().unwrap().problems, [""; 0]);
            for daemon in leader.into_iter().chain([standby]) {
                let (_, notes, status) = daemon.session.end_with("-TERM");
                assert!(status.success(), "{notes:?}");
            }
        })
        .await;
    }
}
