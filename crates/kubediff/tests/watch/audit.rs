//! Issue 23, 2: users beside changes, from the audit log of a real API server.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use control_plane::ControlPlane;
use fastrand::Rng;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kubediff_history::{ChangeRecord, Filter, KindName, Location, Page, Reader, Record, Scope, User, Verb};
use postgres_server::{Durability, Server};
use serde_json::{Value, json};

use crate::session::{PATIENCE, Session};
use crate::shop::Shop;

/// Of requests that change something, who made them; as docs/audit.md has it.
const POLICY: &str = include_str!("../../../../docs/audit-policy.yaml");
const USERS: usize = 20;
const WRITES: usize = 2_000;
const AT_ONCE: usize = 6;
const LOOK: Duration = Duration::from_millis(50);

/// The API server, for one user after the other.
#[derive(Clone)]
struct Cluster {
    client: Client,
    truth: Arc<Mutex<Truth>>,
}

/// Who made the versions of objects, and who deleted objects, by uid.
#[derive(Default)]
struct Truth {
    versions: BTreeMap<(String, String), String>,
    deletions: BTreeMap<String, String>,
    /// What writes that may have changed nothing have returned.
    unclear: BTreeSet<(String, String)>,
}

impl Cluster {
    async fn of(server: &ControlPlane) -> Self {
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Self { client: Client::try_from(config).unwrap(), truth: Arc::default() }
    }

    /// Sends a request as a user, and remembers what came of it.
    async fn send(
        &self,
        user: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<Value, kube_client::Error> {
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let mut request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .header("user-agent", "kubectl/v1.34.0 (linux/amd64)");
        if !user.is_empty() {
            request = request.header("impersonate-user", user).header("impersonate-group", "system:masters");
        }
        let sent = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let object = self.client.request::<Value>(request.body(sent).unwrap()).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let mut truth = self.truth.lock().unwrap();
        if method == "DELETE" {
            // Of what goes at once, the answer names the object.
            // The answer to the deletion of many is a list of them.
            if let Some(uid) = object["details"]["uid"].as_str().or(metadata["uid"].as_str()) {
                truth.deletions.insert(uid.to_owned(), user.to_owned());
            }
        } else {
            let version = (text(&metadata["uid"]), text(&metadata["resourceVersion"]));
            // A write that changes nothing has the version of another one.
            match body["metadata"]["labels"]["same"].is_null() {
                true => drop(truth.versions.insert(version, user.to_owned())),
                false => drop(truth.unclear.insert(version)),
            }
        }
        Ok(object)
    }
}

/// A policy, and what the API server is given besides.
pub(crate) fn server(folder: &Path, controllers: bool, arguments: &[(&str, &str)]) -> control_plane::Builder {
    let policy = folder.join("policy.yaml");
    std::fs::write(&policy, POLICY).unwrap();
    let mut builder = ControlPlane::builder()
        .controller_manager(controllers)
        .apiserver_arg("audit-policy-file", policy.to_str().unwrap());
    for (name, value) in arguments {
        builder = builder.apiserver_arg(name, value);
    }
    builder
}

pub(crate) fn serve(server: &ControlPlane, folder: &Path, config: &str) -> Session {
    std::fs::write(
        folder.join("kubediff.yaml"),
        format!("history: {{path: history.db}}\nlisten: null\n{config}"),
    )
    .unwrap();
    let mut session = Session::serve(server.kubeconfig(), &folder.join("kubediff.yaml"));
    session.note("watching ");
    session
}

/// The changes of some kinds.
fn changes(history: &Path, kinds: &[&str]) -> Vec<ChangeRecord> {
    let kinds = kinds.iter().map(|kind| KindName { group: None, resource: (*kind).to_owned() }).collect();
    let scope = Scope { kinds, namespaces: vec!["default".to_owned()], ..Scope::default() };
    let page = Page::oldest(10_000);
    let found =
        Reader::open(history).unwrap().records(&Filter { scope, ..Filter::default() }, &page).unwrap();
    let change = |record| match record {
        Record::Change(change) => Some(*change),
        _ => None,
    };
    found.records.into_iter().filter_map(change).collect()
}

/// Waits until a question has an answer.
async fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::park_timeout(LOOK);
    }
}

