//! The progress of an object, as its state shows it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Trouble;

/// How far a workload is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) is_done: bool,
    pub(super) is_paused: bool,
    pub(super) is_stuck: bool,
    pub(super) wanted: u64,
    pub(super) ready: u64,
    /// The pods of the present template.
    pub(super) updated: u64,
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

fn items<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The status and the reason of a condition.
pub(super) fn condition<'v>(object: &'v Value, name: &str) -> Option<(&'v str, &'v str)> {
    let found = items(object, "/status/conditions").find(|it| text(it, "/type") == name)?;
    Some((text(found, "/status"), text(found, "/reason")))
}

/// `deployment.kubernetes.io/revision`.
pub(super) fn revision(object: &Value) -> Option<u64> {
    text(object, "/metadata/annotations/deployment.kubernetes.io~1revision").parse().ok()
}

pub(super) fn is_terminating(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Which template a pod, or what makes pods, was made from.
pub(super) fn hash(object: &Value) -> Option<&str> {
    let labels = object.pointer("/metadata/labels")?;
    let names = ["pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash"];
    names.iter().find_map(|name| labels.get(name)?.as_str())
}

/// How far a workload of this kind is. A status counts when its controller has seen the specification.
pub(super) fn progress(kind: &str, object: &Value) -> Progress {
    let wanted = object.pointer("/spec/replicas").map_or(1, |replicas| replicas.as_u64().unwrap_or(1));
    let ready_of = |pointers: &[&str], wanted: u64| pointers.iter().all(|it| count(object, it) == wanted);
    let is_seen = count(object, "/status/observedGeneration") >= count(object, "/metadata/generation");
    let (wanted, ready, is_reached) = match kind {
        "Deployment" => {
            let all = ["/status/replicas", "/status/updatedReplicas", "/status/availableReplicas"];
            (wanted, count(object, "/status/readyReplicas"), ready_of(&all, wanted))
        }
        "StatefulSet" => {
            let all = ["/status/replicas", "/status/updatedReplicas", "/status/readyReplicas"];
            (wanted, count(object, "/status/readyReplicas"), ready_of(&all, wanted))
        }
        "DaemonSet" => {
            let wanted = count(object, "/status/desiredNumberScheduled");
            let all = ["/status/updatedNumberScheduled", "/status/numberAvailable"];
            (wanted, count(object, "/status/numberReady"), ready_of(&all, wanted))
        }
        _ => {
            let all = ["/status/replicas", "/status/readyReplicas"];
            (wanted, count(object, "/status/readyReplicas"), ready_of(&all, wanted))
        }
    };
    let updated = match kind {
        "DaemonSet" => "/status/updatedNumberScheduled",
        _ => "/status/updatedReplicas",
    };
    Progress {
        is_done: is_seen && is_reached,
        is_paused: object.pointer("/spec/paused") == Some(&Value::Bool(true)),
        is_stuck: condition(object, "Progressing") == Some(("False", "ProgressDeadlineExceeded")),
        wanted,
        ready,
        updated: if is_seen { count(object, updated) } else { 0 },
    }
}

/// Whether a Job has come to its end, and well.
pub(super) fn job(object: &Value) -> Option<bool> {
    let is = |name| condition(object, name).is_some_and(|(status, _)| status == "True");
    if is("Complete") {
        return Some(true);
    }
    is("Failed").then_some(false)
}

/// Whether a node takes pods: it is schedulable and answers.
pub(super) fn is_in_service(node: &Value) -> bool {
    let is_cordoned = node.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
    !is_cordoned && condition(node, "Ready").is_none_or(|(status, _)| status == "True")
}

/// How a pod is.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PodState {
    pub(super) node: Option<String>,
    pub(super) hash: Option<String>,
    pub(super) is_ready: bool,
    pub(super) is_terminating: bool,
    /// Whether it was evicted, or is about to be.
    pub(super) is_evicted: bool,
    pub(super) restarts: u64,
    pub(super) trouble: Option<Trouble>,
    /// Also what is over, as far as the state shows it.
    pub(super) troubles: BTreeSet<Trouble>,
}

