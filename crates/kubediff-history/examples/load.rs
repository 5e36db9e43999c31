//! How fast a history takes versions of pods while two readers read it, and how large it becomes.
//!
//!     cargo run --release -p kubectl-changes-history --features postgres --example load -- [SECONDS] [FOLDER | postgres [MEASURE NUMBER]]
//!
//! `postgres` starts a PostgreSQL on this machine, which writes to the disk before it answers, as SQLite does. Its measures:
//!
//!     logs 4             that many histories are written at once
//!     writers 100        that many daemons with 10 changes a second each: how long their commits take
//!     questions 2000000  the newest 50 of a namespace, a path and an object among so many changes, and the bytes of each, also in a file
//!     retention 200000   so many changes of an old day are removed, as many as go in the time: how long writers wait
//!
//! How long questions about many clusters take, as the program answers them (`cargo build --release -p kubectl-changes`):
//!
//!     cargo run --release -p kubectl-changes-history --features postgres --example load -- fleet LOGS CHANGES target/release/kubediff

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use jiff::Timestamp;
use kubediff_history::*;
use serde_json::{Value, json};

const PODS: usize = 2_000;
/// Versions of each pod that are prepared; the load goes round them.
const VERSIONS: usize = 10;
const BATCH: usize = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    if std::env::args().nth(1).as_deref() == Some("fleet") {
        return fleet(&arguments.skip(1).collect::<Vec<_>>());
    }
    let seconds: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let time = Duration::from_secs(seconds);
    let place = arguments.next();
    if place.as_deref() == Some("postgres") {
        let measure = arguments.next();
        let number = arguments.next().map_or(Ok(0), |text| text.parse())?;
        return in_postgres(time, measure.as_deref(), number);
    }
    let folder = place.map_or_else(std::env::temp_dir, Into::into);
    let path = folder.join(format!("history-load-{}.db", std::process::id()));
    let measured = load(&Location::File(path.clone()), time);
    for end in ["", "-wal", "-shm", "-lock"] {
        let mut name = path.clone().into_os_string();
        name.push(end);
        // A missing file is removed already.
        let _ = std::fs::remove_file(name);
    }
    measured
}

#[cfg(feature = "postgres")]
fn in_postgres(time: Duration, measure: Option<&str>, number: usize) -> Result<(), Box<dyn Error>> {
    let server = postgres_server::Server::start(postgres_server::Durability::Full)?;
    let database = server.create_database()?;
    let location = Location::parse(&server.address(&database))?;
    if let Location::Database(address) = &location {
        migrate_database(address)?;
    }
    match measure {
        None => load(&location, time),
        Some("logs") => logs(&location, time, number),
        Some("writers") => writers(&location, time, number),
        Some("questions") => {
            let file = std::env::temp_dir().join(format!("history-load-{}.db", std::process::id()));
            let size = questions(&Location::File(file.clone()), number, || Ok(Reader::bytes(&file)));
            std::fs::remove_file(&file)?;
            println!("a change in a file: {} bytes", size? / number as u64);
            let sql = format!("SELECT pg_database_size('{database}')");
            let size = questions(&location, number, || Ok(server.sql(&database, &sql)?.parse()?))?;
            println!("a change in PostgreSQL, tables and indexes: {} bytes", size / number as u64);
            Ok(())
        }
        Some("retention") => {
            retention(&location, time, number, |sql| Ok(server.sql(&database, sql).map(drop)?))
        }
        Some(other) => Err(format!("{other} is no measure").into()),
    }
}

#[cfg(not(feature = "postgres"))]
fn in_postgres(_: Duration, _: Option<&str>, _: usize) -> Result<(), Box<dyn Error>> {
    Err("this needs `--features postgres`".into())
}

/// The history of one of several clusters.
#[cfg(feature = "postgres")]
fn history_of(place: &Location, which: usize) -> Result<History, kubediff_history::Error> {
    let name = format!("load-{which}");
    History::at(place, &Cluster { uid: name.clone(), name: Some(name) }, &Settings::default())
}

