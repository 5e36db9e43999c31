//! Realistic pods, from a seed: a few dozen workloads of different shape, with many pods each.
//!
//! A workload is drawn once and becomes a text with holes; a pod fills them. As in a real cluster, pods of one workload
//! share most of their text and differ in uids, digests, addresses and times. Both decide how well objects compress.

mod managed;
mod node;
mod spec;
mod status;
mod template;

use std::fmt::Write as _;

pub use node::name as node_name;
use template::{Hole, Template};

/// The number of workloads.
const WORKLOADS: usize = 40;
/// The number of namespaces: `shop-0` and so on.
pub const NAMESPACES: usize = 20;
/// Nodes per thousand pods, so that a node has about 30.
const NODES_PER_THOUSAND: usize = 33;

/// All pods of a cluster.
pub struct Pods {
    seed: u64,
    nodes: usize,
    /// The number of pods in a ReplicaSet; 0 if each workload is one.
    per_set: usize,
    workloads: Vec<Workload>,
}

impl Pods {
    /// The pods of a cluster of about this size.
    pub fn new(seed: u64, count: usize) -> Self {
        let workloads = (0..WORKLOADS).map(|index| Workload::new(seed, index)).collect();
        Self { seed, nodes: (count * NODES_PER_THOUSAND / 1_000).max(3), per_set: 0, workloads }
    }

    /// The same in ReplicaSets of this size: consecutive pods have the same owner.
    pub fn in_sets(self, per_set: usize) -> Self {
        Self { per_set, ..self }
    }

    /// One pod as JSON, with everything that a server and a kubelet fill in: about 9 KB.
    pub fn json(&self, index: usize) -> String {
        let mut random = self.random(index);
        let set = index.checked_div(self.per_set);
        // A few workloads have most of the pods.
        let drawn = set.map_or_else(|| random.f64(), |set| self.random(set).f64());
        let workload = &self.workloads[((WORKLOADS as f64 * drawn.powi(2)) as usize).min(WORKLOADS - 1)];
        let pod = workload.pod(&mut random, index, self.nodes);
        match set {
            Some(set) => pod.replace(&workload.owner_uid, &uid(&mut self.random(set))),
            None => pod,
        }
    }

    /// The nodes of these pods as JSON, about 9 KB each.
    pub fn nodes(&self) -> impl Iterator<Item = String> {
        (0..self.nodes).map(|index| node::node(&mut self.random(index), index))
    }

    fn random(&self, index: usize) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// The template and the owner that the pods of one Deployment share.
struct Workload {
    template: Template,
    owner_uid: String,
}

impl Workload {
    fn new(seed: u64, index: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_add(index as u64 * 7_919));
        let draw = Draw::new(&mut random, index);
        Self { template: Template::new(&pod(&draw)), owner_uid: draw.owner_uid }
    }

    fn pod(&self, random: &mut fastrand::Rng, index: usize, nodes: usize) -> String {
        let node = random.usize(..nodes);
        let suffix = letters(random, 2) + &base36(index);
        let day = random.u32(1..=20);
        let minute = random.u32(..1_440);
        let [high, low] = [random.u8(..), random.u8(1..)];
        let mut out = String::new();
        self.template.fill(&mut out, |hole, out| {
            // Writing to a string cannot fail.
            let _ = match hole {
                Hole::Suffix => write!(out, "{suffix}"),
                Hole::Uid => write!(out, "{}", uid(random)),
                Hole::Node => write!(out, "{}", node::name(node)),
                Hole::HostIp => write!(out, "{}", node::address(node)),
                Hole::PodIp => write!(out, "10.{}.{high}.{low}", 64 + index / 65_536 % 64),
                Hole::Digest => write!(out, "{:032x}{:032x}", random.u128(..), random.u128(..)),
                Hole::Time(later) => {
                    let minute = (minute + u32::from(later) / 60) % 1_440;
                    write!(out, "2026-11-{day:02}T{:02}:{:02}:{:02}Z", minute / 60, minute % 60, later % 60)
                }
                Hole::Restarts => write!(out, "{}", random.u32(..6).saturating_sub(4) * random.u32(1..30)),
            };
        });
        out
    }
}

/// The random choices for a workload.
struct Draw {
    app: String,
    namespace: String,
    hash: String,
    owner_uid: String,
    version: String,
    team: &'static str,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    config_maps: usize,
    secrets: usize,
    empty_dirs: usize,
    claim: bool,
    affinity: bool,
    spread: bool,
    node_selector: bool,
    tolerations: usize,
    scraped: bool,
    injected: bool,
    helm: bool,
}

struct Container {
    name: String,
    image: String,
    variables: Vec<Variable>,
    ports: usize,
    probes: usize,
    probe: usize,
    mounts: usize,
    cpu: u32,
    memory: u32,
    arguments: usize,
    hardened: bool,
}

