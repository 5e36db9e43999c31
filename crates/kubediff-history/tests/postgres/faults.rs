//! Issue 22, 2 and 3: what goes wrong between a writer and its database loses nothing, and stores nothing twice.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use kubediff_history::*;
use postgres_server::{Durability, Server};
use serde_json::json;

use crate::world::{MARK, Replaced, at, body, change, changed, cluster, object, observation};

pub(crate) fn address(text: &str) -> Location {
    Location::parse(text).unwrap()
}

/// A database with tables.
pub(crate) fn database(server: &Server) -> String {
    let name = server.create_database().unwrap();
    let Location::Database(address) = address(&server.address(&name)) else { panic!("no address") };
    assert!(migrate_database(&address).unwrap(), "the tables are made");
    assert!(!migrate_database(&address).unwrap(), "and are there the second time");
    name
}

#[test]
fn tables_of_format_1_are_migrated_when_somebody_asks_for_it() {
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    let place = address(&server.address(&name));
    let mut history = History::at(&place, &cluster(), &settings("a")).unwrap();
    history.commit(&batch(1..=3)).unwrap();
    drop(history);
    server
        .sql(&name, "DROP TABLE kubediff.users, kubediff.authors, kubediff.documents; DROP INDEX kubediff.versions_of_events; UPDATE kubediff.format SET version = 1")
        .unwrap();
    let refused = History::at(&place, &cluster(), &settings("a")).unwrap_err();
    assert!(matches!(refused, Error::Older { found: 1, .. }), "{refused}");
    assert!(refused.to_string().contains("kubediff history migrate"), "{refused}");
    let Location::Database(of) = &place else { panic!("no address") };
    assert!(migrate_database(of).unwrap() && !migrate_database(of).unwrap());
    let mut history = History::at(&place, &cluster(), &settings("a")).unwrap();
    let jane = User { name: "jane".to_owned(), ..User::default() };
    history.attribute(&[(Number(2), jane.clone())]).unwrap();
    let version = history.reader().unwrap().version_of(Number(2)).unwrap().unwrap();
    assert_eq!(version.change.unwrap().user, Some(jane));
    let document = Document { name: "version".to_owned(), edition: "a".to_owned(), content: b"{}".to_vec() };
    history.document(&document).unwrap();
    assert_eq!(history.reader().unwrap().document("version", Number(3)).unwrap().unwrap(), b"{}");
}

#[test]
fn a_day_is_counted_once_for_all_that_write_it() {
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    let place = address(&server.address(&name));
    // A day is counted at 500 records.
    for first in [1, 601] {
        let mut history = History::at(&place, &cluster(), &settings("a")).unwrap();
        history.commit(&batch(first..=first + 599)).unwrap();
    }
    // Each connection tells its counts at its end.
    let others = "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND datname = current_database() AND pid <> pg_backend_pid()";
    let since = Instant::now();
    while server.sql(&name, others).unwrap() != "0" {
        assert!(since.elapsed() < Duration::from_secs(60), "a connection does not end");
    }
    let counted = "SELECT max(analyze_count) FROM pg_stat_user_tables WHERE relname ~ '^versions_[0-9]'";
    assert_eq!(server.sql(&name, counted).unwrap(), "1");
}

pub(crate) fn settings(holder: &str) -> Settings {
    Settings { holder: Some(holder.to_owned()), ..Settings::default() }
}

/// The version of this number: it follows from the number alone.
fn expected(number: u64) -> Observation {
    let which = number % 7;
    let pod = object("pods", Some("shop"), &format!("pod-{which}"), &format!("uid-{which}"));
    let body = body(&mut Rng::with_seed(number), &pod, number);
    let verb = if number <= 7 { Verb::Added } else { Verb::Updated };
    let time = at(i64::try_from(number).unwrap());
    observation(&pod, number, time, &body, changed(change(verb, &["kubelet"], &["status.restarts"])))
}

pub(crate) fn batch(numbers: std::ops::RangeInclusive<u64>) -> Batch {
    let mut batch = Batch::default();
    let last = *numbers.end();
    numbers.for_each(|number| batch.observe(expected(number)));
    batch.reached("pods", last.to_string());
    batch
}

