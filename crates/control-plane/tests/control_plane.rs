//! The control plane keeps its promises: the servers that it reports run, survive what they should and leave nothing
//! behind.

#![expect(clippy::expect_used, reason = "a test may stop at a surprise, its helpers too")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use control_plane::{ControlPlane, Ending, Error, shared_or_skip};
use serde_json::{Value, json};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// A client of the API server with a token, or with none.
struct Client {
    agent: ureq::Agent,
    server: String,
    token: Option<String>,
}

impl Client {
    fn new(control_plane: &ControlPlane) -> Self {
        let pem = fs::read(control_plane.ca_file()).expect("the CA file");
        let ca = Certificate::from_pem(&pem).expect("a certificate");
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[ca]))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            // A watch lasts over a restart, which may take more than 30 s on a busy machine.
            .timeout_global(Some(Duration::from_secs(180)))
            // Kept connections do not survive the restarts.
            .max_idle_connections(0)
            .build();
        Self {
            agent: config.into(),
            server: control_plane.server().to_owned(),
            token: Some(control_plane.token().to_owned()),
        }
    }

    fn anonymous(mut self) -> Self {
        self.token = None;
        self
    }

    fn request(&self, path: &str) -> ureq::http::Response<ureq::Body> {
        let mut request = self.agent.get(format!("{}{path}", self.server));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request.call().expect("an answer")
    }

    fn get(&self, path: &str) -> (u16, String) {
        let mut response = self.request(path);
        (response.status().as_u16(), response.body_mut().read_to_string().expect("a body"))
    }

    fn get_json(&self, path: &str) -> Value {
        let (status, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).expect("JSON")
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let mut response = self
            .agent
            .post(format!("{}{path}", self.server))
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", self.token.as_deref().unwrap_or_default()))
            .send(body.to_string())
            .expect("an answer");
        let text = response.body_mut().read_to_string().expect("a body");
        assert_eq!(response.status().as_u16(), 201, "{path}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    fn create_config_map(&self, name: &str) -> Value {
        self.post(
            "/api/v1/namespaces/default/configmaps",
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}),
        )
    }
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn resource_version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|version| version.parse().ok())
        .expect("a version")
}

fn refuses_connections(control_plane: &ControlPlane) -> bool {
    let address = control_plane.server().trim_start_matches("https://");
    TcpStream::connect(address).is_err()
}

#[test]
fn answers_over_tls_with_the_version_it_was_built_from() {
    let Some(control_plane) = shared_or_skip("answers_over_tls") else { return };
    let client = Client::new(control_plane);
    assert_eq!(client.get("/readyz"), (200, String::from("ok")));
    client.get_json("/api/v1/namespaces/default");

    let version = client.get_json("/version");
    let go_mod = include_str!("../../../control-plane/go.mod");
    let built_from = version["gitVersion"].as_str().expect("a version");
    assert!(go_mod.contains(&format!("k8s.io/kubernetes {built_from}\n")), "{built_from}");
    assert!(built_from.starts_with(&format!("v{}.{}.", text(&version["major"]), text(&version["minor"]))));

    // The token is accepted, and needed.
    client.get_json("/api/v1/secrets");
    assert_eq!(Client::new(control_plane).anonymous().get("/api/v1/secrets").0, 403);

    let kubeconfig = fs::read_to_string(control_plane.kubeconfig()).expect("a kubeconfig");
    assert!(kubeconfig.contains(control_plane.server()) && kubeconfig.contains(control_plane.token()));
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[test]
fn restarts_keep_data_and_port() {
    let Some(control_plane) = ControlPlane::builder().start_or_skip("restarts_keep_data_and_port") else {
        return;
    };
    let client = Client::new(&control_plane);
    let created = client.create_config_map("kept");
    let path = format!("{CONFIG_MAPS}/kept");

    // On a busy machine it may have to be killed: the data is kept all the same.
    control_plane.restart().expect("a restart");
    assert_eq!(client.get_json(&path), created);

    control_plane.kill_restart().expect("a restart");
    assert_eq!(client.get_json(&path), created);

    control_plane.stop_apiserver().expect("a stop");
    assert!(refuses_connections(&control_plane));
    let stopped = control_plane.stop_apiserver();
    assert!(matches!(stopped, Err(Error::Command { command: "stop-apiserver", .. })), "{stopped:?}");
    control_plane.start_apiserver().expect("a start");
    assert_eq!(client.get_json(&path), created);
    assert!(resource_version(&created) <= control_plane.revision().expect("a revision"));
}

#[test]
fn restarts_end_open_watches() {
    let Some(control_plane) = ControlPlane::builder().start_or_skip("restarts_end_open_watches") else {
        return;
    };
    let client = Client::new(&control_plane);
    // The API server answers when the watch has begun.
    let watch = || client.request(&format!("{CONFIG_MAPS}?watch=true")).into_body().into_reader();
    let mut events = String::new();

    let mut graceful = watch();
    assert_eq!(control_plane.restart().expect("a restart"), Ending::Graceful);
    graceful.read_to_string(&mut events).expect("the proper end of a body");

    let mut broken = watch();
    control_plane.kill_restart().expect("a restart");
    broken.read_to_string(&mut events).expect_err("a body without its end");
}

#[test]
fn compaction_forgets_history() {
    // Without the watch cache the API server remembers nothing that etcd has compacted.
    let builder = ControlPlane::builder().watch_cache(false).compaction_interval(Duration::ZERO);
    let Some(control_plane) = builder.start_or_skip("compaction_forgets_history") else { return };
    let client = Client::new(&control_plane);
    let first = resource_version(&client.create_config_map("first"));
    let second = resource_version(&client.create_config_map("second"));
    let at_first = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact&resourceVersion={first}");
    assert_eq!(resource_version(&client.get_json(&at_first)), first);

    let compacted = control_plane.compact().expect("a compaction");
    assert!(compacted >= second);
    assert_eq!(client.get(&at_first).0, 410);
    assert!(control_plane.compact().expect("a second compaction") >= compacted);
}

#[test]
fn the_controller_manager_makes_pods_of_deployments() {
    let builder = ControlPlane::builder().controller_manager(true);
    let Some(control_plane) = builder.start_or_skip("the_controller_manager_makes_pods") else { return };
    let client = Client::new(&control_plane);
    client.post(
        "/apis/apps/v1/namespaces/default/deployments",
        &json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web"}]},
                },
            },
        }),
    );
    wait_for("two pods", || {
        let pods = client.get_json("/api/v1/namespaces/default/pods?labelSelector=app%3Dweb");
        pods["items"].as_array().is_some_and(|items| items.len() == 2)
    });
    // The controllers find the API server again.
    control_plane.kill_restart().expect("a restart");
    client.post(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "late"}}),
    );
    wait_for("a service account", || client.get("/api/v1/namespaces/late/serviceaccounts/default").0 == 200);
}