enum Variable {
    Value(String, String),
    Secret(String, String),
    Field(String, &'static str),
}

const APPS: [&str; 10] = [
    "cart", "checkout", "catalog", "payment", "shipping", "search", "reviews", "ledger", "mailer", "gateway",
];
const ROLES: [&str; 4] = ["api", "worker", "web", "consumer"];
const TEAMS: [&str; 5] = ["storefront", "fulfilment", "payments", "platform", "data"];
const SIDECARS: [&str; 4] = ["istio-proxy", "log-shipper", "otel-collector", "cloud-sql-proxy"];
const SETTINGS: [&str; 12] = [
    "LOG_LEVEL",
    "DATABASE_URL",
    "REDIS_ADDRESS",
    "FEATURE_FLAGS",
    "HTTP_TIMEOUT_MS",
    "KAFKA_BROKERS",
    "REGION",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "MAX_CONNECTIONS",
    "CACHE_TTL_SECONDS",
    "PUBLIC_BASE_URL",
    "QUEUE_NAME",
];

impl Draw {
    fn new(random: &mut fastrand::Rng, index: usize) -> Self {
        let app = format!("{}-{}", APPS[index % APPS.len()], ROLES[index / APPS.len() % ROLES.len()]);
        let sidecars = [0, 0, 0, 0, 0, 0, 0, 0, 1, 3][random.usize(..10)];
        let injected = sidecars > 0 && random.bool();
        let mut containers = vec![Container::new(random, &app, 3)];
        for sidecar in SIDECARS.iter().take(sidecars) {
            containers.push(Container::new(random, sidecar, 2));
        }
        let mut init_containers = Vec::new();
        if random.u8(..6) == 0 {
            // Only containers that keep running have probes.
            init_containers.push(Container { probes: 0, ..Container::new(random, "migrate", 2) });
        }
        Self {
            namespace: format!("shop-{}", index % NAMESPACES),
            hash: letters(random, 10),
            owner_uid: uid(random),
            version: format!("{}.{}.{}", random.u8(1..9), random.u8(..40), random.u8(..12)),
            team: TEAMS[random.usize(..TEAMS.len())],
            containers,
            init_containers,
            config_maps: random.usize(..3),
            secrets: random.usize(..3),
            empty_dirs: random.usize(..3),
            claim: random.u8(..6) == 0,
            affinity: random.u8(..3) == 0,
            spread: random.u8(..4) == 0,
            node_selector: random.u8(..4) == 0,
            tolerations: random.usize(..2),
            scraped: random.bool(),
            injected,
            helm: random.bool(),
            app,
        }
    }
}

impl Container {
    fn new(random: &mut fastrand::Rng, name: &str, most: usize) -> Self {
        let first = random.usize(..SETTINGS.len());
        let count = 1 + random.usize(..most * 2);
        let variables = (0..count.min(SETTINGS.len())).map(|at| {
            let setting = SETTINGS[(first + at) % SETTINGS.len()].to_owned();
            match random.u8(..8) {
                0 => Variable::Secret(setting, format!("{name}-credentials")),
                1 => Variable::Field(
                    setting,
                    ["metadata.name", "status.podIP", "spec.nodeName"][random.usize(..3)],
                ),
                _ => {
                    let value =
                        format!("{}.{}.svc.cluster.local:{}", name, letters(random, 6), random.u16(1024..));
                    Variable::Value(setting, value)
                }
            }
        });
        Self {
            variables: variables.collect(),
            image: format!(
                "registry.internal/shop/{name}:{}.{}.{}",
                random.u8(1..9),
                random.u8(..40),
                random.u8(..9)
            ),
            ports: random.usize(..2),
            probes: random.usize(..3),
            probe: random.usize(..3),
            mounts: random.usize(..3),
            cpu: 50 * random.u32(1..20),
            memory: 64 * random.u32(1..32),
            arguments: random.usize(..5),
            hardened: random.bool(),
            name: name.to_owned(),
        }
    }
}

/// The text of a pod, with holes.
fn pod(draw: &Draw) -> String {
    let labels = labels(draw);
    let annotations = annotations(draw);
    let spec = spec::spec(draw);
    let status = status::status(draw);
    let Draw { app, namespace, hash, owner_uid, .. } = draw;
    let managed = managed::managed_fields(draw, &labels, &annotations, &spec, &status);
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{app}-{hash}-{suffix}","generateName":"{app}-{hash}-","namespace":"{namespace}","uid":"{uid}","generation":1,"creationTimestamp":"{created}","labels":{labels},"annotations":{annotations},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{app}-{hash}","uid":"{owner_uid}","controller":true,"blockOwnerDeletion":true}}],"managedFields":{managed}}},"spec":{spec},"status":{status}}}"#,
        suffix = Hole::Suffix,
        uid = Hole::Uid,
        created = Hole::Time(0),
    )
}

