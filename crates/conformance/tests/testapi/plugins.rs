//! A credential plugin (`exec` in a kubeconfig) behind a factory: a script that counts its runs, and waits in each of them
//! until the test lets it go on.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use conformance::{impatient, status, within};
use informer::{Informer, Object, ResourceType, SharedInformerFactory, Status};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tempfile::TempDir;
use testapi::faults::Matcher;
use testapi::{Gvr, TestApi, Verb};

use crate::clauses::{is_live, names};

/// A pipe without a writer holds the script.
const SCRIPT: &str = r#"
echo run >> "$1/runs"
cat "$1/gate" > /dev/null
cat "$1/credential"
"#;

/// Each informer is refused so often; the plugin runs less often.
const OFTEN: usize = 10;

struct Plugin(TempDir);

impl Plugin {
    fn new(token: &str) -> Self {
        let plugin = Self(TempDir::new().unwrap());
        std::fs::write(plugin.file("script"), SCRIPT).unwrap();
        assert!(Command::new("mkfifo").arg(plugin.file("gate")).status().unwrap().success());
        plugin.prints(token);
        plugin
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn prints(&self, token: &str) {
        let credential = json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": { "token": token },
        });
        std::fs::write(self.file("credential"), credential.to_string()).unwrap();
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.file("runs")).map_or(0, |runs| runs.lines().count())
    }

    /// The run with this number, counted from 1, is at the gate.
    async fn is_run(&self, number: usize) {
        until("the plugin runs", || self.runs() >= number).await;
    }

    /// Lets the run at the gate go on.
    async fn goes_on(&self) {
        let gate = self.file("gate");
        let opened = tokio::task::spawn_blocking(move || std::fs::write(gate, "go"));
        within("the plugin goes on", opened).await.unwrap().unwrap();
    }

    /// The next runs end at once.
    fn holds_no_more(&self) {
        std::fs::remove_file(self.file("gate")).unwrap();
        std::fs::write(self.file("gate"), "").unwrap();
    }

    async fn config(&self, server: &TestApi) -> Config {
        let text = server.kubeconfig_with(None);
        let mut kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
        let user = json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "sh",
            "args": [path(&self.file("script")), path(self.0.path())],
            "interactiveMode": "Never",
        }});
        kubeconfig.auth_infos[0].auth_info = Some(serde_json::from_value(user).unwrap());
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
    }
}

/// No script waits longer than the test, also when that fails.
impl Drop for Plugin {
    fn drop(&mut self) {
        // A pipe that is opened for both does not wait for a reader.
        let gate = std::fs::OpenOptions::new().read(true).write(true).open(self.file("gate"));
        // The script ends when the pipe is closed, whether or not it has read something.
        let _ = gate.and_then(|mut gate| gate.write_all(b"go"));
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    let waits = async {
        while !is_so() {
            ticks.tick().await;
        }
    };
    within(what, waits).await;
}

fn create(server: &TestApi, plural: &str, name: &str) {
    let namespace = (plural != "namespaces").then_some("default");
    let object = json!({ "metadata": { "name": name, "namespace": namespace } });
    server.api().create(&Gvr::new("v1", plural), object).unwrap();
}

async fn has(informer: &Informer<Object>, name: &str) {
    until(name, || names(informer).iter().any(|known| known == name)).await;
}

async fn are_live(informers: &[&Informer<Object>]) {
    for informer in informers {
        status(informer, is_live).await;
    }
}

#[tokio::test]
async fn f9_w15_a_credential_plugin_runs_once_for_all_who_wait_and_holds_nothing_else() {
    let server = TestApi::builder().tls().token("first", "jane").token("steady", "joe").start().await;
    let server = server.unwrap();
    let plugin = Plugin::new("first");
    let factory = impatient(SharedInformerFactory::builder(plugin.config(&server).await)).build().unwrap();
    let maps = factory.informer_of::<Object>(ResourceType::of::<ConfigMap>());
    let secrets = factory.informer_of::<Object>(ResourceType::of::<Secret>());
    let namespaces = factory.informer_of::<Object>(ResourceType::of::<Namespace>());
    let steady = server.config_with(Some("steady"));
    let another = impatient(SharedInformerFactory::builder(steady)).build().unwrap();
    let beside = another.informer_of::<Object>(ResourceType::of::<ConfigMap>());

    let plurals = ["configmaps", "secrets", "namespaces"];
    let refusals = |plural: &str| {
        let asked = server.requests().matching(&Matcher::of(plural));
        asked.iter().filter(|it| it.status.is_some_and(|status| status == 401)).count()
    };

    // All three wait for the first run, and another factory begins meanwhile.
    factory.start();
    plugin.is_run(1).await;
    another.start();
    are_live(&[&beside]).await;
    create(&server, "configmaps", "during-the-first-run");
    has(&beside, "during-the-first-run").await;
    assert!(!maps.is_synced() && !secrets.is_synced() && !namespaces.is_synced());
    plugin.goes_on().await;
    are_live(&[&maps, &secrets, &namespaces]).await;
    assert_eq!(plugin.runs(), 1);

    // The token is revoked, and two informers have to connect again. The watch of the third one goes on.
    server.tokens().expire("first");
    server.tokens().add("second", "jane");
    plugin.prints("second");
    for plural in ["configmaps", "secrets"] {
        assert_eq!(server.faults().running(Verb::Watch.of(plural).by_user("jane")).end(), 1);
    }
    plugin.is_run(2).await;
    until("both are refused", || refusals("configmaps") > 0 && refusals("secrets") > 0).await;
    create(&server, "namespaces", "during-the-second-run");
    create(&server, "configmaps", "during-the-second-run");
    has(&namespaces, "during-the-second-run").await;
    has(&beside, "during-the-second-run").await;
    assert!(!names(&maps).contains(&"during-the-second-run".to_owned()));
    plugin.goes_on().await;
    has(&maps, "during-the-second-run").await;
    are_live(&[&maps, &secrets, &namespaces]).await;
    assert_eq!(plugin.runs(), 2);

    // In an outage nobody refuses the token, so nobody asks for another one.
    server.refuse_connections();
    server.disconnect_all();
    for informer in [&maps, &secrets, &namespaces] {
        status(informer, |status| matches!(status, Status::Retrying { .. })).await;
    }
    server.accept_connections().unwrap();
    create(&server, "configmaps", "after-the-outage");
    has(&maps, "after-the-outage").await;
    are_live(&[&maps, &secrets, &namespaces]).await;
    assert_eq!(plugin.runs(), 2);

    // The server refuses what the plugin prints, again and again: the informers ask on, and the plugin runs at growing
    // intervals.
    plugin.holds_no_more();
    server.tokens().expire("second");
    server.disconnect_all();
    until("all are refused often", || plurals.iter().all(|plural| refusals(plural) >= OFTEN)).await;
    assert!(plugin.runs() < 2 + OFTEN, "{} runs for {OFTEN} refusals of each", plugin.runs());
    server.tokens().add("second", "jane");
    create(&server, "configmaps", "after-the-refusals");
    has(&maps, "after-the-refusals").await;
    are_live(&[&maps, &secrets, &namespaces]).await;
    factory.shutdown().await;
    another.shutdown().await;
}
