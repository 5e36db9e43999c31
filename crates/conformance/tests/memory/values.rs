//! C10 and C12: what is hot, decoded values included, takes what it is said to take.

use std::fmt::Debug;

use conformance::Rig;
use informer::{EncodingChoice, Informer, Layout, Object, ResourceType, View};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube_client::Api;
use kube_client::core::{NamespaceResourceScope, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{ALLOCATOR, letters};

const COUNT: usize = 150;

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn metadata(name: &str, number: usize) -> Value {
    json!({
        "name": format!("{name}-{number}"),
        "labels": {
            "app.kubernetes.io/name": format!("app-{}", number % 7),
            "pod-template-hash": letters(number, 10),
            "tier": "web",
        },
        "annotations": { "checksum/config": letters(number + 500, 64), "owner": letters(number % 9, 20) },
    })
}

fn container(name: &str, number: usize) -> Value {
    let env = (0..12).map(|at| json!({ "name": format!("SETTING_{at}"), "value": letters(number + at, 24) }));
    json!({
        "name": name,
        "image": format!("registry.example.com/team/{name}:{}", letters(number % 5, 12)),
        "args": ["--port=8080", format!("--shard={number}"), "--log-level=info"],
        "env": env.collect::<Vec<_>>(),
        "ports": [{ "name": "http", "containerPort": 8080, "protocol": "TCP" }],
        "resources": {
            "requests": { "cpu": "100m", "memory": "128Mi" },
            "limits": { "cpu": "1", "memory": "1Gi" },
        },
        "readinessProbe": { "httpGet": { "path": "/ready", "port": 8080 }, "periodSeconds": 10 },
        "livenessProbe": { "httpGet": { "path": "/live", "port": 8080 }, "periodSeconds": 10 },
        "volumeMounts": [
            { "name": "config", "mountPath": "/etc/app" },
            { "name": "cache", "mountPath": "/var/cache" },
        ],
        "securityContext": { "runAsNonRoot": true, "readOnlyRootFilesystem": true },
    })
}

fn pod(number: usize) -> Pod {
    typed(json!({
        "metadata": metadata("pod", number),
        "spec": {
            "containers": [container("app", number), container("proxy", number + 1)],
            "volumes": [
                { "name": "config", "configMap": { "name": "settings" } },
                { "name": "cache", "emptyDir": {} },
            ],
            "tolerations": [{ "key": "dedicated", "operator": "Equal", "value": "web", "effect": "NoSchedule" }],
            "terminationGracePeriodSeconds": 30,
        },
    }))
}

fn secret(number: usize) -> Secret {
    let data = (0..5).map(|at| (format!("key-{at}"), json!(letters(number * 7 + at, 400))));
    let data: serde_json::Map<_, _> = data.collect();
    typed(json!({ "metadata": metadata("secret", number), "stringData": data }))
}

fn node(number: usize) -> Node {
    typed(json!({
        "metadata": metadata("values-node", number),
        "spec": {
            "podCIDR": format!("10.{}.0.0/24", number % 250),
            "taints": [{ "key": "dedicated", "value": "web", "effect": "NoSchedule" }],
        },
        "status": {
            "capacity": { "cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi" },
            "allocatable": { "cpu": "15", "memory": "60Gi", "pods": "110", "ephemeral-storage": "90Gi" },
            "addresses": [
                { "type": "InternalIP", "address": format!("10.0.0.{}", number % 250) },
                { "type": "Hostname", "address": format!("values-node-{number}") },
            ],
            "images": (0..20).map(|at| json!({
                "names": [
                    format!("registry.example.com/team/image-{at}@sha256:{}", letters(at, 64)),
                    format!("registry.example.com/team/image-{at}:{}", letters(number + at, 8)),
                ],
                "sizeBytes": 100_000_000 + at,
            })).collect::<Vec<_>>(),
        },
    }))
}

/// Fills the namespace with pods and secrets, and the cluster with nodes.
async fn fill(rig: &Rig) {
    let (pods, secrets) = (in_namespace::<Pod>(rig), in_namespace::<Secret>(rig));
    let nodes = Api::<Node>::all(rig.client());
    for number in 0..COUNT {
        pods.create(&Default::default(), &pod(number)).await.unwrap();
        secrets.create(&Default::default(), &secret(number)).await.unwrap();
        if number % 3 == 0 {
            nodes.create(&Default::default(), &node(number)).await.unwrap();
        }
    }
}

fn in_namespace<K>(rig: &Rig) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug
        + Serialize,
{
    Api::namespaced(rig.client(), rig.namespace())
}

/// Decodes all objects of a resource as a `T`, and compares what the informer says with what the allocator does.
async fn agrees<T: View>(
    rig: &Rig,
    resource: ResourceType,
    layout: Layout,
    encoding: EncodingChoice,
    most: f64,
) {
    let factory = rig
        .builder()
        .layout(layout)
        .encoding(encoding)
        .hot_bytes(256 << 20)
        .build()
        .unwrap()
        .in_namespace(rig.namespace());
    let bytes: Informer<Object> = factory.informer_of(resource.clone());
    let informer: Informer<T> = factory.informer_of(resource.clone());
    factory.start();
    factory.wait_for_sync(conformance::DEADLINE).await.unwrap();
    let (before, said_before) = (ALLOCATOR.current_usage(), bytes.held_bytes());
    let count = informer.lister().try_list().unwrap().len();
    assert!(count >= COUNT / 3, "{count} of {resource}");
    // Where nothing is taken, the connection may have given back a buffer meanwhile.
    let taken = ALLOCATOR.current_usage().saturating_sub(before);
    let said = informer.held_bytes() - said_before;
    let ratio = said as f64 / taken.max(1) as f64;
    let of = std::any::type_name::<T>();
    eprintln!("{of}, {layout:?}, {encoding:?}: {said} bytes said, {taken} taken, of {count}: {ratio:.2}");
    let is_near = (1.0 / most..=most).contains(&ratio);
    let nothing = taken < 10_000 && said < 10_000;
    assert!(is_near || nothing, "{of}, {layout:?}, {encoding:?}: {said} bytes said, {taken} taken");
    factory.shutdown().await;
}

/// A type of a few fields, as programs declare them.
#[derive(serde::Deserialize)]
struct Few {
    #[expect(dead_code, reason = "only its size counts")]
    metadata: FewMetadata,
}

#[derive(serde::Deserialize)]
struct FewMetadata {
    #[expect(dead_code, reason = "only its size counts")]
    name: String,
    #[expect(dead_code, reason = "only its size counts")]
    labels: std::collections::HashMap<String, String>,
}

pub(super) async fn c10(rig: &Rig) {
    fill(rig).await;
    let (pods, nodes, secrets) =
        (ResourceType::of::<Pod>(), ResourceType::of::<Node>(), ResourceType::of::<Secret>());
    let auto = EncodingChoice::Auto;
    // Done once per process.
    agrees::<Pod>(rig, pods.clone(), Layout::Packed, auto, 10.0).await;
    for layout in [Layout::Packed, Layout::Bytes, Layout::Decoded] {
        agrees::<Object>(rig, pods.clone(), layout, auto, 1.2).await;
        agrees::<Pod>(rig, pods.clone(), layout, auto, 1.2).await;
        agrees::<Node>(rig, nodes.clone(), layout, auto, 1.2).await;
        agrees::<Secret>(rig, secrets.clone(), layout, auto, 1.2).await;
        agrees::<Value>(rig, pods.clone(), layout, auto, 1.2).await;
        agrees::<Few>(rig, pods.clone(), layout, auto, 2.0).await;
        for resource in [&pods, &secrets] {
            agrees::<Value>(rig, resource.clone(), layout, EncodingChoice::Json, 1.2).await;
        }
        agrees::<Pod>(rig, pods.clone(), layout, EncodingChoice::Json, 2.0).await;
        agrees::<Secret>(rig, secrets.clone(), layout, EncodingChoice::Json, 2.0).await;
        agrees::<Node>(rig, nodes.clone(), layout, EncodingChoice::Json, 2.0).await;
        agrees::<Few>(rig, pods.clone(), layout, EncodingChoice::Json, 2.0).await;
    }
}
