//! Issue 22, 2 and 4: the histories of two clusters in one PostgreSQL, as users set it up.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use postgres_server::{Durability, Server};
use testapi::TestApi;

use crate::session::{PATIENCE, Session};
use crate::shop::Shop;

/// Standard output and standard error of `kubediff ARGUMENTS`.
async fn kubediff(arguments: &[&str]) -> (String, String) {
    let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
    let run = move || {
        let output = Command::new(env!("CARGO_BIN_EXE_kubediff")).args(arguments).output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [stdout, stderr] = tokio::task::spawn_blocking(run).await.unwrap();
    (stdout, stderr)
}

/// A daemon of a cluster, when it watches.
async fn serve(shop: &Shop, config: &Path) -> Session {
    let (kubeconfig, config) = (shop.kubeconfig().to_owned(), config.to_owned());
    let start = move || {
        let mut session = Session::serve(&kubeconfig, &config);
        session.note("watching");
        session
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}

/// Asks until the log has a text.
async fn log_has(history: &str, cluster: &str, text: &str) -> String {
    let since = Instant::now();
    loop {
        let (log, errors) = kubediff(&["log", "--history", history, "--cluster", cluster]).await;
        if log.contains(text) {
            return log;
        }
        assert!(since.elapsed() < PATIENCE, "no {text} in {log}{errors}");
    }
}

/// What happened was two days ago, and that day becomes a file.
async fn archives_answer(server: &Server, database: &str, owner: &str) {
    let days = "SELECT kubediff.prepare_days(current_date - 3);
                UPDATE kubediff.versions SET day = day - 2; UPDATE kubediff.contents SET day = day - 2; UPDATE kubediff.days SET day = day - 2";
    server.sql(database, days).unwrap();
    let day = server.sql(database, "SELECT min(day) FROM kubediff.days").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    let archive = async |arguments: &[&str]| {
        let all = [&["history", "archive", "--history", owner, "--cluster", "prod"], arguments].concat();
        kubediff(&all).await
    };
    let (none, _) = archive(&["--older-than", "30d", to]).await;
    assert_eq!(none, "no day of the history is so old\n");
    let (made, errors) = archive(&["--day", &day, to]).await;
    let file = folder.path().join(format!("prod-{day}.db"));
    let file = file.to_str().unwrap();
    assert!(made.starts_with(file) && made.contains("changes and") && errors.is_empty(), "{made}{errors}");
    let (_, refused) = archive(&["--day", &day, to]).await;
    assert!(refused.contains("exists already; remove it"), "{refused}");
    let (skipped, _) = archive(&["--older-than", "1h", to]).await;
    assert!(skipped.ends_with("is there already\n"), "{skipped}");
    let all = tempfile::tempdir().unwrap();
    let to_all = all.path().to_str().unwrap();
    let (made, errors) =
        kubediff(&["history", "archive", "--history", owner, "--all-clusters", "--older-than", "1h", to_all])
            .await;
    let has = |cluster: &str| made.contains(&format!("/{cluster}-{day}.db has the "));
    assert!(has("prod") && has("staging") && errors.is_empty(), "{made}{errors}");
    let (_, refused) = archive(&["--day", &day, "/nowhere/at/all"]).await;
    assert!(refused.contains("there is no folder"), "{refused}");
    let (_, refused) = kubediff(&["history", "archive", "--history", file, "--day", &day, to]).await;
    assert!(refused.contains("history backup"), "{refused}");
    let (checked, errors) = kubediff(&["history", "check", "--history", file]).await;
    assert!(checked.contains("The history is sound."), "{checked}{errors}");
    let now = jiff::Timestamp::now().to_string();
    for question in [
        &["log", "-p", "--no-pager"][..],
        &["diff", "cm/cart", "--from", "-1h"],
        &["get", "cm", "-A", "--at", &now],
        &["blame", "cm/cart"],
        &["show", "cm/cart"],
    ] {
        let (there, _) = kubediff(&[question, &["--history", owner, "--cluster", "prod"]].concat()).await;
        let (here, errors) = kubediff(&[question, &["--history", file]].concat()).await;
        assert!(here == there && here.contains("cart"), "{question:?}: {here}{errors}, not {there}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_record_into_one_database() {
    let mut server = Server::start(Durability::Full).unwrap();
    let database = server.create_database().unwrap();
    let owner = server.address(&database);
    let (before, refused) = kubediff(&["log", "--history", &owner]).await;
    assert!(before.is_empty() && refused.contains("kubediff history migrate"), "{refused}");
    let (made, errors) = kubediff(&["history", "migrate", &owner]).await;
    assert!(made.contains("tables") && errors.is_empty(), "{made}{errors}");
    server
        .sql(&database, "CREATE ROLE prod LOGIN IN ROLE kubediff_writer; CREATE ROLE staging LOGIN IN ROLE kubediff_writer")
        .unwrap();

    let folder = tempfile::tempdir().unwrap();
    let other = TestApi::builder().seed(7);
    let shops = [Shop::open().await, Shop::with(other, None).await];
    let configs = ["prod", "staging"].map(|cluster| {
        let config = folder.path().join(format!("{cluster}.yaml"));
        let url = folder.path().join(format!("{cluster}.url"));
        std::fs::write(&url, server.address_as(cluster, &database)).unwrap();
        let text = format!(
            "cluster: {cluster}\nwatch: {{resources: [cm]}}\nlisten: null\n\
             history: {{path: {cluster}.db, postgres: {{url: {{file: {cluster}.url}}}}}}\n\
             sinks:\n  log: {{file: {{path: {cluster}.log}}}}\n"
        );
        std::fs::write(&config, text).unwrap();
        config
    });
    let [prod, staging] = [serve(&shops[0], &configs[0]).await, serve(&shops[1], &configs[1]).await];
    shops[0].create("cart", "1").await;
    shops[1].create("pay", "1").await;
    let log = log_has(&owner, "prod", "cart").await;
    assert!(!log.contains("pay"), "{log}");
    let log = log_has(&owner, "staging", "pay").await;
    assert!(!log.contains("cart"), "{log}");
    let (_, which) = kubediff(&["log", "--history", &owner]).await;
    assert!(which.contains("prod, staging") && which.contains("--cluster"), "{which}");
    let (both, errors) = kubediff(&["log", "--history", &owner, "--all-clusters", "--oneline"]).await;
    let has =
        |cluster: &str, name: &str| both.lines().any(|line| line.starts_with(cluster) && line.contains(name));
    assert!(has("prod", "cart") && has("staging", "pay") && !has("prod", "pay"), "{both}{errors}");
    let (clusters, errors) = kubediff(&["clusters", "--history", &owner]).await;
    assert_eq!(clusters.matches(" since ").count(), 2, "each has a leader: {clusters}{errors}");

    // The database fails and comes back: the daemon goes on.
    server.kill().unwrap();
    shops[0].patch("cart", "2").await;
    let server = Arc::new(
        tokio::task::spawn_blocking(move || {
            server.restart().unwrap();
            server
        })
        .await
        .unwrap(),
    );
    log_has(&owner, "prod", "\"1\" -> \"2\"").await;
    // A killed daemon has its term again at once; what happened meanwhile is in the history.
    tokio::task::spawn_blocking(move || prod.kill()).await.unwrap();
    shops[0].patch("cart", "3").await;
    let prod = serve(&shops[0], &configs[0]).await;
    shops[0].patch("cart", "4").await;
    log_has(&owner, "prod", "\"3\" -> \"4\"").await;
    let (kubeconfig, config) = (shops[0].kubeconfig().to_owned(), configs[0].clone());
    let second = move || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command.args(["serve", "-c"]).arg(config).env("KUBECONFIG", kubeconfig).env("HOSTNAME", "another");
        let mut session = Session::program(command);
        session.note("this process stands by");
        session.end_with("-TERM").2
    };
    let status = tokio::task::spawn_blocking(second).await.unwrap();
    assert!(status.success(), "{status}");
    for session in [prod, staging] {
        let (.., status) = tokio::task::spawn_blocking(move || session.end_with("-TERM")).await.unwrap();
        assert!(status.success(), "{status}");
    }
    for cluster in ["prod", "staging"] {
        let (checked, errors) =
            kubediff(&["history", "check", "--history", &owner, "--cluster", cluster]).await;
        assert!(checked.contains("The history is sound."), "{checked}{errors}");
    }
    let (state, errors) = kubediff(&["get", "cm", "-A", "--history", &owner, "--cluster", "prod"]).await;
    assert!(state.contains("cart"), "{state}{errors}");
    archives_answer(&server, &database, &owner).await;
    let sent = std::fs::read_to_string(folder.path().join("prod.log")).unwrap();
    assert_eq!(sent.matches("\"change\":\"updated\"").count(), 3, "each change once: {sent}");
    drop(server);
}
