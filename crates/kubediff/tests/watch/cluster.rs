//! Issue 12, "Done when": a day in a real cluster, with the daemon killed in between, and what is known of it afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::Bytes;
use control_plane::ControlPlane;
use http::{Request, Response};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube_client::api::{Api, PostParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kubediff_history::{At, Filter, KindName, Page, Reader, Scope};
use serde_json::{Value, json};
use serve::full;
use serve::http::{Server, ServerOptions, Serving};

use crate::session::Session;

/// Longer than anything takes: what is denied is tried again after a minute at most.
const PATIENCE: Duration = Duration::from_secs(150);
const OLD: &str = "the-first-Pa55word-of-this-test";
const NEW: &str = "the-second-Pa55word-of-this-test";

/// The cluster, and every object that the server answered to a write of this test, by name and version.
struct World {
    client: Client,
    answered: BTreeMap<(String, String), Value>,
}

impl World {
    async fn send(&mut self, method: &str, path: &str, manager: &str, body: Value) -> Value {
        let answer = self.attempt(method, path, manager, &body).await;
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    async fn attempt(
        &mut self,
        method: &str,
        path: &str,
        manager: &str,
        body: &Value,
    ) -> Result<Value, kube_client::Error> {
        let sep = if path.contains('?') { '&' } else { '?' };
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder()
            .method(method)
            .uri(if manager.is_empty() {
                path.to_owned()
            } else {
                format!("{path}{sep}fieldManager={manager}")
            })
            .header("content-type", content)
            .body(if body.is_null() { Vec::new() } else { body.to_string().into_bytes() });
        let object = self.client.request::<Value>(request.unwrap()).await?;
        let text = |name: &str| object["metadata"][name].as_str().map(str::to_owned);
        if let (Some(name), Some(rv)) = (text("name"), text("resourceVersion")) {
            self.answered.insert((name, rv), object.clone());
        }
        Ok(object)
    }

    async fn create(&mut self, path: &str, manager: &str, object: Value) {
        self.send("POST", path, manager, object).await;
    }

    async fn patch(&mut self, path: &str, manager: &str, patch: Value) {
        self.send("PATCH", path, manager, patch).await;
    }

    async fn delete(&mut self, path: &str) {
        self.send("DELETE", path, "", Value::Null).await;
    }
}

/// The requests of the webhook.
struct Hook {
    serving: Serving,
    got: Receiver<Value>,
    all: Vec<Value>,
}

impl Hook {
    async fn open() -> Self {
        let (tell, got) = channel();
        let server = Server::bind(ServerOptions::default()).await.unwrap();
        let answer = move |request: Request<Bytes>, _| {
            let body: Value = serde_json::from_slice(request.body()).unwrap();
            for change in body["changes"].as_array().unwrap() {
                let _ = tell.send(change["change"].clone());
            }
            async { Response::new(full(Bytes::new())) }
        };
        Self { serving: server.serve(answer), got, all: Vec::new() }
    }

    /// Waits for a change of an object whose summary has a text.
    fn wait(&mut self, name: &str, text: &str) {
        let is_it = |record: &Value| {
            record["name"] == name && record["summary"].as_str().is_some_and(|summary| summary.contains(text))
        };
        if self.all.iter().any(is_it) {
            return;
        }
        loop {
            let Ok(record) = self.got.recv_timeout(PATIENCE) else {
                let told: Vec<_> =
                    self.all.iter().map(|it| format!("{} {}", it["name"], it["summary"])).collect();
                panic!("nothing of {name} with {text:?} in {told:#?}");
            };
            let found = is_it(&record);
            self.all.push(record);
            if found {
                return;
            }
        }
    }
}

async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn wait(hook: Hook, name: &'static str, text: &'static str) -> Hook {
    on_thread(move || {
        let mut hook = hook;
        hook.wait(name, text);
        hook
    })
    .await
}

/// Everything may be read but config maps, which have a role of their own.
fn roles() -> Vec<(&'static str, Value)> {
    let read = json!(["get", "list", "watch"]);
    let core = [
        "namespaces",
        "pods",
        "secrets",
        "services",
        "serviceaccounts",
        "nodes",
        "endpoints",
        "events",
        "replicationcontrollers",
    ];
    let groups = ["apps", "batch", "apiextensions.k8s.io", "shop.example.com", "apiregistration.k8s.io"];
    vec![
        (
            "others",
            json!([
                {"apiGroups": [""], "resources": core, "verbs": read},
                {"apiGroups": groups, "resources": ["*"], "verbs": read},
            ]),
        ),
        ("config-maps", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": read}])),
    ]
}

fn binding(role: &str) -> Value {
    json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "kubediff", "namespace": "shop"}],
    })
}

