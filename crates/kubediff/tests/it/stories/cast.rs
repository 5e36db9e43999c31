//! The writes of controllers and kubelets, for stories that are told in a few lines.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::queries::world::{World, at};

/// A cluster with a clock, in which controllers do what they are told.
pub(crate) struct Cast {
    pub(crate) world: World,
    pub(crate) now: Timestamp,
    objects: BTreeMap<String, Value>,
}

pub(crate) const CONTROLLER: &str = "kube-controller-manager";

impl Cast {
    pub(crate) fn new(mut world: World) -> Self {
        world.keeps_events();
        Self { world, now: at("14:00:00"), objects: BTreeMap::new() }
    }

    /// A history in which a rollout of `shop/cart` has begun.
    pub(crate) fn in_rollout(history: &Path) -> Self {
        let mut cast = Self::new(World::open(history, [7; 32]));
        cast.has_deployment("cart", "shop/cart:1", &["cart-a"]);
        cast.passes(60.0);
        cast.rolls_out("cart", "argocd", "shop/cart:2");
        cast
    }

    pub(crate) fn passes(&mut self, seconds: f64) {
        self.now += SignedDuration::from_secs_f64(seconds);
    }

    pub(crate) fn get(&self, key: &str) -> &Value {
        self.objects.get(key).unwrap_or_else(|| panic!("no {key}"))
    }

    /// The object was there before.
    pub(crate) fn known(&mut self, object: Value) {
        self.objects.insert(self.world.key_of(&object), object.clone());
        self.world.known_at(self.now, object);
    }

    pub(crate) fn writes(&mut self, manager: &str, object: Value) {
        self.objects.insert(self.world.key_of(&object), object.clone());
        self.world.wrote_at(self.now, manager, object);
    }

    /// Writes an object with other values at some places.
    pub(crate) fn patches(&mut self, manager: &str, key: &str, values: &[(&str, Value)]) {
        let mut object = self.get(key).clone();
        for (pointer, value) in values {
            set(&mut object, pointer, value.clone());
        }
        self.writes(manager, object);
    }

    pub(crate) fn deletes(&mut self, key: &str) {
        let object = self.objects.remove(key).unwrap_or_else(|| panic!("no {key}"));
        let (kind, name) = key.split_once(' ').unwrap();
        assert!(object["metadata"]["namespace"] == "shop" || !name.contains('/'), "{key}");
        match name.strip_prefix("shop/") {
            Some(name) => self.world.deleted_at(self.now, kind, name),
            None => self.world.cluster_deleted_at(self.now, kind, name),
        }
    }

    /// A deployment with its replica set and ready pods, all there before.
    pub(crate) fn has_deployment(&mut self, name: &str, image: &str, pods: &[&str]) {
        let count = pods.len() as u64;
        self.known(deployment(name, image, count));
        self.known(replica_set(name, "old", image, count, 1));
        for pod_name in pods {
            self.known(running(pod(name, "old", pod_name), 0));
        }
    }

    /// The status of a deployment.
    pub(crate) fn reports(&mut self, name: &str, [replicas, updated, ready]: [u64; 3]) {
        let key = format!("Deployment shop/{name}");
        let generation = self.get(&key)["metadata"]["generation"].clone();
        self.patches(
            &format!("{CONTROLLER}/status"),
            &key,
            &[
                ("/status/observedGeneration", generation),
                ("/status/replicas", replicas.into()),
                ("/status/updatedReplicas", updated.into()),
                ("/status/readyReplicas", ready.into()),
                ("/status/availableReplicas", ready.into()),
            ],
        );
    }

    /// Somebody changes the image of a deployment.
    pub(crate) fn rolls_out(&mut self, name: &str, manager: &str, image: &str) {
        let key = format!("Deployment shop/{name}");
        let generation = self.get(&key)["metadata"]["generation"].as_u64().unwrap() + 1;
        let image = ("/spec/template/spec/containers/0/image", json!(image));
        self.patches(manager, &key, &[("/metadata/generation", generation.into()), image]);
    }

    /// A node takes no more pods.
    pub(crate) fn cordons(&mut self, name: &str) {
        self.patches("kubectl-cordon", &format!("Node {name}"), &[("/spec/unschedulable", json!(true))]);
        self.passes(2.0);
    }

    pub(crate) fn scales(&mut self, name: &str, manager: &str, replicas: u64) {
        let key = format!("Deployment shop/{name}");
        let generation = self.get(&key)["metadata"]["generation"].as_u64().unwrap() + 1;
        let replicas = ("/spec/replicas", json!(replicas));
        self.patches(manager, &key, &[("/metadata/generation", generation.into()), replicas]);
    }

    /// A pod comes, gets a node and runs.
    pub(crate) fn starts(&mut self, of: &str, hash: &str, name: &str) {
        self.writes(CONTROLLER, pod(of, hash, name));
        self.passes(0.1);
        self.patches("kube-scheduler", &format!("Pod shop/{name}"), &[("/spec/nodeName", json!("n1"))]);
        self.passes(1.0);
        let ready = running(self.get(&format!("Pod shop/{name}")).clone(), 0);
        self.writes("kubelet/status", ready);
    }