/// The next changes of the prepared ones.
#[cfg(feature = "postgres")]
fn next_batch(prepared: &[Vec<Observation>], written: &mut usize, count: usize) -> Batch {
    let mut batch = Batch::default();
    for _ in 0..count {
        let of = prepared
            .get(*written % prepared.len())
            .and_then(|pod| pod.get(*written / prepared.len() % VERSIONS));
        of.into_iter().for_each(|of| batch.observe(of.clone()));
        *written += 1;
    }
    batch.reached("pods", written.to_string());
    batch
}

#[cfg(feature = "postgres")]
fn logs(place: &Location, time: Duration, count: usize) -> Result<(), Box<dyn Error>> {
    let prepared = prepare();
    let all = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let write = |which| {
            let (prepared, all) = (&prepared, &all);
            scope.spawn(move || -> Result<(), kubediff_history::Error> {
                let (mut history, mut written, started) = (history_of(place, which)?, 0, Instant::now());
                while started.elapsed() < time {
                    history.commit(&next_batch(prepared, &mut written, BATCH))?;
                    all.fetch_add(BATCH as u64, Ordering::Relaxed);
                }
                Ok(())
            })
        };
        let threads: Vec<_> = (0..count).map(write).collect();
        threads.into_iter().try_for_each(|thread| Ok(thread.join().map_err(|_| "a writer panicked")??))
    })
    .map_err(|error: Box<dyn Error>| error)?;
    println!("{count} logs: {:.0} versions/s in sum", all.into_inner() as f64 / time.as_secs_f64());
    Ok(())
}

#[cfg(feature = "postgres")]
fn writers(place: &Location, time: Duration, count: usize) -> Result<(), Box<dyn Error>> {
    /// A daemon commits that often.
    const PACE: Duration = Duration::from_millis(200);
    let prepared: Vec<_> = prepare().into_iter().take(20).collect();
    let took = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let write = |which: usize| {
            let (prepared, took) = (&prepared, &took);
            scope.spawn(move || -> Result<(), kubediff_history::Error> {
                let mut history = history_of(place, which)?;
                let (mut written, started, mut mine) = (0, Instant::now(), Vec::new());
                let mut next = PACE * u32::try_from(which % 100).unwrap_or_default() / 100;
                while next < time {
                    std::thread::sleep(next.saturating_sub(started.elapsed()));
                    let begun = Instant::now();
                    history.commit(&next_batch(prepared, &mut written, 2))?;
                    // The first ones wait for the connections of all.
                    if next > Duration::from_secs(3) {
                        mine.push(begun.elapsed());
                    }
                    next = (next + PACE).max(started.elapsed().saturating_sub(PACE));
                }
                took.lock().map(|mut took| took.append(&mut mine)).unwrap_or_default();
                Ok(())
            })
        };
        let threads: Vec<_> = (0..count).map(write).collect();
        threads.into_iter().try_for_each(|thread| Ok(thread.join().map_err(|_| "a writer panicked")??))
    })
    .map_err(|error: Box<dyn Error>| error)?;
    let took = took.into_inner().unwrap_or_default();
    println!("{count} writers with 10 changes/s each, {} commits: {}", took.len(), spread(took));
    Ok(())
}

/// How long something took.
#[cfg(feature = "postgres")]
fn spread(mut took: Vec<Duration>) -> String {
    took.sort_unstable();
    let part = |part: usize| took.get((took.len() * part / 1_000).min(took.len().saturating_sub(1)));
    let part = |of| part(of).copied().unwrap_or_default().as_secs_f64() * 1_000.0;
    format!("p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms", part(500), part(990), part(1_000))
}