/// A user writes something, and something may be there already.
async fn write(cluster: &Cluster, random: &mut Rng, count: usize) {
    let user = format!("user{}", random.usize(..USERS));
    let name = format!("o{}", random.usize(..120));
    let (base, object) = match random.u8(..3) {
        0 => (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({
                "metadata": {"name": name},
                "spec": {"replicas": random.u8(..3), "selector": {"matchLabels": {"app": name}},
                         "template": {"metadata": {"labels": {"app": name}},
                                      "spec": {"containers": [{"name": "web", "image": format!("web:{count}")}]}}},
            }),
        ),
        _ => (
            "/api/v1/namespaces/default/configmaps",
            json!({
                "metadata": {"name": name}, "data": {"k": count.to_string()},
            }),
        ),
    };
    let path = format!("{base}/{name}");
    // What is refused makes no change.
    let _ = match random.u8(..10) {
        0 => cluster.send(&user, "DELETE", &path, &Value::Null).await,
        1 => cluster.send(&user, "PATCH", &path, &json!({"metadata": {"labels": {"same": "label"}}})).await,
        2..5 => {
            let Ok(mut there) =
                cluster.client.request::<Value>(http::Request::get(&path).body(Vec::new()).unwrap()).await
            else {
                return;
            };
            there["metadata"]["annotations"] = json!({"count": count.to_string()});
            cluster.send(&user, "PUT", &path, &there).await
        }
        5..8 => {
            cluster
                .send(
                    &user,
                    "PATCH",
                    &path,
                    &json!({"metadata": {"annotations": {"count": count.to_string()}}}),
                )
                .await
        }
        _ => cluster.send(&user, "POST", base, &object).await,
    };
}

