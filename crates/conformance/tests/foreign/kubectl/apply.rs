//! `apply` in both ways, `diff`, `edit` and `replace`.

use super::{Kubectl, SHOP, finish, has};

const TEAM: &str =
    "{ apiVersion: v1, kind: ConfigMap, metadata: { name: team, namespace: shop }, data: { lead: amina } }";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apply_creates_leaves_alone_and_configures() {
    let Some(kubectl) = Kubectl::start("kubectl_apply").await else { return };
    let created = kubectl.says_of("apply -f -", SHOP);
    has(&created, &["namespace/shop created", "configmap/settings created", "deployment.apps/web created"]);
    has(&kubectl.says_of("apply -f -", SHOP), &["settings unchanged", "web unchanged", "web unchanged"]);

    // A field that the configuration no longer has is removed from the object.
    let changed = SHOP.replace("nginx:1.27", "nginx:1.28").replace(", size: small", "");
    has(
        &kubectl.says_of("apply -f -", &changed),
        &["settings configured", "web unchanged", "web configured"],
    );
    assert_eq!(kubectl.says("get cm settings -n shop -o jsonpath={.data}"), r#"{"color":"red"}"#);
    // Fields of other managers stay.
    kubectl.says("label cm settings team=a -n shop");
    has(&kubectl.says_of("apply -f -", SHOP), &["settings configured"]);
    has(&kubectl.says("get cm settings -n shop --show-labels"), &["team=a"]);

    let unknown = SHOP.replace("replicas: 2", "replicsa: 2");
    let refusal = kubectl.refuses_of("apply -f -", &unknown);
    has(&refusal, &["The request is invalid", "unknown field \"spec.replicsa\""]);
    let invalid = SHOP.replace("metadata: { labels: { app: web } }", "metadata: { labels: { app: other } }");
    let refusal = kubectl.refuses_of("apply -f -", &invalid);
    has(&refusal, &["The Deployment \"web\" is invalid", "spec.template.metadata.labels"]);
    let dry = kubectl.says_of("apply --dry-run=server -f -", &SHOP.replace("red", "blue"));
    has(&dry, &["configmap/settings configured (server dry run)"]);
    assert_eq!(kubectl.says("get cm settings -n shop -o jsonpath={.data.color}"), "red");
}

/// The account of an operator, its bindings and its pods, as the page says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_of_the_page_about_controllers_are_applied() {
    let Some(kubectl) = Kubectl::start("kubectl_manifests").await else { return };
    let page = include_str!("../../../../../docs/controllers.md");
    let (_, manifests) = page.split_once("`deploy.yaml`:\n\n```yaml\n").unwrap();
    let (manifests, _) = manifests.split_once("```").unwrap();
    let kinds = [
        "serviceaccount",
        "clusterrolebinding.rbac.authorization.k8s.io",
        "rolebinding.rbac.authorization.k8s.io",
        "deployment.apps",
    ];
    let all = |done: &str| kinds.map(|kind| format!("{kind}/buckets {done}\n")).concat();
    assert_eq!(kubectl.says_of("apply -f -", manifests), all("created"));
    assert_eq!(kubectl.says_of("apply -f -", manifests), all("unchanged"));
    let container = ".spec.template.spec.containers[0]";
    for (probe, path) in [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        let line = format!("get deploy buckets -o jsonpath={{{container}.{probe}.httpGet.path}}");
        assert_eq!(kubectl.says(&line), path);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_side_apply_keeps_fields_apart() {
    let Some(kubectl) = Kubectl::start("kubectl_server_side").await else { return };
    kubectl.says("create ns shop");
    let other = TEAM.replace("amina", "jonas");
    has(&kubectl.says_of("apply --server-side -f -", TEAM), &["configmap/team serverside-applied"]);
    let conflict = kubectl.refuses_of("apply --server-side --field-manager=other -f -", &other);
    has(&conflict, &["conflict", "\"kubectl\"", ".data.lead"]);
    kubectl.says_of("apply --server-side --field-manager=other --force-conflicts -f -", &other);
    let managers =
        "get cm team -n shop --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}";
    assert_eq!(kubectl.says(managers), "other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_applied_can_be_applied_by_the_server_from_then_on() {
    let Some(kubectl) = Kubectl::start("kubectl_migrates").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    let changed = SHOP.replace("nginx:1.27", "nginx:1.28").replace(", size: small", "");
    has(&kubectl.says_of("apply --server-side -f -", &changed), &["web serverside-applied"]);
    assert_eq!(kubectl.says("get cm settings -n shop -o jsonpath={.data}"), r#"{"color":"red"}"#);
    assert_eq!(kubectl.says_of("diff --server-side -f -", &changed), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn diff_shows_what_apply_would_change() {
    let Some(kubectl) = Kubectl::start("kubectl_diff").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    assert_eq!(kubectl.says_of("diff -f -", SHOP), "");
    let changed = SHOP.replace("nginx:1.27", "nginx:1.28").replace(", size: small", "");
    let diff = finish(kubectl.command("diff -f -"), &changed);
    let shown = String::from_utf8_lossy(&diff.stdout);
    has(&shown, &["-        image: nginx:1.27", "+        image: nginx:1.28"]);
    has(&shown, &["-  size: small"]);
    assert_eq!(diff.status.code(), Some(1));
    has(&kubectl.says("get deploy web -n shop -o wide"), &["nginx:1.27"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_are_no_longer_applied_are_pruned() {
    let Some(kubectl) = Kubectl::start("kubectl_prune").await else { return };
    let one = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: one, labels: { app: shop } } }\n";
    let two = one.replace("one", "two");
    kubectl.says_of("apply -f -", &format!("{one}---\n{two}"));
    let pruned = kubectl.says_of("apply --prune -l app=shop --prune-allowlist=core/v1/ConfigMap -f -", one);
    has(&pruned, &["configmap/one unchanged", "configmap/two pruned"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_edited_and_replaced() {
    let Some(kubectl) = Kubectl::start("kubectl_edits").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    let edit = |script: &str| {
        let mut edit = kubectl.command("edit cm settings -n shop");
        edit.env("KUBE_EDITOR", format!("sed -i {script}"));
        let output = finish(edit, "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    has(&edit("s/color:.red/color:\\ green/"), &["configmap/settings edited"]);
    has(&edit("s/nothing/here/"), &["Edit cancelled, no changes made"]);
    assert_eq!(kubectl.says("get cm settings -n shop -o jsonpath={.data.color}"), "green");

    kubectl.says_of("create -f -", TEAM);
    has(&kubectl.says_of("replace -f -", &TEAM.replace("amina", "jonas")), &["configmap/team replaced"]);
    let old = TEAM.replace("name: team,", "name: team, resourceVersion: '1',");
    let conflict = kubectl.refuses_of("replace -f -", &old);
    has(&conflict, &["Conflict", "the object has been modified"]);
}
