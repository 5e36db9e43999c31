//! A password that is rotated: nothing of it is stored or sent, in whichever order the Secret and its copies are written.

use std::path::Path;

use http::Method;
use kubediff_history::{Filter, Page, Reader, Scope};
use serde_json::{Value, json};
use testapi::faults::Matcher;

use crate::session::Session;
use crate::shop::Shop;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// How many writes of other objects lie between the two. More for a measurement: `ROTATIONS=100`, each with all distances.
const DISTANCES: [usize; 5] = [0, 1, 5, 25, 100];

fn value(at: usize) -> String {
    format!("rQ7-{at:05}-zzKw9")
}

/// The content of the history and of the file sink, as text.
fn everything(folder: &Path) -> (String, usize) {
    let mut reader = Reader::open(folder.join("history.db")).unwrap();
    let mut text = std::fs::read_to_string(folder.join("sink.jsonl")).unwrap_or_default();
    let mut page = Page::oldest(500);
    let mut count = 0;
    loop {
        let found = reader.records(&Filter::default(), &page).unwrap();
        count += found.records.len();
        text += &serde_json::to_string(&found.records).unwrap();
        let Some(last) = found.records.last().filter(|_| found.more) else { break };
        page = Page::oldest(500).after(last.number());
    }
    for version in reader.state(&Scope::default(), None).unwrap() {
        text += &version.body.value().to_string();
    }
    (text, count)
}

#[tokio::test(flavor = "multi_thread")]
async fn k3_a_rotated_password_is_nowhere_whichever_is_written_first() {
    let rounds: usize = std::env::var("ROTATIONS").map_or(1, |rounds| rounds.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("kubediff.yaml");
    let sinks = "sinks: {out: {file: {path: sink.jsonl}}}";
    std::fs::write(
        &config,
        format!("watch: {{resources: [cm, secrets]}}\nhistory: {{path: history.db}}\nlisten: null\nsecrets: {{wait: 3s}}\n{sinks}\n"),
    )
    .unwrap();
    let shop = Shop::open().await;
    let kubeconfig = shop.kubeconfig().to_owned();
    let daemon = tokio::task::spawn_blocking(move || {
        let mut session = Session::serve(&kubeconfig, &config);
        session.note("watching");
        session
    });
    let daemon = daemon.await.unwrap();

    let mut written = 0;
    for at in 0..rounds * 4 * DISTANCES.len() {
        let distance = DISTANCES[at % DISTANCES.len()];
        let (secret_first, created) = (at / DISTANCES.len() % 2 == 1, at / DISTANCES.len() / 2 % 2 == 1);
        let name = if created { format!("db-{at}") } else { "db".to_owned() };
        let (method, path) = match created || written == 0 {
            true => (Method::POST, String::new()),
            false => (Method::PATCH, format!("/{name}")),
        };
        let secret: Value = json!({"metadata": {"name": name}, "stringData": {"password": value(at)}});
        let map = json!({"metadata": {"name": name}, "data": {"url": format!("pg://app:{}@db/", value(at))}});
        let mut writes = [(MAPS, map), (SECRETS, secret)];
        if secret_first {
            writes.reverse();
        }
        for (resource, object) in writes {
            shop.send(method.clone(), &format!("{resource}{path}"), object).await;
            for other in 0..distance {
                let name = format!("other-{at}-{resource}-{other}").replace('/', "-");
                shop.create(name.trim_matches('-'), "of no interest").await;
            }
        }
        written += 1;
    }
    // The end waits for what is held.
    tokio::task::spawn_blocking(move || daemon.end_with("-TERM")).await.unwrap();
    let (text, records) = everything(folder.path());
    assert!(records >= written, "{records} records of {written} rotations");
    let leaks: Vec<usize> = (0..written).filter(|at| text.contains(&value(*at))).collect();
    assert!(leaks.is_empty(), "{} of {written} values are in the clear: {leaks:?}", leaks.len());
    assert!(text.contains("pg://app:<hmac:"), "the rest of the text is there");
}

/// A daemon with a file sink; the folder has everything that it writes.
async fn serve(shop: &Shop, folder: &Path, more: &'static str) -> Session {
    let config = folder.join("kubediff.yaml");
    let text = "watch: {resources: [cm, secrets]}\nhistory: {path: history.db}\nlisten: null\nsinks: {out: {file: {path: sink.jsonl}}}\n";
    std::fs::write(&config, format!("{text}{more}")).unwrap();
    let kubeconfig = shop.kubeconfig().to_owned();
    let started = move || {
        let mut session = Session::serve(&kubeconfig, &config);
        session.note("watching");
        session
    };
    tokio::task::spawn_blocking(started).await.unwrap()
}

/// Ends the daemon when its sink has this.
async fn end_after(daemon: Session, folder: &Path, text: &str) {
    while !std::fs::read_to_string(folder.join("sink.jsonl")).is_ok_and(|sent| sent.contains(text)) {
        tokio::task::yield_now().await;
    }
    tokio::task::spawn_blocking(move || daemon.end_with("-TERM")).await.unwrap();
}

/// The Secret comes after the object with its value is stored.
#[tokio::test(flavor = "multi_thread")]
async fn k3_a_value_that_becomes_known_later_is_masked_back() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::open().await;
    let daemon = serve(&shop, folder.path(), "secrets: {wait: 1ms}\n").await;
    shop.create("early", &format!("pg://app:{}@db/", value(1))).await;
    shop.patch("early", &format!("pg://app:{}@db/x", value(1))).await;
    end_after(daemon, folder.path(), "@db/x").await;
    assert!(everything(folder.path()).0.contains(&value(1)), "nobody could know it");
    shop.post(SECRETS, json!({"metadata": {"name": "db"}, "stringData": {"password": value(1)}})).await;
    let sent = std::fs::read_to_string(folder.path().join("sink.jsonl")).unwrap().len();
    let daemon = serve(&shop, folder.path(), "secrets: {wait: 1ms}\n").await;
    end_after(daemon, folder.path(), "\"change\":\"scrubbed\"").await;
    let (text, _) = everything(folder.path());
    let (before, after) = text.split_at(sent);
    assert!(before.contains(&value(1)) && !after.contains(&value(1)), "{after}");
    assert!(after.contains("pg://app:<hmac:"), "the rest of the text is there: {after}");
    let filter = Filter { gaps: true, ..Filter::default() };
    let mut reader = Reader::open(folder.path().join("history.db")).unwrap();
    let records = reader.records(&filter, &Page::oldest(100)).unwrap().records;
    let is_scrub = |record: &kubediff_history::Record| matches!(record, kubediff_history::Record::Scrubbed(it) if it.masked == 2);
    assert_eq!(records.iter().filter(|record| is_scrub(record)).count(), 1, "{records:?}");
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
    for file in ["history.db", "history.db-wal"] {
        let bytes = std::fs::read(folder.path().join(file)).unwrap_or_default();
        let found = bytes.windows(value(1).len()).filter(|bytes| *bytes == value(1).as_bytes()).count();
        assert_eq!(found, 0, "in {file}");
    }
}

