//! A cluster in which nothing happens, as its API server sees it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use testapi::{Gvr, Patch, TestApi};

/// How often leases are renewed.
pub(crate) const EVERY: Duration = Duration::from_secs(10);

const NODES: usize = 20;
const SLICES: usize = 20;
/// Kubelets report a status that has not changed so often.
const HEARTBEAT: u64 = 300;
/// A controller writes its EndpointSlices again so often.
const SLICES_AGAIN: u64 = 60;

pub(crate) struct Cluster {
    pub(crate) server: TestApi,
    /// Since the start.
    seconds: u64,
}

/// How many writes there were, by the noise rule that explains them.
#[derive(Default)]
pub(crate) struct Written(BTreeMap<&'static str, u64>);

impl Written {
    fn one(&mut self, rule: &'static str) {
        *self.0.entry(rule).or_default() += 1;
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub(crate) fn by_rule(&self) -> BTreeMap<String, u64> {
        self.0.iter().map(|(&rule, &count)| (rule.to_owned(), count)).collect()
    }
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let server = TestApi::builder().bookmark_period(Duration::from_secs(60)).start().await.unwrap();
        let cluster = Self { server, seconds: 0 };
        for index in 0..NODES {
            cluster.load("v1", "nodes", node(index, 0));
            cluster.load(
                "coordination.k8s.io/v1",
                "leases",
                lease("kube-node-lease", &format!("node-{index}")),
            );
        }
        for name in ["kube-scheduler", "kube-controller-manager"] {
            cluster.load("coordination.k8s.io/v1", "leases", lease("kube-system", name));
        }
        for (plural, kind) in [("configmaps", "ConfigMap"), ("endpoints", "Endpoints")] {
            let object = json!({"apiVersion": "v1", "kind": kind,
                "metadata": {"namespace": "kube-system", "name": "old-controller"}});
            cluster.load("v1", plural, object);
        }
        for index in 0..SLICES {
            cluster.load("discovery.k8s.io/v1", "endpointslices", slice(index, 0));
        }
        let labels = json!({"app": "cart"});
        let cart = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "shop", "name": "cart"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "shop/cart:1"}]}}}});
        cluster.load("apps/v1", "deployments", cart);
        cluster
    }

    /// The writes of the next ten seconds.
    pub(crate) fn go_on(&mut self, written: &mut Written) {
        self.seconds += EVERY.as_secs();
        let now = time(self.seconds);
        let renewed = json!({"spec": {"renewTime": now.replace('Z', ".000000Z")}});
        for index in 0..NODES {
            self.patch(
                "coordination.k8s.io/v1",
                "leases",
                "kube-node-lease",
                &format!("node-{index}"),
                &renewed,
            );
            written.one("lease-renewal");
        }
        for name in ["kube-scheduler", "kube-controller-manager"] {
            self.patch("coordination.k8s.io/v1", "leases", "kube-system", name, &renewed);
            written.one("lease-renewal");
        }
        let held = json!({"holderIdentity": "a", "renewTime": now}).to_string();
        let held = json!({"metadata": {"annotations": {"control-plane.alpha.kubernetes.io/leader": held}}});
        self.patch("v1", "configmaps", "kube-system", "old-controller", &held);
        written.one("leader-election");
        self.patch("v1", "endpoints", "kube-system", "old-controller", &held);
        written.one("endpoints");
        let event = json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"namespace": "shop", "name": format!("cart.{}", self.seconds)},
            "involvedObject": {"kind": "Deployment", "namespace": "shop", "name": "cart"}, "reason": "Nothing"});
        self.load("v1", "events", event);
        written.one("events");
        if self.seconds.is_multiple_of(HEARTBEAT) {
            for index in 0..NODES {
                self.load("v1", "nodes", node(index, self.seconds));
                written.one("node-heartbeat");
            }
        }
        if self.seconds.is_multiple_of(SLICES_AGAIN) {
            for index in 0..SLICES {
                self.load("discovery.k8s.io/v1", "endpointslices", slice(index, self.seconds));
                written.one("generation");
            }
        }
    }

    pub(crate) fn set_image(&self, image: &str) {
        let deployments = Gvr::new("apps/v1", "deployments");
        let mut cart = self.server.api().get(&deployments, "shop", "cart").unwrap();
        cart["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        self.server.api().update(&deployments, cart).unwrap();
    }

    pub(crate) fn version_of_lease(&self, name: &str) -> String {
        let leases = Gvr::new("coordination.k8s.io/v1", "leases");
        let lease = self.server.api().get(&leases, "kube-node-lease", name).unwrap();
        lease["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
    }

    /// As it is: without what the server fills in at the first write of an object that was loaded.
    fn load(&self, version: &str, plural: &str, object: Value) {
        self.server.api().load(&Gvr::new(version, plural), [object]).unwrap();
    }

    fn patch(&self, version: &str, plural: &str, namespace: &str, name: &str, patch: &Value) {
        let patch = Patch::Merge(patch.clone());
        self.server.api().patch(&Gvr::new(version, plural), namespace, name, &patch).unwrap();
    }
}

fn time(seconds: u64) -> String {
    format!("2026-11-23T{:02}:{:02}:{:02}Z", 10 + seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

fn lease(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": namespace, "name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-11-23T10:00:00.000000Z"}})
}

/// As its kubelet says again and again that it is well.
fn node(index: usize, seconds: u64) -> Value {
    let conditions = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(|kind| {
        let status = if kind == "Ready" { "True" } else { "False" };
        json!({"type": kind, "status": status, "lastHeartbeatTime": time(seconds),
            "lastTransitionTime": "2026-11-01T08:00:00Z", "reason": "KubeletSays", "message": "it is so"})
    });
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("node-{index}"), "uid": format!("00000000-0000-4000-9000-{index:012}"),
            "creationTimestamp": "2026-11-01T08:00:00Z"},
        "status": {"conditions": conditions, "capacity": {"cpu": "4", "pods": "58"}}})
}

/// Only the traces of a write are new: who wrote it when, and the generation.
fn slice(index: usize, seconds: u64) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"namespace": "shop", "name": format!("cart-{index}"), "generation": 1 + seconds,
            "uid": format!("00000000-0000-4000-8000-{index:012}"), "creationTimestamp": "2026-11-01T08:00:00Z",
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update",
                "apiVersion": "discovery.k8s.io/v1", "time": time(seconds), "fieldsType": "FieldsV1",
                "fieldsV1": {"f:endpoints": {}}}]},
        "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": true}}], "ports": [{"port": 80}]})
}
