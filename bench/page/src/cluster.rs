//! A cluster of workloads in which something happens all the time: the same for the same seed.

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::shape::{self, Plain, Pod, Set, Stage, Workload, Write};

/// The time of the whole history.
const DAYS: i64 = 30;
const NAMESPACES: u16 = 500;
/// Custom kinds.
const KINDS: u8 = 56;
/// Pods of a workload, in the mean.
const REPLICAS: usize = 4;
/// The workload whose rollouts are long stories.
pub(crate) const LARGE: usize = 0;
const LARGE_REPLICAS: u16 = 100;
/// A history of fewer changes has that rollout at once: it may have no other.
const SHORT: usize = 100_000;
/// The ConfigMap with many versions.
pub(crate) const OFTEN: usize = 0;
const VERSIONS: usize = 1_000;

pub(crate) const ARGO: &str = "argocd-controller";
const CONTROLLER: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";
const KUBELET: &str = "kubelet";
const EDIT: &str = "kubectl-edit";
const OPERATOR: &str = "operator";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    /// It was there before.
    Known,
    Added,
    Updated,
    Deleted,
}

/// A change as a naive filter sees it.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) verb: Verb,
    /// The place in [`kinds`].
    pub(crate) kind: u8,
    pub(crate) namespace: u16,
    /// Empty for a deletion: nobody has signed it.
    pub(crate) manager: &'static str,
    /// The number in the name of a workload or plain object.
    pub(crate) number: u32,
    /// Its time, in seconds since 1970.
    pub(crate) second: i64,
}

/// A change of an object, whose states are made where they are wanted.
pub(crate) struct Change<'a> {
    pub(crate) row: Row,
    pub(crate) at: Timestamp,
    pub(crate) states: &'a dyn Fn() -> [Option<Value>; 2],
}

/// The kinds by their plurals.
pub(crate) fn kinds() -> Vec<String> {
    let names = ["pods", "deployments.apps", "replicasets.apps", "configmaps"].map(str::to_owned);
    let custom = (1..=KINDS).map(|kind| format!("thing{kind}s.kind{kind}.example.com"));
    names.into_iter().chain(custom).collect()
}

const POD: u8 = 0;
const DEPLOYMENT: u8 = 1;
const REPLICA_SET: u8 = 2;
const CONFIG: u8 = 3;

pub(crate) struct Cluster<F> {
    random: Rng,
    now: Timestamp,
    pause: SignedDuration,
    version: u64,
    /// The manager of the last write.
    author: &'static str,
    serial: u64,
    workloads: Vec<(Workload, Set, Vec<Pod>)>,
    plain: Vec<Plain>,
    left: usize,
    tell: F,
}

