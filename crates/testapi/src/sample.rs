//! Realistic objects in any number, from a seed, and what tests of controllers need besides.

use std::fmt::{Display, Write as _};

use serde_json::Value;

mod events;

pub use events::events;

const APPS: &[&str] = &[
    "cart",
    "checkout",
    "catalog",
    "payment",
    "shipping",
    "search",
    "reviews",
    "frontend",
    "gateway",
    "ledger",
    "inventory",
    "mailer",
];
const NODES: usize = 200;

// Parts of a pod, in the order of fields in which servers write them.
const POD: &str = include_str!("sample/pod.txt");
const MANAGED_CONTAINER: &str = include_str!("sample/managed_container.txt");
const MANAGED_VARIABLE: &str = include_str!("sample/managed_variable.txt");
const MANAGED_CONDITION: &str = include_str!("sample/managed_condition.txt");
const NODE_NAME: &str = include_str!("sample/node_name.txt");
const CONTAINER: &str = include_str!("sample/container.txt");
const VARIABLE: &str = include_str!("sample/variable.txt");
const STATUS: &str = include_str!("sample/status.txt");
const PENDING: &str = include_str!("sample/pending.txt");
const CONDITION: &str = include_str!("sample/condition.txt");
const WAITING: &str = include_str!("sample/waiting.txt");
const RUNNING: &str = include_str!("sample/running.txt");
const CONTAINER_STATUS: &str = include_str!("sample/container_status.txt");

/// Realistic pods, about 9 KB of JSON each (from 5 to 16), with managedFields: in `namespaces` namespaces named
/// `shop-0`, `shop-1` ...
///
/// The same seed gives the same pods. Nine tenths of the time go into the JSON tree of each; [`pod_text`] builds none,
/// nor does the server with [`load_text`](crate::Api::load_text).
///
/// ```
/// let pods: Vec<_> = testapi::sample::pods(7, 3, 2).collect();
/// assert_eq!(pods.len(), 3);
/// assert_eq!(pods[1]["kind"], "Pod");
/// assert_eq!(pods[2]["metadata"]["namespace"], "shop-0");
/// assert!(pods[0].to_string().len() > 4_000);
/// ```
pub fn pods(seed: u64, count: usize, namespaces: usize) -> impl Iterator<Item = Value> {
    // The text is valid JSON, which a test shows.
    (0..count).map(move |index| serde_json::from_str(&pod_text(seed, index, namespaces)).unwrap_or_default())
}