/// Each of the numbers up to `last` has its version, and nothing else is there.
pub(crate) fn is_whole(reader: &mut Reader, last: u64, context: &str) {
    assert_eq!(reader.check().unwrap().problems, [""; 0], "{context}");
    assert_eq!(reader.last().unwrap().map(|(number, _)| number), Some(Number(last)), "{context}");
    let records = reader.records(&Filter::default(), &Page::oldest(10_000)).unwrap().records;
    let numbers: Vec<u64> = records.iter().map(|record| record.number().0).collect();
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>(), "{context}");
    for number in 1..=last {
        let found = reader.version_of(Number(number)).unwrap().unwrap();
        assert!(found.body == expected(number).body, "{context}: version {number}");
    }
    assert_eq!(reader.positions().unwrap()["pods"], last.to_string(), "{context}");
}

/// Commits a batch as the daemon does: again, as long as the failure may pass.
pub(crate) fn insist(history: &mut History, batch: &Batch) -> u32 {
    let mut again = 0;
    loop {
        match history.commit(batch) {
            Ok(_) => return again,
            Err(error) if error.is_passing() => again += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn what_was_committed_survives_the_end_of_the_server() {
    let kills = std::env::var("INFORMER_SOAK").map_or(3, |times| times.parse().unwrap());
    let seed = fastrand::u64(..);
    println!("seed {seed}, {kills} times");
    let mut random = Rng::with_seed(seed);
    let mut server = Server::start(Durability::Full).unwrap();
    let location = address(&server.address(&database(&server)));
    let mut history = History::at(&location, &cluster(), &settings("a")).unwrap();
    let mut next = 1;
    for kill in 0..kills {
        let (commits, enough) = (AtomicI64::new(0), random.i64(1..30));
        thread::scope(|scope| {
            let writing = scope.spawn(|| {
                // Until the server is gone.
                loop {
                    let last = next + random.u64(0..20);
                    match history.commit(&batch(next..=last)) {
                        Ok(_) => next = last + 1,
                        Err(error) => return assert!(error.is_passing(), "{error:?}"),
                    }
                    commits.fetch_add(1, Ordering::SeqCst);
                }
            });
            while commits.load(Ordering::SeqCst) < enough {
                thread::yield_now();
            }
            server.kill().unwrap();
            writing.join().unwrap();
        });
        server.restart().unwrap();
        // What was not answered is sent again, with more behind it.
        insist(&mut history, &batch(next..=next + 30));
        next += 31;
        is_whole(&mut history.reader().unwrap(), next - 1, &format!("seed {seed}, kill {kill}"));
    }
}

/// Passes bytes between a client and a server until it has passed so many from the server; then it cuts both.
fn cutting(port: u16, left: Arc<AtomicI64>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
            let (to, from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || pass(from, to, &AtomicI64::new(i64::MAX)));
            let left = left.clone();
            thread::spawn(move || pass(server, client, &left));
        }
    });
    own
}

