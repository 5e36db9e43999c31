//! Which pod and which container are asked.

use serde_json::json;

use super::server::Cluster;

const QUESTION: [&str; 3] = ["blame", "deploy/cart", "--daemon"];

async fn place(cluster: &Cluster, name: &str, more: &[&str]) -> String {
    let (said, code) = cluster.refusal(&[&QUESTION[..], &[name], more].concat()).await;
    assert_eq!((said.as_str(), code), ("", 0), "{name}");
    let asked = cluster.asked();
    let pod = asked.path.strip_prefix("/api/v1/namespaces/monitoring/pods/").unwrap();
    format!("{} {}", pod.strip_suffix("/exec").unwrap(), asked.container)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_is_named_by_its_pod_its_deployment_or_its_set() {
    let cluster = Cluster::open().await;
    cluster.workload("StatefulSet", "changes");
    cluster.pod("changes-0", "changes", true, &["proxy", "kubediff"]);
    assert_eq!(place(&cluster, "monitoring/kubediff", &[]).await, "kubediff-5d8c-x7 kubediff");
    assert_eq!(place(&cluster, "monitoring/kubediff-5d8c-x7", &[]).await, "kubediff-5d8c-x7 kubediff");
    assert_eq!(place(&cluster, "monitoring/changes", &[]).await, "changes-0 kubediff");
    assert_eq!(place(&cluster, "monitoring/changes-0", &["--container", "proxy"]).await, "changes-0 proxy");
    // A pod comes before a workload of the same name; one container needs no name.
    cluster.pod("changes", "alone", true, &["tool"]);
    assert_eq!(place(&cluster, "monitoring/changes", &[]).await, "changes tool");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_pod_is_asked_rather_than_another_one() {
    let cluster = Cluster::empty().await;
    cluster.workload("Deployment", "kubediff");
    let crashed = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    cluster.pod_that("kubediff-a", "kubediff", false, &["kubediff"], &crashed);
    cluster.pod("kubediff-b", "other", true, &["kubediff"]);
    cluster.pod("kubediff-c", "kubediff", false, &["kubediff"]);
    assert_eq!(place(&cluster, "monitoring/kubediff", &[]).await, "kubediff-c kubediff");
    cluster.pod("kubediff-d", "kubediff", true, &["kubediff"]);
    cluster.pod("kubediff-e", "kubediff", false, &["kubediff"]);
    assert_eq!(place(&cluster, "monitoring/kubediff", &[]).await, "kubediff-d kubediff");
}