/// One of the [`pods`] as JSON text, in the order of fields in which servers write them.
pub fn pod_text(seed: u64, index: usize, namespaces: usize) -> String {
    let mut random = fastrand::Rng::with_seed(seed ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Sample::new(&mut random, index, namespaces).json()
}

/// The random values of one pod.
struct Sample {
    app: &'static str,
    namespace: String,
    replica_set: String,
    name: String,
    uid: String,
    owner_uid: String,
    node: usize,
    ip: String,
    containers: Vec<Container>,
    /// The day in November.
    day: u32,
    phase: Phase,
    restarts: u32,
}

struct Container {
    name: String,
    image: String,
    id: String,
    variables: usize,
    cpu: u32,
    memory: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Pending,
    Crashing,
}

impl Sample {
    fn new(random: &mut fastrand::Rng, index: usize, namespaces: usize) -> Self {
        let app = APPS[random.usize(..APPS.len())];
        let replica_set = format!("{app}-{}", letters(random, 10));
        let name = format!("{replica_set}-{}{}", letters(random, 3), base36(index));
        let count = if random.u32(..4) == 0 { 2 + random.usize(..2) } else { 1 };
        let containers = (0..count).map(|at| Container::new(random, app, at)).collect();
        Self {
            app,
            namespace: format!("shop-{}", index % namespaces.max(1)),
            replica_set,
            name,
            uid: uid(random),
            owner_uid: uid(random),
            node: random.usize(..NODES),
            ip: format!("10.{}.{}.{}", random.u8(..), random.u8(..), random.u8(1..)),
            containers,
            day: random.u32(1..=20),
            phase: match random.u32(..40) {
                0 => Phase::Pending,
                1 => Phase::Crashing,
                _ => Phase::Running,
            },
            restarts: random.u32(..4).saturating_sub(2),
        }
    }

    fn time(&self, second: u32) -> String {
        format!("2026-11-{:02}T09:{:02}:{:02}Z", self.day, second / 60, second % 60)
    }

    fn json(&self) -> String {
        let Self { app, namespace, replica_set, name, uid, owner_uid, ip, .. } = self;
        let managed = self.containers.iter().map(|container| {
            let of = |at| fill(MANAGED_VARIABLE, &[("name", &variable_name(at))]);
            let variables: String = (0..container.variables).map(of).collect();
            fill(MANAGED_CONTAINER, &[("name", &container.name), ("variables", &variables)])
        });
        let node_name = match self.phase {
            Phase::Pending => String::new(),
            _ => fill(NODE_NAME, &[("node", &self.node)]),
        };
        fill(
            POD,
            &[
                ("app", app),
                ("namespace", namespace),
                ("replica_set", replica_set),
                ("hash", &&replica_set[app.len() + 1..]),
                ("name", name),
                ("uid", uid),
                ("short_uid", &&uid[..5]),
                ("owner_uid", owner_uid),
                ("ip", ip),
                ("day", &self.day),
                ("week_day", &(self.day % 7)),
                ("t0", &self.time(0)),
                ("t9", &self.time(9)),
                ("managed_containers", &joined(managed)),
                (
                    "managed_conditions",
                    &joined(CONDITIONS.map(|name| fill(MANAGED_CONDITION, &[("type", &name)]))),
                ),
                ("containers", &joined(self.containers.iter().map(|container| self.container(container)))),
                ("node_name", &node_name),
                ("status", &self.status()),
            ],
        )
    }

    fn container(&self, container: &Container) -> String {
        let variables = (0..container.variables).map(|at| {
            let app = APPS[(at + self.node) % APPS.len()];
            let (name, port) = (variable_name(at), 8080 + at);
            fill(VARIABLE, &[("name", &name), ("app", &app), ("namespace", &self.namespace), ("port", &port)])
        });
        let (variables, uid) = (joined(variables), &self.uid[..5]);
        container.fill(CONTAINER, &[("variables", &variables), ("short_uid", &uid)])
    }

    fn status(&self) -> String {
        if self.phase == Phase::Pending {
            return fill(PENDING, &[("t0", &self.time(0))]);
        }
        let conditions = CONDITIONS.map(|name| {
            let is_false = self.phase == Phase::Crashing && name.ends_with("Ready");
            let status = if is_false { "False" } else { "True" };
            fill(CONDITION, &[("type", &name), ("status", &status), ("t2", &self.time(2))])
        });
        let host = format!("192.168.{}.{}", self.node / 100, self.node % 100);
        let statuses = self.containers.iter().map(|container| self.container_status(container));
        fill(
            STATUS,
            &[
                ("conditions", &joined(conditions)),
                ("host", &host),
                ("ip", &self.ip),
                ("t1", &self.time(1)),
                ("statuses", &joined(statuses)),
            ],
        )
    }

    fn container_status(&self, container: &Container) -> String {
        let Self { name: pod, namespace, uid, .. } = self;
        let (state, ready, restarts) = match self.phase {
            Phase::Crashing => {
                let values: Values<'_> =
                    &[("name", &container.name), ("pod", pod), ("namespace", namespace), ("uid", uid)];
                (fill(WAITING, values), false, self.restarts + 7)
            }
            _ => (fill(RUNNING, &[("t5", &self.time(5))]), true, self.restarts),
        };
        container.fill(CONTAINER_STATUS, &[("state", &state), ("ready", &ready), ("restarts", &restarts)])
    }
}

const CONDITIONS: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

impl Container {
    fn new(random: &mut fastrand::Rng, app: &str, index: usize) -> Self {
        let name = match index {
            0 => app.to_owned(),
            1 => "proxy".to_owned(),
            _ => format!("sidecar-{index}"),
        };
        Self {
            image: format!("registry.shop.internal/{name}:1.{}.{}", random.u32(..30), random.u32(..10)),
            id: format!("{:032x}{:032x}", random.u128(..), random.u128(..)),
            variables: 2 + random.usize(..10),
            cpu: 50 * random.u32(1..=10),
            memory: 64 * random.u32(1..=16),
            name,
        }
    }

    fn fill(&self, template: &str, values: Values<'_>) -> String {
        let Self { name, image, id, cpu, memory, .. } = self;
        let limit = memory * 2;
        let own: Values<'_> = &[
            ("name", name),
            ("image", image),
            ("id", id),
            ("cpu", cpu),
            ("memory", memory),
            ("limit", &limit),
        ];
        fill(template, &[own, values].concat())
    }
}

type Values<'a> = &'a [(&'a str, &'a dyn Display)];

/// A template with its `${names}` replaced.
fn fill(template: &str, values: Values<'_>) -> String {
    let mut parts = template.trim_end().split("${");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        let value = values.iter().find(|(other, _)| *other == name);
        debug_assert!(value.is_some(), "no value for {name}");
        // Writing to a string cannot fail.
        let _ = value.map(|(_, value)| write!(text, "{value}"));
        text.push_str(rest);
    }
    text
}

fn joined(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join(",")
}

fn variable_name(index: usize) -> String {
    format!("{}_SERVICE_URL_{index}", APPS[index % APPS.len()].to_uppercase())
}

fn letters(random: &mut fastrand::Rng, count: usize) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    (0..count).map(|_| char::from(LETTERS[random.usize(..LETTERS.len())])).collect()
}

/// Numbers in base 36, which make names unique.
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

    use super::*;

    #[test]
    fn each_pod_is_json_and_has_a_name_of_its_own() {
        let mut names = BTreeSet::new();
        for seed in 0..3 {
            names.clear();
            for (index, pod) in pods(seed, 1_000, 7).enumerate() {
                assert_eq!(pod["kind"], "Pod", "seed {seed}, pod {index}: {}", pod_text(seed, index, 7));
                assert_eq!(pod["metadata"]["managedFields"].as_array().map(Vec::len), Some(2), "seed {seed}");
                let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
                assert!(name.len() <= 63, "seed {seed}: {name}");
                assert!(names.insert(name), "seed {seed}, pod {index}");
            }
        }
    }

    #[test]
    fn pods_are_about_9_kb() {
        for seed in 0..3 {
            let sizes: Vec<_> = (0..2_000).map(|index| pod_text(seed, index, 3).len()).collect();
            let mean = sizes.iter().sum::<usize>() / sizes.len();
            assert!((8_000..10_000).contains(&mean), "seed {seed}: {mean}");
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(*least < 8_000 && *most > 12_000, "seed {seed}: {least} to {most}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_pods() {
        assert_eq!(pod_text(5, 9, 2), pod_text(5, 9, 2));
        assert_ne!(pod_text(5, 9, 2), pod_text(6, 9, 2));
    }
}
