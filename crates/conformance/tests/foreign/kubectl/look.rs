//! Commands that only read: `get`, `describe`, `explain`, `events`, and discovery.

use super::{Kubectl, SHOP, has};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_got_in_every_form() {
    let Some(kubectl) = Kubectl::start("kubectl_get").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    has(
        &kubectl.says("get deploy -n shop"),
        &["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "web", "0/2"],
    );
    has(&kubectl.says("get deploy -A -o wide"), &["NAMESPACE", "IMAGES", "shop", "nginx:1.27", "app=web"]);
    has(&kubectl.says("get all -n shop"), &["service/web", "80/TCP", "deployment.apps/web"]);
    has(&kubectl.says("get ns"), &["default", "Active", "shop", "Active"]);
    has(&kubectl.says("get ns,cm -n shop"), &["namespace/shop", "configmap/settings"]);
    let settings = "get cm settings -n shop";
    has(
        &kubectl.says(&format!("{settings} -o yaml")),
        &["apiVersion: v1", "data:", "color: red", "name: settings"],
    );
    has(&kubectl.says(&format!("{settings} -o json")), &["\"color\": \"red\"", "\"kind\": \"ConfigMap\""]);
    assert_eq!(kubectl.says(&format!("{settings} -o jsonpath={{.data.size}}")), "small");
    assert_eq!(kubectl.says(&format!("{settings} -o go-template={{{{.data.color}}}}")), "red");
    has(&kubectl.says(&format!("{settings} -o custom-columns=COLOR:.data.color")), &["COLOR", "red"]);
    assert_eq!(kubectl.says("get ns --field-selector metadata.name=shop -o name"), "namespace/shop\n");
    assert_eq!(kubectl.says("get cm -A --field-selector metadata.namespace!=shop -o name"), "");
    kubectl.says("label cm settings team=a -n shop");
    assert_eq!(kubectl.says("get cm -l team=a -n shop -o name"), "configmap/settings\n");
    assert_eq!(kubectl.says("get cm -l team!=a -n shop -o name"), "");
    has(&kubectl.says("get cm -L team -n shop"), &["TEAM", "settings", "a"]);
    has(&kubectl.says("get ns --chunk-size=1 --sort-by=.metadata.name"), &["default", "kube-system", "shop"]);

    has(
        &kubectl.refuses("get pod nobody -n shop"),
        &["Error from server (NotFound): pods \"nobody\" not found"],
    );
    has(&kubectl.refuses("get nothings"), &["the server doesn't have a resource type \"nothings\""]);
    assert_eq!(kubectl.says("get cm nobody --ignore-not-found"), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_described() {
    let Some(kubectl) = Kubectl::start("kubectl_describe").await else { return };
    kubectl.says_of("apply -f -", SHOP);
    kubectl.says("run once -n shop --image=busybox --restart=Never");
    kubectl.says("create secret generic db -n shop --from-literal=password=x");
    kubectl.says_of("create -f -", "{ apiVersion: v1, kind: Node, metadata: { name: n1 } }");
    let deployment = kubectl.says("describe deploy web -n shop");
    has(
        &deployment,
        &["Selector:", "app=web", "Replicas:", "2 desired", "Image:", "nginx:1.27", "COLOR:", "red"],
    );
    has(&kubectl.says("describe svc web -n shop"), &["Type:", "ClusterIP", "Port:", "http  80/TCP"]);
    has(
        &kubectl.says("describe pod once -n shop"),
        &["Status:", "Pending", "Image:", "busybox", "QoS Class:"],
    );
    has(&kubectl.says("describe cm settings -n shop"), &["color:", "red", "size:", "small"]);
    let secret = kubectl.says("describe secret db -n shop");
    has(&secret, &["Type:", "Opaque", "password:  1 bytes"]);
    has(&kubectl.says("describe node n1"), &["Name:", "n1", "Non-terminated Pods:", "(0 in total)"]);
    has(&kubectl.says("describe ns shop"), &["Status:", "Active", "No resource quota."]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_listed_and_part_of_what_they_are_about() {
    let Some(kubectl) = Kubectl::start("kubectl_events").await else { return };
    kubectl.says("create cm settings");
    let event = "
apiVersion: v1
kind: Event
metadata: { generateName: settings. }
involvedObject: { apiVersion: v1, kind: ConfigMap, name: settings, namespace: default, uid: UID }
type: Warning
reason: TooRed
message: nobody can read it
count: 3
firstTimestamp: '2026-01-01T00:00:00Z'
lastTimestamp: '2026-01-01T00:01:00Z'
source: { component: eye }
";
    let uid = kubectl.says("get cm settings -o jsonpath={.metadata.uid}");
    has(&kubectl.says_of("create -f -", &event.replace("UID", &uid)), &["event/settings.", " created"]);
    let line = ["Warning", "TooRed", "configmap/settings", "nobody can read it"];
    has(&kubectl.says("get events"), &line);
    has(&kubectl.says("events --for cm/settings"), &["LAST SEEN", "Warning", "TooRed", "ConfigMap/settings"]);
    assert_eq!(kubectl.says("get events --field-selector type=Normal"), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_tells_what_it_is() {
    let Some(kubectl) = Kubectl::start("kubectl_discovers").await else { return };
    has(&kubectl.says("version"), &["Client Version: v1.37", "Server Version: v1.37"]);
    let resources = kubectl.says("api-resources");
    has(&resources, &["pods", "po", "v1", "true", "Pod", "deployments", "deploy", "apps/v1"]);
    let of_cluster = kubectl.says("api-resources --namespaced=false -o name");
    has(&of_cluster, &["namespaces", "nodes", "customresourcedefinitions.apiextensions.k8s.io"]);
    has(&kubectl.says("api-versions"), &["apps/v1", "batch/v1", "v1"]);
    has(&kubectl.says("cluster-info"), &["control plane", "is running at", "https://127.0.0.1:"]);
    assert_eq!(kubectl.says("get --raw /readyz"), "ok");
    has(
        &kubectl.says("get --raw /api/v1/namespaces?limit=1"),
        &["\"kind\":\"NamespaceList\"", "\"continue\""],
    );
    assert_eq!(kubectl.says("auth can-i create pods"), "yes\n");
    has(&kubectl.says("auth whoami"), &["Username", "admin"]);

    let field = kubectl.says("explain deployment.spec.replicas");
    has(&field, &["KIND:", "Deployment", "FIELD: replicas <integer>"]);
    let all = kubectl.says("explain pod --recursive");
    has(
        &all,
        &["spec", "containers", "<[]Container> -required-", "limits", "<map[string]Quantity>", "status"],
    );
    has(&kubectl.refuses("explain pod.spec.nothing"), &["field \"nothing\" does not exist"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_runs_the_pods() {
    let Some(kubectl) = Kubectl::start("kubectl_pods").await else { return };
    kubectl.says("run waiting --image=busybox");
    kubectl.says("run placed --image=busybox --overrides={\"spec\":{\"nodeName\":\"n1\"}}");
    assert_eq!(kubectl.says("logs waiting"), "");
    has(&kubectl.refuses("exec waiting -- true"), &["pod waiting does not have a host assigned"]);
    has(&kubectl.refuses("logs placed"), &["no kubelet runs on node \"n1\""]);
    has(&kubectl.refuses("logs nobody"), &["pods \"nobody\" not found"]);
    has(&kubectl.refuses("top pods"), &["Metrics API not available"]);
}
