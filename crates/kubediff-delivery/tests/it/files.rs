//! Files: rotation, crashes in the middle of a line, full and foreign files.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect;
use fastrand::Rng;
use kubediff_delivery::{Answer, Entry, File, FileOptions, Parcel, Policy, Record, Sink};
use serde_json::Value;
use tempfile::TempDir;

use crate::log::Memory;
use crate::running::{Running, quick};

fn options(folder: &TempDir) -> FileOptions {
    FileOptions::new(folder.path().join("logs").join("changes.log"))
}

fn run(log: &Memory, options: &FileOptions) -> Running {
    Running::start(log, File::new(options.clone()), quick())
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("a file")
}

/// The numbers in the lines of a file, each of which is whole.
fn numbers(path: impl AsRef<Path>) -> Vec<u64> {
    let text = text(path);
    assert!(text.is_empty() || text.ends_with('\n'));
    let number = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["number"], line["change"]["n"]);
        line["number"].as_u64().expect("a number")
    };
    text.lines().map(number).collect()
}

fn older(options: &FileOptions, number: u32) -> PathBuf {
    PathBuf::from(format!("{}.{number}", options.path.display()))
}

/// Sends a record of so many bytes.
async fn send(file: &mut File, number: u64, bytes: usize) -> Answer {
    let body = format!(r#"{{"n":{number},"text":"{}"}}"#, "x".repeat(bytes));
    let record = Record {
        entry: Entry { number, object: 1, namespace: 0, bytes: body.len() },
        id: number.to_string().into(),
        time: jiff::Timestamp::UNIX_EPOCH,
        subject: "".into(),
        summary: "".into(),
        details: "".into(),
        body: body.into(),
        story: None,
        event: kubediff_delivery::Event::default(),
    };
    file.send(Parcel { records: vec![&record], is_digest: false, is_late: false, missing: &[] }).await
}

#[tokio::test]
async fn each_record_is_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(&folder);
    let log = Memory::of([1, 2, 1]);
    let running = run(&log, &options);
    log.reaches(3).await;
    running.stop().await;
    expect![[r#"
        {"id":"log-1-1","number":1,"change":{"name":"object-1","n":1}}
        {"id":"log-1-2","number":2,"change":{"name":"object-2","n":2}}
        {"id":"log-1-3","number":3,"change":{"name":"object-1","n":3}}
    "#]]
    .assert_eq(&text(&options.path));
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_is_for_its_owner_unless_the_options_say_otherwise() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = TempDir::new().unwrap();
    for (name, mode) in [("own", 0o600), ("shipped", 0o640), ("wide", 0o666)] {
        let path = folder.path().join(name);
        let options = FileOptions { mode, ..FileOptions::new(&path) };
        assert_eq!(send(&mut File::new(options), 1, 10).await, Answer::Accepted);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
    }
    assert_eq!(FileOptions::new("a").mode, 0o600);
}

#[tokio::test]
async fn a_line_that_a_crash_left_half_is_cut_off_and_written_again() {
    let whole = "{\"number\":1,\"change\":{\"n\":1}}\n";
    let long = format!("{{\"number\":2,\"change\":{{\"text\":\"{}", "x".repeat(200_000));
    for half in ["", "{", "{\"number\":2,\"change\":{\"n\":2}}", &long] {
        for before in ["", whole] {
            let folder = tempfile::tempdir().expect("a folder");
            let options = FileOptions::new(folder.path().join("changes.log"));
            fs::write(&options.path, format!("{before}{half}")).expect("written");
            assert_eq!(send(&mut File::new(options.clone()), 2, 0).await, Answer::Accepted);
            let expected: &[u64] = if before.is_empty() { &[2] } else { &[1, 2] };
            assert_eq!(numbers(&options.path), expected);
        }
    }
}

#[tokio::test]
async fn a_full_file_is_numbered_and_the_oldest_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = FileOptions { most_bytes: 250, most_files: 2, ..options(&folder) };
    let mut file = File::new(options.clone());
    for number in 1..=9 {
        assert_eq!(send(&mut file, number, 50).await, Answer::Accepted);
    }
    assert_eq!(numbers(&options.path), [9]);
    assert_eq!(numbers(older(&options, 1)), [7, 8]);
    assert_eq!(numbers(older(&options, 2)), [5, 6]);
    assert!(!older(&options, 3).exists());
    // A record that is larger than a file has a file of its own.
    assert_eq!(send(&mut file, 10, 1_000).await, Answer::Accepted);
    assert_eq!(send(&mut file, 11, 0).await, Answer::Accepted);
    assert_eq!((numbers(&options.path), numbers(older(&options, 1))), (vec![11], vec![10]));
    // Fewer are kept from now on.
    drop(file);
    let mut file = File::new(FileOptions { most_files: 1, ..options.clone() });
    assert_eq!(send(&mut file, 12, 300).await, Answer::Accepted);
    assert!(older(&options, 1).exists() && !older(&options, 2).exists());
    let mut none = File::new(FileOptions { most_files: 0, ..options.clone() });
    drop(file);
    assert_eq!(send(&mut none, 13, 0).await, Answer::Accepted);
    assert_eq!(numbers(&options.path), [13]);
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_rotation_costs_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = FileOptions { most_bytes: 1, most_files: 3, ..options(&folder) };
    let mut file = File::new(options.clone());
    for number in 1..=4 {
        assert_eq!(send(&mut file, number, 0).await, Answer::Accepted);
    }
    // 4, and 3 2 1. The crash came before 3 was moved.
    fs::remove_file(older(&options, 3)).expect("1 was to go");
    fs::rename(older(&options, 2), older(&options, 3)).expect("moved");
    assert_eq!(send(&mut file, 5, 0).await, Answer::Accepted);
    let kept: Vec<u64> = (1..=3).flat_map(|number| numbers(older(&options, number))).collect();
    assert_eq!((numbers(&options.path), kept), (vec![5], vec![4, 3, 2]));
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_somebody_moves_away_is_opened_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(&folder);
    let mut file = File::new(options.clone());
    assert_eq!(send(&mut file, 1, 0).await, Answer::Accepted);
    fs::rename(&options.path, folder.path().join("away")).expect("moved");
    assert_eq!(send(&mut file, 2, 0).await, Answer::Accepted);
    fs::remove_file(&options.path).expect("removed");
    assert_eq!(send(&mut file, 3, 0).await, Answer::Accepted);
    assert_eq!((numbers(folder.path().join("away")), numbers(&options.path)), (vec![1], vec![3]));
    // `copytruncate`, as logrotate calls it.
    fs::File::options().write(true).open(&options.path).expect("open").set_len(0).expect("cut");
    assert_eq!(send(&mut file, 4, 0).await, Answer::Accepted);
    assert_eq!(numbers(&options.path), [4]);
}

#[tokio::test]
async fn what_hinders_it_is_told_in_words_and_it_goes_on_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("changes.log");
    fs::create_dir(&path).expect("a folder in its place");
    let log = Memory::of([1]);
    let mut running = run(&log, &FileOptions::new(&path));
    assert_eq!(running.trouble().await, "Is a directory");
    fs::remove_dir(&path).expect("gone");
    log.reaches(1).await;
    running.stop().await;
    assert_eq!(numbers(&path), [1]);

    let mut one = File::new(FileOptions::new(&path));
    assert_eq!(send(&mut one, 2, 0).await, Answer::Accepted);
    let mut other = File::new(FileOptions::new(&path));
    let reason = "another process writes this file".into();
    assert_eq!(send(&mut other, 3, 0).await, Answer::Unavailable { reason });
    drop(one);
    assert_eq!(send(&mut other, 3, 0).await, Answer::Accepted);
}

