//! Issue 23: the past is what the real server answered then, to kubectl and to other clients.

mod commands;
mod equality;
mod headlamp;
mod stores;
mod terminal;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use control_plane::ControlPlane;
use http::Request;
use jiff::Timestamp;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kubediff_history::{Reader, Scope};
use serde_json::{Value, json};

use crate::session::{PATIENCE, Session};
use crate::viewers::{admin, send};

/// Whether kubectl is missing. Without it these tests show less, which CI does not accept.
pub(crate) fn kubectl_is_missing() -> bool {
    let runs = Command::new("kubectl").args(["version", "--client"]).output();
    let missing = runs.is_err();
    assert!(!missing || std::env::var("CI").as_deref() != Ok("true"), "CI=true, and there is no kubectl");
    missing
}

/// A namespace of the real cluster, in which a test changes objects, and kubediff that records them.
struct Town<'a> {
    server: &'a ControlPlane,
    admin: Client,
    namespace: String,
    folder: tempfile::TempDir,
    recorder: Option<Session>,
}

impl<'a> Town<'a> {
    async fn open(server: &'a ControlPlane, namespace: &str) -> Self {
        let admin = admin(server).await;
        let folder = tempfile::tempdir().unwrap();
        let town = Self { server, admin, namespace: namespace.to_owned(), folder, recorder: None };
        town.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
        town
    }

    /// Records from now on.
    async fn record(&mut self) {
        let config = self.folder.path().join("kubediff.yaml");
        std::fs::write(&config, "history: {path: history.db}\nlisten: '127.0.0.1:0'\n").unwrap();
        let kubeconfig = self.server.kubeconfig().to_owned();
        let started = tokio::task::spawn_blocking(move || {
            let mut session = Session::serve(&kubeconfig, &config);
            session.note("watching");
            session
        });
        self.recorder = Some(started.await.unwrap());
    }

    async fn close(mut self) {
        let recorder = self.recorder.take();
        tokio::task::spawn_blocking(move || drop(recorder)).await.unwrap();
    }

    fn history(&self) -> PathBuf {
        self.folder.path().join("history.db")
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        send(&self.admin, "POST", path, body).await
    }

    async fn get(&self, path: &str) -> Value {
        let request = Request::get(path).body(Vec::new()).unwrap();
        self.admin.request(request).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Waits until the history has these lists as they are, and returns a time at which it does.
    async fn recorded(&self, lists: &[String]) -> Timestamp {
        let mut wanted = Vec::new();
        for path in lists {
            let list = self.get(path).await;
            let kind = list["kind"].as_str().unwrap().trim_end_matches("List").to_owned();
            for item in list["items"].as_array().unwrap() {
                let text = |name: &str| item["metadata"][name].as_str().unwrap().to_owned();
                wanted.push((kind.clone(), text("name"), text("resourceVersion")));
            }
        }
        wanted.sort();
        let kinds: Vec<String> = wanted.iter().map(|(kind, ..)| kind.clone()).collect();
        let scope = Scope { namespaces: vec![self.namespace.clone()], ..Scope::default() };
        let same = async {
            loop {
                let mut reader = Reader::open(self.history()).unwrap();
                let mut found: Vec<_> = reader
                    .state(&scope, None)
                    .unwrap()
                    .into_iter()
                    .map(|it| (it.object.gvk.kind, it.object.name, it.rv))
                    .filter(|(kind, ..)| kinds.contains(kind))
                    .collect();
                found.sort();
                if found == wanted {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, same).await.expect("the history has it all");
        Timestamp::now()
    }

    /// Waits until the history has the schemas of a group and version.
    async fn documented(&self, path: &str) {
        let name = format!("openapi/v3/{path}");
        let known = async {
            while !Reader::open(self.history()).unwrap().editions().unwrap().contains_key(&name) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, known).await.expect("the daemon has asked for it");
    }

    /// The program at a time, with a client as its command.
    fn at(&self, time: &str, command: &[&str]) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        program.args(["at", time, "--history"]).arg(self.history()).arg("--").args(command).env("TZ", "UTC");
        program
    }

    fn server_of(&self, time: &str) -> Served {
        Served::open(&self.history(), time)
    }
}

/// A past that is served, and a client for it.
struct Served {
    child: Child,
    kubeconfig: PathBuf,
}

impl Served {
    fn open(history: &Path, time: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command.args(["at", time, "--history"]).arg(history).env("TZ", "UTC").stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let kubeconfig = PathBuf::from(line.trim().strip_prefix("export KUBECONFIG=").unwrap());
        Self { child, kubeconfig }
    }

    async fn config(&self) -> Config {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
    }

    async fn client(&self) -> Client {
        Client::try_from(self.config().await).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It removes its kubeconfig.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

/// What a command prints, where it succeeds.
pub(crate) fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}
