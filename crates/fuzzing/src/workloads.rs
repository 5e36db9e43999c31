//! Realistic pods, for tests that depend on how objects resemble each other: a few dozen workloads of different shape,
//! and many pods of each.

use std::fmt::Write as _;

use fastrand::Rng;

const WORKLOADS: u64 = 40;

/// Pods of one cluster, from a seed.
#[derive(Debug)]
pub struct Pods {
    workloads: Vec<Workload>,
    seed: u64,
}

/// The common parts of the pods of one deployment.
#[derive(Debug)]
struct Workload {
    name: String,
    namespace: String,
    owner: String,
    spec: String,
    managed: String,
}

impl Pods {
    /// The cluster of this seed.
    pub fn new(seed: u64) -> Self {
        Self { workloads: (0..WORKLOADS).map(|number| Workload::new(seed, number)).collect(), seed }
    }

    /// One pod, 5 to 14 KB of JSON without `kind` and `apiVersion`, as lists have it. Pods of one workload follow each other.
    pub fn json(&self, index: usize, of: usize, version: u64) -> String {
        let workload = &self.workloads[index * self.workloads.len() / of.max(1)];
        let mut random = Rng::with_seed(self.seed ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let Workload { name, namespace, owner, spec, managed } = workload;
        let (uid, digest, day) = (uid(&mut random), digest(&mut random), random.u8(1..28));
        let [high, low, node] = [random.u8(..), random.u8(1..), random.u8(..)];
        let restarts = version % 7;
        format!(
            r#"{{"metadata":{{"name":"{name}-{index:05x}","generateName":"{name}-","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}","creationTimestamp":"2026-11-{day:02}T09:00:{node:02}Z","labels":{{"app.kubernetes.io/instance":"{name}","app.kubernetes.io/name":"{name}","app.kubernetes.io/managed-by":"Helm","pod-template-hash":"{}"}},"annotations":{{"checksum/config":"{owner}{owner}","cni/containerID":"{digest}","cni/podIP":"10.4.{high}.{low}/32"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{name}","uid":"{owner}","controller":true,"blockOwnerDeletion":true}}],"managedFields":[{managed}]}},"spec":{{"nodeName":"node-{node}.zone.internal",{spec}}},"status":{{"phase":"Running","hostIP":"192.168.7.{node}","podIP":"10.4.{high}.{low}","startTime":"2026-11-{day:02}T09:00:{node:02}Z","containerStatuses":[{{"name":"main","ready":true,"restartCount":{restarts},"containerID":"containerd://{digest}"}}]}}}}"#,
            &owner[..8],
        )
    }
}

impl Workload {
    fn new(seed: u64, number: u64) -> Self {
        let random = &mut Rng::with_seed(seed.wrapping_mul(7_919).wrapping_add(number));
        let name = format!("{}-{}", word(random), word(random));
        let (mut spec, mut managed) = (r#""containers":["#.to_owned(), String::new());
        for container in 0..random.usize(1..4) {
            let comma = if container > 0 { "," } else { "" };
            let image = format!(
                "registry.internal/{}/{}:{}.{}",
                word(random),
                word(random),
                random.u8(..),
                random.u8(..)
            );
            let _ = write!(spec, r#"{comma}{{"name":"container-{container}","image":"{image}","env":["#);
            let _ = write!(
                managed,
                r#"{comma}{{"manager":"{}","operation":"Update","fieldsV1":{{"f:env":{{"#,
                word(random)
            );
            for variable in 0..random.usize(4..24) {
                let comma = if variable > 0 { "," } else { "" };
                let setting = format!("{}_{}", word(random), word(random)).to_uppercase();
                let _ = write!(
                    spec,
                    r#"{comma}{{"name":"{setting}","value":"{}.{}.svc.cluster.local:{}"}}"#,
                    word(random),
                    word(random),
                    random.u16(..)
                );
                let _ = write!(
                    managed,
                    r#"{comma}"k:{{\"name\":\"{setting}\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}}"#
                );
            }
            managed.push_str("}}}");
            let _ = write!(
                spec,
                r#"],"resources":{{"limits":{{"memory":"{}Mi"}},"requests":{{"cpu":"{}m"}}}},"livenessProbe":{{"httpGet":{{"path":"/healthz","port":8080,"scheme":"HTTP"}},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}"#,
                random.u16(..),
                random.u16(..),
            );
        }
        spec.push_str(r#"],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority""#);
        Self { namespace: format!("team-{}", number % 20), owner: uid(random), name, spec, managed }
    }
}

fn word(random: &mut Rng) -> String {
    (0..random.usize(4..10)).map(|_| random.lowercase()).collect()
}

fn uid(random: &mut Rng) -> String {
    let hex = format!("{:032x}", random.u128(..));
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

fn digest(random: &mut Rng) -> String {
    format!("{:032x}{:032x}", random.u128(..), random.u128(..))
}