/// Fills a history, asks it, and returns its size.
#[cfg(feature = "postgres")]
fn questions(
    place: &Location,
    count: usize,
    size: impl FnOnce() -> Result<u64, Box<dyn Error>>,
) -> Result<u64, Box<dyn Error>> {
    let (mut history, prepared, mut written) = (history_of(place, 0)?, prepare(), 0);
    let started = Instant::now();
    while written < count {
        history.commit(&next_batch(&prepared, &mut written, BATCH))?;
    }
    println!("{written} changes in {:.0} s", started.elapsed().as_secs_f64());
    let mut reader = history.reader()?;
    let mut random = Rng::with_seed(7);
    for what in ["namespace", "path", "object"] {
        let mut took = Vec::new();
        for _ in 0..50 {
            let (mut filter, pod) = (Filter::default(), random.usize(..PODS));
            match what {
                "namespace" => filter.scope.namespaces = vec![namespace(pod)],
                "path" => filter.paths = vec!["status.containerStatuses".to_owned()],
                _ => filter.scope.uid = Some(uid(pod)),
            }
            let begun = Instant::now();
            let found = reader.records(&filter, &Page::newest(50))?.records.len();
            took.push(begun.elapsed());
            assert_eq!(found, 50.min(count / PODS), "of a {what}");
        }
        println!("the newest 50 of a {what}: {}", spread(took));
    }
    drop(history);
    size()
}