/// The command leaves the value to the daemon that has the file, and nothing stops meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn k3_the_command_masks_a_value_beside_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::open().await;
    let daemon = serve(&shop, folder.path(), "").await;
    shop.create("early", "words-that-look-like-no-secret").await;
    shop.patch("early", "more words-that-look-like-no-secret").await;
    let sink = folder.path().join("sink.jsonl");
    while !std::fs::read_to_string(&sink).is_ok_and(|sent| sent.contains("more words")) {
        tokio::task::yield_now().await;
    }
    std::fs::write(folder.path().join("value"), "words-that-look-like-no-secret").unwrap();
    let (file, value) = (folder.path().join("history.db"), folder.path().join("value"));
    let scrub = move || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kubediff"));
        let output = command.args(["history", "scrub"]).arg(file).arg("--value").arg(value).output().unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (ok, said) = tokio::task::spawn_blocking(scrub).await.unwrap();
    assert!(ok && said.contains("the daemon is done: 2 versions were masked"), "{said}");
    let sent = std::fs::read_to_string(&sink).unwrap().len();
    shop.patch("early", "then words-that-look-like-no-secret").await;
    end_after(daemon, folder.path(), "then <hmac:").await;
    let (text, records) = everything(folder.path());
    assert!(records >= 2 && !text[sent..].contains("words-that-look"), "{}", &text[sent..]);
    assert!(text.contains("scrubbed"), "the sinks hear of it: {text}");
    for file in ["history.db", "history.db-wal"] {
        let bytes = std::fs::read(folder.path().join(file)).unwrap_or_default();
        assert!(!bytes.windows(15).any(|bytes| bytes == b"words-that-look"), "in {file}");
    }
    assert!(!folder.path().join("history.db-scrub").exists());
}

