//! `delete`: with its waiting, its cascades, finalizers and namespaces.

use super::{Kubectl, SHOP, has};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_is_gone_when_kubectl_returns() {
    let Some(kubectl) = Kubectl::start("kubectl_deletes").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    kubectl.says("run once -n shop --image=busybox");
    has(&kubectl.says("delete cm settings -n shop"), &["configmap \"settings\" deleted"]);
    has(&kubectl.says("delete pod once -n shop --now"), &["pod \"once\" deleted"]);
    has(&kubectl.refuses("delete pod once -n shop"), &["NotFound", "pods \"once\" not found"]);
    has(&kubectl.says("delete ns shop"), &["namespace \"shop\" deleted"]);
    has(&kubectl.refuses("get ns shop"), &["namespaces \"shop\" not found"]);
    assert_eq!(kubectl.says("get deploy,svc -A -o name"), "");

    for name in ["a", "b", "c"] {
        kubectl.says(&format!("create cm {name}"));
    }
    kubectl.says("label cm a b old=yes");
    has(&kubectl.says("delete cm -l old=yes"), &["\"a\" deleted", "\"b\" deleted"]);
    has(&kubectl.says("delete cm --all"), &["\"c\" deleted"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finalizer_holds_an_object() {
    let Some(kubectl) = Kubectl::start("kubectl_finalizers").await else { return };
    let held =
        "{ apiVersion: v1, kind: ConfigMap, metadata: { name: held, finalizers: [example.com/hold] } }";
    kubectl.says_of("create -f -", held);
    has(&kubectl.refuses("delete cm held --timeout=1s"), &["timed out waiting for the condition"]);
    has(&kubectl.says("get cm held -o jsonpath={.metadata.deletionTimestamp}"), &["20", "T", "Z"]);
    kubectl.says("delete cm held --wait=false");
    let waiting = kubectl.tells("wait --for=delete cm/held");
    kubectl.says(r#"patch cm held --type=merge -p {"metadata":{"finalizers":null}}"#);
    // It may begin when the object is gone already, and then says nothing.
    waiting.end();
    has(&kubectl.refuses("get cm held"), &["NotFound"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_owned_goes_with_its_owner_or_stays() {
    let Some(kubectl) = Kubectl::start("kubectl_cascades").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    let owned = |name: &str| {
        let uid = kubectl.says("get deploy web -n shop -o jsonpath={.metadata.uid}");
        let owner = format!("{{ apiVersion: apps/v1, kind: Deployment, name: web, uid: {uid} }}");
        format!(
            "{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name}, namespace: shop, ownerReferences: [{owner}] }} }}"
        )
    };
    kubectl.says_of("create -f -", &owned("orphan"));
    has(&kubectl.says("delete deploy web -n shop --cascade=orphan"), &["\"web\" deleted"]);
    assert_eq!(kubectl.says("get cm orphan -n shop -o jsonpath={.metadata.ownerReferences}"), "");

    kubectl.says_of("apply -f -", SHOP);
    kubectl.says_of("create -f -", &owned("child"));
    has(&kubectl.says("delete deploy web -n shop --cascade=foreground"), &["\"web\" deleted"]);
    has(&kubectl.refuses("get cm child -n shop"), &["NotFound"]);
}