fn pass(mut from: TcpStream, mut to: TcpStream, left: &AtomicI64) {
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let room =
            usize::try_from(left.fetch_sub(i64::try_from(count).unwrap(), Ordering::SeqCst).max(0)).unwrap();
        if to.write_all(&buffer[..count.min(room)]).is_err() || room < count {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn a_batch_whose_answer_is_lost_is_stored_once() {
    let cuts = std::env::var("INFORMER_SOAK").map_or(30, |times| times.parse().unwrap());
    let seed = fastrand::u64(..);
    println!("seed {seed}, {cuts} cuts");
    let mut random = Rng::with_seed(seed);
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let port = cutting(server.port(), left.clone());
    let location = address(&format!("postgres://postgres@127.0.0.1:{port}/{name}"));
    let mut history = History::at(&location, &cluster(), &settings("a")).unwrap();
    let (mut next, mut repeated) = (1, 0);
    for _ in 0..cuts {
        // The answers of a batch have some hundred bytes: this is before them, among them, or behind them.
        left.store(random.i64(0..1_200), Ordering::SeqCst);
        let last = next + random.u64(0..10);
        let sent = history.commit(&batch(next..=last));
        left.store(i64::MAX, Ordering::SeqCst);
        match sent {
            Ok(_) => next = last + 1,
            Err(error) => {
                assert!(error.is_passing(), "{error:?}");
                // What is sent again is cut, too, and somebody else commits in between.
                let mut last = last;
                while random.bool() {
                    last += random.u64(0..3);
                    let most = 1 << random.u8(8..18);
                    let bytes = if random.bool() { i64::MAX } else { random.i64(0..most) };
                    left.store(bytes, Ordering::SeqCst);
                    let mut other = Batch::default();
                    other.note("other", random.u8(..).to_string());
                    let is_other = random.bool();
                    let of = if is_other { &other } else { &batch(next..=last) };
                    match history.commit(of) {
                        // What was stored in fact is known now.
                        Ok(_) if !is_other => next = last + 1,
                        sent => assert!(sent.is_ok() || sent.unwrap_err().is_passing()),
                    }
                    left.store(i64::MAX, Ordering::SeqCst);
                    repeated += 1;
                }
                // More has come meanwhile.
                last += random.u64(1..3);
                repeated += 1 + insist(&mut history, &batch(next..=last));
                next = last + 1;
            }
        }
    }
    println!("{repeated} batches were sent again");
    assert!(repeated > 0, "seed {seed}: nothing was cut");
    let mut reader = Reader::at(&address(&server.address(&name)), Some("test")).unwrap();
    is_whole(&mut reader, next - 1, &format!("seed {seed}"));
}

#[test]
fn k11_one_process_has_the_term_and_a_late_writer_stores_nothing() {
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    let location = address(&server.address(&name));
    let mut first = History::at(&location, &cluster(), &settings("first")).unwrap();
    first.commit(&batch(1..=5)).unwrap();
    let refused = History::at(&location, &cluster(), &settings("second")).unwrap_err();
    assert!(matches!(&refused, Error::Held { holder, .. } if holder == "first"), "{refused}");
    // The first one was stopped for so long that its term is over.
    server
        .sql(&name, "UPDATE kubediff.terms SET expires_at = clock_timestamp() - interval '1 second'")
        .unwrap();
    let mut second = History::at(&location, &cluster(), &settings("second")).unwrap();
    let late = first.commit(&batch(6..=9)).unwrap_err();
    assert!(matches!(late, Error::Fenced { .. }) && !late.is_passing(), "{late}");
    assert!(matches!(first.add_sink("hook"), Err(Error::Fenced { .. })));
    is_whole(&mut second.reader().unwrap(), 5, "after the late writer");
    second.commit(&batch(6..=8)).unwrap();
    drop(first);
    second.commit(&batch(9..=9)).unwrap();
    is_whole(&mut second.reader().unwrap(), 9, "after the end of the late writer");
    drop(second);
    History::at(&location, &cluster(), &settings("third")).unwrap();
}

#[test]
fn k11_a_standby_has_the_term_before_the_process_that_had_it() {
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    let location = address(&server.address(&name));
    let returning = |holder: &str| Settings { returns: true, ..settings(holder) };
    let mut first = History::at(&location, &cluster(), &returning("first")).unwrap();
    first.commit(&batch(1..=5)).unwrap();
    assert!(!first.is_awaited());
    let mut standby = Standby::at(&location, &cluster(), &settings("second")).unwrap();
    assert!(standby.claim().unwrap().is_none());
    assert_eq!(standby.register().unwrap().as_deref(), Some("first"));
    assert!(first.is_awaited());
    assert_eq!(standby.reader().last().unwrap().map(|(last, _)| last), Some(Number(5)));
    drop(first);
    let refused = History::at(&location, &cluster(), &returning("first")).unwrap_err();
    assert!(matches!(refused, Error::Held { .. }), "{refused}");
    let mut second = standby.claim().unwrap().unwrap();
    second.commit(&batch(6..=7)).unwrap();

    // It sees nothing any more, and writes until another process has the term.
    let mut third = Standby::at(&location, &cluster(), &settings("third")).unwrap();
    third.register().unwrap();
    assert!(third.claim().unwrap().is_none());
    second.hold(false);
    second.commit(&batch(8..=8)).unwrap();
    let begun = std::time::Instant::now();
    let mut third = loop {
        if let Some(history) = third.claim().unwrap() {
            break history;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "nobody lends the term");
        thread::park_timeout(std::time::Duration::from_millis(50));
    };
    assert!(matches!(second.commit(&batch(9..=9)), Err(Error::Fenced { .. })));
    third.commit(&batch(9..=9)).unwrap();
    is_whole(&mut third.reader().unwrap(), 9, "after two takeovers");
    // Somebody restores a backup that has not the last record.
    server.sql(&name, "UPDATE kubediff.meta SET value = 9 WHERE name = 'next'").unwrap();
    server.sql(&name, "DELETE FROM kubediff.versions WHERE number = 9").unwrap();
    let gone = third.commit(&batch(10..=10)).unwrap_err();
    assert!(matches!(gone, Error::WentBack { .. }) && gone.ends_the_term(), "{gone}");
}

#[test]
fn a_role_neither_sees_nor_changes_the_log_of_another_one() {
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    let make = "CREATE ROLE a LOGIN IN ROLE kubediff_writer; CREATE ROLE b LOGIN IN ROLE kubediff_writer;
                CREATE ROLE people LOGIN IN ROLE kubediff_reader; CREATE ROLE stranger LOGIN";
    server.sql(&name, make).unwrap();
    let of = |role: &str| address(&server.address_as(role, &name));
    let prod = Cluster { uid: "a-uid".to_owned(), name: Some("prod".to_owned()) };
    let test = Cluster { uid: "b-uid".to_owned(), name: Some("staging".to_owned()) };
    let mut of_a = History::at(&of("a"), &prod, &settings("a")).unwrap();
    let mut of_b = History::at(&of("b"), &test, &settings("b")).unwrap();
    of_a.commit(&batch(1..=20)).unwrap();
    of_b.commit(&batch(1..=3)).unwrap();
    let refused = History::at(&of("b"), &prod, &settings("b")).unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
    let taken = Cluster { uid: "c-uid".to_owned(), name: Some("prod".to_owned()) };
    let refused = History::at(&of("b"), &taken, &settings("b")).unwrap_err();
    assert!(matches!(&refused, Error::NameTaken { uid, .. } if uid == "a-uid"), "{refused:?}");

    // People see both, a stranger none.
    let known = Reader::at(&of("people"), None).unwrap_err();
    assert!(known.to_string().contains("prod, staging"), "{known}");
    assert_eq!(Reader::at(&of("people"), Some("prod")).unwrap().last().unwrap().unwrap().0, Number(20));
    assert_eq!(Reader::at(&of("people"), Some("b-uid")).unwrap().last().unwrap().unwrap().0, Number(3));
    let refused = Reader::at(&of("stranger"), Some("prod")).unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");

    // B asks for A's log with statements of its own.
    let as_b = |sql: &str| {
        let sql =
            format!("SET SESSION AUTHORIZATION b; SET search_path = kubediff; SET kubediff.log = 1; {sql}");
        server.sql(&name, &sql)
    };
    let tables = "terms meta timelines days versions contents objects kinds namespaces managers paths dictionaries gaps scrubs positions notes \
                  prints sinks dead_letters stories members";
    for table in tables.split_whitespace() {
        assert_eq!(as_b(&format!("SELECT count(*) FROM {table}")).unwrap(), "0", "{table}");
        let changed =
            as_b(&format!("WITH gone AS (DELETE FROM {table} RETURNING 1) SELECT count(*) FROM gone"));
        assert_eq!(changed.unwrap(), "0", "{table}");
    }
    assert_eq!(
        as_b(
            "UPDATE meta SET value = 0; SELECT tagged(ARRAY(SELECT generate_series(1, 100)), '{}', 0, 1000)"
        )
        .unwrap(),
        ""
    );
    assert!(as_b("INSERT INTO notes (name, value) VALUES ('a', 'b')").is_err());
    assert!(as_b("INSERT INTO notes (log, name, value) VALUES (1, 'a', 'b')").is_err());
    assert!(as_b("SELECT * FROM logs").is_err() && as_b("DROP TABLE versions").is_err());
    assert_eq!(as_b("SELECT cluster_name FROM log_list").unwrap(), "staging");
    // Tables of its own stand in the place of none of those that functions with other rights use.
    let shadows = "CREATE TEMP TABLE logs (log int, id uuid, cluster_uid text, cluster_name text, owner name);
                   INSERT INTO pg_temp.logs VALUES (1, gen_random_uuid(), 'a-uid', 'prod', 'b');
                   CREATE TEMP TABLE days (log int, day date, last bigint); INSERT INTO pg_temp.days VALUES (1, current_date - 9, 0);
                   CREATE TEMP TABLE meta (log int, name text, value bigint); INSERT INTO pg_temp.meta VALUES (1, 'complete_after', 9)";
    assert_eq!(as_b(&format!("{shadows}; SELECT may_write(), may_read(), drop_days()")).unwrap(), "f|f|0");
    assert_eq!(as_b(&format!("{shadows}; SELECT count(*) FROM kubediff.versions")).unwrap(), "0");
    assert!(as_b("SELECT prepare_days('2001-01-01')").is_err());
    assert!(as_b("SELECT * FROM versions_kept").is_err() && as_b("DELETE FROM contents_kept").is_err());
    // Numbers that B takes for its own rows are in nobody's way.
    let taken = "INSERT INTO paths (id, name) SELECT n, n::text FROM generate_series(40, 2000) n;
                 INSERT INTO objects (id, family, namespace, name, uid, first) SELECT n, 1, 1, 'x', n::text, 1 FROM generate_series(5000, 9000) n";
    server
        .sql(
            &name,
            &format!(
                "SET SESSION AUTHORIZATION b; SET search_path = kubediff; SET kubediff.log = 2; {taken}"
            ),
        )
        .unwrap();
    is_whole(&mut Reader::at(&of("people"), Some("prod")).unwrap(), 20, "after B's attempts");
    let mut elsewhere = Batch::default();
    let paths: Vec<String> = (0..60).map(|number| format!("spec.p{number}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let pod = object("pods", Some("elsewhere"), "pod", "another");
    elsewhere.observe(observation(
        &pod,
        21,
        at(21),
        &json!({}),
        changed(change(Verb::Added, &["helm"], &paths)),
    ));
    assert_eq!(of_a.commit(&elsewhere).unwrap(), Number(21));
}

#[test]
fn bad_input_has_a_remedy() {
    let server = Server::start(Durability::None).unwrap();
    let empty = server.create_database().unwrap();
    let error = |location: &str| Reader::at(&address(location), None).unwrap_err().to_string();
    let nothing = error(&server.address(&empty));
    assert!(nothing.contains("kubediff history migrate postgres://"), "{nothing}");
    let missing = error(&server.address("nowhere"));
    assert!(missing.contains("refuses this login"), "{missing}");
    let gone = error("postgres://postgres:secret@127.0.0.1:1/db");
    assert!(gone.contains("cannot be reached") && !gone.contains("secret"), "{gone}");
    let name = database(&server);
    let none = error(&server.address(&name));
    assert!(none.contains("no history") && none.contains("kubediff serve"), "{none}");
    server.sql(&name, "UPDATE kubediff.format SET version = 9, oldest_program = 9").unwrap();
    let newer = History::at(&address(&server.address(&name)), &cluster(), &settings("a")).unwrap_err();
    assert!(matches!(newer, Error::Newer { found: 9, .. }), "{newer:?}");
}

#[test]
fn a_password_is_read_from_its_file_at_each_connection() {
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    server.require_passwords().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    server.sql(&name, "CREATE ROLE a LOGIN IN ROLE kubediff_writer PASSWORD 'first'").unwrap();
    std::fs::write(&file, "first\n").unwrap();
    let text = format!("{}?passwordfile={}", server.address_as("a", &name), file.display());
    let mut history = History::at(&address(&text), &cluster(), &settings("a")).unwrap();
    history.commit(&batch(1..=3)).unwrap();
    server.sql(&name, "ALTER ROLE a PASSWORD 'second'").unwrap();
    let refused = Reader::at(&address(&text), None).unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
    std::fs::write(&file, "second").unwrap();
    // A connection that is cut comes again with the new one.
    server
        .sql(
            "postgres",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kubediff'",
        )
        .unwrap();
    insist(&mut history, &batch(4..=5));
}

#[test]
fn a_day_that_is_dropped_leaves_a_history_that_is_whole_by_itself() {
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    let location = address(&server.address(&name));
    let mut history = History::at(&location, &cluster(), &settings("a")).unwrap();
    history.commit(&batch(1..=40)).unwrap();
    let mut noise = expected(40);
    noise.what = What::Noise;
    let mut more = Batch::default();
    more.observe(noise);
    history.commit(&more).unwrap();
    drop(history);
    // What was written is of three days ago.
    let age = "SELECT kubediff.prepare_days(current_date - 3);
               UPDATE kubediff.versions SET day = day - 3; UPDATE kubediff.contents SET day = day - 3; UPDATE kubediff.days SET day = day - 3";
    server.sql(&name, age).unwrap();
    let mut history = History::at(&location, &cluster(), &settings("a")).unwrap();
    history.commit(&batch(41..=60)).unwrap();
    let bases = "SELECT count(*) FROM kubediff.versions v JOIN kubediff.versions b ON b.number = v.base AND b.log = v.log WHERE b.day <> v.day";
    assert_eq!(server.sql(&name, bases).unwrap(), "0", "no delta crosses a day");
    let mut reader = history.reader().unwrap();
    is_whole(&mut reader, 60, "with two days");
    let states = reader.state(&Scope::default(), Some(at(50))).unwrap();
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'kubediff.versions'::regclass";
    let before: u32 = server.sql(&name, partitions).unwrap().parse().unwrap();
    let retention = Retention { count: Some(20), ..Retention::default() };
    let retained = crate::world::retain(&mut history, &retention, at(60));
    assert_eq!((retained.complete_after, retained.versions), (Number(40), 33));
    let after: u32 = server.sql(&name, partitions).unwrap().parse().unwrap();
    assert!(after < before, "the day is gone");
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
    assert_eq!(
        reader.state(&Scope::default(), Some(at(50))).unwrap(),
        states,
        "the states after it are as before"
    );
    for number in 41..=60 {
        let before = reader.version_before(Number(number)).unwrap().unwrap();
        assert!(before.body == expected(number - 7).body, "the state before {number}");
    }
    history.commit(&batch(61..=70)).unwrap();
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
    assert_eq!(reader.records(&Filter::default(), &Page::newest(1)).unwrap().records[0].number(), Number(70));
    let mut marked = Batch::default();
    marked.note("a", json!("b").to_string());
    history.commit(&marked).unwrap();
}

/// A content that was read ahead is not the one that is kept, where a scrub has masked it meanwhile.
#[test]
fn a_step_that_was_prepared_keeps_what_a_scrub_has_left() {
    let server = Server::start(Durability::None).unwrap();
    let location = address(&server.address(&database(&server)));
    let mut history = History::at(&location, &cluster(), &settings("a")).unwrap();
    history.commit(&batch(1..=40)).unwrap();
    let mut reader = history.reader().unwrap();
    let retention = Retention { count: Some(20), ..Retention::default() };
    let mut plan = reader.plan(&retention, at(60)).unwrap();
    reader.prepare(&mut plan).unwrap();
    let masked = Replaced("VARIABLE_1");
    let mut scrub = history.scrub_of_all();
    while history.scrub(&mut scrub, &masked).unwrap() {}
    let states = reader.state(&Scope::default(), Some(at(20))).unwrap();
    assert!(states.iter().any(|it| it.body.value().to_string().contains(MARK)));
    let step = history.retain(&plan).unwrap();
    assert_eq!((step.complete_after, step.versions, step.rebased), (Number(20), 13, 7), "in one step");
    assert!(reader.state(&Scope::default(), Some(at(20))).unwrap() == states, "the states are as they were");
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
    assert!(!history.retain(&plan).unwrap().more, "what was prepared is of a step that was taken");
}

/// A step that is prepared removes no more than the limit of bytes asks for, whatever the number of objects.
#[test]
fn a_step_that_was_prepared_ends_where_the_bytes_suffice() {
    let server = Server::start(Durability::None).unwrap();
    let location = address(&server.address(&database(&server)));
    let mut history = History::at(&location, &cluster(), &settings("a")).unwrap();
    history.commit(&batch(1..=400)).unwrap();
    let mut reader = history.reader().unwrap();
    let used = reader.size().unwrap().bytes;
    let retention = Retention { bytes: Some(used - used / 8), ..Retention::default() };
    let mut plan = reader.plan(&retention, at(400)).unwrap();
    let mut steps = 0;
    loop {
        reader.prepare(&mut plan).unwrap();
        if !history.retain(&plan).unwrap().more {
            break;
        }
        steps += 1;
    }
    let left = reader.size().unwrap().bytes;
    // A sixteenth more than the limit asks for goes, and some of the last step.
    assert!(left < used - used / 8 && left > used / 2, "{used} bytes, {left} are left after {steps} steps");
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
}