#[cfg(feature = "postgres")]
fn retention(
    place: &Location,
    time: Duration,
    count: usize,
    sql: impl Fn(&str) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let (mut history, prepared, mut written) = (history_of(place, 0)?, prepare(), 0);
    while written < count {
        history.commit(&next_batch(&prepared, &mut written, BATCH))?;
    }
    drop(history);
    sql("SELECT kubediff.prepare_days(current_date - 4); UPDATE kubediff.versions SET day = day - 4;
         UPDATE kubediff.contents SET day = day - 4; UPDATE kubediff.days SET day = day - 4; ANALYZE kubediff.versions")?;
    let mut history = history_of(place, 0)?;
    history.commit(&next_batch(&prepared, &mut written, BATCH))?;
    let (ended, mut is_over, mut ahead) = (AtomicBool::new(false), false, Duration::ZERO);
    let (steps, own, versions, others) = std::thread::scope(|scope| -> Result<_, Box<dyn Error>> {
        let other = scope.spawn(|| -> Result<_, kubediff_history::Error> {
            let (mut history, mut written, mut took) = (history_of(place, 1)?, 0, Vec::new());
            while !ended.load(Ordering::Relaxed) {
                let begun = Instant::now();
                history.commit(&next_batch(&prepared, &mut written, 10))?;
                took.push(begun.elapsed());
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(took)
        });
        let kept = Retention { count: Some(BATCH as u64), ..Retention::default() };
        let (mut steps, mut own, mut versions, started) = (Vec::new(), Vec::new(), 0, Instant::now());
        loop {
            let mut reader = history.reader()?;
            let mut plan = reader.plan(&kept, Timestamp::now())?;
            let mut more = true;
            while more && started.elapsed() < time {
                // A daemon commits between two steps, and meanwhile.
                let begun = Instant::now();
                reader.prepare(&mut plan)?;
                ahead += begun.elapsed();
                let begun = Instant::now();
                let step = history.retain(&plan)?;
                (more, versions) = (step.more, versions + step.versions);
                steps.push(begun.elapsed());
                let begun = Instant::now();
                history.commit(&next_batch(&prepared, &mut written, 1))?;
                own.push(begun.elapsed());
            }
            if !plan.leaves_some() || started.elapsed() >= time {
                break;
            }
        }
        ended.store(true, Ordering::Relaxed);
        is_over = started.elapsed() < time;
        Ok((steps, own, versions, other.join().map_err(|_| "a writer panicked")??))
    })?;
    println!(
        "{versions} of {count} changes removed in {} steps, read ahead in {:.0} s; the writer of the log waits for each step: {}",
        steps.len(),
        ahead.as_secs_f64(),
        spread(steps)
    );
    println!("its commits in between: {}", spread(own));
    println!("commits of another log meanwhile: {}", spread(others));
    if !is_over {
        return Ok(());
    }
    sql(
        "DO $$ BEGIN IF EXISTS (SELECT FROM kubediff.days WHERE day < current_date) THEN RAISE 'the day is there'; END IF; END $$",
    )
}

/// Fills a database with logs of as many changes each, one each 26 s until now, and asks the program about all of them.
#[cfg(feature = "postgres")]
fn fleet(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [logs, changes, program] = arguments else { return Err("LOGS CHANGES PROGRAM".into()) };
    let (logs, changes): (usize, usize) = (logs.parse()?, changes.parse()?);
    let server = postgres_server::Server::start(postgres_server::Durability::None)?;
    let database = server.create_database()?;
    let location = Location::parse(&server.address(&database))?;
    if let Location::Database(address) = &location {
        migrate_database(address)?;
    }
    let prepared = prepare();
    let (now, pace) = (Timestamp::now(), jiff::SignedDuration::from_secs(26));
    let started = Instant::now();
    for log in 0..logs {
        let cluster = Cluster { uid: format!("uid-{log}"), name: Some(format!("cluster-{log:03}")) };
        let mut history = History::at(&location, &cluster, &Settings::default())?;
        let mut batch = Batch::default();
        for change in 0..changes {
            let of = prepared.get(change % PODS).and_then(|pod| pod.get(change / PODS % VERSIONS));
            let mut of = of.ok_or("nothing prepared")?.clone();
            let ago = pace * i32::try_from(changes - change)?;
            // Each cluster has its own milliseconds.
            of.record.observed_at = now - ago + jiff::SignedDuration::from_millis(i64::try_from(log)?);
            batch.observe(of);
            if batch.len() == BATCH || change + 1 == changes {
                history.commit(&std::mem::take(&mut batch))?;
            }
        }
    }
    println!("{logs} logs x {changes} changes in {} s", started.elapsed().as_secs());
    server.sql(&database, "VACUUM ANALYZE")?;
    for question in [
        "log --all-clusters --since -1h --oneline",
        "log --all-clusters --since -1h --oneline --limit 50",
        "log --all-clusters --oneline --limit 50",
        "log --all-clusters -n team-7 --since -1h --oneline",
        "log --cluster cluster-001 --since -1h --oneline",
        "diff po/web-7 --cluster cluster-001 --to-cluster cluster-002",
        "clusters",
    ] {
        let (mut times, mut lines) = (Vec::new(), 0);
        for _ in 0..5 {
            let started = Instant::now();
            let mut command = std::process::Command::new(program);
            let command = command.args(question.split(' ')).args(["--history", &server.address(&database)]);
            let output = command.output()?;
            times.push(started.elapsed().as_millis());
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            }
            lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
        }
        println!("{question}: {lines} lines, ms: {times:?}");
    }
    Ok(())
}

#[cfg(not(feature = "postgres"))]
fn fleet(_: &[String]) -> Result<(), Box<dyn Error>> {
    Err("this needs `--features postgres`".into())
}

fn load(place: &Location, time: Duration) -> Result<(), Box<dyn Error>> {
    let cluster = Cluster { uid: "load".to_owned(), name: None };
    let mut history = History::at(place, &cluster, &Settings::default())?;
    let prepared = prepare();
    let bytes: usize = prepared.iter().flatten().map(|it| it.body.bytes().len()).sum();
    let mean = bytes / (PODS * VERSIONS);
    println!("{PODS} pods, versions of {mean} bytes, batches of {BATCH}, two readers");

    let ended = AtomicBool::new(false);
    let reads = AtomicU64::new(0);
    let mut written = 0_usize;
    std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        let readers: Vec<_> = [1, 2]
            .map(|seed| {
                scope.spawn({
                    let (ended, reads) = (&ended, &reads);
                    move || read(place, seed, ended, reads)
                })
            })
            .into();
        let started = Instant::now();
        let (mut next_report, mut slowest) = (Duration::from_secs(5), Duration::ZERO);
        while started.elapsed() < time {
            let mut batch = Batch::default();
            for _ in 0..BATCH {
                let of = prepared.get(written % PODS).and_then(|pod| pod.get(written / PODS % VERSIONS));
                batch.observe(of.ok_or("nothing prepared")?.clone());
                written += 1;
            }
            batch.reached("pods", written.to_string());
            let commit = Instant::now();
            history.commit(&batch)?;
            slowest = slowest.max(commit.elapsed());
            if started.elapsed() >= next_report {
                report(&mut history.reader()?, started.elapsed(), written, &reads)?;
                next_report += Duration::from_secs(5);
            }
        }
        let elapsed = started.elapsed();
        ended.store(true, Ordering::Relaxed);
        report(&mut history.reader()?, elapsed, written, &reads)?;
        println!("slowest commit of {BATCH}: {} ms", slowest.as_millis());
        for reader in readers {
            reader.join().map_err(|_| "a reader panicked")??;
        }
        Ok(())
    })?;
    let mut reader = history.reader()?;
    drop(history);
    let size = reader.size()?.bytes;
    let per_change = size / written as u64;
    println!(
        "size: {size} bytes, {per_change} per change; as full JSON: {mean}, {:.1} times as much",
        mean as f64 / per_change as f64
    );
    Ok(())
}

