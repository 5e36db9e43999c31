//! Realistic objects in any number, from a seed.

use std::fmt::Write as _;

use serde_json::Value;

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
        let mut out = String::with_capacity(12 << 10);
        out.push_str(r#"{"kind":"Pod","apiVersion":"v1","metadata":"#);
        self.metadata(&mut out);
        out.push_str(r#","spec":"#);
        self.spec(&mut out);
        out.push_str(r#","status":"#);
        self.status(&mut out);
        out.push('}');
        out
    }

    fn metadata(&self, out: &mut String) {
        let Self { app, namespace, replica_set, name, uid, owner_uid, ip, .. } = self;
        let hash = &replica_set[app.len() + 1..];
        let created = self.time(0);
        put(
            out,
            format_args!(
                r#"{{"name":"{name}","generateName":"{replica_set}-","namespace":"{namespace}","uid":"{uid}","generation":1,"creationTimestamp":"{created}","labels":{{"app.kubernetes.io/component":"server","app.kubernetes.io/instance":"{app}-{namespace}","app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"{app}","app.kubernetes.io/part-of":"shop","app.kubernetes.io/version":"1.{}.0","helm.sh/chart":"{app}-4.2.{}","pod-template-hash":"{hash}"}},"annotations":{{"checksum/config":"{uid}{owner_uid}","cni.projectcalico.org/containerID":"{uid}{hash}","cni.projectcalico.org/podIP":"{ip}/32","prometheus.io/path":"/metrics","prometheus.io/port":"9102","prometheus.io/scrape":"true"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{replica_set}","uid":"{owner_uid}","controller":true,"blockOwnerDeletion":true}}],"managedFields":["#,
                self.day,
                self.day % 7,
            ),
        );
        self.managed_by_controller(out, &created);
        out.push(',');
        self.managed_by_kubelet(out);
        out.push_str("]}");
    }

    fn managed_by_controller(&self, out: &mut String, created: &str) {
        put(
            out,
            format_args!(
                r#"{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"{created}","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{".":{{}},"f:checksum/config":{{}},"f:prometheus.io/path":{{}},"f:prometheus.io/port":{{}},"f:prometheus.io/scrape":{{}}}},"f:generateName":{{}},"f:labels":{{".":{{}},"f:app.kubernetes.io/component":{{}},"f:app.kubernetes.io/instance":{{}},"f:app.kubernetes.io/managed-by":{{}},"f:app.kubernetes.io/name":{{}},"f:app.kubernetes.io/part-of":{{}},"f:app.kubernetes.io/version":{{}},"f:helm.sh/chart":{{}},"f:pod-template-hash":{{}}}},"f:ownerReferences":{{".":{{}},"k:{{\"uid\":\"{}\"}}":{{}}}}}},"f:spec":{{"f:containers":{{"#,
                self.owner_uid,
            ),
        );
        for (index, container) in self.containers.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            put(
                out,
                format_args!(
                    r#"{comma}"k:{{\"name\":\"{}\"}}":{{".":{{}},"f:env":{{".":{{}}"#,
                    container.name
                ),
            );
            for variable in 0..container.variables {
                put(
                    out,
                    format_args!(
                        r#","k:{{\"name\":\"{}\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}}"#,
                        variable_name(variable)
                    ),
                );
            }
            out.push_str(r#"},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:readinessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/etc/config\"}":{".":{},"f:mountPath":{},"f:name":{},"f:readOnly":{}}}}"#);
        }
        out.push_str(r#"},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:name":{}},"f:name":{}}}}}}"#);
    }

    fn managed_by_kubelet(&self, out: &mut String) {
        put(
            out,
            format_args!(
                r#"{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"{}","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:conditions":{{"#,
                self.time(9)
            ),
        );
        for (index, condition) in CONDITIONS.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            put(
                out,
                format_args!(
                    r#"{comma}"k:{{\"type\":\"{condition}\"}}":{{".":{{}},"f:lastProbeTime":{{}},"f:lastTransitionTime":{{}},"f:observedGeneration":{{}},"f:status":{{}},"f:type":{{}}}}"#
                ),
            );
        }
        put(
            out,
            format_args!(
                r#"}},"f:containerStatuses":{{}},"f:hostIP":{{}},"f:hostIPs":{{}},"f:observedGeneration":{{}},"f:phase":{{}},"f:podIP":{{}},"f:podIPs":{{".":{{}},"k:{{\"ip\":\"{}\"}}":{{".":{{}},"f:ip":{{}}}}}},"f:startTime":{{}}}}}},"subresource":"status"}}"#,
                self.ip
            ),
        );
    }

    fn spec(&self, out: &mut String) {
        out.push_str(r#"{"volumes":[{"name":"config","configMap":{"name":""#);
        put(
            out,
            format_args!(
                r#"{}-config","defaultMode":420}}}},{{"name":"kube-api-access-{}","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}},{{"downwardAPI":{{"items":[{{"path":"namespace","fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.namespace"}}}}]}}}}],"defaultMode":420}}}}],"containers":["#,
                self.app,
                &self.uid[..5],
            ),
        );
        for (index, container) in self.containers.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            self.container(out, container);
        }
        put(
            out,
            format_args!(
                r#"],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"{app}","serviceAccount":"{app}""#,
                app = self.app
            ),
        );
        if self.phase != Phase::Pending {
            put(out, format_args!(r#","nodeName":"node-{}.shop.internal""#, self.node));
        }
        out.push_str(r#","securityContext":{"runAsUser":1000,"runAsNonRoot":true,"fsGroup":1000},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}"#);
    }

    fn container(&self, out: &mut String, container: &Container) {
        put(
            out,
            format_args!(
                r#"{{"name":"{}","image":"{}","ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],"env":["#,
                container.name, container.image
            ),
        );
        for variable in 0..container.variables {
            let comma = if variable > 0 { "," } else { "" };
            put(
                out,
                format_args!(
                    r#"{comma}{{"name":"{}","value":"http://{}.{}.svc:{}"}}"#,
                    variable_name(variable),
                    APPS[(variable + self.node) % APPS.len()],
                    self.namespace,
                    8080 + variable,
                ),
            );
        }
        put(
            out,
            format_args!(
                r#"],"resources":{{"limits":{{"memory":"{}Mi"}},"requests":{{"cpu":"{}m","memory":"{}Mi"}}}},"volumeMounts":[{{"name":"config","readOnly":true,"mountPath":"/etc/config"}},{{"name":"kube-api-access-{}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"livenessProbe":{{"httpGet":{{"path":"/healthz","port":"http","scheme":"HTTP"}},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}},"readinessProbe":{{"httpGet":{{"path":"/ready","port":"http","scheme":"HTTP"}},"timeoutSeconds":1,"periodSeconds":5,"successThreshold":1,"failureThreshold":3}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}"#,
                container.memory * 2,
                container.cpu,
                container.memory,
                &self.uid[..5],
            ),
        );
    }

    fn status(&self, out: &mut String) {
        let (phase, ready) = match self.phase {
            Phase::Running => ("Running", "True"),
            Phase::Crashing => ("Running", "False"),
            Phase::Pending => ("Pending", "False"),
        };
        put(out, format_args!(r#"{{"observedGeneration":1,"phase":"{phase}","conditions":["#));
        if self.phase == Phase::Pending {
            put(
                out,
                format_args!(
                    r#"{{"type":"PodScheduled","observedGeneration":1,"status":"False","lastProbeTime":null,"lastTransitionTime":"{}","reason":"Unschedulable","message":"0/{NODES} nodes are available: {NODES} Insufficient memory."}}],"qosClass":"Burstable"}}"#,
                    self.time(0)
                ),
            );
            return;
        }
        for (index, condition) in CONDITIONS.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let status = if condition.ends_with("Ready") { ready } else { "True" };
            put(
                out,
                format_args!(
                    r#"{comma}{{"type":"{condition}","observedGeneration":1,"status":"{status}","lastProbeTime":null,"lastTransitionTime":"{}"}}"#,
                    self.time(2)
                ),
            );
        }
        let host = format!("192.168.{}.{}", self.node / 100, self.node % 100);
        put(
            out,
            format_args!(
                r#"],"hostIP":"{host}","hostIPs":[{{"ip":"{host}"}}],"podIP":"{ip}","podIPs":[{{"ip":"{ip}"}}],"startTime":"{}","containerStatuses":["#,
                self.time(1),
                ip = self.ip,
            ),
        );
        for (index, container) in self.containers.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            self.container_status(out, container);
        }
        out.push_str(r#"],"qosClass":"Burstable"}"#);
    }

    fn container_status(&self, out: &mut String, container: &Container) {
        let Container { name, image, id, .. } = container;
        let (state, ready, restarts) = match self.phase {
            Phase::Crashing => (
                format!(
                    r#"{{"waiting":{{"reason":"CrashLoopBackOff","message":"back-off 5m0s restarting failed container={name} pod={}_{}({})"}}}}"#,
                    self.name, self.namespace, self.uid
                ),
                false,
                self.restarts + 7,
            ),
            _ => (format!(r#"{{"running":{{"startedAt":"{}"}}}}"#, self.time(5)), true, self.restarts),
        };
        put(
            out,
            format_args!(
                r#"{{"name":"{name}","state":{state},"lastState":{{}},"ready":{ready},"restartCount":{restarts},"image":"{image}","imageID":"{image}@sha256:{id}","containerID":"containerd://{id}","started":{ready},"resources":{{"limits":{{"memory":"{}Mi"}},"requests":{{"cpu":"{}m","memory":"{}Mi"}}}}}}"#,
                container.memory * 2,
                container.cpu,
                container.memory,
            ),
        );
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
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
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
