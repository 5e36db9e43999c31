//! Pods. `STATUS` is one word about many containers: the most specific reason wins.

use std::time::SystemTime;

use serde_json::Value;

use super::row::Row;
use super::time;

pub(super) fn cells(pod: &Row<'_>) -> Vec<Value> {
    let summary = Summary::of(pod);
    vec![
        pod.name(),
        format!("{}/{}", summary.ready, summary.containers).into(),
        summary.status.clone().into(),
        summary.restarts(pod.now).into(),
        pod.age(),
        pod.text_or("/status/podIPs/0/ip", "<none>").into(),
        pod.text_or("/spec/nodeName", "<none>").into(),
        pod.text_or("/status/nominatedNodeName", "<none>").into(),
        readiness_gates(pod).into(),
    ]
}

fn readiness_gates(pod: &Row<'_>) -> String {
    let gates = pod.list("/spec/readinessGates");
    if gates.len() == 0 {
        return "<none>".to_string();
    }
    let all = gates.len();
    let open = gates
        .filter(|gate| {
            pod.condition(gate.text("/conditionType"))
                .is_some_and(|condition| condition.text("/status") == "True")
        })
        .count();
    format!("{open}/{all}")
}

/// The summary of a pod's containers.
struct Summary {
    status: String,
    ready: usize,
    containers: usize,
    restarts: Restarts,
}

/// How often containers were restarted, and when last.
#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<SystemTime>,
}

impl Restarts {
    fn add(&mut self, container: &Row<'_>) {
        self.count += container.number("/restartCount");
        self.last = self.last.max(container.time("/lastState/terminated/finishedAt"));
    }
}

impl Summary {
    fn of(pod: &Row<'_>) -> Self {
        let mut summary = Self {
            status: pod.text_or("/status/reason", pod.text("/status/phase")).to_string(),
            ready: 0,
            containers: pod.count("/spec/containers"),
            restarts: Restarts::default(),
        };
        if pod
            .list("/status/conditions")
            .any(|it| it.text("/type") == "PodScheduled" && it.text("/reason") == "SchedulingGated")
        {
            summary.status = "SchedulingGated".to_string();
        }
        let (initializing, sidecars) = summary.initialize(pod);
        let initialized = pod.condition("Initialized").is_some_and(|it| it.text("/status") == "True");
        if !initializing || initialized {
            summary.restarts = sidecars;
            summary.run(pod);
        }
        if pod.is_being_deleted() {
            if pod.text("/status/reason") == "NodeLost" {
                summary.status = "Unknown".to_string();
            } else if !matches!(pod.text("/status/phase"), "Succeeded" | "Failed") {
                summary.status = "Terminating".to_string();
            }
        }
        summary
    }

    /// Checks the init containers up to the first that has not completed. Returns whether there is one, and the
    /// restarts of those that keep running (sidecars).
    fn initialize(&mut self, pod: &Row<'_>) -> (bool, Restarts) {
        let is_sidecar = |name: &str| {
            pod.list("/spec/initContainers")
                .any(|it| it.text("/name") == name && it.text("/restartPolicy") == "Always")
        };
        let all = pod.count("/spec/initContainers");
        self.containers +=
            pod.list("/spec/initContainers").filter(|it| it.text("/restartPolicy") == "Always").count();
        let mut sidecars = Restarts::default();
        for (at, container) in pod.list("/status/initContainerStatuses").enumerate() {
            self.restarts.add(&container);
            let sidecar = is_sidecar(container.text("/name"));
            if sidecar {
                sidecars.add(&container);
            }
            let ended = container.get("/state/terminated").is_some();
            if ended && container.number("/state/terminated/exitCode") == 0 {
                continue;
            }
            if sidecar && container.flag("/started") {
                self.ready += usize::from(container.flag("/ready"));
                continue;
            }
            let waiting = container.text("/state/waiting/reason");
            self.status = if ended {
                format!("Init:{}", ending(&container))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{at}/{all}")
            };
            return (true, sidecars);
        }
        (false, sidecars)
    }

    /// Checks the containers, last to first, so that the first one's reason stays.
    fn run(&mut self, pod: &Row<'_>) {
        let mut running = false;
        let mut failure = None;
        for container in pod.list("/status/containerStatuses").rev() {
            self.restarts.add(&container);
            let waiting = container.text("/state/waiting/reason");
            if !waiting.is_empty() {
                self.status = waiting.to_string();
            } else if container.get("/state/terminated").is_some() {
                self.status = ending(&container);
                if container.number("/state/terminated/exitCode") != 0 {
                    failure = Some(self.status.clone());
                }
            } else if container.flag("/ready") && container.get("/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        // One container has completed; the pod has not if another one runs.
        if self.status == "Completed" {
            let ready = pod
                .list("/status/conditions")
                .any(|it| it.text("/type") == "Ready" && it.text("/status") == "True");
            if running && ready {
                self.status = "Running".to_string();
            } else if let Some(failure) = failure {
                self.status = failure;
            } else if running {
                self.status = "NotReady".to_string();
            }
        }
    }

    fn restarts(&self, now: SystemTime) -> String {
        match self.restarts {
            Restarts { count, last: Some(last) } if count != 0 => {
                format!("{count} ({} ago)", time::between(last, now))
            }
            Restarts { count, .. } => count.to_string(),
        }
    }
}

/// Why a container terminated.
fn ending(container: &Row<'_>) -> String {
    let reason = container.text("/state/terminated/reason");
    if !reason.is_empty() {
        return reason.to_string();
    }
    match container.number("/state/terminated/signal") {
        0 => format!("ExitCode:{}", container.number("/state/terminated/exitCode")),
        signal => format!("Signal:{signal}"),
    }
}
