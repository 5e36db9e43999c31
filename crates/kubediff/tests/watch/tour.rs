//! The tour of docs/kubediff.md: the outputs in it are those of an incident in a real cluster. `UPDATE_EXPECT=1` writes them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use control_plane::ControlPlane;
use expect_test::expect_file;
use jiff::Timestamp;
use kubediff_history::{ChangeRecord, Filter, Page, Reader, Record};
use serde_json::json;

use crate::audit;
use crate::past::{kubectl_is_missing, output};
use crate::session::{PATIENCE, Session};
use crate::stories::{Cluster, OFTEN, kubelets};
use crate::viewers::admin;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/kubediff.md");
const HEADING: &str = "\n## From an alert to its cause\n";
const PROMPT: &str = "    $ ";

/// The cluster, and its history.
struct Incident {
    server: ControlPlane,
    cluster: Cluster,
    folder: tempfile::TempDir,
    daemon: Session,
}

impl Incident {
    async fn begin(test: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        let arguments = [("audit-log-path", log.to_str().unwrap())];
        let server = audit::server(folder.path(), true, &arguments).start_or_skip(test)?;
        let cluster = Cluster(admin(&server).await);
        cluster.create("/api/v1/nodes", json!({"metadata": {"name": "n1"}})).await;
        cluster.create("/api/v1/namespaces", json!({"metadata": {"name": "shop"}})).await;
        let flags = json!({"metadata": {"name": "flags"}, "data": {"express": "on", "gifts": "off"}});
        cluster.create("/api/v1/namespaces/shop/configmaps", flags).await;
        let daemon = audit::serve(&server, folder.path(), "cluster: prod\naudit: {log: audit.log}\n");
        Some(Self { server, cluster, folder, daemon })
    }

    /// Two pods of a deployment run.
    async fn deploy(&self) {
        let labels = json!({"app": "cart"});
        let pod = json!({"containers": [{"name": "web", "image": "shop/cart:1.4.0"}]});
        let template = json!({"metadata": {"labels": labels}, "spec": pod});
        let spec = json!({"replicas": 2, "selector": {"matchLabels": labels}, "template": template});
        let deployment = json!({"metadata": {"name": "cart"}, "spec": spec});
        self.cluster.create("/apis/apps/v1/namespaces/shop/deployments", deployment).await;
        self.until_told("created, ready").await;
    }

    /// A time in a second in which nothing was done.
    async fn moment(&self) -> Timestamp {
        let last = Timestamp::now().as_second();
        self.until("a second passes", || (Timestamp::now().as_second() > last).then(Timestamp::now)).await
    }

    /// Somebody uses kubectl, in a second of its own.
    async fn kubectl(&self, user: &str, arguments: &str) {
        self.moment().await;
        let mut kubectl = Command::new("kubectl");
        kubectl.args(["--as", user, "--as-group", "system:masters", "-n", "shop"]);
        kubectl.args(arguments.split(' ')).env("KUBECONFIG", self.server.kubeconfig());
        kubectl.env("KUBECACHEDIR", self.folder.path());
        output(kubectl);
    }

    /// The output of a command line.
    fn ask(&self, line: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_kubediff"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{line} 2>&1")]).env("PATH", path).env("TZ", "UTC");
        shell.env("KUBEDIFF_HISTORY", self.history());
        output(shell)
    }

    fn history(&self) -> PathBuf {
        self.folder.path().join("history.db")
    }

    fn reader(&self) -> Reader {
        Reader::open(self.history()).unwrap()
    }

    fn changes(&self) -> Vec<ChangeRecord> {
        let found = self.reader().records(&Filter::default(), &Page::oldest(10_000)).unwrap();
        let changes = found.records.into_iter().filter_map(|record| match record {
            Record::Change(change) => Some(*change),
            _ => None,
        });
        changes.collect()
    }

    /// Waits for the change that a user made.
    async fn change_of(&self, user: &str) -> ChangeRecord {
        self.until(user, || {
            self.changes().into_iter().find(|it| it.user.as_ref().is_some_and(|it| it.name == user))
        })
        .await
    }

    async fn until_told(&self, outcome: &str) {
        self.until(outcome, || self.ask("kubediff log -n shop --fold").contains(outcome).then_some(())).await;
    }

    async fn until<T>(&self, what: &str, ask: impl Fn() -> Option<T>) -> T {
        let begun = Instant::now();
        let mut often = tokio::time::interval(OFTEN);
        loop {
            often.tick().await;
            if let Some(answer) = ask() {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "{what}: {}", self.ask("kubediff log -n shop"));
        }
    }
}