/// The fourth attack: a change that a start finds mentions a Secret that is rotated after it.
#[tokio::test(flavor = "multi_thread")]
async fn k3_what_a_start_finds_waits_for_its_secret() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::open().await;
    shop.create("early", "nothing").await;
    let daemon = serve(&shop, folder.path(), "secrets: {wait: 60s}\n").await;
    tokio::task::spawn_blocking(move || daemon.end_with("-TERM")).await.unwrap();
    shop.patch("early", &format!("pg://app:{}@db", value(1))).await;
    shop.create("new", &format!("pg://app:{}@db", value(2))).await;
    let daemon = serve(&shop, folder.path(), "secrets: {wait: 10s}\n").await;
    // It has listed the objects.
    shop.create("later", "nothing").await;
    for at in [1, 2] {
        let secret = json!({"metadata": {"name": format!("db-{at}")}, "stringData": {"password": value(at)}});
        shop.post(SECRETS, secret).await;
    }
    end_after(daemon, folder.path(), "later").await;
    let (text, _) = everything(folder.path());
    assert!(![1, 2].iter().any(|at| text.contains(&value(*at))), "{text}");
    assert!(text.contains("pg://app:<hmac:"), "{text}");
}

/// The fifth attack: the daemon is asked to end between a change and the Secret that it mentions.
#[tokio::test(flavor = "multi_thread")]
async fn k3_a_secret_that_comes_while_the_daemon_ends_is_known_to_the_change_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::open().await;
    let daemon = serve(&shop, folder.path(), "secrets: {wait: 5s}\n").await;
    shop.create("early", &format!("pg://app:{}@db", value(1))).await;
    daemon.signal("-TERM");
    shop.post(SECRETS, json!({"metadata": {"name": "db"}, "stringData": {"password": value(1)}})).await;
    tokio::task::spawn_blocking(move || daemon.wait()).await.unwrap();
    let (text, _) = everything(folder.path());
    assert!(!text.contains(&value(1)), "{text}");
}

/// The daemon ends after it has noted the value, and before it has masked what was stored; its key has the name that daemons give.
#[tokio::test(flavor = "multi_thread")]
async fn k3_a_question_masks_what_the_daemon_could_not_mask_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::open().await;
    let daemon = serve(&shop, folder.path(), "secrets: {wait: 1ms}\n").await;
    shop.create("early", &format!("pg://app:{}@db/", value(1))).await;
    let (history, sink) = (folder.path().join("history.db"), folder.path().join("sink.jsonl"));
    while !std::fs::read_to_string(&sink).is_ok_and(|sent| sent.contains("early")) {
        tokio::task::yield_now().await;
    }
    shop.post(SECRETS, json!({"metadata": {"name": "db"}, "stringData": {"password": value(1)}})).await;
    while Reader::open(&history).unwrap().prints().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    tokio::task::spawn_blocking(move || daemon.kill()).await.unwrap();
    assert!(folder.path().join("kubediff.key").exists());
    let ask = move || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command.args(["get", "cm", "-n", "default", "-o", "json", "--history"]).arg(history);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let said = tokio::task::spawn_blocking(ask).await.unwrap();
    assert!(said.contains("pg://app:<hmac:") && !said.contains(&value(1)), "{said}");
}

/// A new path to hide is hidden in what was stored before, too.
#[tokio::test(flavor = "multi_thread")]
async fn k3_a_new_path_to_hide_is_masked_back() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::open().await;
    let daemon = serve(&shop, folder.path(), "").await;
    shop.create("early", "a plain word").await;
    shop.patch("early", "another plain word").await;
    end_after(daemon, folder.path(), "another plain").await;
    let sent = std::fs::read_to_string(folder.path().join("sink.jsonl")).unwrap().len();
    let daemon = serve(&shop, folder.path(), "hide: [{resource: cm, path: data.k}]\n").await;
    end_after(daemon, folder.path(), "\"change\":\"scrubbed\"").await;
    let (text, records) = everything(folder.path());
    assert!(records >= 2 && !text[sent..].contains("plain word"), "{}", &text[sent..]);
}

