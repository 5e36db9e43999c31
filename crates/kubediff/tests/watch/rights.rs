//! The rights of the chart: the daemon runs with its role and no other rights, and the role permits nothing else.

use std::path::Path;
use std::process::Command;

use control_plane::ControlPlane;
use http::{Method, Request, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::serde::de::DeserializeOwned;
use kube_client::api::{Api, PostParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use serde_json::{Value, json};

use crate::daemon::get;
use crate::session::{PATIENCE, Session};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/chart");

/// Requests that the role must not permit: verb, group, resource, subresource. The first ones run commands in containers, the
/// next ones reach kubelets, pods and services behind the API server, and the last ones read or write objects.
const DENIED: &[(&str, &str, &str, &str)] = &[
    ("get", "", "pods", "exec"),
    ("create", "", "pods", "exec"),
    ("get", "", "pods", "attach"),
    ("create", "", "pods", "attach"),
    ("get", "", "pods", "portforward"),
    ("create", "", "pods", "portforward"),
    ("update", "", "pods", "ephemeralcontainers"),
    ("get", "", "pods", "proxy"),
    ("create", "", "pods", "proxy"),
    ("get", "", "services", "proxy"),
    ("create", "", "services", "proxy"),
    ("get", "", "nodes", "proxy"),
    ("create", "", "nodes", "proxy"),
    ("get", "", "nodes", "log"),
    ("get", "", "pods", "log"),
    ("create", "", "serviceaccounts", "token"),
    ("create", "authentication.k8s.io", "tokenreviews", ""),
    ("create", "", "pods", ""),
    ("patch", "apps", "deployments", ""),
    ("patch", "apps", "deployments", "scale"),
    ("update", "", "configmaps", ""),
    ("delete", "", "configmaps", ""),
    ("deletecollection", "", "configmaps", ""),
    ("get", "", "secrets", ""),
    ("get", "", "configmaps", ""),
    ("impersonate", "", "users", ""),
    ("bind", "rbac.authorization.k8s.io", "clusterroles", ""),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles", ""),
];

async fn client(server: &ControlPlane, token: Option<&str>) -> Client {
    let mut kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    if let Some(token) = token {
        let user = kubeconfig.auth_infos[0].auth_info.as_mut().unwrap();
        user.client_certificate_data = None;
        user.client_key_data = None;
        user.token = Some(token.to_owned().into());
    }
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// The objects of one kind that the chart renders.
fn rendered<T: DeserializeOwned>(values: &str, kind: &str) -> T {
    let helm = control_plane::tool("helm.sh/helm/v3/cmd/helm", "v3.22.0").unwrap();
    let release = format!("v{}", control_plane::release().unwrap());
    let mut command = Command::new(helm);
    command.args([
        "template",
        "kd",
        CHART,
        "--namespace",
        "rights",
        "--kube-version",
        &release,
        "--set",
        values,
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let object = documents.into_iter().find(|document| document["kind"] == kind).unwrap();
    serde_json::from_value(object).unwrap()
}

/// Installs the role for a service account of a namespace of its own, and returns a token of the account.
async fn installed(admin: &Client, name: &str, values: &str) -> String {
    let values = format!("fullnameOverride={name},{values}");
    let create = PostParams::default();
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "rights"}})).unwrap();
    let _ = Api::all(admin.clone()).create(&create, &namespace).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), "rights");
    accounts.create(&create, &rendered(&values, "ServiceAccount")).await.unwrap();
    let role: ClusterRole = rendered(&values, "ClusterRole");
    Api::all(admin.clone()).create(&create, &role).await.unwrap();
    let binding: ClusterRoleBinding = rendered(&values, "ClusterRoleBinding");
    Api::all(admin.clone()).create(&create, &binding).await.unwrap();
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let token = accounts.create_token_request(name, &create, &request).await.unwrap();
    token.status.unwrap().token.unwrap()
}

/// The answer of `kubectl auth can-i`: the server's review of the caller's own rights.
async fn can(client: &Client, &(verb, group, resource, subresource): &(&str, &str, &str, &str)) -> bool {
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: Some(subresource.to_owned()).filter(|name| !name.is_empty()),
        namespace: Some("default".to_owned()),
        name: Some("any".to_owned()).filter(|_| verb == "get"),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() },
        ..Default::default()
    };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().allowed
}