fn report(
    reader: &mut Reader,
    elapsed: Duration,
    written: usize,
    reads: &AtomicU64,
) -> Result<(), Box<dyn Error>> {
    let rate = |count: f64| count / elapsed.as_secs_f64();
    println!(
        "{:3} s: {:6.0} versions/s, {:5.0} reads/s, memory {} MB, size {} MB",
        elapsed.as_secs(),
        rate(written as f64),
        rate(reads.load(Ordering::Relaxed) as f64),
        memory()? >> 20,
        reader.size()?.bytes >> 20
    );
    Ok(())
}

/// The bytes of memory that this process holds (Linux).
fn memory() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}

/// The questions of people and sinks: the latest changes of a namespace, of a path, and one pod's state.
fn read(
    place: &Location,
    seed: u64,
    ended: &AtomicBool,
    reads: &AtomicU64,
) -> Result<(), kubediff_history::Error> {
    let mut reader = Reader::at(place, None)?;
    let mut random = Rng::with_seed(seed);
    while !ended.load(Ordering::Relaxed) {
        let pod = random.usize(..PODS);
        let mut filter = Filter::default();
        match random.u8(..3) {
            0 => filter.scope.namespaces = vec![namespace(pod)],
            1 => filter.paths = vec!["status.containerStatuses".to_owned()],
            _ => filter.scope.uid = Some(uid(pod)),
        }
        reader.records(&filter, &Page::newest(50))?;
        for incarnation in reader.incarnations(&Scope { uid: Some(uid(pod)), ..Scope::default() })? {
            reader.version(&incarnation, &At::Newest)?;
        }
        reads.fetch_add(1, Ordering::Relaxed);
        // Two readers at full speed would be a measurement of readers.
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn namespace(pod: usize) -> String {
    format!("team-{}", pod % 20)
}

fn uid(pod: usize) -> String {
    let mut random = Rng::with_seed(pod as u64);
    format!(
        "{:08x}-{:04x}-4{:03x}-{:012x}",
        random.u32(..),
        random.u16(..),
        random.u16(..4096),
        random.u64(..1 << 48)
    )
}

fn prepare() -> Vec<Vec<Observation>> {
    let mut random = Rng::with_seed(7);
    (0..PODS)
        .map(|pod| (0..VERSIONS).map(|version| observation(&mut random, pod, version)).collect())
        .collect()
}

/// A container that restarts: what a kubelet writes.
fn observation(random: &mut Rng, pod: usize, version: usize) -> Observation {
    let at = Timestamp::UNIX_EPOCH
        + jiff::SignedDuration::from_secs(1_800_000_000 + 7 * version as i64 + pod as i64);
    let rv = 10_000_000 + version * 50_000 + pod * 13;
    let hex = |random: &mut Rng| format!("containerd://{:032x}{:032x}", random.u128(..), random.u128(..));
    let (before, now) = (hex(random), hex(random));
    let is_ready = version.is_multiple_of(2);
    let body = pod_json(pod, rv, at, version, (&before, &now));
    let restarts = |old: &Value, new: &Value| json!({"path": "status.containerStatuses[web]", "kind": "changed", "old": old, "new": new});
    let diff = json!([
        {"path": "status.conditions[Ready].status", "kind": "changed", "old": (!is_ready).to_string(), "new": is_ready.to_string()},
        {"path": "status.conditions[Ready].lastTransitionTime", "kind": "changed", "old": at.to_string(), "new": at.to_string()},
        {"path": "status.containerStatuses[web].restartCount", "kind": "changed", "old": version, "new": version + 1},
        restarts(&json!({"containerID": before}), &json!({"containerID": now})),
    ]);
    let paths = [
        "status.conditions[Ready].status",
        "status.conditions[Ready].lastTransitionTime",
        "status.containerStatuses[web].restartCount",
        "status.containerStatuses[web].containerID",
    ];
    let kubelet = Manager {
        manager: "kubelet".to_owned(),
        operation: "Update".to_owned(),
        subresource: Some("status".to_owned()),
        time: Some(at),
        probable: false,
    };
    let record = ChangeRecord {
        object: ObjectId {
            gvk: Gvk { group: String::new(), version: "v1".to_owned(), kind: "Pod".to_owned() },
            resource: "pods".to_owned(),
            namespace: Some(namespace(pod)),
            name: format!("web-{pod}"),
            uid: uid(pod),
        },
        rv_before: Some((rv - 50_000).to_string()),
        rv: Some(rv.to_string()),
        observed_at: at,
        managers: vec![kubelet],
        paths: paths.map(str::to_owned).into(),
        diff,
        summary: format!("container web restarted, {} times", version + 1),
        dropped: [("generation".to_owned(), 1), ("managed-fields".to_owned(), 2)].into(),
        key: Some("0badcafe".to_owned()),
        merged: 1,
        ..ChangeRecord::default()
    };
    Observation { record, body: Body::redacted(body.to_string()), what: What::Change, replaces: None }
}

fn pod_json(pod: usize, rv: usize, at: Timestamp, version: usize, (before, now): (&str, &str)) -> Value {
    let ready = version.is_multiple_of(2);
    let env: Vec<Value> = (0..40)
        .map(|n| json!({"name": format!("SETTING_{n}"), "value": format!("http://service-{n}.team-{}.svc.cluster.local:8080/path", pod % 20)}))
        .collect();
    let owned: Value = (0..40)
        .map(|n| (format!("k:{{\"name\":\"SETTING_{n}\"}}"), json!({".": {}, "f:name": {}, "f:value": {}})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let condition = |kind: &str, ready: bool| json!({"type": kind, "status": if ready { "True" } else { "False" }, "lastProbeTime": null, "lastTransitionTime": at.to_string()});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("web-{pod}"), "namespace": namespace(pod), "uid": uid(pod), "resourceVersion": rv.to_string(),
            "creationTimestamp": "2027-01-15T08:00:00Z", "generateName": "web-",
            "labels": {"app": "web", "pod-template-hash": "7c9d8b6f5d", "team": format!("team-{}", pod % 20)},
            "annotations": {"checksum/config": format!("{:x}", 0x1234_5678_9abc_u64 * pod as u64)},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7c9d8b6f5d", "uid": uid(pod % 20), "controller": true}],
            "managedFields": [
                {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2027-01-15T08:00:00Z", "fieldsType": "FieldsV1",
                 "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:env": owned}}}}},
                {"manager": "kubelet", "operation": "Update", "subresource": "status", "apiVersion": "v1", "time": at.to_string(), "fieldsType": "FieldsV1",
                 "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}}, "f:containerStatuses": {}}}},
            ],
        },
        "spec": {
            "containers": [{"name": "web", "image": "registry.example.com/shop/web:1.2.3", "env": env,
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "volumeMounts": [{"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}]}],
            "nodeName": format!("node-{}", pod % 100), "serviceAccountName": "web", "restartPolicy": "Always",
            "volumes": [{"name": "kube-api-access", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}],
        },
        "status": {
            "phase": "Running", "podIP": format!("10.{}.{}.7", pod / 250, pod % 250), "hostIP": format!("192.168.0.{}", pod % 100),
            "conditions": [condition("Initialized", true), condition("Ready", ready), condition("ContainersReady", ready), condition("PodScheduled", true)],
            "containerStatuses": [{"name": "web", "image": "registry.example.com/shop/web:1.2.3", "ready": ready, "started": ready, "restartCount": version + 1,
                "containerID": now, "imageID": "registry.example.com/shop/web@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
                "state": {"running": {"startedAt": at.to_string()}},
                "lastState": {"terminated": {"containerID": before, "exitCode": 137, "reason": "OOMKilled", "finishedAt": at.to_string()}}}],
        },
    })
}