impl<F: FnMut(&Change<'_>)> Cluster<F> {
    /// Plays so many changes in a cluster of so many objects, and tells each of them.
    pub(crate) fn play(objects: usize, changes: usize, seed: u64, tell: F) {
        let spread =
            SignedDuration::from_hours(24 * DAYS) / i32::try_from(changes).unwrap_or(i32::MAX).max(1);
        let mut cluster = Self {
            random: Rng::with_seed(seed),
            now: "2026-10-01T00:00:00Z".parse().unwrap_or_default(),
            pause: spread,
            version: 1_000,
            author: "",
            serial: 1,
            workloads: Vec::new(),
            plain: Vec::new(),
            left: changes,
            tell,
        };
        cluster.begin(objects);
        for _ in 0..VERSIONS.min(changes / 10) {
            cluster.edits(OFTEN);
        }
        if changes < SHORT {
            cluster.rolls_out(LARGE);
        }
        while cluster.left > 0 {
            cluster.step();
        }
    }

    fn begin(&mut self, objects: usize) {
        let plain = objects / 10;
        let workloads = (objects - plain) / (REPLICAS + 2);
        for number in 0..workloads {
            let replicas = self.random.u16(1..2 * REPLICAS as u16);
            let replicas = if number == LARGE { LARGE_REPLICAS } else { replicas };
            let write = self.write(CONTROLLER);
            let workload = Workload {
                namespace: self.namespace(),
                number: number as u32,
                replicas,
                revision: 1,
                is_reported: true,
                write,
            };
            let set = Set { revision: 1, replicas, write };
            let pods: Vec<Pod> = (0..replicas).map(|_| self.new_pod(1, Stage::Running)).collect();
            self.told(Verb::Known, DEPLOYMENT, &workload, None, Some(&shape::deployment));
            self.told(Verb::Known, REPLICA_SET, &workload, None, Some(&|it| shape::replica_set(it, &set)));
            for pod in &pods {
                self.told(Verb::Known, POD, &workload, None, Some(&|it| shape::pod(it, pod)));
            }
            self.workloads.push((workload, set, pods));
        }
        for number in 0..plain {
            let kind = if number % 2 == 0 { 0 } else { self.random.u8(1..=KINDS) };
            let write = self.write(OPERATOR);
            let namespace = self.namespace();
            let plain = Plain { namespace, kind, number: number as u32, content: 0, write };
            self.tell_plain(Verb::Known, None, &plain);
            self.plain.push(plain);
        }
    }

    /// A few namespaces have most objects.
    fn namespace(&mut self) -> u16 {
        let part = self.random.f64();
        (f64::from(NAMESPACES) * part * part * part) as u16
    }

    fn write(&mut self, manager: &'static str) -> Write {
        self.version += 1;
        self.author = manager;
        Write { version: self.version, manager, at: self.now }
    }

    fn new_pod(&mut self, revision: u32, stage: Stage) -> Pod {
        self.serial += 1;
        let write = self.write(if stage == Stage::Pending { CONTROLLER } else { KUBELET });
        Pod { serial: self.serial, revision, stage, restarts: 0, write }
    }

    fn step(&mut self) {
        let at = self.random.usize(..self.workloads.len());
        match self.random.u32(..1_000) {
            0 => self.rolls_out(LARGE),
            1..400 => self.rolls_out(at),
            400..700 => self.crashes(at),
            _ => {
                let at = self.random.usize(..self.plain.len());
                self.edits(at);
            }
        }
    }

    /// A new image: a new set, whose pods replace the others.
    fn rolls_out(&mut self, at: usize) {
        let (mut workload, mut old, mut pods) = self.workloads[at].clone();
        self.patches(&mut workload, ARGO, |it| {
            it.revision += 1;
            it.is_reported = false;
        });
        let revision = workload.revision;
        let set = Set { revision, replicas: workload.replicas, write: self.write(CONTROLLER) };
        self.told(Verb::Added, REPLICA_SET, &workload, None, Some(&|it| shape::replica_set(it, &set)));
        for place in &mut pods {
            let mut pod = self.new_pod(revision, Stage::Pending);
            self.told(Verb::Added, POD, &workload, None, Some(&|it| shape::pod(it, &pod)));
            self.pod(&workload, &mut pod, SCHEDULER, Stage::Scheduled);
            self.pod(&workload, &mut pod, KUBELET, Stage::Running);
            let mut gone = std::mem::replace(place, pod);
            self.pod(&workload, &mut gone, KUBELET, Stage::Going);
            self.told(Verb::Deleted, POD, &workload, Some(&|it| shape::pod(it, &gone)), None);
        }
        let before = old;
        old = Set { replicas: 0, write: self.write(CONTROLLER), ..old };
        let states: [&dyn Fn(&Workload) -> Value; 2] =
            [&|it| shape::replica_set(it, &before), &|it| shape::replica_set(it, &old)];
        self.told(Verb::Updated, REPLICA_SET, &workload, Some(states[0]), Some(states[1]));
        self.told(Verb::Deleted, REPLICA_SET, &workload, Some(states[1]), None);
        self.patches(&mut workload, CONTROLLER, |it| it.is_reported = true);
        self.workloads[at] = (workload, set, pods);
    }

    /// A pod's container ends and starts again.
    fn crashes(&mut self, at: usize) {
        let (workload, set, mut pods) = self.workloads[at].clone();
        let one = self.random.usize(..pods.len());
        pods[one].restarts += 1;
        let before = Pod { restarts: pods[one].restarts - 1, ..pods[one] };
        let pod = Pod { stage: Stage::Crashed, write: self.write(KUBELET), ..pods[one] };
        let states: [&dyn Fn(&Workload) -> Value; 2] =
            [&|it| shape::pod(it, &before), &|it| shape::pod(it, &pod)];
        self.told(Verb::Updated, POD, &workload, Some(states[0]), Some(states[1]));
        pods[one] = pod;
        self.pod(&workload, &mut pods[one], KUBELET, Stage::Running);
        self.workloads[at] = (workload, set, pods);
    }

    fn edits(&mut self, at: usize) {
        let before = self.plain[at];
        let manager = if before.kind == 0 { EDIT } else { OPERATOR };
        let plain = Plain { content: before.content + 1, write: self.write(manager), ..before };
        self.tell_plain(Verb::Updated, Some(&before), &plain);
        self.plain[at] = plain;
    }

    fn patches(&mut self, workload: &mut Workload, manager: &'static str, edit: impl FnOnce(&mut Workload)) {
        let before = workload.clone();
        workload.write = self.write(manager);
        edit(workload);
        let old: &dyn Fn(&Workload) -> Value = &|_| shape::deployment(&before);
        self.told(Verb::Updated, DEPLOYMENT, workload, Some(old), Some(&shape::deployment));
    }

    fn pod(&mut self, workload: &Workload, pod: &mut Pod, manager: &'static str, stage: Stage) {
        let before = *pod;
        (pod.stage, pod.write) = (stage, self.write(manager));
        let pod = *pod;
        let states: [&dyn Fn(&Workload) -> Value; 2] =
            [&|it| shape::pod(it, &before), &|it| shape::pod(it, &pod)];
        self.told(Verb::Updated, POD, workload, Some(states[0]), Some(states[1]));
    }

    /// Tells a change of a workload, or of what belongs to it.
    fn told(
        &mut self,
        verb: Verb,
        kind: u8,
        workload: &Workload,
        old: Option<&dyn Fn(&Workload) -> Value>,
        new: Option<&dyn Fn(&Workload) -> Value>,
    ) {
        let row = Row {
            verb,
            kind,
            namespace: workload.namespace,
            manager: "",
            number: workload.number,
            second: 0,
        };
        self.tell(row, &|| [old, new].map(|state| state.map(|state| state(workload))));
    }

    fn tell_plain(&mut self, verb: Verb, old: Option<&Plain>, new: &Plain) {
        let kind = if new.kind == 0 { CONFIG } else { CONFIG + new.kind };
        let row = Row { verb, kind, namespace: new.namespace, manager: "", number: new.number, second: 0 };
        self.tell(row, &|| [old.map(shape::plain), Some(shape::plain(new))]);
    }

    fn tell(&mut self, mut row: Row, states: &dyn Fn() -> [Option<Value>; 2]) {
        if row.verb != Verb::Known {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.now += self.pause;
        }
        row.second = self.now.as_second();
        row.manager = if row.verb == Verb::Deleted { "" } else { self.author };
        (self.tell)(&Change { row, at: self.now, states });
    }
}
