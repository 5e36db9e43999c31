//! Issue 19, section 2: values that must not be in a history, and values that became known after they were stored.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::run::{outputs, run};
use super::world::World;

const VALUE: &str = "rQ7-00042-zzKw9";

fn map(rv: u64, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "app", "namespace": "shop", "uid": "m", "resourceVersion": rv.to_string()}, "data": data})
}

/// Three states of one object; the second and the third have the value.
fn fill(path: &Path) {
    let mut world = World::open(path, [7; 32]);
    world.wrote("10:00:00", "helm", map(1, &json!({"url": "pg://app:none@db/", "token": "a"})));
    world.wrote(
        "10:01:00",
        "helm",
        map(2, &json!({"url": format!("pg://app:{VALUE}@db/"), "token": "plain"})),
    );
    world.wrote(
        "10:02:00",
        "helm",
        map(3, &json!({"url": format!("pg://app:{VALUE}@db/x"), "token": "plain", VALUE: "a\nb"})),
    );
}

/// Everything that the questions say of it.
fn answers(path: &Path) -> String {
    let asked: &[&[&str]] = &[
        &["log", "-p"],
        &["log", "-o", "json"],
        &["show", "cm/app", "-n", "shop", "-o", "yaml"],
        &["show", "#2", "-o", "json"],
        &["get", "cm", "-n", "shop", "-o", "json", "--at", "2026-03-01T10:01:30Z"],
        &["diff", "-n", "shop", "--from", "2026-03-01T10:00:30Z", "-o", "json"],
        &["blame", "cm/app", "-n", "shop"],
    ];
    asked.iter().map(|arguments| run(path, arguments)).collect()
}

#[test]
fn k3_the_command_masks_a_value_in_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let file = path.to_str().unwrap();
    fill(&path);
    std::fs::copy(&path, folder.path().join("history.db-format-1")).unwrap();
    assert!(answers(&path).contains(VALUE));
    let value = folder.path().join("value");
    std::fs::write(&value, format!("{VALUE}\n")).unwrap();
    let (out, err, code) = outputs(&path, &["history", "scrub", file, "--value", value.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("2 versions were masked in "), "{out}");
    assert!(err.contains("not reached: history.db-format-1") && err.contains("backups, recordings"), "{err}");
    let said = answers(&path);
    assert!(!said.contains(VALUE) && said.contains("pg://app:<hmac:"), "{said}");
    let log = run(&path, &["log"]);
    assert!(
        log.contains("2 versions were masked: by `kubediff history scrub` (looked at #1 to #3) #4"),
        "{log}"
    );
    assert!(run(&path, &["history", "check"]).contains("The history is sound."));
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(VALUE.len()).any(|bytes| bytes == VALUE.as_bytes()), "in the bytes of the file");

    // A later record with the value, perhaps of a daemon that does not know it, is masked where it is shown, as long as the key is there.
    let mut world = World::open(&path, [7; 32]);
    world.wrote("10:03:00", "helm", map(1, &json!({"url": format!("pg://again:{VALUE}@db/x")})));
    drop(world);
    let said = answers(&path);
    assert!(!said.contains(VALUE) && said.contains("pg://again:<hmac:"), "{said}");
    std::fs::remove_file(folder.path().join("history.db.key")).unwrap();
    let (out, err, _) = outputs(&path, &["show", "cm/app", "-n", "shop", "-o", "yaml"]);
    assert!(out.contains(VALUE), "without the key nobody can know it");
    assert!(
        err.contains("its key is not beside it; copy the `keyFile` of its daemon to ")
            && err.contains("history.db.key"),
        "{err}"
    );
}

