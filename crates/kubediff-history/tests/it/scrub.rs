//! Issue 19, section 2: what must not be stored is taken out of everything that is stored.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use fastrand::Rng;
use kubediff_history::*;
use serde_json::{Value, json};

use crate::world::{MARK, Replaced, at, body, change, changed, noise, object, observation, open};

const VALUE: &str = "rQ7-00042-zzKw9";
const CHILD: &str = "KUBEDIFF_SCRUB_CHILD";
const OBJECTS: u64 = 7;

const WITHOUT: Replaced = Replaced(VALUE);

fn replace(value: &mut Value) {
    WITHOUT.all_of(value);
}

/// The record of this number: about every third has the value somewhere.
fn record(number: u64, is_noise: bool) -> Observation {
    let mut random = Rng::with_seed(number + if is_noise { 1 << 40 } else { 0 });
    let which = number % OBJECTS;
    let object = object("pods", Some("shop"), &format!("pod-{which}"), &format!("uid-{which}"));
    let mut body = body(&mut random, &object, number);
    let path = match random.u8(..9) {
        0 => {
            body["status"][VALUE] = json!("a name");
            format!("status[{VALUE}]")
        }
        1 => {
            body["status"]["url"] = json!(format!("pg://app:{VALUE}@db"));
            "status.url".to_owned()
        }
        2 => {
            body["spec"]["containers"][0]["env"][3]["value"] = json!(VALUE);
            "spec.containers[web].env[VARIABLE_3].value".to_owned()
        }
        _ => "status.restarts".to_owned(),
    };
    let what = if is_noise {
        noise()
    } else {
        let verb = if number <= OBJECTS { Verb::Added } else { Verb::Updated };
        let mut change = change(verb, &["kubelet"], &[&path]);
        if body.to_string().contains(VALUE) {
            change.summary = format!("{path}: {VALUE}");
            change.diff[0]["new"] = json!(format!("as {VALUE} is"));
        }
        changed(change)
    };
    observation(&object, number, at(i64::try_from(number).unwrap()), &body, what)
}

/// The parts of a record that are to be there in the end.
fn without(mut observation: Observation) -> (Value, String) {
    let mut body = observation.body.value();
    replace(&mut body);
    let change = &mut observation.record;
    replace(&mut change.diff);
    let details = json!([change.diff, change.summary.replace(VALUE, MARK), change.paths]);
    (body, details.to_string().replace(VALUE, MARK))
}

fn fill(history: &mut History, records: u64) {
    history.add_sink("hook").unwrap();
    for number in 1..=records {
        let mut batch = Batch::default();
        batch.observe(record(number, false));
        batch.observe(record(number, true));
        batch.note("open/pods", format!("lost with {VALUE}"));
        history.commit(&batch).unwrap();
    }
    let mut batch = Batch::default();
    batch.gap(at(0), at(1), None, format!("{VALUE} was refused"));
    history.commit(&batch).unwrap();
    let dead = vec![DeadLetter { number: Number(3), object: 3, reason: format!("{VALUE} is no JSON") }];
    history.settle_sink("hook", &Settled { position: Number(3), dead, ..Settled::default() }).unwrap();
}

fn scrub(history: &mut History) -> Scrub {
    let mut scrub = history.scrub_of_all();
    while history.scrub(&mut scrub, &WITHOUT).unwrap() {}
    scrub
}

/// Everything that a reader gets has no value, and is what it was otherwise; and no file has a byte of it.
fn check(path: &Path, records: u64) {
    let mut reader = crate::store::read(path);
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
    let all =
        reader.records(&Filter { gaps: true, ..Filter::default() }, &Page::oldest(10_000)).unwrap().records;
    assert!(!serde_json::to_string(&all).unwrap().contains(VALUE));
    for number in 1..=records {
        let (body, details) = without(record(number, false));
        let found = reader.version_of(Number(number)).unwrap().unwrap();
        assert_eq!(found.body.value(), body, "version {number}");
        let change = found.change.unwrap();
        assert_eq!(
            json!([change.diff, change.summary, change.paths]).to_string(),
            details,
            "change {number}"
        );
        let filter = Filter { paths: change.paths.clone(), ..Filter::default() };
        let page = Page::newest(1).after(Number(number + 1));
        assert_eq!(reader.records(&filter, &page).unwrap().records[0].number(), Number(number));
    }
    for state in reader.state(&Scope::default(), None).unwrap() {
        let number: u64 = state.rv.parse().unwrap();
        if number > records {
            continue;
        }
        assert_eq!(state.body.value(), without(record(number, true)).0, "the state of {number}");
    }
    assert!(reader.paths().unwrap().iter().all(|path| !path.contains(VALUE)));
    let notes = reader.notes().unwrap();
    assert_eq!(notes["open/pods"], format!("lost with {MARK}"));
    let letters = reader.dead_letters("hook", &Page::oldest(10)).unwrap();
    assert_eq!(letters[0].reason, format!("{MARK} is no JSON"));
    drop(reader);
    assert_eq!(crate::store::count(path, VALUE), 0, "in the bytes of the files");
}

