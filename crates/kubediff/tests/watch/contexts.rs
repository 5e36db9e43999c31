//! Issue 22, 4: one process for several clusters, by the contexts of a kubeconfig.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use http::StatusCode;
use postgres_server::{Durability, Server};
use testapi::TestApi;

use crate::daemon::{get, on_thread};
use crate::session::{PATIENCE, Session};
use crate::shop::Shop;

/// A kubeconfig with both clusters, and one that nobody answers for.
fn kubeconfig(folder: &Path, shops: &[Shop; 2]) -> String {
    let of = |name: &str, text: String| {
        let file = folder.join(format!("{name}.kubeconfig"));
        std::fs::write(&file, text.replace("testapi", name)).unwrap();
        file.display().to_string()
    };
    let text = |shop: &Shop| std::fs::read_to_string(shop.kubeconfig()).unwrap();
    let away = text(&shops[0]).replace(&shops[0].server.url(), "http://127.0.0.1:1");
    [of("prod", text(&shops[0])), of("test", text(&shops[1])), of("away", away)].join(":")
}

fn kubediff(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kubediff")).args(arguments).output().unwrap();
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
}

/// Asks until the answer has a text.
async fn until(arguments: &[&str], text: &str) -> String {
    let since = Instant::now();
    loop {
        let asked: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let answer = on_thread(move || kubediff(&asked.iter().map(String::as_str).collect::<Vec<_>>())).await;
        if answer.contains(text) {
            return answer;
        }
        assert!(since.elapsed() < PATIENCE, "no {text:?} in {answer}");
    }
}

/// Starts the daemon, with the address of its endpoint, when it watches both clusters.
async fn serve(kubeconfig: &str, config: &Path) -> (Session, String) {
    let (kubeconfig, config) = (kubeconfig.to_owned(), config.to_owned());
    let (session, address) = on_thread(move || {
        let mut session = Session::serve(Path::new(&kubeconfig), &config);
        let line = session.note("health and metrics are on");
        let address = format!("http://{}", line.rsplit_once("http://").unwrap().1.trim());
        (session, address)
    })
    .await;
    for ready in ["prod: ready", "staging: ready"] {
        until(&["status", "--address", &address], ready).await;
    }
    (session, address)
}

async fn shops() -> [Shop; 2] {
    [Shop::open().await, Shop::with(TestApi::builder().seed(7), None).await]
}

const CLUSTERS: &str = "clusters: [{context: prod}, {context: test, name: staging}, {context: away}]\n\
                        watch: {resources: [cm]}\nlisten: 127.0.0.1:0\nkeyFile: kubediff.key\n";