fn labels(draw: &Draw) -> String {
    let Draw { app, hash, version, team, .. } = draw;
    let mut out = format!(r#"{{"app.kubernetes.io/instance":"{app}","app.kubernetes.io/name":"{app}""#);
    if draw.helm {
        put(
            &mut out,
            format_args!(
                r#","app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/version":"{version}","helm.sh/chart":"{app}-{version}""#
            ),
        );
    }
    if draw.injected {
        put(
            &mut out,
            format_args!(
                r#","security.istio.io/tlsMode":"istio","service.istio.io/canonical-name":"{app}","service.istio.io/canonical-revision":"{version}""#
            ),
        );
    }
    put(&mut out, format_args!(r#","pod-template-hash":"{hash}","team":"{team}"}}"#));
    out
}

fn annotations(draw: &Draw) -> String {
    let ip = Hole::PodIp;
    let id = Hole::Digest;
    let checksum = format!("{:0>64}", draw.owner_uid.replace('-', ""));
    let mut out = format!(
        r#"{{"checksum/config":"{checksum}","cni.projectcalico.org/containerID":"{id}","cni.projectcalico.org/podIP":"{ip}/32","cni.projectcalico.org/podIPs":"{ip}/32""#
    );
    if draw.scraped {
        out.push_str(
            r#","prometheus.io/path":"/metrics","prometheus.io/port":"9102","prometheus.io/scrape":"true""#,
        );
    }
    if draw.injected {
        out.push_str(r#","istio.io/rev":"default","sidecar.istio.io/status":"{\"initContainers\":[\"istio-init\"],\"containers\":[\"istio-proxy\"],\"volumes\":[\"istio-envoy\",\"istio-data\",\"istio-podinfo\"],\"imagePullSecrets\":null,\"revision\":\"default\"}""#);
    }
    out.push('}');
    out
}

/// Writing to a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

fn letters(random: &mut fastrand::Rng, count: usize) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    (0..count).map(|_| char::from(LETTERS[random.usize(..LETTERS.len())])).collect()
}

/// Makes names different however many there are.
fn base36(mut number: usize) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[number % 36]));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

fn uid(random: &mut fastrand::Rng) -> String {
    let hex = format!("{:032x}", random.u128(..));
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn pods_are_json_of_about_9_kb_and_differ_in_size_and_name() {
        for seed in 0..3 {
            let pods = Pods::new(seed, 4_000);
            let texts: Vec<String> = (0..4_000).map(|index| pods.json(index)).collect();
            let mut names = BTreeSet::new();
            for text in &texts {
                let pod: Value = serde_json::from_str(text).unwrap();
                assert_eq!(pod["metadata"]["managedFields"].as_array().map(Vec::len), Some(2), "seed {seed}");
                let name = pod["metadata"]["name"].as_str().unwrap();
                assert!(name.len() <= 63 && names.insert(name.to_owned()), "seed {seed}: {name}");
            }
            let mean = texts.iter().map(String::len).sum::<usize>() / texts.len();
            let (least, most) = (texts.iter().map(String::len).min(), texts.iter().map(String::len).max());
            assert!((8_000..11_000).contains(&mean), "seed {seed}: {mean}, {least:?} to {most:?}");
            assert!(least < Some(8_000) && most > Some(14_000), "seed {seed}: {least:?} to {most:?}");
        }
    }

    #[test]
    fn pods_of_a_set_have_an_owner_and_a_namespace_in_common_and_are_on_nodes_that_there_are() {
        let pods = Pods::new(1, 1_000).in_sets(10);
        let nodes: BTreeSet<String> = pods
            .nodes()
            .map(|text| {
                serde_json::from_str::<Value>(&text).unwrap()["metadata"]["name"].as_str().unwrap().into()
            })
            .collect();
        let owners: Vec<(Value, Value)> = (0..1_000)
            .map(|index| serde_json::from_str::<Value>(&pods.json(index)).unwrap())
            .inspect(|pod| assert!(nodes.contains(pod["spec"]["nodeName"].as_str().unwrap())))
            .map(|pod| {
                (pod["metadata"]["namespace"].clone(), pod["metadata"]["ownerReferences"][0]["uid"].clone())
            })
            .collect();
        assert!(owners.chunks(10).all(|set| set.iter().all(|owner| *owner == set[0])));
        assert_eq!(owners.iter().map(|(_, uid)| uid.to_string()).collect::<BTreeSet<_>>().len(), 100);
    }

    #[test]
    fn the_same_seed_gives_the_same_pods() {
        assert_eq!(Pods::new(1, 100).json(5), Pods::new(1, 100).json(5));
        assert_ne!(Pods::new(1, 100).json(5), Pods::new(2, 100).json(5));
    }
}