#[test]
fn k3_a_scrub_takes_a_value_out_of_everything_that_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    fill(&mut history, 300);
    let before = history.reader().unwrap().size().unwrap();
    assert!(crate::store::count(&path, VALUE) > 10, "dictionaries, notes and full versions have it");
    let scrubbed = scrub(&mut history);
    assert!(scrubbed.masked() > 80 && scrubbed.is_clean(), "{scrubbed:?}");
    check(&path, 300);
    assert_eq!(scrub(&mut history).masked(), 0, "what is masked stays as it is");
    let mut batch = Batch::default();
    batch.scrubbed(scrubbed, at(400), "a test");
    history.commit(&batch).unwrap();
    let after = history.reader().unwrap().size().unwrap();
    assert_eq!((after.changes, after.objects, after.gaps), (before.changes, before.objects, before.gaps));
    // It goes on as a history: the next versions are packed against what is stored now.
    drop(history);
    let mut history = open(&path);
    let mut batch = Batch::default();
    let next = Observation { body: Body::redacted(r#"{"a":1}"#), ..record(301, false) };
    batch.observe(next);
    history.commit(&batch).unwrap();
    check(&path, 300);
    let filter = Filter { gaps: true, ..Filter::default() };
    let newest = history.reader().unwrap().records(&filter, &Page::newest(2)).unwrap().records;
    let Record::Scrubbed(recorded) = &newest[1] else { panic!("{newest:?}") };
    assert_eq!((recorded.from, recorded.to, &*recorded.cause), (Number(1), Number(301), "a test"));
}

#[test]
fn k3_a_scrub_of_the_last_minutes_leaves_older_records_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    fill(&mut history, 200);
    for (since, most, from) in [(150, 1_000, 150), (0, 21, 181)] {
        let mut scrub = history.scrub_since(at(since), most).unwrap();
        while history.scrub(&mut scrub, &WITHOUT).unwrap() {}
        let mut reader = history.reader().unwrap();
        assert_eq!(reader.check().unwrap().problems, [""; 0]);
        let mut has = |number: u64| {
            let version = reader.version_of(Number(number)).unwrap().unwrap();
            version.body.value().to_string().contains(VALUE)
        };
        assert!((from..=200).all(|number| !has(number)) && (1..100).any(&mut has), "since {since}");
    }
}

/// Each step is a transaction: nothing else takes the writer's lock.
#[test]
fn k5_a_step_of_a_scrub_is_a_few_versions() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    fill(&mut history, 500);
    let mut scrub = history.scrub_of_all();
    let (mut masked, mut steps) = (0, 0);
    while history.scrub(&mut scrub, &WITHOUT).unwrap() {
        assert!(scrub.masked() - masked <= 32, "{} versions in a step", scrub.masked() - masked);
        (masked, steps) = (scrub.masked(), steps + 1);
    }
    assert!(steps >= 500 / 32, "{steps} steps");
}

#[test]
fn k3_a_scrub_that_is_killed_and_begun_again_ends_as_one_that_is_not() {
    if let Some(path) = std::env::var_os(CHILD) {
        let mut history = open(Path::new(&path));
        let mut scrub = history.scrub_of_all();
        let mut out = std::io::stdout();
        loop {
            let more = history.scrub(&mut scrub, &WITHOUT).unwrap();
            out.write_all(b"\nstep\n").unwrap();
            out.flush().unwrap();
            if !more {
                return;
            }
        }
    }
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    fill(&mut open(&path), 250);
    for _ in 0..8 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "--nocapture",
            "scrub::k3_a_scrub_that_is_killed_and_begun_again_ends_as_one_that_is_not",
        ]);
        let mut child = command.env(CHILD, &path).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let _ = lines.filter(|line| line == "step").take(random.usize(..12)).count();
        child.kill().unwrap();
        child.wait().unwrap();
        let problems = crate::store::read(&path).check().unwrap().problems;
        assert_eq!(problems, [""; 0], "seed {seed}");
    }
    scrub(&mut open(&path));
    check(&path, 250);
}