/// A value that nothing mentions and that no Secret has any more, in an object that mentions it for the first time.
#[tokio::test(flavor = "multi_thread")]
async fn k3_a_restart_knows_former_values() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::open().await;
    let secret = |at: usize| json!({"metadata": {"name": "db"}, "stringData": {"password": value(at)}});
    shop.post(SECRETS, secret(1)).await;
    let daemon = serve(&shop, folder.path(), "").await;
    shop.send(Method::PATCH, &format!("{SECRETS}/db"), secret(2)).await;
    end_after(daemon, folder.path(), "updated").await;
    // It had the second value until it was written again, while nothing watched.
    shop.send(Method::PATCH, &format!("{SECRETS}/db"), secret(3)).await;
    let daemon = serve(&shop, folder.path(), "secrets: {wait: 1ms}\n").await;
    for at in [1, 2, 3] {
        shop.create(&format!("late-{at}"), &format!("pg://app:{}@db/", value(at))).await;
    }
    end_after(daemon, folder.path(), "late-3").await;
    let (text, _) = everything(folder.path());
    for at in [1, 2, 3] {
        assert!(text.contains(&format!("late-{at}")) && !text.contains(&value(at)), "{at}: {text}");
    }
    let bytes = std::fs::read(folder.path().join("history.db")).unwrap();
    assert!(!bytes.windows(8).any(|bytes| bytes == &value(1).as_bytes()[..8]), "no value is kept");
}

/// Attack 3: RBAC that comes a moment after the daemon. The first states are hidden all the same.
#[tokio::test(flavor = "multi_thread")]
async fn k3_nothing_is_recorded_while_the_secrets_must_not_be_listed() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("kubediff.yaml");
    let text = "watch: {resources: [cm, secrets]}\nhistory: {path: history.db}\nlisten: null\nsinks: {out: {file: {path: sink.jsonl}}}\n";
    std::fs::write(&config, text).unwrap();
    let shop = Shop::open().await;
    shop.post(SECRETS, json!({"metadata": {"name": "db"}, "stringData": {"password": value(1)}})).await;
    shop.create("a", &format!("pg://app:{}@db/", value(1))).await;
    let denied = shop.server.faults().deny(Matcher::of("secrets"));
    let kubeconfig = shop.kubeconfig().to_owned();
    let on_thread = |work: Box<dyn FnOnce() -> Session + Send>| tokio::task::spawn_blocking(work);
    let begun = on_thread(Box::new(move || {
        let mut session = Session::serve(&kubeconfig, &config);
        session.note("the Secrets must not be listed; nothing is recorded before");
        session
    }));
    let mut daemon = begun.await.unwrap();
    shop.patch("a", &format!("pg://other:{}@db/", value(1))).await;
    let stored = Reader::open(folder.path().join("history.db")).unwrap().last().unwrap();
    assert_eq!(stored, None, "nothing is recorded");
    denied.disarm();
    let watching = on_thread(Box::new(move || {
        daemon.note("watching");
        daemon
    }));
    let daemon = watching.await.unwrap();
    shop.patch("a", &format!("pg://again:{}@db/", value(1))).await;
    tokio::task::spawn_blocking(move || daemon.end_with("-TERM")).await.unwrap();
    let (text, records) = everything(folder.path());
    assert!(records > 0 && text.contains("pg://again:<hmac:") && !text.contains(&value(1)), "{text}");
}

/// Attack 10: who does not watch Secrets is told what that means.
#[tokio::test(flavor = "multi_thread")]
async fn k3_it_is_said_that_secrets_are_not_watched() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("kubediff.yaml");
    let shop = Shop::open().await;
    let kubeconfig = shop.kubeconfig().to_owned();
    let watching = move || {
        for (watch, said) in [
            ("resources: [cm]", "Secrets are not watched: "),
            ("namespaces: [default]", "only the Secrets in default are watched, not all others: "),
            ("labels: a=b", "only the Secrets with labels a=b are watched, not all others: "),
            ("resources: [secrets/a, cm]", "only the Secrets that are named are watched, not all others: "),
        ] {
            let text = format!("watch: {{{watch}}}\nhistory: {{path: history.db}}\nlisten: null\n");
            std::fs::write(&config, text).unwrap();
            let mut session = Session::serve(&kubeconfig, &config);
            session.note(&format!("{said}their values in other objects are not recognised, and shown"));
            session.end_with("-TERM");
        }
    };
    tokio::task::spawn_blocking(watching).await.unwrap();
}
