//! Commands that change one thing: `scale`, `patch`, `label`, `set`, `rollout`, `cordon`.

use super::{Kubectl, SHOP, has};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deployments_are_scaled_and_given_images() {
    let Some(kubectl) = Kubectl::start("kubectl_changes").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    has(&kubectl.says("scale deploy/web --replicas=5 -n shop"), &["deployment.apps/web scaled"]);
    assert_eq!(kubectl.says("get deploy web -n shop -o jsonpath={.spec.replicas}"), "5");
    let other = kubectl.refuses("scale deploy/web --current-replicas=3 --replicas=1 -n shop");
    has(&other, &["Expected replicas to be 3, was 5"]);
    has(&kubectl.says("set image deploy/web web=nginx:1.29 -n shop"), &["image updated"]);
    has(&kubectl.says("set env deploy/web SIZE=s -n shop"), &["env updated"]);
    has(&kubectl.says("get deploy -o wide -n shop"), &["0/5", "nginx:1.29"]);
    has(&kubectl.says("rollout restart deploy/web -n shop"), &["restarted"]);
    has(&kubectl.says("rollout pause deploy/web -n shop"), &["paused"]);
    has(&kubectl.refuses("rollout pause deploy/web -n shop"), &["is already paused"]);
    has(&kubectl.says("rollout resume deploy/web -n shop"), &["resumed"]);
    // Controllers would write it.
    has(&kubectl.says("rollout history deploy/web -n shop"), &["No rollout history found."]);
    has(&kubectl.says("autoscale deploy web --min=1 --max=3 -n shop"), &["web autoscaled"]);
    has(&kubectl.says("get hpa -n shop"), &["REFERENCE", "Deployment/web", "1", "3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patches_of_three_types_are_understood() {
    let Some(kubectl) = Kubectl::start("kubectl_patches").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    let patch = |kind: &str, patch: &str| format!("patch deploy web -n shop --type={kind} -p {patch}");
    let variable = r#"{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"SIZE","value":"m"}]}]}}}}"#;
    has(&kubectl.says(&patch("strategic", variable)), &["web patched"]);
    has(&kubectl.says(&patch("strategic", variable)), &["web patched (no change)"]);
    has(&kubectl.says(&patch("merge", r#"{"spec":{"paused":true}}"#)), &["web patched"]);
    let replace = r#"[{"op":"replace","path":"/spec/paused","value":false}]"#;
    has(&kubectl.says(&patch("json", replace)), &["web patched"]);

    // Lists are merged by the names of their items.
    let environment = "get deploy web -n shop -o jsonpath={.spec.template.spec.containers[0].env[*].name}";
    let mut names: Vec<_> = kubectl.says(environment).split(' ').map(str::to_owned).collect();
    names.sort();
    assert_eq!(names, ["COLOR", "SIZE"]);

    let test = r#"[{"op":"test","path":"/spec/replicas","value":7}]"#;
    has(&kubectl.refuses(&patch("json", test)), &["The request is invalid"]);
    let selector = r#"{"spec":{"selector":{"matchLabels":{"app":"other"}}}}"#;
    has(&kubectl.refuses(&patch("merge", selector)), &["The Deployment \"web\" is invalid", "spec"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_and_annotations_come_and_go() {
    let Some(kubectl) = Kubectl::start("kubectl_labels").await else { return };
    kubectl.says("create cm settings");
    has(&kubectl.says("label cm settings team=a"), &["settings labeled"]);
    has(&kubectl.refuses("label cm settings team=b"), &["already has a value (a), and --overwrite is false"]);
    has(&kubectl.says("label cm settings team=b --overwrite"), &["settings labeled"]);
    has(&kubectl.says("label cm settings team-"), &["settings unlabeled"]);
    has(&kubectl.says("get cm settings --show-labels"), &["LABELS", "<none>"]);
    has(&kubectl.says("annotate cm settings note=b"), &["settings annotated"]);
    has(&kubectl.says("describe cm settings"), &["Annotations:", "note: b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_cordoned_tainted_and_drained() {
    let Some(kubectl) = Kubectl::start("kubectl_nodes").await else { return };
    kubectl.says_of("create -f -", "{ apiVersion: v1, kind: Node, metadata: { name: n1 } }");
    kubectl.says("run guest --image=busybox --overrides={\"spec\":{\"nodeName\":\"n1\"}}");
    has(&kubectl.says("get pods --field-selector spec.nodeName=n1 -o wide"), &["guest", "n1"]);
    has(&kubectl.says("cordon n1"), &["node/n1 cordoned"]);
    has(&kubectl.says("get nodes"), &["n1", "SchedulingDisabled"]);
    has(&kubectl.says("uncordon n1"), &["node/n1 uncordoned"]);
    has(&kubectl.says("taint node n1 for=guests:NoSchedule"), &["node/n1 tainted"]);
    has(&kubectl.says("describe node n1"), &["Taints:", "for=guests:NoSchedule"]);
    has(&kubectl.refuses("drain n1"), &["cannot delete", "--force"]);
}