#[tokio::test(flavor = "multi_thread")]
async fn k8_the_role_of_the_chart_permits_list_watch_and_namespaces_alone() {
    let name = "k8_the_role_of_the_chart_permits_list_watch_and_namespaces_alone";
    let Some(server) = control_plane::shared_or_skip(name) else { return };
    let admin = client(server, None).await;
    for (name, values) in [
        ("can-all", "rbac.secrets=true"),
        ("can-no-secrets", "rbac.secrets=false,rbac.apiGroups[0]=example.com"),
    ] {
        let token = installed(&admin, name, values).await;
        let account = client(server, Some(&token)).await;
        for asked in DENIED {
            assert!(!can(&account, asked).await, "{name} may {asked:?}");
        }
        for verb in ["list", "watch"] {
            for (group, resource) in [("", "pods"), ("apps", "deployments"), ("example.com", "carts")] {
                assert!(can(&account, &(verb, group, resource, "")).await, "{name}: {verb} {resource}");
            }
            assert_eq!(can(&account, &(verb, "", "secrets", "")).await, name == "can-all");
        }
        assert!(can(&account, &("get", "", "namespaces", "")).await);

        // The server refuses the requests themselves, too.
        for (method, path) in [
            (Method::GET, "/api/v1/namespaces/default/pods/any/exec?command=id&stdout=true"),
            (Method::POST, "/api/v1/namespaces/default/pods/any/exec?command=id&stdout=true"),
            (Method::GET, "/api/v1/nodes/any/proxy/pods"),
            (Method::GET, "/api/v1/namespaces/default/services/any/proxy/"),
            (Method::GET, "/api/v1/namespaces/default/pods/any"),
        ] {
            let request = Request::builder().method(&method).uri(path).body(Vec::new()).unwrap();
            let refused = account.request::<Value>(request).await.unwrap_err();
            let kube_client::Error::Api(status) = &refused else { panic!("{method} {path}: {refused}") };
            assert_eq!(status.code, 403, "{name}: {method} {path}: {refused}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k8_the_daemon_needs_no_more_than_the_role_of_the_chart() {
    let name = "k8_the_daemon_needs_no_more_than_the_role_of_the_chart";
    let Some(server) = control_plane::shared_or_skip(name) else { return };
    let admin = client(server, None).await;
    for (name, values, secrets) in
        [("runs-all", "rbac.secrets=true", true), ("runs-no-secrets", "rbac.secrets=false", false)]
    {
        let token = installed(&admin, name, values).await;
        let folder = tempfile::tempdir().unwrap();
        let exclude = if secrets { "" } else { "watch: {exclude: {resources: [secrets]}}\n" };
        let config = format!("history: {{path: history.db}}\nlisten: 127.0.0.1:0\n{exclude}");
        std::fs::write(folder.path().join("kubediff.yaml"), config).unwrap();
        let (daemon, address) = serve(server, folder.path(), &token).await;

        let create = PostParams::default();
        let object = |name: &str| json!({"metadata": {"name": name}});
        let map: ConfigMap = serde_json::from_value(object(name)).unwrap();
        Api::namespaced(admin.clone(), "default").create(&create, &map).await.unwrap();
        let secret: Secret = serde_json::from_value(object(name)).unwrap();
        Api::namespaced(admin.clone(), "default").create(&create, &secret).await.unwrap();
        recorded(folder.path(), "configmaps", name).await;
        if secrets {
            recorded(folder.path(), "secrets", name).await;
        }
        assert_eq!(get(&address, "/readyz").await, (StatusCode::OK, "ok\n".to_owned()));
        let (_, metrics) = get(&address, "/metrics").await;
        assert!(metrics.contains("kubediff_watches{state=\"denied\"} 0\n"), "{metrics}");
        drop(daemon);
    }
}

async fn serve(server: &ControlPlane, folder: &Path, token: &str) -> (Session, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    command.arg("serve").arg("-c").arg(folder.join("kubediff.yaml")).arg("--token").arg(token);
    command.env("KUBECONFIG", server.kubeconfig());
    let started = tokio::task::spawn_blocking(move || {
        let mut session = Session::program(command);
        let note = session.note("health and metrics are on ");
        let address = note.split("are on ").nth(1).unwrap().to_owned();
        session.note("watching");
        (session, address)
    });
    started.await.unwrap()
}

/// Waits until the history has a change of this object.
async fn recorded(folder: &Path, resource: &'static str, name: &'static str) {
    let history = folder.join("history.db");
    let asked = tokio::time::timeout(PATIENCE, async {
        loop {
            let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
            command.args(["log", &format!("{resource}/{name}"), "-n", "default", "--oneline", "--history"]);
            command.arg(&history);
            let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
            if String::from_utf8_lossy(&output.stdout).contains("added") {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    assert!(asked.await.is_ok(), "no record of {resource}/{name}");
}