    /// A pod gets its end, and is gone.
    pub(crate) fn ends(&mut self, name: &str) {
        let key = format!("Pod shop/{name}");
        self.patches(CONTROLLER, &key, &[("/metadata/deletionTimestamp", json!(self.now.to_string()))]);
        self.passes(0.5);
        self.deletes(&key);
    }

    /// A pod is evicted by the API, and is gone.
    pub(crate) fn evicts(&mut self, name: &str) {
        let key = format!("Pod shop/{name}");
        let mut conditions = self.get(&key)["status"]["conditions"].clone();
        let target = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"});
        conditions.as_array_mut().unwrap().push(target);
        self.patches("kube-apiserver", &key, &[("/status/conditions", conditions)]);
        self.passes(0.1);
        self.ends(name);
    }

    /// A pod's container ends, and waits for its next start.
    pub(crate) fn crashes(&mut self, name: &str, restarts: u64, reason: &str, waits: &str) {
        let last = json!({"terminated": {"reason": reason, "exitCode": 1}});
        let status = json!([{
            "name": "web", "image": "web:1", "ready": false, "restartCount": restarts, "lastState": last,
            "state": {"waiting": {"reason": waits, "message": "back-off 10s restarting failed container"}},
        }]);
        let conditions =
            json!([{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]);
        self.patches(
            "kubelet/status",
            &format!("Pod shop/{name}"),
            &[("/status/containerStatuses", status), ("/status/conditions", conditions)],
        );
    }

    pub(crate) fn event(&mut self, name: &str, about: &str, reason: &str) {
        let of = self.get(about);
        let involved = json!({
            "kind": of["kind"], "namespace": "shop", "name": of["metadata"]["name"], "uid": of["metadata"]["uid"],
        });
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": "shop", "uid": format!("e-{name}")},
            "involvedObject": involved, "reason": reason, "message": reason, "count": 1, "type": "Normal",
        });
        self.world.became_at(self.now, event);
    }
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let name = &name.replace("~1", "/");
    if object.pointer(parent).is_none() {
        set(object, parent, json!({}));
    }
    match object.pointer_mut(parent).unwrap() {
        Value::Array(list) => list[name.parse::<usize>().unwrap()] = value,
        map => map[name] = value,
    }
}

pub(crate) fn metadata(name: &str, uid: &str, owner: Option<(&str, &str)>) -> Value {
    let mut metadata = json!({
        "name": name, "namespace": "shop", "uid": uid, "creationTimestamp": "2026-03-01T13:00:00Z",
    });
    if let Some((kind, uid)) = owner {
        metadata["ownerReferences"] = json!([{"kind": kind, "name": uid, "uid": uid, "controller": true}]);
    }
    metadata
}

/// A deployment with all its pods ready.
pub(crate) fn deployment(name: &str, image: &str, replicas: u64) -> Value {
    let mut metadata = metadata(name, &format!("d-{name}"), None);
    metadata["generation"] = 1.into();
    metadata["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "web", "image": image}]}},
        },
        "status": {
            "observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas,
            "availableReplicas": replicas,
        },
    })
}

pub(crate) fn replica_set(of: &str, hash: &str, image: &str, replicas: u64, revision: u64) -> Value {
    let uid = format!("d-{of}");
    let mut metadata =
        metadata(&format!("{of}-{hash}"), &format!("r-{of}-{hash}"), Some(("Deployment", &uid)));
    metadata["labels"] = json!({"app": of, "pod-template-hash": hash});
    metadata["annotations"] = json!({"deployment.kubernetes.io/revision": revision.to_string()});
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata,
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
        "status": {"replicas": replicas, "readyReplicas": replicas},
    })
}

/// A pod that waits for a node.
pub(crate) fn pod(of: &str, hash: &str, name: &str) -> Value {
    let owner = format!("r-{of}-{hash}");
    let mut metadata = metadata(name, &format!("p-{name}"), Some(("ReplicaSet", &owner)));
    metadata["labels"] = json!({"app": of, "pod-template-hash": hash});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"containers": [{"name": "web", "image": "web:1"}]}, "status": {"phase": "Pending"},
    })
}

pub(crate) fn running(mut pod: Value, restarts: u64) -> Value {
    pod["status"] = json!({
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{
            "name": "web", "image": "web:1", "ready": true, "restartCount": restarts, "state": {"running": {}},
        }],
    });
    pod["spec"]["nodeName"] = "n1".into();
    pod
}

/// An EndpointSlice of a service with endpoints for pods, some of which are ready.
pub(crate) fn slice(service: &str, pods: &[(&str, bool)]) -> Value {
    let endpoints: Vec<Value> = pods
        .iter()
        .enumerate()
        .map(|(at, (name, ready))| {
            json!({
                "addresses": [format!("10.0.0.{}", at + 1)], "conditions": {"ready": ready},
                "targetRef": {"kind": "Pod", "name": name, "uid": format!("p-{name}")},
            })
        })
        .collect();
    let owner = format!("s-{service}");
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": metadata(&format!("{service}-x"), &format!("x-{service}"), Some(("Service", &owner))),
        "addressType": "IPv4", "endpoints": endpoints,
    })
}

pub(crate) fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": format!("n-{name}"), "creationTimestamp": "2026-03-01T13:00:00Z"},
        "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}