#[tokio::test(flavor = "multi_thread")]
async fn each_cluster_has_its_files_and_none_waits_for_another() {
    let (folder, shops) = (tempfile::tempdir().unwrap(), shops().await);
    let kubeconfig = kubeconfig(folder.path(), &shops);
    let config = folder.path().join("kubediff.yaml");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let sinks = "history: {path: history.db}\nsinks: {lines: {file: {path: changes.jsonl}}}\n";
    std::fs::write(&config, format!("{CLUSTERS}{sinks}")).unwrap();
    let (daemon, address) = serve(&kubeconfig, &config).await;
    shops[0].create("cart", "1").await;
    shops[1].create("pay", "1").await;
    let prod = until(&["log", "--history", &file("prod.history.db")], "cart").await;
    let staging = until(&["log", "--history", &file("staging.history.db")], "pay").await;
    assert!(!prod.contains("pay") && !staging.contains("cart"), "{prod}{staging}");

    // A cluster that is away is said, and the others are ready.
    until(&["status", "--address", &address], "away: not ready").await;
    let (ready, body) = get(&address, "/readyz").await;
    assert!(ready == StatusCode::OK && body.starts_with("ok; away: ") && !body.contains("prod"), "{body}");
    let (_, metrics) = get(&address, "/metrics").await;
    let ready =
        ["prod\"} 1", "staging\"} 1", "away\"} 0"].map(|value| format!("kubediff_ready{{cluster=\"{value}"));
    assert!(ready.iter().all(|line| metrics.contains(line)), "{metrics}");
    for family in ["kubediff_history_last_record", "kubediff_sink_position", "informer_objects"] {
        assert_eq!(metrics.matches(&format!("# TYPE {family} ")).count(), 1, "{metrics}");
        for cluster in ["prod", "staging"] {
            assert!(metrics.contains(&format!("{family}{{cluster=\"{cluster}\"")), "{family}: {metrics}");
        }
    }

    // Another configuration reaches all; another list of clusters has to wait.
    let other = CLUSTERS.replace(", {context: away}", "");
    std::fs::write(&config, format!("{other}noise: {{ignore: [{{paths: [data.quiet]}}]}}\n{sinks}")).unwrap();
    daemon.signal("-HUP");
    let daemon = on_thread(move || {
        let mut daemon = daemon;
        daemon.note("the clusters stay as they are until the next start");
        daemon.note("staging: watching");
        daemon
    })
    .await;
    shops[1].patch("pay", "2").await;
    until(&["log", "--history", &file("staging.history.db")], "\"1\" -> \"2\"").await;
    // One for a cluster alone is for the next start: no history moves.
    std::fs::write(&config, format!("cluster: prod\n{sinks}")).unwrap();
    daemon.signal("-HUP");
    let daemon = on_thread(move || {
        let mut daemon = daemon;
        daemon.note("the clusters stay as they are until the next start");
        daemon
    })
    .await;
    shops[0].patch("cart", "2").await;
    until(&["log", "--history", &file("prod.history.db")], "\"1\" -> \"2\"").await;
    assert!(!Path::new(&file("history.db")).exists());
    let (_, said, status) = on_thread(move || daemon.end_with("-TERM")).await;
    assert!(status.success(), "{status}: {said:?}");
    for (name, lines) in [("prod.changes.jsonl", "cart"), ("staging.changes.jsonl", "pay")] {
        let sent = std::fs::read_to_string(file(name)).unwrap();
        assert!(
            sent.contains(lines) && !sent.contains(if lines == "pay" { "cart" } else { "pay" }),
            "{sent}"
        );
    }
    for history in ["prod.history.db", "staging.history.db"] {
        let checked = until(&["history", "check", "--history", &file(history)], "sound").await;
        assert!(checked.contains("The history is sound."), "{checked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_has_all_clusters_of_a_process() {
    let server = Server::start(Durability::Full).unwrap();
    let database = server.create_database().unwrap();
    let owner = server.address(&database);
    let made = kubediff(&["history", "migrate", &owner]);
    assert!(made.contains("tables"), "{made}");
    let (folder, shops) = (tempfile::tempdir().unwrap(), shops().await);
    let kubeconfig = kubeconfig(folder.path(), &shops);
    let config = folder.path().join("kubediff.yaml");
    std::fs::write(
        &config,
        format!("{CLUSTERS}history: {{path: history.db, postgres: {{url: '{owner}'}}}}\n"),
    )
    .unwrap();
    let (daemon, _) = serve(&kubeconfig, &config).await;
    shops[0].create("cart", "1").await;
    shops[1].create("pay", "1").await;
    until(&["log", "--history", &owner, "--cluster", "prod"], "cart").await;
    until(&["log", "--history", &owner, "--cluster", "staging"], "pay").await;
    let both = until(&["log", "--history", &owner, "--all-clusters", "--oneline"], "cart").await;
    let has =
        |cluster: &str, name: &str| both.lines().any(|line| line.starts_with(cluster) && line.contains(name));
    assert!(has("prod", "cart") && has("staging", "pay") && !has("prod", "pay"), "{both}");
    on_thread(move || daemon.end_with("-TERM")).await;
}

/// All clusters fail for good: so does the process. One that names one cluster on the command line is refused.
#[tokio::test(flavor = "multi_thread")]
async fn mistakes_of_all_clusters_end_the_process() {
    let (folder, shops) = (tempfile::tempdir().unwrap(), shops().await);
    let kubeconfig = kubeconfig(folder.path(), &shops);
    let config = folder.path().join("kubediff.yaml");
    let run = |text: &str, arguments: &'static [&'static str]| {
        std::fs::write(&config, text).unwrap();
        let (kubeconfig, config) = (kubeconfig.clone(), config.clone());
        on_thread(move || {
            let (said, status) = Session::serve_with(Path::new(&kubeconfig), &config, arguments).wait();
            (said.join("\n"), status.code())
        })
    };
    let two = "clusters: [{context: prod}, {context: test}]\nlisten: null\nhistory: {path: history.db}\n";
    let (said, code) = run(two, &["--context", "prod"]).await;
    assert!(said.contains("--context is for one cluster") && code == Some(2), "{code:?}: {said}");
    let none = "clusters: [{context: nowhere}, {context: prot}]\nlisten: null\nhistory: {path: history.db}\n";
    let (said, code) = run(none, &[]).await;
    let alike = "kubediff: prot: the kubeconfig has no context `prot`; did you mean `prod`?";
    assert!(said.contains(alike) && said.contains("nowhere") && code == Some(3), "{code:?}: {said}");
    for history in ["prod.history.db", "test.history.db"] {
        std::fs::write(folder.path().join(history), "this is no database, and nobody may write over it")
            .unwrap();
    }
    let (said, code) = run(two, &[]).await;
    assert!(said.contains("; trying again") && code == Some(1), "{code:?}: {said}");
    let of = |cluster: &str| {
        said.contains(&format!("kubediff: {cluster}: ")) && said.contains(&format!("{cluster}.history.db"))
    };
    assert!(of("prod") && of("test"), "{said}");
}
