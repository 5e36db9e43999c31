//! Fills a cluster.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use testapi::Gvr;

use crate::server::{Failure, Server};
use crate::shapes::{NAMESPACES, Pods};

/// The paths of the loaded pods, for changes.
#[derive(Default)]
pub struct Loaded {
    paths: Vec<String>,
}

impl Loaded {
    /// Loads pods into the namespaces `shop-0` and so on, and `bench/sentinel`.
    ///
    /// With `per_set` the pods are in ReplicaSets of this size, and their nodes are loaded too.
    pub async fn pods(
        &mut self,
        server: &Server,
        seed: u64,
        count: usize,
        per_set: usize,
    ) -> Result<Value, Failure> {
        let before = self.paths.len();
        for name in (0..NAMESPACES).map(|index| format!("shop-{index}")).chain(["bench".to_owned()]) {
            server.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
        }
        let pods = Pods::new(seed, count).in_sets(per_set);
        if per_set > 0 {
            nodes(server, &pods).await?;
        }
        let mut bytes = 0;
        if let Some(testapi) = server.in_process() {
            let texts = (before..count).map(|index| pods.json(index)).inspect(|text| bytes += text.len());
            let paths = &mut self.paths;
            testapi
                .api()
                .load_text(&Gvr::new("v1", "pods"), texts.inspect(|text| paths.push(path_in(text))))?;
        } else {
            let texts: Vec<String> = (before..count).map(|index| pods.json(index)).collect();
            bytes = texts.iter().map(String::len).sum();
            server.for_each(0..texts.len(), |index| create(server, &texts[index])).await?;
            self.paths.extend(texts.iter().map(|text| path_in(text)));
        }
        let sentinel = json!({
            "metadata": { "name": "sentinel" },
            "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
        });
        server.post("/api/v1/namespaces/bench/pods", &sentinel).await?;
        Ok(json!({ "event": "loaded", "pods": self.paths.len() + 1, "bytes": bytes }))
    }

    /// The first pods; all of them for 0.
    pub fn first(&self, count: usize) -> Result<&[String], Failure> {
        let count = if count == 0 { self.paths.len() } else { count.min(self.paths.len()) };
        if count == 0 { Err("nothing is loaded".into()) } else { Ok(&self.paths[..count]) }
    }
}

/// The path of a pod by its text, which begins with the metadata.
fn path_in(text: &str) -> String {
    let value = |field: &str| {
        let after = text.split_once(field).map_or("", |(_, after)| after);
        after.split('"').next().unwrap_or_default()
    };
    let (name, namespace) = (value(r#""name":""#), value(r#""namespace":""#));
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

/// Creates nodes and writes their status, as kubelets do.
async fn nodes(server: &Server, pods: &Pods) -> Result<(), Failure> {
    let nodes = pods.nodes().map(|text| serde_json::from_str(&text)).collect::<Result<Vec<Value>, _>>()?;
    server.for_each(0..nodes.len(), |index| create_node(server, &nodes[index])).await
}

async fn create_node(server: &Server, node: &Value) -> Result<(), Failure> {
    server.post("/api/v1/nodes", node).await?;
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    let status = json!({ "status": node["status"] });
    server.merge_patch(&format!("/api/v1/nodes/{name}/status?fieldManager=kubelet"), &status).await.map(drop)
}

/// Creates a pod and writes its status, as a controller and a kubelet do.
async fn create(server: &Server, text: &str) -> Result<(), Failure> {
    let mut pod: Value = serde_json::from_str(text)?;
    let status = json!({ "status": pod["status"].take() });
    if let Some(pod) = pod.as_object_mut() {
        pod.remove("status");
    }
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        for field in ["uid", "creationTimestamp", "generation", "managedFields"] {
            metadata.remove(field);
        }
    }
    let path = path_in(text);
    let (collection, _) = path.rsplit_once('/').unwrap_or_default();
    server.post(&format!("{collection}?fieldManager=kube-controller-manager"), &pod).await?;
    server.merge_patch(&format!("{path}/status?fieldManager=kubelet"), &status).await?;
    Ok(())
}

/// Loads objects of a few more kinds: most are small, some Secrets and ConfigMaps are large.
pub async fn others(server: &Server, seed: u64, objects: usize) -> Result<Value, Failure> {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
    server.post("/api/v1/namespaces", &json!({ "metadata": { "name": "bench" } })).await?;
    let mut bodies = Vec::new();
    for index in 0..objects {
        let labels = json!({ "app": format!("app-{}", index % 7), "team": "platform" });
        let metadata = json!({ "name": format!("object-{index}"), "labels": labels });
        let selector = json!({ "app": format!("app-{index}") });
        let template = json!({ "metadata": { "labels": selector }, "spec": { "containers": [{ "name": "main", "image": "web:1" }] } });
        let workload = json!({ "metadata": metadata, "spec": { "replicas": 2, "selector": { "matchLabels": selector }, "template": template } });
        let few = index % 10 == 0;
        let secret = base64(&mut random, if few { 30_000 + 45_000 * (index % 100 / 10) } else { 300 });
        let text = text(&mut random, if few { 50_000 * (1 + index % 100 / 10) } else { 700 });
        let namespaced = [
            ("api/v1", "configmaps", json!({ "metadata": metadata, "data": { "settings.yaml": text } })),
            (
                "api/v1",
                "secrets",
                json!({ "metadata": metadata, "type": "helm.sh/release.v1", "data": { "release": secret } }),
            ),
            (
                "api/v1",
                "services",
                json!({ "metadata": metadata, "spec": { "selector": selector, "clusterIP": "None", "ports": [{ "port": 80 }] } }),
            ),
            ("api/v1", "serviceaccounts", json!({ "metadata": metadata })),
            ("apis/apps/v1", "deployments", workload.clone()),
            ("apis/apps/v1", "replicasets", workload),
        ];
        bodies.extend(
            namespaced.map(|(version, plural, body)| (format!("/{version}/namespaces/bench/{plural}"), body)),
        );
        let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"] }]);
        let role = json!({ "metadata": metadata, "rules": rules });
        bodies.push(("/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(), role));
    }
    server.for_each(0..bodies.len(), |index| server.post(&bodies[index].0, &bodies[index].1)).await?;
    Ok(json!({ "event": "filled", "objects": bodies.len() }))
}

/// Helm stores a release as gzip in base64, and a Secret encodes that in base64 once more.
pub fn base64(random: &mut fastrand::Rng, length: usize) -> String {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let chart = text(random, length);
    // Writing to memory cannot fail.
    let _ = gzip.write_all(chart.as_bytes());
    let inner = STANDARD.encode(gzip.finish().unwrap_or_default());
    STANDARD.encode(inner)
}

/// Lines of settings, of about this many bytes.
pub fn text(random: &mut fastrand::Rng, length: usize) -> String {
    let mut out = String::with_capacity(length + 64);
    while out.len() < length {
        let (key, value) = (random.u16(..), random.u64(..));
        out.push_str(&format!("setting-{key}:\n  value: {value:x}\n  enabled: true\n"));
    }
    out
}
