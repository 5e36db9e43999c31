//! A small shop's day: an endless sequence of steps, from a seed.
//!
//! It tracks its objects, so that every step is possible; it never asks the server.

use std::collections::VecDeque;

use fastrand::Rng;
use serde_json::json;

use super::act::{Act, Step};
use super::app::{App, Pod};
use super::objects::{self, NAMESPACE, path, path_of};

/// The managers.
const ARGO: &str = "argocd-controller";
const CONTROLLERS: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";
const KUBELET: &str = "kubelet";
const EDIT: &str = "kubectl-edit";
const CREATE: &str = "kubectl-create";
const SECRETS: &str = "external-secrets";
const BACKUPS: &str = "backup-operator";

const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];

/// The story. Its steps go on for ever.
pub struct Plot {
    random: Rng,
    apps: Vec<App>,
    /// The next steps.
    steps: VecDeque<Step>,
    /// Episodes that were drawn and have not been played.
    deck: Vec<Episode>,
    backups_exist: bool,
    grants: u32,
    jobs: u32,
    addresses: u32,
    heartbeats: u64,
}

#[derive(Debug, Clone, Copy)]
enum Episode {
    Rollout,
    Crash,
    ConfigByHand,
    SecretRotated,
    CustomResource,
    Grant,
    Autoscaling,
    NightlyJob,
    Cordon,
}

/// At first in an order that makes a good show.
const FIRST: [Episode; 9] = [
    Episode::ConfigByHand,
    Episode::Rollout,
    Episode::SecretRotated,
    Episode::Crash,
    Episode::CustomResource,
    Episode::Grant,
    Episode::Autoscaling,
    Episode::NightlyJob,
    Episode::Cordon,
];

