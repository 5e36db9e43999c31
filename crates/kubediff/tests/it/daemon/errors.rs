//! Why a daemon cannot be asked, in words that say what to do.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::exec::Container;
use super::server::{Cluster, program, run};

const QUESTION: [&str; 4] = ["blame", "deploy/cart", "--daemon", "monitoring/kubediff"];

async fn assert_says(cluster: &Cluster, arguments: &[&str], code: i32, expected: Expect) {
    let (said, ended) = cluster.refusal(arguments).await;
    expected.assert_eq(&said);
    assert_eq!(ended, code, "{said}");
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": code,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_named_with_the_rule_that_gives_it() {
    let cluster = Cluster::open().await;
    let forbidden = |what: &str| {
        let message =
            format!(r#"{what} is forbidden: User "jane" cannot do this in the namespace "monitoring""#);
        status(403, "Forbidden", &message)
    };
    cluster.refuse("/exec", 403, forbidden(r#"pods "kubediff-5d8c-x7""#));
    assert_says(&cluster, &QUESTION, 3, expect![[r#"kubediff: a question to a daemon needs the verbs get and create on pods/exec in the namespace monitoring: pods "kubediff-5d8c-x7" is forbidden: User "jane" cannot do this in the namespace "monitoring"; a Role there gives them by the rule {apiGroups: [""], resources: [pods/exec], verbs: [get, create]}"#]]).await;
    cluster.refuse("/pods/kubediff", 403, forbidden(r#"pods "kubediff""#));
    assert_says(&cluster, &QUESTION, 3, expect![[r#"kubediff: a question to a daemon needs the verbs get and list on pods in the namespace monitoring: pods "kubediff" is forbidden: User "jane" cannot do this in the namespace "monitoring"; a Role there gives them by the rule {apiGroups: [""], resources: [pods], verbs: [get, list]}"#]]).await;
    cluster.refuse("/deployments/kubediff", 403, forbidden(r#"deployments.apps "kubediff""#));
    assert_says(&cluster, &QUESTION, 3, expect![[r#"kubediff: a question to a daemon needs the verbs get and list on deployments.apps and statefulsets.apps in the namespace monitoring: deployments.apps "kubediff" is forbidden: User "jane" cannot do this in the namespace "monitoring"; a Role there gives them by the rule {apiGroups: [apps], resources: [deployments, statefulsets], verbs: [get, list]}"#]]).await;
    cluster.refuse("/pods/kubediff", 401, status(401, "Unauthorized", "Unauthorized"));
    assert_says(&cluster, &QUESTION, 3, expect!["kubediff: SERVER does not accept your credentials: Unauthorized; `kubectl auth whoami` shows as whom it knows you"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told_from_what_does_not_run() {
    let cluster = Cluster::empty().await;
    assert_says(&cluster, &QUESTION, 3, expect!["kubediff: there is neither a pod nor a Deployment nor a StatefulSet kubediff in the namespace monitoring, which has no workload that you may list; name the one that runs `kubediff serve`"]).await;
    cluster.workload("Deployment", "changes");
    cluster.workload("StatefulSet", "other");
    assert_says(&cluster, &QUESTION, 3, expect!["kubediff: there is neither a pod nor a Deployment nor a StatefulSet kubediff in the namespace monitoring, which has Deployment changes, StatefulSet other; name the one that runs `kubediff serve`"]).await;
    cluster.workload("Deployment", "kubediff");
    assert_says(&cluster, &QUESTION, 3, expect!["kubediff: monitoring/kubediff has no pod; `kubectl -n monitoring describe deployment,statefulset kubediff` says why"]).await;
    let crashed = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    cluster.pod_that("kubediff-a", "kubediff", false, &["kubediff"], &crashed);
    assert_says(&cluster, &QUESTION, 3, expect!["kubediff: the container kubediff of the pod monitoring/kubediff-a does not run: CrashLoopBackOff; `kubectl -n monitoring logs kubediff-a -c kubediff --previous` may say why"]).await;
    cluster.pod("two", "alone", true, &["a", "b"]);
    let question = ["blame", "deploy/cart", "--daemon", "monitoring/two"];
    assert_says(&cluster, &question, 3, expect!["kubediff: the pod monitoring/two has no container kubediff; it has a, b: name one with --container"]).await;
    let question = [&question[..], &["--container", "c"]].concat();
    assert_says(
        &cluster,
        &question,
        3,
        expect![
            "kubediff: the pod monitoring/two has no container c; it has a, b: name one with --container"
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_cannot_answer_says_why() {
    let cluster = Cluster::open().await;
    let missing = "error executing command in container: OCI runtime exec failed: exec failed: unable to start container \
                   process: exec: \"kubediff\": executable file not found in $PATH: unknown";
    cluster.container(Container::Says(status(500, "InternalError", missing)));
    assert_says(&cluster, &QUESTION, 3, expect![[r#"kubediff: the container kubediff of the pod monitoring/kubediff-5d8c-x7 has no program kubediff that can be run (error executing command in container: OCI runtime exec failed: exec failed: unable to start container process: exec: "kubediff": executable file not found in $PATH: unknown); its image is kubediff:1: name the container of the daemon with --container, or use an image with kubediff in its PATH"#]]).await;
    cluster.container(Container::Is("sh: kubediff: not found\n", 127));
    assert_says(&cluster, &QUESTION, 3, expect!["kubediff: the container kubediff of the pod monitoring/kubediff-5d8c-x7 has no program kubediff that can be run (command terminated with non-zero exit code: exit status 127); its image is kubediff:1: name the container of the daemon with --container, or use an image with kubediff in its PATH"]).await;
    cluster.container(Container::Says(status(500, "InternalError", "task 3fd1 not found: not found")));
    assert_says(
        &cluster,
        &QUESTION,
        3,
        expect![
            "kubediff: the pod monitoring/kubediff-5d8c-x7 could not be asked: task 3fd1 not found: not found"
        ],
    )
    .await;
    // An older program, which does not know how it is asked.
    cluster.container(Container::Is("error: unexpected argument '--of-this-daemon' found\n", 2));
    assert_says(&cluster, &QUESTION, 3, expect!["kubediff: the kubediff in the pod monitoring/kubediff-5d8c-x7 does not understand this question: it is of another version than this one, 0.1.0; its image is kubediff:1. Use the same version on both sides"]).await;
    // Its own words about a question are not ours.
    cluster.container(Container::Is("kubediff: the history has no deployments.apps/cart\n", 1));
    assert_says(&cluster, &QUESTION, 1, expect!["kubediff: the history has no deployments.apps/cart"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_exec_over_web_socket_is_named() {
    let cluster = Cluster::open().await;
    cluster.refuse("/exec", 400, status(400, "BadRequest", "Upgrade request required"));
    assert_says(&cluster, &QUESTION, 3, expect!["kubediff: SERVER has no exec over WebSocket: Upgrade request required; a proxy before it may not pass upgrades on. `kubectl exec` into the daemon's pod can ask the same, with --history"]).await;
    cluster.refuse("/exec", 200, json!({}));
    assert_says(&cluster, &QUESTION, 3, expect!["kubediff: SERVER has no exec over WebSocket: failed to switch protocol: 200 OK; a proxy before it may not pass upgrades on. `kubectl exec` into the daemon's pod can ask the same, with --history"]).await;
    cluster.refuse("/exec", 502, json!("<html>bad gateway</html>"));
    assert_says(
        &cluster,
        &QUESTION,
        3,
        expect!["kubediff: SERVER refuses the request for pods/exec: <html>bad gateway</html>"],
    )
    .await;
    cluster.refuse("/nothing", 0, json!(null));
    cluster.protocols(&["v1.channel.k8s.io"]);
    assert_says(&cluster, &QUESTION, 3, expect!["kubediff: SERVER has no exec over WebSocket: Sec-WebSocket-Protocol mismatched; a proxy before it may not pass upgrades on. `kubectl exec` into the daemon's pod can ask the same, with --history"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_reached_is_named() {
    let mut command = program(&[("KUBECONFIG", "/nowhere")]);
    command.args(QUESTION).args(["--server", "http://127.0.0.1:1"]);
    let output = run(command).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("kubediff: http://127.0.0.1:1 cannot be asked for the daemon: "), "{said}");
    assert_eq!(output.status.code(), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_file_and_daemon_has_to_be_named() {
    let cluster = Cluster::open().await;
    assert_says(&cluster, &["blame", "deploy/cart"], 2, expect!["kubediff: no history is named; give its file with --history FILE or $KUBEDIFF_HISTORY, or ask the daemon in a cluster with --daemon NAMESPACE/NAME"]).await;
    assert_says(
        &cluster,
        &["blame", "deploy/cart", "--history", "h.db", "--context", "prod"],
        2,
        expect!["kubediff: a file needs no cluster; name the daemon to ask with --daemon NAMESPACE/NAME, or leave the cluster out"],
    )
    .await;
    assert_says(
        &cluster,
        &["history", "backup", "copy.db", "--daemon", "monitoring/kubediff"],
        2,
        expect!["kubediff: a backup is a file beside the history, so --daemon makes none: `kubectl -n monitoring exec deploy/kubediff -- kubediff history backup /var/lib/kubediff/backup.db` writes one to the daemon's volume, where a pod that mounts the same claim finds it"],
    )
    .await;
    assert_says(
        &cluster,
        &["history", "archive", "--day", "2026-11-23", "/tmp", "--daemon", "monitoring/kubediff"],
        2,
        expect!["kubediff: archives are written where this command runs, so --daemon makes none; name the daemon's database with --history postgres://..."],
    )
    .await;
    let both = [&QUESTION[..], &["--history", "h.db"]].concat();
    let (_, code) = cluster.refusal(&both).await;
    assert_eq!(code, 2);
    let (_, code) = cluster.refusal(&["blame", "deploy/cart", "--daemon", "kubediff"]).await;
    assert_eq!(code, 2);
    // A file that the environment names is for questions that name nothing.
    let answer = cluster.ask_as(&["get", "deploy"], &[("KUBEDIFF_HISTORY", "/nowhere/h.db")]).await;
    assert!(answer.status.success(), "{answer:?}");
    // A container whose history is elsewhere.
    let mut command = program(&[]);
    command.args(["get", "deploy", "--of-this-daemon"]);
    let said = String::from_utf8(run(command).await.stderr).unwrap();
    expect![[r#"
        kubediff: there is no history /var/lib/kubediff/history.db in the daemon's container; set KUBEDIFF_HISTORY in it to the `history.path` of the daemon's configuration, as the chart does
    "#]].assert_eq(&said);
}