pub(super) fn pod(object: &Value) -> PodState {
    let phase = text(object, "/status/phase");
    let is_ready = condition(object, "Ready").is_some_and(|(status, _)| status == "True");
    let mut state = PodState {
        node: object.pointer("/spec/nodeName").and_then(Value::as_str).map(str::to_owned),
        hash: hash(object).map(str::to_owned),
        is_ready: is_ready || phase == "Succeeded",
        is_terminating: is_terminating(object),
        is_evicted: condition(object, "DisruptionTarget").is_some_and(|(status, _)| status == "True"),
        ..PodState::default()
    };
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    for container in lists.iter().flat_map(|list| items(object, list)) {
        state.restarts += count(container, "/restartCount");
        let waits = text(container, "/state/waiting/reason");
        let ended = |at: &str| {
            let reason = text(container, &format!("/{at}/terminated/reason"));
            let code = container.pointer(&format!("/{at}/terminated/exitCode")).and_then(Value::as_i64);
            match (reason, code) {
                ("OOMKilled", _) => Some(Trouble::OutOfMemory),
                (_, Some(code)) if code != 0 => Some(Trouble::Crash),
                ("Error" | "ContainerCannotRun" | "DeadlineExceeded", _) => Some(Trouble::Crash),
                _ => None,
            }
        };
        let past = ended("lastState").filter(|_| count(container, "/restartCount") > 0);
        // Containers end when their pod is deleted.
        let present = if state.is_terminating { None } else { waiting(waits).or(ended("state")) };
        // A container that was out of memory is told to be so while it waits for its restart.
        let present = match (present, past) {
            (Some(Trouble::Crash), Some(past)) => Some(past),
            (present, _) => present,
        };
        state.troubles.extend(past.into_iter().chain(present));
        state.trouble = state.trouble.or(present);
    }
    if phase == "Failed" && !state.is_terminating {
        let is_evicted = text(object, "/status/reason") == "Evicted";
        let whole = if is_evicted { Trouble::Evicted } else { state.trouble.unwrap_or(Trouble::Failed) };
        state.trouble = Some(whole);
    }
    if condition(object, "PodScheduled") == Some(("False", "Unschedulable")) {
        state.trouble = Some(Trouble::Unschedulable);
    }
    state.troubles.extend(state.trouble);
    state
}

/// How far a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodStage {
    /// It has no node, or its containers are being made.
    Pending,
    /// Its containers run, and it is not ready.
    Running,
    /// It is ready, or has done its work.
    Ready,
    /// It fails.
    Trouble(Trouble),
    /// It is being deleted.
    Terminating,
}

/// The node of a pod, and how far the pod is.
pub fn stage(object: &Value) -> (Option<String>, PodStage) {
    let state = pod(object);
    let stage = match (state.is_terminating, state.trouble, state.is_ready) {
        (true, _, _) => PodStage::Terminating,
        (_, Some(trouble), _) => PodStage::Trouble(trouble),
        (_, _, true) => PodStage::Ready,
        _ if text(object, "/status/phase") == "Running" => PodStage::Running,
        _ => PodStage::Pending,
    };
    (state.node, stage)
}

fn waiting(reason: &str) -> Option<Trouble> {
    Some(match reason {
        "CrashLoopBackOff" => Trouble::Crash,
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => Trouble::Image,
        "CreateContainerConfigError"
        | "CreateContainerError"
        | "RunContainerError"
        | "PostStartHookError" => Trouble::Container,
        _ => return None,
    })
}

/// Whether the differences of a pod say that it may be in trouble. Its whole state decides.
pub(super) fn mentions_trouble(diff: &Value) -> bool {
    match diff {
        Value::String(text) => {
            waiting(text).is_some()
                || matches!(
                    text.as_str(),
                    "OOMKilled" | "Error" | "Evicted" | "Unschedulable" | "Failed" | "ContainerCannotRun"
                )
        }
        Value::Array(values) => values.iter().any(mentions_trouble),
        // A former value, `old`, is over.
        Value::Object(map) => map.iter().any(|(name, value)| name != "old" && mentions_trouble(value)),
        _ => false,
    }
}

/// The pods whose endpoints differ between two states of a slice.
pub(super) fn pods_of_slices(before: &Value, now: &Value) -> Vec<String> {
    let of = |slice| {
        let endpoints = items(slice, "/endpoints");
        endpoints.map(|it| (text(it, "/targetRef/uid"), it)).collect::<BTreeMap<&str, &Value>>()
    };
    let (before, now) = (of(before), of(now));
    let uids: BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
    uids.into_iter().filter(|uid| before.get(uid) != now.get(uid)).map(str::to_owned).collect()
}

/// The object that an autoscaler scales: its kind and name.
pub(super) fn target(autoscaler: &Value) -> (String, String) {
    let of = |name: &str| text(autoscaler, &format!("/spec/scaleTargetRef/{name}")).to_owned();
    (of("kind"), of("name"))
}