impl Plot {
    /// The same story for the same seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut apps = Vec::new();
        for (name, version, port, replicas) in
            [("web", [4, 12, 0], 8080, 3), ("cart", [2, 7, 3], 8081, 2), ("payments", [1, 30, 9], 8443, 2)]
        {
            apps.push(App {
                name,
                version,
                port,
                memory: "256Mi",
                replicas,
                revision: 1,
                generation: 1,
                hash: hash(&mut random),
                pods: Vec::new(),
                pool: 10,
            });
        }
        Self {
            random,
            apps,
            steps: VecDeque::new(),
            deck: FIRST.iter().rev().copied().collect(),
            backups_exist: false,
            grants: 0,
            jobs: 0,
            addresses: 10,
            heartbeats: 0,
        }
    }

    /// The objects at the start.
    pub fn prologue(&mut self) -> Vec<Act> {
        let mut acts = vec![Act::create(CREATE, "/api/v1/namespaces", objects::namespace())];
        for node in NODES {
            acts.push(Act::create(KUBELET, "/api/v1/nodes", objects::node(node)));
            acts.push(Act::create(
                KUBELET,
                "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
                json!({ "metadata": { "name": node }, "spec": { "holderIdentity": node, "leaseDurationSeconds": 40 } }),
            ));
        }
        acts.push(Act::create(
            SECRETS,
            path("v1", "secrets"),
            json!({ "metadata": { "name": "db" }, "stringData": { "username": "shop", "password": "correct-horse" } }),
        ));
        for at in 0..self.apps.len() {
            let app = &self.apps[at];
            acts.push(Act::create(ARGO, path("v1", "configmaps"), objects::config(app, app.pool, "info")));
            acts.push(Act::create(ARGO, path("v1", "services"), objects::service(app)));
            acts.push(Act::create(ARGO, path("apps/v1", "deployments"), objects::deployment(app)));
            let set = Act::create(CONTROLLERS, path("apps/v1", "replicasets"), objects::replica_set(app));
            acts.push(set.of(objects::owner_of_sets(app)));
            for _ in 0..self.apps[at].replicas {
                let name = self.new_pod(at, &mut acts);
                self.start_pod(at, &name, &mut acts);
            }
            self.report(at, &mut acts);
        }
        let web = &self.apps[0];
        let autoscalers = path("autoscaling/v2", "horizontalpodautoscalers");
        acts.push(Act::create(ARGO, autoscalers, objects::autoscaler(web)));
        acts
    }

    /// The next step. There is no end.
    pub fn step(&mut self) -> Step {
        loop {
            if let Some(mut step) = self.steps.pop_front() {
                step.acts.insert(0, self.heartbeat());
                return step;
            }
            match self.deck.pop() {
                Some(episode) => self.play(episode),
                None => {
                    self.deck = FIRST.to_vec();
                    self.random.shuffle(&mut self.deck);
                }
            }
        }
    }

    fn play(&mut self, episode: Episode) {
        match episode {
            Episode::Rollout => self.rollout(),
            Episode::Crash => self.crash(),
            Episode::ConfigByHand => self.config_by_hand(),
            Episode::SecretRotated => self.secret_rotated(),
            Episode::CustomResource => self.custom_resource(),
            Episode::Grant => self.grant(),
            Episode::Autoscaling => self.autoscaling(),
            Episode::NightlyJob => self.nightly_job(),
            Episode::Cordon => self.cordon(),
        }
    }

    /// A new version comes, pod by pod.
    fn rollout(&mut self) {
        let at = self.random.usize(..self.apps.len());
        let old_set = self.apps[at].replica_set();
        let old_pods = std::mem::take(&mut self.apps[at].pods);
        let new_hash = hash(&mut self.random);
        let app = &mut self.apps[at];
        app.hash = new_hash;
        app.revision += 1;
        app.generation += 1;
        app.version = if self.random.bool() {
            [app.version[0], app.version[1], app.version[2] + 1]
        } else {
            [app.version[0], app.version[1] + 1, 0]
        };
        let deployment = path_of("apps/v1", "deployments", app.name);
        let template = json!({ "spec": { "template": objects::deployment(app)["spec"]["template"] } });
        let [major, minor, patch] = app.version;
        let step = Step::after(4.0, [Act::patch(ARGO, deployment, template)])
            .told(format!("Git says {} {major}.{minor}.{patch}: it rolls out", app.name));
        self.steps.push_back(step);
        let mut set = objects::replica_set(&self.apps[at]);
        set["spec"]["replicas"] = 1.into();
        let set = Act::create(CONTROLLERS, path("apps/v1", "replicasets"), set);
        let total = old_pods.len();
        let set = [set.of(objects::owner_of_sets(&self.apps[at])), self.progress(at, total, 0)];
        self.steps.push_back(Step::after(0.4, set));

        for (done, old) in old_pods.into_iter().enumerate() {
            let mut acts = Vec::new();
            let name = self.new_pod(at, &mut acts);
            self.steps.push_back(Step::after(0.5, acts));
            let mut acts = Vec::new();
            self.start_pod(at, &name, &mut acts);
            self.steps.push_back(Step::after(1.2, acts));
            let scale = |replicas: usize| json!({ "spec": { "replicas": replicas } });
            let set = self.apps[at].replica_set();
            let mut acts = vec![
                Act::delete(CONTROLLERS, path_of("v1", "pods", &old.name)),
                Act::patch(CONTROLLERS, path_of("apps/v1", "replicasets", &old_set), scale(total - done - 1)),
            ];
            if done > 0 {
                acts.push(Act::patch(CONTROLLERS, path_of("apps/v1", "replicasets", &set), scale(done + 1)));
            }
            acts.push(self.progress(at, total, done + 1));
            self.steps.push_back(Step::after(0.4, acts));
        }
        let mut acts = vec![Act::delete(CONTROLLERS, path_of("apps/v1", "replicasets", &old_set))];
        self.report(at, &mut acts);
        self.steps.push_back(Step::after(0.6, acts));
    }

    /// A pod dies a few times, and gets more memory.
    fn crash(&mut self) {
        let at = self.random.usize(..self.apps.len());
        let pod = self.random.usize(..self.apps[at].pods.len());
        let name = self.apps[at].pods[pod].name.clone();
        let status = format!("{}/status", path_of("v1", "pods", &name));
        for times in 0..2 {
            let app = &mut self.apps[at];
            app.pods[pod].restarts += 1;
            let restarts = app.pods[pod].restarts;
            let mut step =
                Step::after(2.5, [Act::patch(KUBELET, status.clone(), objects::crashed(app, restarts))]);
            if times == 0 {
                step = step.told(format!("{name} runs out of memory"));
            }
            self.steps.push_back(step);
        }
        let app = &self.apps[at];
        let pod = &app.pods[pod];
        let running = objects::running(app, &pod.ip, pod.restarts);
        self.steps.push_back(Step::after(2.0, [Act::patch(KUBELET, status, running)]));
    }

    /// An app's settings are edited by hand, bypassing Git.
    fn config_by_hand(&mut self) {
        let at = self.random.usize(..self.apps.len());
        self.apps[at].pool = if self.apps[at].pool == 10 { 50 } else { 10 };
        let app = &self.apps[at];
        let config = path_of("v1", "configmaps", &format!("{}-config", app.name));
        let settings = objects::settings(app, app.pool, if app.pool == 10 { "info" } else { "debug" });
        let edit = Act::patch(EDIT, config, json!({ "data": { "app.yaml": settings } }));
        let told = format!("Somebody edits the settings of {} by hand", app.name);
        self.steps.push_back(Step::after(3.0, [edit]).told(told));
    }

    fn secret_rotated(&mut self) {
        let password: String = std::iter::repeat_with(|| self.random.alphanumeric()).take(16).collect();
        let annotation = json!({ "rotated-by": "policy/90-days" });
        let body =
            json!({ "metadata": { "annotations": annotation }, "stringData": { "password": password } });
        let rotate = Act::patch(SECRETS, path_of("v1", "secrets", "db"), body);
        self.steps.push_back(Step::after(4.0, [rotate]).told("The password of the database is rotated"));
    }

    /// An operator arrives with its own resource, which it uses later.
    fn custom_resource(&mut self) {
        const API: &str = "ops.example.com/v1";
        if !self.backups_exist {
            self.backups_exist = true;
            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let define = Act::create(CREATE, definitions, objects::backup_definition());
            self.steps.push_back(Step::after(4.0, [define]).told("A backup operator is installed"));
            let backup = Act::create(CREATE, path(API, "backups"), objects::backup());
            self.steps.push_back(Step::after(2.5, [backup]).told("Its first backup is asked for"));
        }
        let status = format!("{}/status", path_of(API, "backups", "db-nightly"));
        let size = self.random.u32(900..2_000);
        let mut running = Step::after(
            2.5,
            [Act::patch(BACKUPS, status.clone(), json!({ "status": { "phase": "Running", "size": null } }))],
        );
        if self.deck.is_empty() {
            running = running.told("A backup runs");
        }
        self.steps.push_back(running);
        let done = json!({ "status": { "phase": "Completed", "size": format!("{size}Mi") } });
        self.steps.push_back(Step::after(2.5, [Act::patch(BACKUPS, status, done)]));
    }

    fn grant(&mut self) {
        const PEOPLE: [&str; 4] = ["amina", "jonas", "mei", "tomas"];
        let person = PEOPLE[self.grants as usize % PEOPLE.len()];
        let role = if self.grants < 4 { "edit" } else { "view" };
        let bindings = path("rbac.authorization.k8s.io/v1", "rolebindings");
        let binding = format!("{bindings}/{person}-{role}");
        // Five grants on the same people would be the same grant again.
        self.grants = (self.grants + 1) % 8;
        let grant = Act::create(CREATE, bindings, objects::grant(person, role));
        self.steps.push_back(Step::after(4.0, [grant]).told(format!("{person} may {role} the shop")));
        self.steps.push_back(
            Step::after(8.0, [Act::delete("kubectl", binding)]).told(format!("{person} is on call no more")),
        );
    }

    /// More people in the shop for a while.
    fn autoscaling(&mut self) {
        let before = self.apps[0].replicas;
        for (replicas, load, told) in
            [(before + 2, 93, "More people in the shop: web is scaled up"), (before, 41, "They leave again")]
        {
            let status = format!("{}/status", path_of("autoscaling/v2", "horizontalpodautoscalers", "web"));
            let seen = json!({ "status": {
                "currentReplicas": self.apps[0].pods.len(), "desiredReplicas": replicas,
                "currentMetrics": [{ "type": "Resource", "resource": {
                    "name": "cpu", "current": { "averageUtilization": load },
                } }],
            } });
            let scale = json!({ "spec": { "replicas": replicas } });
            let set = self.apps[0].replica_set();
            let acts = [
                Act::patch(CONTROLLERS, status, seen),
                Act::patch(CONTROLLERS, path_of("apps/v1", "deployments", "web"), scale.clone()),
                Act::patch(CONTROLLERS, path_of("apps/v1", "replicasets", &set), scale),
            ];
            self.steps.push_back(Step::after(4.0, acts).told(told));
            self.apps[0].replicas = replicas;
            self.apps[0].generation += 1;
            while self.apps[0].pods.len() < replicas {
                let mut acts = Vec::new();
                let name = self.new_pod(0, &mut acts);
                self.start_pod(0, &name, &mut acts);
                self.steps.push_back(Step::after(0.7, acts));
            }
            while self.apps[0].pods.len() > replicas
                && let Some(pod) = self.apps[0].pods.pop()
            {
                let delete = Act::delete(CONTROLLERS, path_of("v1", "pods", &pod.name));
                self.steps.push_back(Step::after(0.5, [delete]));
            }
            let counted = json!({ "status": { "currentReplicas": replicas } });
            let autoscalers = path("autoscaling/v2", "horizontalpodautoscalers");
            let mut acts = vec![Act::patch(CONTROLLERS, format!("{autoscalers}/web/status"), counted)];
            self.report(0, &mut acts);
            self.steps.push_back(Step::after(0.3, acts));
        }
    }

    fn nightly_job(&mut self) {
        self.jobs += 1;
        let name = format!("invoices-{}", 28_400_000 + self.jobs);
        let job = path_of("batch/v1", "jobs", &name);
        let status = format!("{job}/status");
        let create = Act::create(CONTROLLERS, path("batch/v1", "jobs"), objects::job(&name));
        self.steps.push_back(Step::after(4.0, [create]).told("The invoices of the day are written"));
        let runs = Act::patch(CONTROLLERS, status.clone(), json!({ "status": { "active": 1 } }));
        self.steps.push_back(Step::after(1.0, [runs]));
        let done = json!({ "status": {
            "active": null, "succeeded": 1, "conditions": [{ "type": "Complete", "status": "True" }],
        } });
        self.steps.push_back(Step::after(3.0, [Act::patch(CONTROLLERS, status, done)]));
        self.steps.push_back(Step::after(3.0, [Act::delete(CONTROLLERS, job)]));
    }

    /// A node is taken out and put back.
    fn cordon(&mut self) {
        let node = NODES[self.random.usize(..NODES.len())];
        for (unschedulable, pause, told) in [
            (json!(true), 4.0, format!("{node} is taken out for maintenance")),
            (json!(null), 5.0, format!("{node} is back")),
        ] {
            let body = json!({ "spec": { "unschedulable": unschedulable } });
            let patch = Act::patch("kubectl-cordon", format!("/api/v1/nodes/{node}"), body);
            self.steps.push_back(Step::after(pause, [patch]).told(told));
        }
    }

    /// A frequent, uninteresting change.
    fn heartbeat(&mut self) -> Act {
        self.heartbeats += 1;
        let node = NODES[self.random.usize(..NODES.len())];
        let (minute, second) = (self.heartbeats / 60 % 60, self.heartbeats % 60);
        let renewed =
            json!({ "spec": { "renewTime": format!("2026-01-01T08:{minute:02}:{second:02}.000000Z") } });
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        Act::patch(KUBELET, format!("{leases}/{node}"), renewed)
    }

    /// Makes a pod of an app that waits for a node.
    fn new_pod(&mut self, at: usize, acts: &mut Vec<Act>) -> String {
        let suffix: String = std::iter::repeat_with(|| letter(&mut self.random)).take(5).collect();
        self.addresses += 1;
        let ip = format!("10.244.{}.{}", self.addresses / 250, self.addresses % 250 + 1);
        let app = &mut self.apps[at];
        let name = format!("{}-{suffix}", app.replica_set());
        app.pods.push(Pod { name: name.clone(), ip, restarts: 0 });
        let pod = Act::create(CONTROLLERS, path("v1", "pods"), objects::pod(app, &name));
        acts.push(pod.of(objects::owner_of_pods(app)));
        name
    }

    /// Gives a pod a node, where it runs.
    fn start_pod(&mut self, at: usize, name: &str, acts: &mut Vec<Act>) {
        let node = NODES[self.random.usize(..NODES.len())];
        let app = &self.apps[at];
        let pod = path_of("v1", "pods", name);
        acts.push(Act::create(
            SCHEDULER,
            format!("{pod}/binding"),
            json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name, "namespace": NAMESPACE },
                "target": { "kind": "Node", "name": node },
            }),
        ));
        let ip = app.pods.iter().find(|pod| pod.name == name).map_or("", |pod| &pod.ip);
        acts.push(Act::patch(KUBELET, format!("{pod}/status"), objects::running(app, ip, 0)));
    }

    /// The controllers' status of an app.
    fn report(&self, at: usize, acts: &mut Vec<Act>) {
        let app = &self.apps[at];
        let count = app.pods.len();
        let status =
            json!({ "status": { "replicas": count, "readyReplicas": count, "availableReplicas": count } });
        let set = format!("{}/status", path_of("apps/v1", "replicasets", &app.replica_set()));
        acts.push(Act::patch(CONTROLLERS, set, status));
        acts.push(self.progress(at, count, count));
    }

    /// The status of a deployment with so many pods, of which some are of its present template.
    fn progress(&self, at: usize, count: usize, updated: usize) -> Act {
        let app = &self.apps[at];
        let status = json!({ "status": {
            "observedGeneration": app.generation, "replicas": count, "readyReplicas": count,
            "availableReplicas": count, "updatedReplicas": updated,
        } });
        Act::patch(CONTROLLERS, format!("{}/status", path_of("apps/v1", "deployments", app.name)), status)
    }
}

/// A letter of generated names: without vowels, so that no word appears.
fn letter(random: &mut Rng) -> char {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    char::from(LETTERS[random.usize(..LETTERS.len())])
}

fn hash(random: &mut Rng) -> String {
    std::iter::repeat_with(|| letter(random)).take(10).collect()
}