/// A fourth attack: what a person names is a secret, whatever it looks like. Nothing else recognises these.
#[test]
fn k3_the_command_masks_values_that_look_like_words() {
    for value in ["mellonmellonabc", "db-password-2024", "1234567890123456", "production"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let mut world = World::open(&path, [7; 32]);
        // A word of the API may be the name of a field, and stays where it is one.
        let name = if value == "production" { "c" } else { value };
        let data = json!({"a": value, "b": format!("x={value};"), name: "c"});
        world.wrote("10:00:00", "helm", map(1, &data));
        drop(world);
        let file = folder.path().join("value");
        std::fs::write(&file, value).unwrap();
        let said =
            run(&path, &["history", "scrub", path.to_str().unwrap(), "--value", file.to_str().unwrap()]);
        assert!(said.starts_with("1 version was masked in "), "{value}: {said}");
        let key = folder.path().join("history.db.key");
        let without = folder.path().join("without.key");
        std::fs::rename(&key, &without).unwrap();
        let said = answers(&path);
        assert!(!said.contains(value) && said.contains("x=<hmac:"), "{value}: {said}");
        std::fs::rename(&without, &key).unwrap();
        // From then on, it is hidden in what comes, too.
        let mut world = World::open(&path, [7; 32]);
        world.wrote("10:03:00", "helm", map(2, &json!({"again": format!("pg://{value}@db")})));
        drop(world);
        let said = run(&path, &["get", "cm", "-n", "shop", "-o", "yaml"]);
        assert!(!said.contains(value) && said.contains("pg://<hmac:"), "{value}: {said}");
    }
}

#[test]
fn k3_the_command_masks_a_path_in_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let file = path.to_str().unwrap();
    fill(&path);
    let scrub =
        |more: &[&str]| run(&path, &[&["history", "scrub", file, "--path", "data.token"], more].concat());
    let said = scrub(&["--resource", "cm", "-n", "other"]);
    assert!(said.starts_with("0 versions were masked in "), "{said}");
    let said = scrub(&["--resource", "cm", "-n", "shop", "--name", "app"]);
    assert!(said.starts_with("3 versions were masked in "), "{said}");
    let said = answers(&path);
    assert!(!said.contains("plain") && said.contains(VALUE), "{said}");
    assert!(said.contains("data.token: <hmac:") && said.contains(r#""token":"<hmac:"#), "{said}");
    assert!(run(&path, &["history", "check"]).contains("The history is sound."));
}

/// A third attack: the words about an object that came have its fields, and the beginnings of long values.
#[test]
fn k3_the_words_of_a_record_keep_nothing_of_what_is_masked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let file = path.to_str().unwrap();
    let mut world = World::open(&path, [7; 32]);
    let widget = |rv: u64, url: &str| {
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"token": "secretwords", "url": url},
            "metadata": {"name": "w", "namespace": "shop", "uid": "w", "resourceVersion": rv.to_string()}})
    };
    let url = |end: &str| format!("https://a-name-of-a-host.example.com/?p={VALUE}{end}");
    world.wrote("10:00:00", "helm", widget(1, &url("")));
    world.wrote("10:01:00", "helm", widget(2, &url("&x")));
    drop(world);
    let (beginning, _) = VALUE.split_at(3);
    let summaries = || {
        let (log, ..) = outputs(&path, &["log", "-o", "json"]);
        log.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["summary"].to_string())
            .collect::<String>()
    };
    let before = summaries();
    assert!(before.contains("secretwords") && before.matches(beginning).count() >= 2, "{before}");
    assert!(
        run(&path, &["history", "scrub", file, "--path", "spec.token"])
            .starts_with("2 versions were masked in ")
    );
    let value = folder.path().join("value");
    std::fs::write(&value, VALUE).unwrap();
    let said = run(&path, &["history", "scrub", file, "--value", value.to_str().unwrap()]);
    assert!(said.starts_with("2 versions were masked in "), "{said}");
    // Without the key nothing is masked when it is read.
    std::fs::remove_file(folder.path().join("history.db.key")).unwrap();
    let after = summaries();
    assert!(!after.contains("secretwords") && !after.contains(beginning), "{after}");
    assert!(after.contains("token <hmac:") && after.contains("url"), "{after}");
}