/// Words that differ from run to run, each with the page's own.
struct Words(Vec<(String, &'static str)>);

impl Words {
    /// The words of an incident at these moments.
    async fn of(
        incident: &Incident,
        changes: &[(ChangeRecord, &'static str, &'static str)],
        moments: &[(Timestamp, &'static str, &'static str)],
    ) -> Self {
        let mut words = Vec::new();
        for (change, number, time) in changes {
            words.push((second(change.observed_at), *time));
            words.push((format!("#{}", change.number.unwrap()), *number));
        }
        for (moment, record, time) in moments {
            let number = incident.reader().moment(*moment).unwrap().unwrap().number;
            words.push((format!("(record {number})"), *record));
            words.push((second(*moment), *time));
        }
        let pods = incident.cluster.get("/api/v1/namespaces/shop/pods").await;
        let names = pods["items"].as_array().unwrap().iter().map(|it| &it["metadata"]["name"]);
        // The server lists them in the order of their names.
        let ends = names.map(|name| name.as_str().unwrap().rsplit_once('-').unwrap().1.to_owned());
        words.extend(ends.zip(["6vglc", "b4bpz", "sbkm6"]));
        Self(words)
    }

    /// Replaces what is real. Columns stay where they are.
    fn of_page(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (real, page) in &self.0 {
            let width = real.len().max(page.len());
            text = text.replace(&format!("{real}  "), &format!("{page:width$}  ")).replace(real, page);
        }
        let counted = [("(kubectl-set), ", ") #", "10 changes, 2 Events"), ("    age ", ", ", "21d")];
        for (before, after, page) in counted {
            if let Some((begin, rest)) = text.split_once(before)
                && let Some((_, end)) = rest.split_once(after)
            {
                text = format!("{begin}{before}{page}{after}{end}");
            }
        }
        let of_pod = |line: &str| match line.rsplit_once("   ") {
            Some((rest, _)) if line.starts_with("cart-") => {
                format!("{rest}   {}", if line.contains("Running") { "21d" } else { "2m" })
            }
            _ => line.to_owned(),
        };
        text.lines().map(|line| of_pod(line) + "\n").collect()
    }
}

fn second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The page with the outputs of its commands.
fn with_outputs(page: &str, ask: impl Fn(&str) -> String) -> String {
    let (before, rest) = page.split_once(HEADING).unwrap();
    let (tour, after) = rest.split_once("\n## ").unwrap();
    let mut lines = Vec::new();
    let mut is_output = false;
    for line in tour.lines() {
        let command = line.strip_prefix(PROMPT);
        is_output = command.is_some() || (is_output && line.starts_with("    "));
        if !is_output || command.is_some() {
            lines.push(line.to_owned());
        }
        for line in command.map(&ask).unwrap_or_default().lines() {
            lines.push(format!("    {line}").trim_end().to_owned());
        }
    }
    format!("{before}{HEADING}{}\n\n## {after}", lines.join("\n").trim_end())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tour_of_the_page_is_an_incident_of_a_real_cluster() {
    let name = "the_tour_of_the_page_is_an_incident_of_a_real_cluster";
    if kubectl_is_missing() {
        return;
    }
    let Some(incident) = Incident::begin(name).await else { return };
    let kubelets = tokio::spawn(kubelets(incident.cluster.clone()));
    incident.deploy().await;
    let before = incident.moment().await;
    incident.kubectl("jane@example.com", "set image deploy/cart web=pull.example.com/cart:1.5.0").await;
    incident.until_told("failing").await;
    let failing = incident.moment().await;
    incident.kubectl("joe@example.com", "delete cm flags").await;
    let rollout = incident.change_of("jane@example.com").await;
    let deletion = incident.change_of("joe@example.com").await;
    let now = incident.moment().await;
    kubelets.abort();

    let times = [("14:00", before), ("14:03", failing), ("14:05", now)];
    let changes = [(rollout, "#81", "2026-11-29 14:02:11"), (deletion, "#97", "2026-11-29 14:03:40")];
    let moments =
        [(failing, "(record 96)", "2026-11-29 14:03:00"), (now, "(record 97)", "2026-11-29 14:05:00")];
    let words = Words::of(&incident, &changes, &moments).await;
    let page = std::fs::read_to_string(PAGE).unwrap();
    let real = with_outputs(&page, |command| {
        let command = times
            .iter()
            .fold(command.to_owned(), |command, (page, real)| command.replace(page, &real.to_string()));
        words.of_page(&incident.ask(&command))
    });
    expect_file![PAGE].assert_eq(&real);
    let (_, notes, status) = incident.daemon.end_with("-TERM");
    assert!(status.success(), "{notes:?}");
}