fn definition() -> Value {
    json!({
        "metadata": {"name": "carts.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced",
            "names": {"plural": "carts", "singular": "cart", "kind": "Cart"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }}}],
        },
    })
}

const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
const CART: &str = "/apis/apps/v1/namespaces/shop/deployments/cart";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CARTS: &str = "/apis/shop.example.com/v1/namespaces/shop/carts";
const CONFIG_MAPS: &str = "/api/v1/namespaces/shop/configmaps";

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})
}

/// Starts the daemon; it is asked to watch what the account may read.
async fn serve(kubeconfig: &Path, folder: &Path, token: &str) -> Session {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    command.arg("serve").arg("-c").arg(folder.join("kubediff.yaml")).arg("--token").arg(token);
    command.env("KUBECONFIG", kubeconfig);
    on_thread(move || {
        let mut session = Session::program(command);
        session.note("watching ");
        session
    })
    .await
}

/// The output of `kubediff ARGUMENTS` about the history.
fn ask(history: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kubediff"))
        .args(arguments)
        .env("KUBEDIFF_HISTORY", history)
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap() + &error
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_in_a_cluster() {
    let name = "a_day_in_a_cluster";
    let Some(server) = ControlPlane::builder().controller_manager(true).start_or_skip(name) else { return };
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let mut world = World { client: client.clone(), answered: BTreeMap::new() };
    let world = &mut world;
    world.create("/api/v1/namespaces", "setup", json!({"metadata": {"name": "shop"}})).await;
    let account = json!({"metadata": {"name": "kubediff"}});
    world.create("/api/v1/namespaces/shop/serviceaccounts", "setup", account).await;
    for (role, rules) in roles() {
        let object = json!({"metadata": {"name": role}, "rules": rules});
        world.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", "setup", object).await;
        world.create(BINDINGS, "setup", binding(role)).await;
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "shop");
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let token = accounts.create_token_request("kubediff", &PostParams::default(), &request).await.unwrap();
    let token = token.status.unwrap().token.unwrap();
    let secret = json!({"metadata": {"name": "db"}, "stringData": {"password": OLD}});
    world.create("/api/v1/namespaces/shop/secrets", "setup", secret).await;
    world.create(CONFIG_MAPS, "setup", json!({"metadata": {"name": "settings"}, "data": {"k": "1"}})).await;

    let folder = tempfile::tempdir().unwrap();
    let hook = Hook::open().await;
    let configuration = format!(
        "cluster: test\nhistory: {{path: history.db}}\nlisten: null\nsinks:\n  hook: {{webhook: {{url: 'http://{}/'}}}}\n  \
         log: {{file: {{path: changes.log}}}}\n",
        hook.serving.address()
    );
    std::fs::write(folder.path().join("kubediff.yaml"), configuration).unwrap();
    let daemon = serve(server.kubeconfig(), folder.path(), &token).await;

    // A deployment comes, is changed, scaled, broken and rolled back.
    let deployment = json!({
        "metadata": {"name": "cart", "labels": {"app": "cart"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "cart"}},
            "template": {
                "metadata": {"labels": {"app": "cart"}},
                "spec": {"containers": [{"name": "web", "image": "shop/cart:1.2.3"}]},
            },
        },
    });
    world.create(DEPLOYMENTS, "helm", deployment).await;
    let hook = wait(hook, "cart", "image").await;
    world.patch(CART, "kubectl-set", image("shop/cart:1.2.4")).await;
    let hook = wait(hook, "cart", "1.2.3 -> 1.2.4").await;
    world.patch(CART, "autoscaler", json!({"spec": {"replicas": 4}})).await;
    let hook = wait(hook, "cart", "replicas 2 -> 4").await;
    world.patch(CART, "alice", image("shop/cart:borken")).await;
    let hook = wait(hook, "cart", "1.2.4 -> borken").await;
    world.patch(CART, "kubectl-rollout", image("shop/cart:1.2.4")).await;
    let hook = wait(hook, "cart", "borken -> 1.2.4").await;
    // A password is changed, and somebody has copied the old one into an annotation.
    let leak = json!({"metadata": {"annotations": {"note": format!("it was {OLD}")}}});
    world.patch(CART, "bob", leak).await;
    world.patch("/api/v1/namespaces/shop/secrets/db", "bob", json!({"stringData": {"password": NEW}})).await;
    let hook = wait(hook, "db", "data.password <").await;
    // A kind of its own comes, goes, and comes again.
    world.create(CRDS, "setup", definition()).await;
    let hook = wait(hook, "carts.shop.example.com", "Established").await;
    world.create(CARTS, "carol", json!({"apiVersion": "shop.example.com/v1", "kind": "Cart", "metadata": {"name": "mine"}, "spec": {"items": 1}})).await;
    let hook = wait(hook, "mine", "").await;
    world.delete(&format!("{CRDS}/carts.shop.example.com")).await;
    let hook = on_thread(move || {
        let mut hook = hook;
        while !hook.all.iter().any(|it| it["name"] == "mine" && it["change"] == "deleted") {
            hook.all.push(hook.got.recv_timeout(PATIENCE).unwrap());
        }
        hook
    })
    .await;

    // The definition comes again, and is served a moment later.
    world.create(CRDS, "setup", definition()).await;
    let again = json!({"apiVersion": "shop.example.com/v1", "kind": "Cart", "metadata": {"name": "yours"}, "spec": {"items": 2}});
    while world.attempt("POST", CARTS, "carol", &again).await.is_err() {}
    let hook = wait(hook, "yours", "").await;

    // The daemon may not read config maps any more, and notices it when the API server restarts.
    world.delete(&format!("{BINDINGS}/config-maps")).await;
    let (server, daemon) = on_thread(move || {
        let mut daemon = daemon;
        server.restart().unwrap();
        // Until the restarted server has read all roles, it may deny others, too: then one note counts them all, and names some.
        let is_told = |note: &str| note.contains("configmaps") || note.contains("resources are not watched");
        while !is_told(&daemon.note("not watched")) {}
        (server, daemon)
    })
    .await;
    world.patch(&format!("{CONFIG_MAPS}/settings"), "dave", json!({"data": {"k": "2"}})).await;
    world.create(BINDINGS, "setup", binding("config-maps")).await;
    let hook = wait(hook, "settings", r#"data.k "1" -> "2""#).await;

    // It is killed, and the cluster goes on.
    let said = on_thread(move || daemon.kill()).await;
    world.patch(CART, "autoscaler", json!({"spec": {"replicas": 3}})).await;
    world.delete(&format!("{CARTS}/yours")).await;
    let daemon = serve(server.kubeconfig(), folder.path(), &token).await;
    let hook = wait(hook, "cart", "replicas 4 -> 3").await;
    // `eve` removes the annotation that `bob` made.
    world.patch(CART, "eve", json!({"metadata": {"annotations": {"note": null}}})).await;
    world.patch(CART, "autoscaler", json!({"spec": {"replicas": 5}})).await;
    let hook = wait(hook, "cart", "replicas 3 -> 5").await;

    let history = folder.path().join("history.db");
    let compared = the_history_has_what_the_server_has(world, &history).await;
    assert!(compared > 20, "{compared}");
    let hook = every_record_was_delivered(hook, &history).await;
    let (mut told, notes, status) = on_thread(move || daemon.end_with("-TERM")).await;
    assert!(status.success(), "{notes:#?}");
    told.extend(said);
    told.extend(notes);

    // Each answer of the server to a write that was watched is a version of the history.
    let mut reader = Reader::open(&history).unwrap();
    let mut versions = 0;
    for incarnation in reader.incarnations(&Scope::default()).unwrap() {
        for ((name, rv), object) in &world.answered {
            if *name != incarnation.object.name || object["metadata"]["uid"] != *incarnation.object.uid {
                continue;
            }
            if let Some(version) = reader.version(&incarnation, &At::Rv(rv.clone())).unwrap() {
                assert_same(&version.body.value(), object);
                versions += 1;
            }
        }
    }
    assert!(versions >= 8, "{versions}");

    // The managers, and the time that is not known.
    let blame = |path: &str| ask(&history, &["blame", "deploy/cart", "-n", "shop", "--path", path]);
    let image = blame("spec.template.spec.containers[web].image");
    assert!(image.contains("shop/cart:1.2.4") && image.contains("kubectl-rollout"), "{image}");
    let replicas = blame("spec.replicas");
    assert!(replicas.contains("autoscaler"), "{replicas}");
    let note = blame("metadata.annotations.note");
    assert!(note.contains("(removed)") && note.contains("unknown; the field was owned by bob"), "{note}");
    assert!(!note.contains("eve"), "{note}");
    let log = ask(&history, &["log", "-A", "--oneline"]);
    for gap in ["kubediff did not run", "configmaps"] {
        assert!(
            log.lines().any(|line| line.contains("not watched from") && line.contains(gap)),
            "{gap}: {log}"
        );
    }
    assert!(log.contains("while kubediff did not run"), "{log}");

    // No value of a Secret is anywhere.
    let mut texts = vec![log, told.join("\n"), serde_json::to_string(&hook.all).unwrap()];
    texts.push(ask(&history, &["show", "secret/db", "-n", "shop"]));
    for incarnation in reader.incarnations(&Scope::default()).unwrap() {
        let every = |version: kubediff_history::Version| {
            texts.push(version.body.value().to_string());
            std::ops::ControlFlow::Continue(())
        };
        reader.versions(&incarnation, every).unwrap();
    }
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        texts.push(String::from_utf8_lossy(&std::fs::read(entry.unwrap().path()).unwrap()).into_owned());
    }
    use base64::Engine as _;
    for secret in [OLD, NEW] {
        for form in [secret.to_owned(), base64::engine::general_purpose::STANDARD.encode(secret)] {
            assert!(!texts.iter().any(|text| text.contains(&form)), "{form}");
        }
    }
}