#[test]
fn k3_the_command_says_what_it_cannot_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let file = path.to_str().unwrap();
    fill(&path);
    let short = folder.path().join("value");
    std::fs::write(&short, "hunter2").unwrap();
    let said = run(&path, &["history", "scrub", file, "--value", short.to_str().unwrap()]);
    assert!(
        said.contains("a value of fewer than 8 bytes is in many texts by chance")
            && said.ends_with("exit 2\n"),
        "{said}"
    );
    // A daemon has the file, and refuses.
    let world = World::open(&path, [7; 32]);
    let (asking, order) = ask_beside(&path);
    let left: Value = serde_json::from_slice(&std::fs::read(&order).unwrap()).unwrap();
    let refused = format!("history.db-scrub-refused-{:016x}", left["id"].as_u64().unwrap());
    std::fs::write(folder.path().join(refused), "no room").unwrap();
    std::fs::remove_file(&order).unwrap();
    let said = asking.join().unwrap();
    assert!(said.contains("the daemon did not mask it: no room") && said.ends_with("exit 1\n"), "{said}");
    drop(world);
}

#[test]
fn k3_the_command_masks_by_itself_when_a_process_that_is_no_daemon_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    fill(&path);
    let world = World::open(&path, [7; 32]);
    let (asking, order) = ask_beside(&path);
    drop(world);
    let said = asking.join().unwrap();
    assert!(said.starts_with("3 versions were masked in ") && !said.contains("exit"), "{said}");
    assert!(!order.exists(), "no daemon does it again");
}

/// The third attack: two commands at once, and a link that leads elsewhere.
#[test]
fn k3_a_second_command_waits_for_the_first_and_writes_through_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    fill(&path);
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&precious, folder.path().join("history.db-scrub-new")).unwrap();
    let world = World::open(&path, [7; 32]);
    let (first, order) = ask_beside(&path);
    let of_first = std::fs::read(&order).unwrap();
    let (second, _) = ask_beside(&path);
    // A daemon is done with the first order. The second takes its place before or after the first command sees that.
    std::fs::remove_file(&order).unwrap();
    while std::fs::read(&order).map_or(true, |left| left == of_first || left.is_empty()) {
        std::thread::yield_now();
    }
    let said = first.join().unwrap();
    assert!(said.contains("the daemon is done") && !said.contains("exit"), "{said}");
    std::fs::remove_file(&order).unwrap();
    let said = second.join().unwrap();
    assert!(said.contains("the daemon is done") && !said.contains("exit"), "{said}");
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    drop(world);
}

#[test]
fn k3_what_an_object_is_cannot_be_masked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    fill(&path);
    for (masked, why) in
        [("metadata.n*", "would hide `metadata.name`"), ("$.data.token", "expected `data.token`")]
    {
        let said = run(&path, &["history", "scrub", path.to_str().unwrap(), "--path", masked]);
        assert!(said.contains(why) && said.ends_with("exit 2\n"), "{said}");
    }
}

#[test]
fn k5_a_path_without_end_is_not_quoted_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    fill(&path);
    let said = run(&path, &["history", "scrub", path.to_str().unwrap(), "--path", &"[".repeat(10_000)]);
    assert!(said.len() < 1_000 && said.contains("is not a path") && said.ends_with("exit 2\n"), "{said}");
}

/// The seventh attack: a scrub beyond `ulimit -f` was ended by a signal, without a word.
#[test]
#[cfg(target_os = "linux")]
fn k5_a_limit_of_file_sizes_ends_a_scrub_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let file = path.to_str().unwrap();
    fill(&path);
    let limited = Command::new("prlimit")
        .args(["--fsize=4096:unlimited", env!("CARGO_BIN_EXE_kubediff"), "history", "scrub", file])
        .args(["--path", "data.token"])
        .output()
        .unwrap();
    let said = String::from_utf8(limited.stderr).unwrap();
    assert_eq!(limited.status.code(), Some(1), "{:?}: {said}", limited.status);
    assert!(said.contains("the file has reached its limit"), "{said}");
    let again = run(&path, &["history", "scrub", file, "--path", "data.token"]);
    assert!(again.starts_with("3 versions were masked in "), "{again}");
    assert!(run(&path, &["history", "check"]).contains("The history is sound."));
}

/// The command beside a process that has the file, after it has left its order in the file with this name.
fn ask_beside(path: &Path) -> (JoinHandle<String>, PathBuf) {
    let file = path.to_owned();
    let asking = std::thread::spawn(move || {
        run(&file, &["history", "scrub", file.to_str().unwrap(), "--path", "data.token"])
    });
    let order = path.with_file_name("history.db-scrub");
    while !order.exists() {
        std::thread::yield_now();
    }
    (asking, order)
}
