//! A cluster of many kinds, mostly pods, and what goes on in it: half of the changes are heartbeats.
//!
//! Only testapi can be it: a real server takes many minutes for so many objects.

use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};
use testapi::{Api, Gvr};
use tokio::time::MissedTickBehavior;

use crate::load::{self, Loaded};
use crate::server::{Failure, Server};
use crate::shapes::{self, NAMESPACES, Pods};

/// The resources that have objects, each as `GROUP/VERSION/PLURAL/KIND`.
const RESOURCES: [&str; 8] = [
    "core/v1/pods/Pod",
    "core/v1/nodes/Node",
    "coordination.k8s.io/v1/leases/Lease",
    "apps/v1/replicasets/ReplicaSet",
    "apps/v1/deployments/Deployment",
    "core/v1/configmaps/ConfigMap",
    "core/v1/secrets/Secret",
    "shop.example.com/v1/orders/Order",
];
/// Pods of a hundred objects.
const PODS: usize = 78;
/// Pods of a ReplicaSet.
const PER_SET: usize = 10;

/// The objects that were loaded.
#[derive(Default)]
pub struct Mixed {
    seed: u64,
    nodes: usize,
    deployments: usize,
    config_maps: usize,
    orders: usize,
    /// The changes that were made: each one is another one.
    made: usize,
}

/// How many changes of each sort were made.
#[derive(Default)]
struct Made {
    noise: usize,
    changes: usize,
}

impl Mixed {
    /// Loads so many objects in all.
    pub async fn load(
        &mut self,
        server: &Server,
        loaded: &mut Loaded,
        seed: u64,
        objects: usize,
    ) -> Result<Value, Failure> {
        let count = objects * PODS / 100;
        // One more is the sentinel.
        loaded.pods(server, seed, count.saturating_sub(1), PER_SET).await?;
        let pods = Pods::new(seed, count.saturating_sub(1));
        let api = server.in_process().ok_or("this is not the server")?.api();
        let nodes = pods.nodes().count();
        let left = objects.saturating_sub(count + 2 * nodes);
        let share = |percent: usize| left * percent / 100;
        let (sets, deployments, config_maps, secrets) = (share(36), share(12), share(24), share(10));
        let orders = left - sets - deployments - config_maps - secrets;
        *self = Self { seed, nodes, deployments, config_maps, orders, made: 0 };

        let mut random = Rng::with_seed(seed ^ 0x5eed);
        api.load_text(
            &gvr("coordination.k8s.io/v1", "leases"),
            (0..nodes).map(|index| lease(index, 0).to_string()),
        )?;
        let workloads = |count: usize, kind: &'static str| {
            let pods = &pods;
            (0..count).map(move |index| workload(pods, kind, index))
        };
        api.load_text(
            &gvr("apps/v1", "replicasets"),
            workloads(sets, "ReplicaSet").collect::<Result<Vec<_>, _>>()?,
        )?;
        api.load_text(
            &gvr("apps/v1", "deployments"),
            workloads(deployments, "Deployment").collect::<Result<Vec<_>, _>>()?,
        )?;
        let maps: Vec<String> =
            (0..config_maps).map(|index| config_map(&mut random, index).to_string()).collect();
        api.load_text(&gvr("v1", "configmaps"), maps)?;
        let secret = |index| secret(&mut random, index).to_string();
        api.load_text(&gvr("v1", "secrets"), (0..secrets).map(secret).collect::<Vec<_>>())?;
        api.create(&gvr("apiextensions.k8s.io/v1", "customresourcedefinitions"), definition())?;
        api.load_text(
            &gvr("shop.example.com/v1", "orders"),
            (0..orders).map(|index| order(index).to_string()),
        )?;
        Ok(json!({ "event": "loaded", "resources": RESOURCES }))
    }

    /// Makes changes at an even pace for a time. Of ten, four renew a lease and one is a node's heartbeat; three are of
    /// a pod's status, one of an order's, and one of a ConfigMap's data or a Deployment's image in turn.
    pub async fn churn(
        &mut self,
        server: &Server,
        loaded: &Loaded,
        seconds: f64,
        per_second: f64,
    ) -> Result<Value, Failure> {
        let api = server.in_process().ok_or("this is not the server")?.api().clone();
        let mut random = Rng::with_seed(self.seed ^ self.made as u64);
        let (mut made, start) = (Made::default(), Instant::now());
        let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / per_second));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        for number in self.made..self.made + (seconds * per_second) as usize {
            ticks.tick().await;
            self.made = number + 1;
            tokio::task::block_in_place(|| self.change(&api, loaded, &mut random, number))?;
            match number % 10 {
                0..5 => made.noise += 1,
                _ => made.changes += 1,
            }
        }
        Ok(json!({
            "event": "churned", "noise": made.noise, "changes": made.changes,
            "seconds": start.elapsed().as_secs_f64(),
        }))
    }

    fn change(&self, api: &Api, loaded: &Loaded, random: &mut Rng, number: usize) -> Result<(), Failure> {
        match number % 10 {
            0..4 => {
                let lease = lease(random.usize(..self.nodes), number + 1);
                let leases = gvr("coordination.k8s.io/v1", "leases");
                let spec = json!({ "spec": lease["spec"] });
                let name = lease["metadata"]["name"].as_str().unwrap_or_default();
                api.patch(&leases, "kube-node-lease", name, &testapi::Patch::Merge(spec))?;
            }
            4 => {
                let name = shapes::node_name(random.usize(..self.nodes));
                let mut node = api.get(&gvr("v1", "nodes"), "", &name)?;
                for condition in list(&mut node["status"]["conditions"]) {
                    condition["lastHeartbeatTime"] = time(number).into();
                }
                api.update_status(&gvr("v1", "nodes"), node)?;
            }
            5..8 => {
                let paths = loaded.first(0)?;
                // "", api, v1, namespaces, NAMESPACE, pods, NAME
                let parts: Vec<&str> = paths[random.usize(..paths.len())].split('/').collect();
                let [_, _, _, _, namespace, _, name] = parts[..] else {
                    return Err("a path of a pod".into());
                };
                let mut pod = api.get(&gvr("v1", "pods"), namespace, name)?;
                for condition in list(&mut pod["status"]["conditions"]) {
                    if condition["type"] == "Ready" || condition["type"] == "ContainersReady" {
                        let now = if condition["status"] == "True" { "False" } else { "True" };
                        condition["status"] = now.into();
                        condition["lastTransitionTime"] = time(number).into();
                    }
                }
                for container in list(&mut pod["status"]["containerStatuses"]).iter_mut().take(1) {
                    let restarts = container["restartCount"].as_u64().unwrap_or_default();
                    container["restartCount"] = (restarts + 1).into();
                }
                api.update_status(&gvr("v1", "pods"), pod)?;
            }
            8 => {
                let index = random.usize(..self.orders);
                let (namespace, name) = (namespace(index), format!("order-{index}"));
                let status =
                    json!({ "status": { "phase": "Packed", "parcels": number, "seenAt": time(number) } });
                let orders = gvr("shop.example.com/v1", "orders");
                api.patch(&orders, &namespace, &name, &testapi::Patch::Merge(status))?;
            }
            _ if number % 20 == 9 => {
                let index = random.usize(..self.config_maps);
                let data = json!({ "data": { "release": format!("2026.11.{number}") } });
                let (namespace, name) = (namespace(index), format!("settings-{index}"));
                api.patch(&gvr("v1", "configmaps"), &namespace, &name, &testapi::Patch::Merge(data))?;
            }
            _ => {
                let index = random.usize(..self.deployments);
                let (deployments, name) = (gvr("apps/v1", "deployments"), format!("deployment-{index}"));
                let mut deployment = api.get(&deployments, &namespace(index), &name)?;
                for container in
                    list(&mut deployment["spec"]["template"]["spec"]["containers"]).iter_mut().take(1)
                {
                    container["image"] = format!("registry.internal/shop/web:1.{number}").into();
                }
                api.update(&deployments, deployment)?;
            }
        }
        Ok(())
    }
}

