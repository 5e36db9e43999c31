//! A cluster in which the daemon runs: an embedded API server, whose pods can be asked.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use serve::http::{Server, ServerOptions, Serving};
use serve::{Body, full};
use testapi::{Gvr, TestApi};

use super::exec::{self, Asked, Container};
use crate::queries::shop::Shop;

/// A refusal of the server: requests whose path ends so get this answer.
pub(crate) type Refused = (&'static str, u16, Value);

/// The cluster, its daemon's history, and what was asked.
pub(crate) struct Cluster {
    pub(crate) shop: Shop,
    objects: TestApi,
    serving: Serving,
    kubeconfig: tempfile::NamedTempFile,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    container: Container,
    /// `None` for those of Kubernetes.
    protocols: Option<Vec<&'static str>>,
    refused: Vec<Refused>,
    asked: Vec<Asked>,
}

impl Cluster {
    /// A cluster with the daemon as the chart runs it: the Deployment `monitoring/kubediff` with one pod.
    pub(crate) async fn open() -> Self {
        let cluster = Self::empty().await;
        cluster.workload("Deployment", "kubediff");
        cluster.pod("kubediff-5d8c-x7", "kubediff", true, &["kubediff"]);
        cluster
    }

    pub(crate) async fn empty() -> Self {
        let objects = TestApi::builder().start().await.unwrap();
        let shop = Shop::open();
        let state = Arc::new(Mutex::new(State::default()));
        let server = Server::bind(ServerOptions::default()).await.unwrap();
        let (api, told, history) = (objects.api().clone(), state.clone(), shop.path.clone());
        let serving = server.serve(move |request: Request<Bytes>, _| {
            let (api, told, history) = (api.clone(), told.clone(), history.clone());
            async move {
                match answer(request, &told, &history) {
                    Ok(response) => response,
                    Err(request) => api.handle(*request).await,
                }
            }
        });
        let kubeconfig = tempfile::NamedTempFile::new().unwrap();
        let address = format!("http://{}", serving.address());
        let text = objects.kubeconfig_with(Some("sesame")).replace(&objects.url(), &address);
        std::fs::write(kubeconfig.path(), text).unwrap();
        Self { shop, objects, serving, kubeconfig, state }
    }

    /// A Deployment or StatefulSet of this name.
    pub(crate) fn workload(&self, kind: &str, name: &str) {
        let labels = labels(name);
        let object = json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "monitoring"},
            "spec": {
                "serviceName": name, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "kubediff", "image": "kubediff:1"}]},
                },
            },
        });
        let resource = Gvr::new("apps/v1", if kind == "Deployment" { "deployments" } else { "statefulsets" });
        self.objects.api().create(&resource, object).unwrap();
    }

    /// A running pod of a workload with these containers.
    pub(crate) fn pod(&self, name: &str, workload: &str, ready: bool, containers: &[&str]) {
        self.pod_that(name, workload, ready, containers, &json!({"running": {}}));
    }

    /// The same, with another state of its containers.
    pub(crate) fn pod_that(
        &self,
        name: &str,
        workload: &str,
        ready: bool,
        containers: &[&str],
        state: &Value,
    ) {
        let image = |name: &&str| format!("{name}:1");
        let specs: Vec<Value> = containers.iter().map(|it| json!({"name": it, "image": image(it)})).collect();
        let states: Vec<Value> = containers
            .iter()
            .map(|it| json!({"name": it, "image": image(it), "imageID": "", "ready": ready, "restartCount": 0, "state": state}))
            .collect();
        let pods = Gvr::new("v1", "pods");
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "monitoring", "labels": labels(workload)},
            "spec": {"containers": specs},
        });
        let mut object = self.objects.api().create(&pods, object).unwrap();
        let ready = if ready { "True" } else { "False" };
        object["status"] = json!({
            "phase": "Running", "containerStatuses": states,
            "conditions": [{"type": "Ready", "status": ready}],
        });
        self.objects.api().update_status(&pods, object).unwrap();
    }

    /// The reaction of the container from now on.
    pub(crate) fn container(&self, container: Container) {
        self.state.lock().unwrap().container = container;
    }

    /// The versions of the protocol that the server speaks.
    pub(crate) fn protocols(&self, protocols: &[&'static str]) {
        self.state.lock().unwrap().protocols = Some(protocols.to_vec());
    }

    /// The refusal of the server from now on.
    pub(crate) fn refuse(&self, path: &'static str, code: u16, answer: Value) {
        self.state.lock().unwrap().refused = vec![(path, code, answer)];
    }

    /// The last question.
    pub(crate) fn asked(&self) -> Asked {
        self.state.lock().unwrap().asked.last().unwrap().clone()
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }

    /// Asks the daemon, as a person in Berlin.
    pub(crate) async fn ask(&self, arguments: &[&str]) -> Output {
        self.ask_as(arguments, &[]).await
    }

    /// The same with these variables of the environment.
    pub(crate) async fn ask_as(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = program(environment);
        command
            .args(arguments)
            .args(["--daemon", "monitoring/kubediff"])
            .env("KUBECONFIG", self.kubeconfig());
        run(command).await
    }

    /// Asks something else of the daemon; the last line that it says, without the server's address, and the exit code.
    pub(crate) async fn refusal(&self, arguments: &[&str]) -> (String, i32) {
        let mut command = program(&[]);
        command.args(arguments).env("KUBECONFIG", self.kubeconfig());
        let output = run(command).await;
        let text = String::from_utf8(output.stderr).unwrap();
        let line = text.lines().last().unwrap_or_default();
        let address = format!("http://{}", self.serving.address());
        (line.replace(&address, "SERVER"), output.status.code().unwrap())
    }

    /// Asks the file.
    pub(crate) async fn read(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = program(environment);
        command.args(arguments).arg("--history").arg(&self.shop.path);
        run(command).await
    }
}

/// The program, at the desk of a person in Berlin.
pub(crate) fn program(environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    command.env_remove("KUBEDIFF_HISTORY").env_remove("NO_COLOR").env("TZ", "Europe/Berlin");
    let environment: BTreeMap<_, _> = environment.iter().copied().collect();
    command.envs(environment);
    command
}

/// Runs it beside the server, which has threads of the same runtime.
pub(crate) async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn labels(workload: &str) -> Value {
    json!({"app.kubernetes.io/name": "kubediff", "app.kubernetes.io/instance": workload})
}

/// The answer of the server before it finds objects; else the request.
fn answer(
    request: Request<Bytes>,
    state: &Mutex<State>,
    history: &Path,
) -> Result<Response<Body>, Box<Request<Bytes>>> {
    let mut state = state.lock().unwrap();
    let path = request.uri().path();
    if let Some((_, code, answer)) = state.refused.iter().find(|(end, ..)| path.ends_with(end)) {
        let code = StatusCode::from_u16(*code).unwrap();
        let body = match answer {
            Value::String(text) => text.clone(),
            answer => answer.to_string(),
        };
        return Ok(Response::builder().status(code).body(full(body)).unwrap());
    }
    if !path.ends_with("/exec") {
        return Err(Box::new(request));
    }
    let protocols = state.protocols.clone().unwrap_or_else(|| vec!["v5.channel.k8s.io", "v4.channel.k8s.io"]);
    let asked = exec::asked(&request, &protocols);
    state.asked.push(asked.clone());
    Ok(exec::upgrade(request, &asked, state.container.clone(), history.to_owned()))
}