/// A device that is always full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("changes.log");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
    let log = Memory::of([1, 2]);
    let mut running = run(&log, &FileOptions::new(&path));
    assert_eq!(running.trouble().await, "No space left on device");
    assert_eq!(log.settled.borrow().position, 0);
    fs::remove_file(&path).expect("gone");
    log.reaches(2).await;
    running.stop().await;
    assert_eq!(numbers(&path), [1, 2]);
}

/// 300 records, small files, and a crash now and then that leaves some of what was written.
#[tokio::test]
async fn whatever_a_crash_leaves_each_record_is_there_and_each_line_whole() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let options = FileOptions { most_bytes: 2_000, most_files: 1_000, ..options(&folder) };
    let log = Memory::of((0..300).map(|_| random.u64(..9)));
    for stop_at in [50, 120, 300] {
        let running = Running::start(&log, File::new(options.clone()), Policy { batch: 7, ..quick() });
        log.reaches(stop_at).await;
        running.stop().await;
        // A crash may leave a part of a record that follows the stored position.
        let next = log.settled.borrow().position + 1;
        let line = format!("{{\"number\":{next},\"change\":{{\"n\":{next}}}}}\n");
        let left = line.get(..random.usize(..=line.len())).expect("ASCII");
        let whole = text(&options.path);
        fs::write(&options.path, format!("{whole}{left}")).expect("written");
    }
    let running = run(&log, &options);
    log.append([1]);
    log.reaches(301).await;
    running.stop().await;
    let files = fs::read_dir(options.path.parent().expect("a folder")).expect("a folder");
    let mut all: Vec<u64> = files.flat_map(|file| numbers(file.expect("a file").path())).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all, (1..=301).collect::<Vec<u64>>());
}