fn gvr(version: &str, plural: &str) -> Gvr {
    Gvr::new(version, plural)
}

fn list(value: &mut Value) -> &mut [Value] {
    value.as_array_mut().map_or(&mut [], Vec::as_mut_slice)
}

fn namespace(index: usize) -> String {
    format!("shop-{}", index % NAMESPACES)
}

fn time(second: usize) -> String {
    format!("2026-11-23T{:02}:{:02}:{:02}Z", second / 3_600 % 24, second / 60 % 60, second % 60)
}

/// The lease of a node's kubelet.
fn lease(index: usize, second: usize) -> Value {
    let name = shapes::node_name(index);
    let renewed = time(second).replace('Z', ".000000Z");
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "namespace": "kube-node-lease" },
        "spec": { "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed },
    })
}

/// A Deployment or ReplicaSet with the containers and labels of a pod.
fn workload(pods: &Pods, kind: &str, index: usize) -> Result<String, serde_json::Error> {
    let mut pod: Value = serde_json::from_str(&pods.json(index * 7))?;
    let (labels, managed) = (pod["metadata"]["labels"].take(), pod["metadata"]["managedFields"].take());
    let mut spec = pod["spec"].take();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("nodeName");
    }
    let workload = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {
            "name": format!("{}-{index}", kind.to_lowercase()), "namespace": namespace(index), "generation": 1,
            "labels": labels, "annotations": { "deployment.kubernetes.io/revision": "1" }, "managedFields": managed,
        },
        "spec": {
            "replicas": PER_SET, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": spec },
        },
        "status": {
            "replicas": PER_SET, "readyReplicas": PER_SET, "availableReplicas": PER_SET, "observedGeneration": 1,
        },
    });
    Ok(workload.to_string())
}

/// Most are small, one of fifty has 40 KB.
fn config_map(random: &mut Rng, index: usize) -> Value {
    let text = load::text(random, if index.is_multiple_of(50) { 40_000 } else { 1_200 });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": format!("settings-{index}"), "namespace": namespace(index), "labels": { "team": "platform" } },
        "data": { "settings.yaml": text, "release": "2026.11.0" },
    })
}

/// One of ten is a release of Helm.
fn secret(random: &mut Rng, index: usize) -> Value {
    let is_helm = index.is_multiple_of(10);
    let (kind, field) = if is_helm { ("helm.sh/release.v1", "release") } else { ("Opaque", "credentials") };
    let data = load::base64(random, if is_helm { 30_000 } else { 300 });
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": kind,
        "metadata": { "name": format!("secret-{index}"), "namespace": namespace(index), "labels": { "owner": "helm" } },
        "data": { field: data },
    })
}

fn definition() -> Value {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "orders.shop.example.com" },
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced", "names": { "plural": "orders", "kind": "Order" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": open, "status": open } } },
            }],
        },
    })
}

fn order(index: usize) -> Value {
    let items: Vec<Value> = (0..1 + index % 12)
        .map(|item| json!({ "name": format!("item-{item}"), "count": 1 + item % 3, "price": format!("{}.{:02}", index % 90, item) }))
        .collect();
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Order",
        "metadata": { "name": format!("order-{index}"), "namespace": namespace(index) },
        "spec": { "customer": format!("customer-{}", index * 31 % 1_000), "items": items },
        "status": { "phase": "Paid", "parcels": 0 },
    })
}
