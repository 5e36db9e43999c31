//! A question has the same answer from the daemon as from its file: byte for byte.

use super::exec::{Container, forms};
use super::server::Cluster;

/// The clock of the person who asks.
const NOW: &str = "--now=2026-03-01T16:00:00+01:00[Europe/Berlin]";

/// Questions of all sorts, answered and not.
const QUESTIONS: &[&[&str]] = &[
    &["log"],
    &["log", "deploy/cart", "-n", "shop", "-p"],
    &["log", "deploy", "cart", "--since", "15:02", "--until", "-30m", "--reverse"],
    &["log", "-A", "--oneline", "--limit", "3"],
    &["log", "--path", "spec.template.spec.containers[*].image", "--change", "updated,recreated"],
    &["log", "-o", "json", "--manager", "helm"],
    &["log", "--color", "always", "--columns", "60", "-p"],
    &["log", "--manager", "nobody"],
    &["log", "unicorns"],
    &["log", "--since", "noonish"],
    &["show", "#7"],
    &["show", "deploy/cart@15:08", "-o", "yaml"],
    &["show", "deploy/cart@-2m", "-o", "json", "--show-managed-fields"],
    &["show", "deploy/nobody"],
    &["show", "secret/db@#17"],
    &["diff", "-n", "shop", "--from", "15:00", "--to", "yesterday 12:00"],
    &["diff", "-n", "shop", "--from", "15:02", "--to", "-20m"],
    &["diff", "deploy", "--from", "15:02", "-o", "json", "--show", "all", "--hide", "status"],
    &["diff", "--from", "15:02", "-o", "oneline", "--columns", "50"],
    &["blame", "deploy/cart", "-n", "shop"],
    &["blame", "deploy", "cart", "--path", "spec", "--columns", "70", "--color", "always"],
    &["blame", "deploy/cart", "-o", "json"],
    &["blame", "cm/app"],
    &["get", "pods", "-n", "shop", "--at", "15:05"],
    &["get", "deploy", "-A", "-o", "wide"],
    &["get", "offers", "--no-headers"],
    &["get", "deploy/cart", "--at", "-45m", "-o", "yaml"],
    &["get", "pods", "--at", "2027-01-01"],
    &["history", "check"],
    &["history", "stats"],
    &["history", "stats", "-o", "json"],
];

#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_answers_as_its_file_does() {
    let cluster = Cluster::open().await;
    let mut codes = std::collections::BTreeSet::new();
    for question in QUESTIONS {
        let question = [*question, &[NOW]].concat();
        let (file, daemon) = (cluster.read(&question, &[]).await, cluster.ask(&question).await);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(text(&daemon.stdout), text(&file.stdout), "{question:?}");
        assert_eq!(text(&daemon.stderr), text(&file.stderr), "{question:?}");
        assert_eq!(daemon.status.code(), file.status.code(), "{question:?}");
        for form in forms("hunter2hunter2") {
            assert!(!text(&daemon.stdout).contains(&form), "{question:?}");
        }
        assert_eq!(cluster.asked().protocol, "v5.channel.k8s.io");
        codes.insert(daemon.status.code().unwrap());
    }
    // Each way to end was among them.
    assert_eq!(codes, [0, 1, 2].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_the_newest_protocol_is_asked_as_well() {
    let cluster = Cluster::open().await;
    cluster.protocols(&["v4.channel.k8s.io"]);
    for question in [&["log", "-p", NOW][..], &["blame", "deploy/nobody", NOW]] {
        let (file, daemon) = (cluster.read(question, &[]).await, cluster.ask(question).await);
        assert_eq!(daemon, file);
        assert_eq!(cluster.asked().protocol, "v4.channel.k8s.io");
    }
}

/// The daemon's container has neither the clock nor the time zone nor the terminal of the person who asks.
#[tokio::test(flavor = "multi_thread")]
async fn clock_zone_and_colours_are_those_of_the_person_who_asks() {
    let cluster = Cluster::open().await;
    let zones = ["UTC", "America/New_York", "Asia/Kathmandu", "CET-1CEST,M3.5.0,M10.5.0/3"];
    let mut said = Vec::new();
    for zone in zones {
        let environment = [("TZ", zone), ("CLICOLOR_FORCE", "1")];
        let question = ["log", "-p", "--until", "2026-03-02"];
        let file = cluster.read(&question, &environment).await;
        let daemon = cluster.ask_as(&question, &environment).await;
        assert_eq!(daemon.stdout, file.stdout, "{zone}");
        assert!(daemon.stdout.contains(&0x1b), "coloured");
        let note = String::from_utf8(daemon.stderr).unwrap();
        assert_eq!(note.contains("has no name that the daemon knows"), zone.contains(','), "{note}");
        said.push(daemon.stdout);
    }
    said.dedup();
    assert_eq!(said.len(), zones.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_reach_the_server_and_not_the_pod() {
    let cluster = Cluster::open().await;
    let question = ["blame", "deploy/cart", "--as", "jane", "--as-group", "ops", "--token", "open-sesame"];
    let answer = cluster.ask(&question).await;
    assert!(answer.status.success());
    let asked = cluster.asked();
    assert_eq!(asked.path, "/api/v1/namespaces/monitoring/pods/kubediff-5d8c-x7/exec");
    assert_eq!(asked.container, "kubediff");
    assert_eq!(asked.headers["authorization"], "Bearer open-sesame");
    assert_eq!(asked.headers["impersonate-user"], "jane");
    assert_eq!(asked.headers["impersonate-group"], "ops");
    let command = asked.command.join(" ");
    assert!(!["sesame", "jane", "ops", "127.0.0.1"].iter().any(|word| command.contains(word)), "{command}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_before_a_break_is_shown_and_called_incomplete() {
    let cluster = Cluster::open().await;
    let whole = cluster.read(&["log", NOW], &[]).await.stdout;
    for container in [Container::Breaks(700), Container::Closes(700)] {
        cluster.container(container);
        let answer = cluster.ask(&["log", NOW]).await;
        assert_eq!(answer.stdout, whole[..700]);
        let said = String::from_utf8(answer.stderr).unwrap();
        assert!(
            said.starts_with(
                "kubediff: the connection to the pod monitoring/kubediff-5d8c-x7 was lost, so that the answer is incomplete: "
            ),
            "{said}"
        );
        assert_eq!(answer.status.code(), Some(3));
    }
}

/// A reader such as `head` ends the question, too.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_enough_is_no_error() {
    let cluster = Cluster::open().await;
    let kubeconfig = cluster.kubeconfig().to_owned();
    let ended = tokio::task::spawn_blocking(move || {
        let mut command = super::server::program(&[("KUBECONFIG", kubeconfig.to_str().unwrap())]);
        command.args(["log", "-o", "json", "--daemon", "monitoring/kubediff"]);
        let (reader, writer) = std::io::pipe().unwrap();
        let child =
            command.stdout(writer).stderr(std::process::Stdio::piped()).stdin(std::process::Stdio::null());
        let child = child.spawn().unwrap();
        drop(command);
        drop(reader);
        child.wait_with_output().unwrap()
    });
    let ended = ended.await.unwrap();
    assert_eq!((String::from_utf8(ended.stderr).unwrap(), ended.status.code()), (String::new(), Some(0)));
}
