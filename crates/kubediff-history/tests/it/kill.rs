//! Issue 12, history store: a process that is killed while it writes loses nothing that was acknowledged.
//!
//! `cargo xtask soak kill` does this 200 times.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fastrand::Rng;
use kubediff_history::*;

use crate::world::{at, body, change, changed, object, observation, open, retain};

/// The file, for the process that writes.
const CHILD: &str = "KUBEDIFF_HISTORY_CHILD";
const OBJECTS: u64 = 37;
const KILLS: u32 = 20;

/// The record of this number: it follows from the number alone.
fn expected(number: u64) -> Observation {
    let which = number % OBJECTS;
    let object = object("pods", Some("shop"), &format!("pod-{which}"), &format!("uid-{which}"));
    let body = body(&mut Rng::with_seed(number), &object, number);
    let verb = if number <= OBJECTS { Verb::Added } else { Verb::Updated };
    let paths = ["status.restarts", "status.token"];
    observation(
        &object,
        number,
        at(i64::try_from(number).unwrap()),
        &body,
        changed(change(verb, &["kubelet"], &paths)),
    )
}

#[test]
fn acknowledged_changes_survive_sigkill() {
    if let Some(path) = std::env::var_os(CHILD) {
        return write_until_killed(Path::new(&path));
    }
    let kills = std::env::var("INFORMER_SOAK").map_or(KILLS, |times| times.parse().unwrap());
    let seed = fastrand::u64(..);
    println!("seed {seed}, {kills} times");
    let mut random = Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let (mut checked, mut removed) = (0, 0);
    for kill in 0..kills {
        let acknowledged = kill_a_writer(&path, &mut random);
        // It is opened as a restarted program does.
        drop(open(&path));
        let mut reader = Reader::open(&path).unwrap();
        let (last, _) = reader.last().unwrap().unwrap();
        assert!(last.0 >= acknowledged, "seed {seed}, kill {kill}: {last} of {acknowledged}");
        assert_eq!(reader.positions().unwrap()["pods"], last.to_string(), "seed {seed}, kill {kill}");
        let problems = reader.check().unwrap().problems;
        assert_eq!(problems, [""; 0], "seed {seed}, kill {kill}");
        let first = last.0.saturating_sub(200).max(1);
        for number in first..=last.0 {
            let wanted = expected(number);
            let scope = Scope { uid: Some(wanted.record.object.uid.clone()), ..Scope::default() };
            let incarnation = reader.incarnations(&scope).unwrap().pop().unwrap();
            let found = reader.version(&incarnation, &At::Number(Number(number))).unwrap();
            let found = found.unwrap_or_else(|| panic!("seed {seed}, kill {kill}: no version {number}"));
            assert!(
                found.body == wanted.body && Some(&found.rv) == wanted.record.rv.as_ref(),
                "seed {seed}, kill {kill}: {number}"
            );
            checked += 1;
        }
        let records = reader.records(&Filter::default(), &Page::oldest(10_000)).unwrap().records;
        removed = last.0 - records.len() as u64;
    }
    println!("{checked} versions were compared; retention had removed {removed} of the last file's records");
}

/// Returns the last number that the writer acknowledged before it was killed.
fn kill_a_writer(path: &Path, random: &mut Rng) -> u64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "kill::acknowledged_changes_survive_sigkill"]);
    let mut child = command.env(CHILD, path).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut lines = lines.filter_map(|line| line.strip_prefix("ack ").map(|it| it.parse::<u64>().unwrap()));
    let (mut last, acknowledgements) = (0, random.usize(1..60));
    for number in lines.by_ref().take(acknowledgements) {
        last = number;
    }
    // Somewhere in its work.
    let (since, wait) = (Instant::now(), Duration::from_micros(random.u64(..20_000)));
    while since.elapsed() < wait {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // A number that it has written to the pipe was acknowledged, too.
    lines.last().unwrap_or(last)
}

fn write_until_killed(path: &Path) {
    let mut history = open(path);
    let mut random = Rng::new();
    let mut next = history.reader().unwrap().last().unwrap().map_or(1, |(last, _)| last.0 + 1);
    let mut out = std::io::stdout();
    loop {
        let mut batch = Batch::default();
        for _ in 0..random.u64(1..80) {
            batch.observe(expected(next));
            if random.u8(..8) == 0 {
                let noise = Observation { what: What::Noise, ..expected(next) };
                batch.observe(noise);
            }
            next += 1;
        }
        batch.reached("pods", (next - 1).to_string());
        let last = history.commit(&batch).unwrap();
        // One write, so that the other end gets the line whole or not at all.
        out.write_all(format!("\nack {last}\n").as_bytes()).unwrap();
        out.flush().unwrap();
        if random.u8(..20) == 0 {
            let retention = Retention { count: Some(1_000), ..Retention::default() };
            retain(&mut history, &retention, at(0));
        }
    }
}