#[test]
#[cfg(target_os = "linux")]
fn dropping_it_leaves_nothing_behind() {
    let builder = ControlPlane::builder().controller_manager(true);
    let Some(control_plane) = builder.start_or_skip("dropping_it_leaves_nothing_behind") else { return };
    let traces = Traces::of(control_plane.pid(), control_plane.ca_file());
    assert_eq!(traces.processes.len(), 3, "the supervisor, the API server and the controller manager");
    assert_eq!(traces.left(), traces.all());
    drop(control_plane);
    assert_eq!(traces.left(), Vec::<PathBuf>::new());
}

/// The part of [`it_ends_with_the_process_that_holds_it`] that is killed.
///
/// Without the variable no test would kill it.
#[test]
fn hold_a_control_plane() {
    if std::env::var_os(HOLD).is_none() {
        return;
    }
    let control_plane = ControlPlane::builder().start().expect("a control plane");
    println!("{HELD} {} {}", control_plane.pid(), control_plane.ca_file().display());
    std::thread::sleep(Duration::from_secs(300));
}

const HOLD: &str = "INFORMER_HOLD_A_CONTROL_PLANE";
const HELD: &str = "holding";

#[test]
#[cfg(target_os = "linux")]
fn it_ends_with_the_process_that_holds_it() {
    if shared_or_skip("it_ends_with_the_process_that_holds_it").is_none() {
        return;
    }
    let mut holder = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "hold_a_control_plane", "--nocapture"])
        .env(HOLD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let output = BufReader::new(holder.stdout.take().expect("a pipe"));
    let traces = output
        .lines()
        .find_map(|line| {
            // The harness may have begun the line.
            let line = line.expect("a line");
            let (pid, ca_file) = line.split_once(HELD)?.1.trim().split_once(' ')?;
            Some(Traces::of(pid.parse().expect("a process id"), Path::new(ca_file)))
        })
        .expect("a control plane");
    assert_eq!(traces.left(), traces.all());

    holder.kill().expect("a signal");
    holder.wait().expect("an end");
    wait_for("the end of the control plane", || traces.left().is_empty());
}

/// Where a control plane can be seen from outside.
#[cfg(target_os = "linux")]
struct Traces {
    directory: PathBuf,
    processes: Vec<PathBuf>,
}

#[cfg(target_os = "linux")]
impl Traces {
    fn of(supervisor: u32, ca_file: &Path) -> Self {
        let process = |pid: &str| Path::new("/proc").join(pid);
        let pid = supervisor.to_string();
        // The supervisor starts its children from its main thread, which has the number of the process.
        let children = process(&pid).join("task").join(&pid).join("children");
        let children = fs::read_to_string(children).expect("a running process");
        Self {
            directory: ca_file.parent().expect("a directory").to_owned(),
            processes: children.split_whitespace().chain([pid.as_str()]).map(process).collect(),
        }
    }

    fn all(&self) -> Vec<PathBuf> {
        self.processes.iter().chain([&self.directory]).cloned().collect()
    }

    fn left(&self) -> Vec<PathBuf> {
        self.all().into_iter().filter(|path| path.exists()).collect()
    }
}

#[test]
fn a_failed_start_says_why() {
    if shared_or_skip("a_failed_start_says_why").is_none() {
        return;
    }
    match ControlPlane::builder().apiserver_arg("no-such-flag", "1").start() {
        Err(Error::Ended { output }) => assert!(output.contains("unknown flag: --no-such-flag"), "{output}"),
        other => panic!("{other:?}"),
    }
}

fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}