/// Whoever is named for sure is the one who did it, and most are named for sure.
fn judge(truth: &Truth, history: &Path, seed: u64) -> String {
    let (mut writes, mut sure, mut probable) = (0, 0, 0);
    let (mut deletions, mut sure_deletions) = (0, 0);
    for change in changes(history, &["configmaps", "deployments"]) {
        let uid = change.object.uid.clone();
        let user = change.user.clone();
        let is_sure = user.as_ref().is_some_and(|user| !user.probable);
        let name = user.map(|user| user.name);
        if change.verb == Verb::Deleted {
            let by = &truth.deletions[&uid];
            deletions += 1;
            sure_deletions += usize::from(is_sure);
            assert!(!is_sure || name.as_ref() == Some(by), "SEED={seed}: {by} deleted it: {change:?}");
            continue;
        }
        let version = (uid, change.rv.clone().unwrap());
        if let Some(by) = truth.versions.get(&version) {
            writes += 1;
            sure += usize::from(is_sure);
            probable += usize::from(name.is_some() && !is_sure);
            assert!(!is_sure || name.as_ref() == Some(by), "SEED={seed}: {by} made it: {change:?}");
        } else if is_sure && !truth.unclear.contains(&version) {
            // Of a controller.
            assert!(name.is_some_and(|name| !name.starts_with("user")), "SEED={seed}: {change:?}");
        }
    }
    assert!(writes > WRITES / 4 && sure * 100 >= writes * 90, "SEED={seed}");
    assert!(deletions > 20 && sure_deletions * 100 >= deletions * 95, "SEED={seed}");
    format!(
        "{sure} of {writes} writes for sure, {probable} probably; {sure_deletions} of {deletions} deletions for sure"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_a_busy_cluster_are_who_they_were() {
    let seed = std::env::var("SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let arguments = [("audit-log-path", log.to_str().unwrap()), ("audit-log-maxsize", "1")];
    let name = "users_of_a_busy_cluster_are_who_they_were";
    let Some(server) = server(folder.path(), true, &arguments).start_or_skip(name) else { return };
    let cluster = Cluster::of(&server).await;
    let config = "watch: {resources: [cm, deploy]}\naudit: {log: audit.log}\n";
    let daemon = serve(&server, folder.path(), config);
    let history = folder.path().join("history.db");

    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..AT_ONCE {
        let (cluster, mut random) = (cluster.clone(), Rng::with_seed(seed.wrapping_add(worker as u64)));
        workers.spawn(async move {
            for count in 0..WRITES / AT_ONCE {
                write(&cluster, &mut random, worker * WRITES + count).await;
            }
        });
    }
    while let Some(worked) = workers.join_next().await {
        worked.unwrap();
    }
    cluster
        .send("last", "POST", "/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "last"}}))
        .await
        .unwrap();
    until("the last change has no user", || {
        let all = changes(&history, &["configmaps"]);
        all.iter().find(|it| it.object.name == "last").and_then(|it| it.user.clone())
    })
    .await;

    println!("{}", judge(&cluster.truth.lock().unwrap(), &history, seed));
    // Somebody acted in their names.
    let all = changes(&history, &["configmaps"]);
    let user = all.iter().rev().find_map(|it| it.user.clone()).unwrap();
    assert_eq!(user.groups.first().unwrap(), "system:masters", "{user:?}");
    assert!(user.impersonator.is_some() && user.address.is_some(), "{user:?}");
    assert!(std::fs::read_dir(folder.path()).unwrap().count() > 4, "the audit log has rotated");

    // A deletion's user stands in the log within two seconds.
    let path = "/api/v1/namespaces/default/configmaps/last";
    cluster.send("jane", "DELETE", path, &Value::Null).await.unwrap();
    let since = Instant::now();
    let ask = |arguments: &[&str]| {
        let command = env!("CARGO_BIN_EXE_kubediff");
        let output =
            Command::new(command).args(arguments).env("KUBEDIFF_HISTORY", &history).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        text(output.stdout) + &text(output.stderr)
    };
    let line = until("no deletion by jane", || {
        let log = ask(&["log", "cm/last", "-n", "default", "--by-user", "ja*", "--oneline"]);
        log.contains("jane").then_some(log)
    })
    .await;
    println!("after {:?}: {line}", since.elapsed());
    assert!(line.contains("jane"), "{line}");
    let shown = ask(&["log", "cm/last", "-n", "default", "--change", "deleted"]);
    assert!(shown.contains("deleted by jane"), "{shown}");

    // The event of a deletion of many names none of them: by selector and time, it was probably this one.
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["many-1", "many-2"] {
        let object = json!({"metadata": {"name": name, "labels": {"of": "many"}}});
        cluster.send("joe", "POST", maps, &object).await.unwrap();
    }
    cluster.send("jane", "DELETE", &format!("{maps}?labelSelector=of%3Dmany"), &Value::Null).await.unwrap();
    let users = until("the deletions of many have no users", || {
        let all = changes(&history, &["configmaps"]);
        let many =
            all.into_iter().filter(|it| it.object.name.starts_with("many-") && it.verb == Verb::Deleted);
        many.map(|it| it.user).collect::<Option<Vec<User>>>().filter(|users| users.len() == 2)
    })
    .await;
    assert!(users.iter().all(|user| user.name == "jane" && user.probable), "{users:?}");
    let (_, notes, status) = daemon.end_with("-TERM");
    assert!(status.success(), "{notes:?}");
}

/// Somebody has created a ConfigMap.
fn created(name: &str, user: &str) -> String {
    let now = jiff::Timestamp::now().to_string();
    let event = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": name, "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/default/configmaps", "verb": "create", "user": {"username": user},
        "objectRef": {"resource": "configmaps", "namespace": "default", "name": name, "apiVersion": "v1"},
        "responseStatus": {"code": 201}, "requestReceivedTimestamp": now, "stageTimestamp": now,
    });
    format!("{event}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_come_while_the_history_is_away_are_joined_after_that() {
    let mut server = Server::start(Durability::Full).unwrap();
    let database = server.create_database().unwrap();
    let owner = server.address(&database);
    let migrated =
        Command::new(env!("CARGO_BIN_EXE_kubediff")).args(["history", "migrate", &owner]).output().unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    let (config, log) = (folder.path().join("kubediff.yaml"), folder.path().join("audit.log"));
    let text = format!(
        "cluster: prod\nwatch: {{resources: [cm]}}\nlisten: null\naudit: {{log: audit.log}}\n\
         history: {{path: history.db, postgres: {{url: '{owner}'}}}}\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut events = std::fs::File::create(&log).unwrap();
    let mut daemon = Session::serve(shop.kubeconfig(), &config);
    daemon.note("watching ");
    let user_of = |name: &str| {
        let mut reader = Reader::at(&Location::parse(&owner).unwrap(), Some("prod")).ok()?;
        let found = reader.records(&Filter::default(), &Page::newest(10)).ok()?.records;
        found.into_iter().find_map(|record| match record {
            Record::Change(change) if change.object.name == name => change.user.map(|user| user.name),
            _ => None,
        })
    };
    shop.create("before", "1").await;
    events.write_all(created("before", "jane").as_bytes()).unwrap();
    assert_eq!(until("no user before", || user_of("before")).await, "jane");

    server.kill().unwrap();
    shop.create("meanwhile", "1").await;
    events.write_all(created("meanwhile", "joe").as_bytes()).unwrap();
    daemon.note("changes do not get their users from the audit log");
    let server =
        tokio::task::spawn_blocking(move || server.restart().map(|()| server)).await.unwrap().unwrap();
    assert_eq!(until("no user after", || user_of("meanwhile")).await, "joe");
    let (_, notes, status) = daemon.end_with("-TERM");
    assert!(status.success(), "{notes:?}");
    drop(server);
}

/// An address that nobody has.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_sends_its_events_and_nobody_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let address = free();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = folder.path().join("tls.crt");
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    let webhook = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "kubediff",
        "clusters": [{"name": "kubediff", "cluster": {"server": format!("https://{address}/"), "certificate-authority": certificate}}],
        "users": [{"name": "apiserver", "user": {"token": "a-token-of-this-test"}}],
        "contexts": [{"name": "kubediff", "context": {"cluster": "kubediff", "user": "apiserver"}}],
    });
    let file = folder.path().join("webhook.yaml");
    std::fs::write(&file, webhook.to_string()).unwrap();
    let arguments =
        [("audit-webhook-config-file", file.to_str().unwrap()), ("audit-webhook-batch-max-wait", "500ms")];
    let name = "an_api_server_sends_its_events_and_nobody_else_does";
    let Some(server) = server(folder.path(), false, &arguments).start_or_skip(name) else { return };
    let cluster = Cluster::of(&server).await;
    let secret = folder.path().join("token");
    std::fs::write(&secret, "a-token-of-this-test\n").unwrap();
    let config = format!(
        "watch: {{resources: [cm]}}\naudit: {{addresses: false, webhook: {{listen: '{address}', token: {{file: token}}, \
         tls: {{certificate: tls.crt, key: tls.key}}}}}}\n\
         sinks: {{jane: {{file: {{path: jane.log}}}}}}\nroutes: [{{match: {{users: [jane]}}, sinks: [jane]}}]\n"
    );
    let mut daemon = serve(&server, folder.path(), &config);
    let history = folder.path().join("history.db");

    // Others are told what is missing, and cannot make anything up.
    let http = |token: &str, body: &str| {
        let output = Command::new("curl")
            .args(["-s", "-w", " %{http_code}", "-H", &format!("Authorization: Bearer {token}"), "-d", body])
            .arg("--cacert")
            .arg(&certificate)
            .arg(format!("https://{address}/"))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let refused = http("another", r#"{"kind": "EventList", "items": []}"#);
    assert!(refused.ends_with(" 401") && refused.contains("`audit.webhook.token`"), "{refused}");
    daemon.note("came without its token");
    let refused = http("a-token-of-this-test", "no JSON");
    assert!(refused.ends_with(" 400") && refused.contains("EventList"), "{refused}");
    assert_eq!(http("a-token-of-this-test", r#"{"items": [{"auditID": "half"}]}"#), " 200");
    daemon.note("what came on the way of audit events was none");

    let maps = "/api/v1/namespaces/default/configmaps";
    cluster.send("jane", "POST", maps, &json!({"metadata": {"name": "flags"}})).await.unwrap();
    cluster.send("joe", "PATCH", &format!("{maps}/flags"), &json!({"data": {"k": "1"}})).await.unwrap();
    cluster.send("", "DELETE", &format!("{maps}/flags"), &Value::Null).await.unwrap();
    let users = until("three changes have their users", || {
        let all = changes(&history, &["configmaps"]);
        let of = all.into_iter().filter(|it| it.object.name == "flags").map(|it| it.user);
        of.collect::<Option<Vec<User>>>().filter(|users| users.len() == 3)
    })
    .await;
    let names: Vec<&str> = users.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(names[..2], ["jane", "joe"]);
    assert!(users.iter().all(|user| !user.probable && user.address.is_none()), "{users:?}");
    assert_eq!((users[2].impersonator.as_ref(), users[1].impersonator.as_deref()), (None, Some(names[2])));
    // A route by user: the record waited for its user.
    let sent = until("jane's change is sent", || {
        let sent = std::fs::read_to_string(folder.path().join("jane.log")).unwrap_or_default();
        sent.ends_with('\n').then_some(sent)
    })
    .await;
    assert_eq!(sent.lines().count(), 1, "{sent}");
    let record = serde_json::from_str::<Value>(&sent).unwrap()["change"].take();
    assert_eq!((&record["change"], &record["user"]["name"]), (&json!("added"), &json!("jane")), "{sent}");
    let (_, notes, status) = daemon.end_with("-TERM");
    assert!(status.success(), "{notes:?}");
}
