//! The chart: helm accepts it, a real server accepts what it makes, and kubediff the configuration in it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at a surprise, its helpers too")]

use std::path::PathBuf;
use std::process::Command;

use kube_client::api::{Api, DynamicObject, Patch, PatchParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::core::{ApiResource, GroupVersionKind};
use kube_client::{Client, Config};
use kubediff::config::Config as Settings;
use serde_json::Value;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/chart");

/// Values that a person would give, each with a name.
const CASES: &[(&str, &[&str])] = &[
    ("defaults", &[]),
    (
        "slack",
        &[
            "secretEnv.SLACK_TOKEN.secret=slack,secretEnv.SLACK_TOKEN.key=token",
            "config.sinks.ops.slack.token.env=SLACK_TOKEN,config.sinks.ops.slack.channel=#ops",
            "config.routes[0].match.namespaces[0]=shop,config.routes[0].sinks[0]=ops",
        ],
    ),
    ("no-secrets", &["rbac.secrets=false,rbac.apiGroups[0]=example.com,config.cluster=prod"]),
    ("web", &["web.enabled=true,web.tlsSecret=page,web.port=9443"]),
    (
        "two-daemons",
        &[
            "replicas=2,keySecret=kubediff-key,config.cluster=prod",
            "config.history.postgres.url.env=HISTORY_URL",
            "secretEnv.HISTORY_URL.secret=kubediff-history,secretEnv.HISTORY_URL.key=url",
        ],
    ),
    ("in-memory", &["persistence.enabled=false,serviceAccount.create=false,rbac.create=false"]),
    (
        "placed",
        &[
            "persistence.existingClaim=history,fullnameOverride=changes,service.port=9090,image.tag=x",
            "nodeSelector.disk=ssd,tolerations[0].operator=Exists,priorityClassName=system-cluster-critical",
            "persistence.storageClass=fast,podAnnotations.a=b,podLabels.c=d,imagePullSecrets[0].name=pull",
            "config.history.path=/var/lib/kubediff/other.db",
        ],
    ),
];

fn helm() -> PathBuf {
    control_plane::tool("helm.sh/helm/v3/cmd/helm", "v3.22.0").unwrap()
}

fn run(helm: &PathBuf, arguments: &[&str]) -> String {
    let output = Command::new(helm).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// The objects that the chart renders with these values.
fn objects(helm: &PathBuf, values: &[&str]) -> Vec<Value> {
    // Built from its module, helm takes an old release of Kubernetes for the cluster's.
    let release = format!("v{}", control_plane::release().unwrap());
    let mut arguments = vec!["template", "kd", CHART, "--namespace", "default", "--kube-version", &release];
    for value in values {
        arguments.extend(["--set", value]);
    }
    let documents: Vec<Value> = serde_saphyr::from_multiple(&run(helm, &arguments)).unwrap();
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

async fn client(kubeconfig: &std::path::Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Applies an object without storing it. The server warns of what it does not know: as an error here.
async fn apply(client: &Client, object: &Value) {
    let text = |field: &str| object[field].as_str().unwrap();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let gvk = GroupVersionKind::gvk(group, version, text("kind"));
    let resource = ApiResource::from_gvk(&gvk);
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    let params = PatchParams { dry_run: true, ..PatchParams::apply("chart").validation_strict() };
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    assert!(applied.is_ok(), "{} {name}: {applied:?}", gvk.kind);
}

#[tokio::test]
async fn helm_and_a_real_server_accept_it() {
    let Some(server) = control_plane::shared_or_skip("helm_and_a_real_server_accept_it") else { return };
    let helm = helm();
    run(&helm, &["lint", "--strict", CHART]);
    let client = client(server.kubeconfig()).await;
    for (name, values) in CASES {
        let objects = objects(&helm, values);
        let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
        assert!(kinds.contains(&"Deployment") && kinds.contains(&"Service"), "{name}: {kinds:?}");
        for object in &objects {
            apply(&client, object).await;
        }
        let of_kind = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
        let settings = of_kind("ConfigMap").unwrap()["data"]["config.yaml"].as_str().unwrap();
        let loaded =
            Settings::of_text(settings, "config.yaml").unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(loaded.warnings, [], "{name}");
        // Where questions with `--daemon` look for the history is where the daemon keeps it.
        let container = &of_kind("Deployment").unwrap()["spec"]["template"]["spec"]["containers"][0];
        let path = container["env"].as_array().unwrap().iter().find(|it| it["name"] == "KUBEDIFF_HISTORY");
        let path = path.unwrap();
        match &loaded.config.history.postgres {
            Some(_) => assert_eq!(path["valueFrom"]["secretKeyRef"]["name"], "kubediff-history", "{name}"),
            None => assert_eq!(path["value"], *loaded.config.history.path.to_str().unwrap(), "{name}"),
        }
        let rules = of_kind("ClusterRole").map(|role| role["rules"].to_string());
        let secrets = rules.as_deref().is_some_and(|rules| rules.contains(r#""apiGroups":["*"]"#));
        assert_eq!(secrets, !matches!(*name, "no-secrets" | "in-memory"), "{name}");
        assert!(rules.is_none_or(|rules| {
            !["create", "update", "patch", "delete"].iter().any(|verb| rules.contains(verb))
        }));
        assert_eq!(loaded.config.watch.exclude.resources.is_empty(), *name != "no-secrets", "{name}");
    }
}

#[test]
fn two_daemons_need_a_database_and_one_key() {
    let helm = helm();
    for (values, said) in [
        ("replicas=2", "needs `config.history.postgres`"),
        ("replicas=2,config.history.postgres.url.env=URL", "`keySecret` names a Secret"),
    ] {
        let release = format!("v{}", control_plane::release().unwrap());
        let arguments = ["template", "kd", CHART, "--kube-version", &release, "--set", values];
        let output = Command::new(&helm).args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(said), "{values}: {error}");
    }
}

#[test]
fn its_version_is_that_of_the_program() {
    let chart: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(format!("{CHART}/Chart.yaml")).unwrap()).unwrap();
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}