/// The versions of the resources of this test.
const COMPARED: &[&str] = &[
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/api/v1/pods",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/namespaces",
    "/api/v1/serviceaccounts",
    CRDS,
    "/apis/shop.example.com/v1/carts",
];

/// Waits until both have the same objects in the same state; how many there are.
async fn the_history_has_what_the_server_has(world: &mut World, history: &Path) -> usize {
    let begun = std::time::Instant::now();
    loop {
        let mut differences = Vec::new();
        let mut compared = 0;
        for path in COMPARED {
            let plural = path.rsplit('/').next().unwrap();
            let list = world.attempt("GET", path, "", &Value::Null).await.unwrap();
            let mut reader = Reader::open(history).unwrap();
            let scope = Scope {
                kinds: vec![KindName { group: None, resource: plural.to_owned() }],
                ..Scope::default()
            };
            let state = reader.state(&scope, None).unwrap();
            let mut known: BTreeMap<String, Value> =
                state.iter().map(|it| (it.object.uid.clone(), it.body.value())).collect();
            for item in list["items"].as_array().unwrap() {
                let uid = item["metadata"]["uid"].as_str().unwrap();
                match known.remove(uid) {
                    Some(version)
                        if version["metadata"]["resourceVersion"] == item["metadata"]["resourceVersion"] =>
                    {
                        assert_same(&version, item);
                        compared += 1;
                    }
                    _ => differences.push(format!("{plural} {}", item["metadata"]["name"])),
                }
            }
            differences
                .extend(known.values().map(|it| format!("{plural} {} is gone", it["metadata"]["name"])));
        }
        if differences.is_empty() {
            return compared;
        }
        assert!(begun.elapsed() < PATIENCE, "{differences:#?}");
    }
}

