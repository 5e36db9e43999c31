//! Commands that follow objects: `get -w`, `wait`, `rollout status`.

use super::{Kubectl, SHOP, has};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_shows_what_happens() {
    let Some(kubectl) = Kubectl::start("kubectl_watches").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    let mut watching = kubectl.tells("get cm -n shop -w");
    has(&watching.line(), &["NAME", "DATA", "AGE"]);
    has(&watching.line(), &["settings", "2"]);
    kubectl.says("create cm more -n shop --from-literal=a=1");
    has(&watching.line(), &["more", "1"]);

    let mut events = kubectl.tells("get cm settings -n shop -w --output-watch-events -o name");
    has(&events.line(), &["configmap/settings"]);
    kubectl.says("delete cm settings -n shop");
    has(&events.line(), &["configmap/settings"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_and_values_are_waited_for() {
    let Some(kubectl) = Kubectl::start("kubectl_waits").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    has(&kubectl.says("wait --for=create cm/settings -n shop"), &["condition met"]);
    has(&kubectl.says("wait --for=jsonpath={.data.color}=red cm/settings -n shop"), &["condition met"]);
    let mut waiting = kubectl.tells("wait --for=condition=Available deploy/web -n shop");
    let status = r#"{"status":{"conditions":[{"type":"Available","status":"True"}]}}"#;
    kubectl.says(&format!("patch deploy web -n shop --subresource=status --type=merge -p {status}"));
    has(&waiting.line(), &["deployment.apps/web condition met"]);
    waiting.end();
    let never = kubectl.refuses("wait --for=condition=Ready deploy/web -n shop --timeout=1s");
    has(&never, &["timed out waiting for the condition"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_ends_when_the_controllers_say_so() {
    let Some(kubectl) = Kubectl::start("kubectl_rollout").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    let mut rollout = kubectl.tells("rollout status deploy/web -n shop");
    has(&rollout.line(), &["Waiting for deployment"]);
    let generation = kubectl.says("get deploy web -n shop -o jsonpath={.metadata.generation}");
    let status = format!(
        r#"{{"status":{{"observedGeneration":{generation},"replicas":2,"updatedReplicas":2,"availableReplicas":2,"readyReplicas":2}}}}"#
    );
    kubectl.says(&format!("patch deploy web -n shop --subresource=status --type=merge -p {status}"));
    has(&rollout.end(), &["successfully rolled out"]);
    has(&kubectl.says("get deploy web -n shop"), &["2/2"]);
}