/// The same object, apart from what a list leaves out and what is hidden.
#[track_caller]
fn assert_same(version: &Value, object: &Value) {
    let (mut version, mut object) = (version.clone(), object.clone());
    for side in [&mut version, &mut object] {
        let fields = side.as_object_mut().unwrap();
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    if !version.to_string().contains("<hmac:") {
        assert_eq!(version, object);
    }
}

/// Waits until the webhook has every record, in the order of each object.
async fn every_record_was_delivered(hook: Hook, history: &Path) -> Hook {
    let history = history.to_owned();
    on_thread(move || {
        let mut hook = hook;
        let mut reader = Reader::open(&history).unwrap();
        let filter = Filter { gaps: true, ..Filter::default() };
        let records = reader.records(&filter, &Page::oldest(10_000)).unwrap().records;
        let all: BTreeSet<u64> = records.iter().map(|record| record.number().0).collect();
        let got = |hook: &Hook| -> BTreeSet<u64> {
            hook.all.iter().filter_map(|record| record["number"].as_u64()).collect()
        };
        while !all.is_subset(&got(&hook)) {
            match hook.got.recv_timeout(PATIENCE) {
                Ok(record) => hook.all.push(record),
                Err(_) => panic!("missing: {:?}", all.difference(&got(&hook)).collect::<Vec<_>>()),
            }
        }
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for record in hook.all.iter().filter(|record| record["change"] != "gap") {
            let number = record["number"].as_u64().unwrap();
            let object = format!("{} {} {}", record["gvk"], record["namespace"], record["name"]);
            // A repeated record was sent before, and its answer was lost with the process.
            if seen.insert(number) {
                let before = last.insert(object.clone(), number).unwrap_or(0);
                assert!(number > before, "{object}: {number} after {before}");
            }
        }
        // The file has no fewer. A sink waits for no other: its last lines may come later.
        let begun = std::time::Instant::now();
        loop {
            let text = std::fs::read_to_string(history.with_file_name("changes.log")).unwrap();
            let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            let in_file: BTreeSet<u64> = lines
                .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["number"].as_u64())
                .collect();
            if all.is_subset(&in_file) {
                break;
            }
            let missing = all.difference(&in_file).collect::<Vec<_>>();
            assert!(begun.elapsed() < PATIENCE, "missing in the file: {missing:?}");
        }
        hook
    })
    .await
}
