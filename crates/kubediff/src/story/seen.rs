//! A record as a fold sees it: of which workload it is, and what part it has in a story.

use jiff::Timestamp;
use kubediff_history::{ChangeRecord, Error, Event, Number, ObjectId, Verb};
use serde_json::Value;

use super::{Look, body};

/// A record that a story may begin with, or that may follow from one.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) number: Number,
    pub(super) at: Timestamp,
    pub(super) object: ObjectId,
    pub(super) part: Part,
    /// The controllers of the object, the nearest first.
    pub(super) above: Vec<ObjectId>,
    /// The uid of the next one, where no record of it had come.
    pub(super) missing: Option<String>,
    pub(super) root: Option<Root>,
    /// Whether the object came, is to go, or is gone.
    pub(super) is_new: bool,
    pub(super) is_going: bool,
    pub(super) is_gone: bool,
    /// Whether controllers alone write where it differs: in the status, or in annotations of their own.
    pub(super) is_reaction: bool,
    /// Whether its revision differs, in the words of Deployments.
    pub(super) has_other_revision: bool,
    /// Whether a pod may be in trouble.
    pub(super) may_fail: bool,
    /// Whether a pod is about to be evicted.
    pub(super) is_evicted: bool,
}

/// The part of a record's object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Pod,
    /// An object that makes pods for a workload, or remembers its templates.
    Revision,
    Node,
    Namespace,
    /// An EndpointSlice, with the pods whose endpoints differ.
    Slice(Vec<String>),
    /// An autoscaler, with the kind and name that it scales.
    Autoscaler(String, String),
    /// An Event about an object.
    Event,
    Other,
}

/// The reason for which a record begins a story by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    Created,
    Deleted,
    Template,
    Replicas,
    /// A node came out of service, or back.
    Service,
}

/// Kinds that make pods from a template: the topmost one above a pod is its workload.
const WORKLOADS: [(&str, &str); 4] =
    [("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job")];

pub(super) fn is_workload(object: &ObjectId) -> bool {
    WORKLOADS.contains(&(&object.gvk.group, &object.gvk.kind))
}

fn is(object: &ObjectId, group: &str, kind: &str) -> bool {
    object.gvk.group == group && object.gvk.kind == kind
}

impl Seen {
    pub(super) fn of_change(change: &ChangeRecord, look: &mut dyn Look) -> Result<Self, Error> {
        let object = change.object.clone();
        let number = change.number.unwrap_or_default();
        let (mut above, missing) = look.lineage(&object.uid, object.namespace.as_deref(), number)?;
        above.retain(|it| it.uid != object.uid);
        // Pods that a node runs by itself are nobody's.
        let end = above.iter().position(|it| is(it, "", "Node")).unwrap_or(above.len());
        above.truncate(end);
        let at = |path: &str| change.paths.iter().any(|it| is_at(it, path));
        let is_gone = change.verb == Verb::Deleted;
        let is_going = is_gone || (change.verb == Verb::Updated && at("metadata.deletionTimestamp"));
        let mut seen = Self {
            number,
            at: change.observed_at,
            part: Part::Other,
            root: None,
            is_new: change.verb == Verb::Added,
            is_going,
            is_gone,
            is_reaction: change.verb == Verb::Updated && is_reaction(change),
            has_other_revision: change.verb == Verb::Updated
                && change.paths.iter().any(|path| path.starts_with(REVISION)),
            may_fail: false,
            is_evicted: false,
            above,
            missing,
            object,
        };
        seen.part = seen.part_of(change, look)?;
        seen.root = seen.root_of(change.verb, &at);
        Ok(seen)
    }

    pub(super) fn of_event(event: &Event, look: &mut dyn Look) -> Result<Option<Self>, Error> {
        let text = |pointer: &str| event.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let namespace = Some(text("/metadata/namespace")).filter(|it| !it.is_empty());
        let (mut lineage, missing) = look.lineage(text("/involvedObject/uid"), namespace, event.number)?;
        if lineage.is_empty() {
            return Ok(None);
        }
        let object = lineage.remove(0);
        Ok(Some(Self {
            number: event.number,
            at: event.observed_at,
            object,
            part: Part::Event,
            above: lineage,
            missing,
            root: None,
            is_new: false,
            is_going: false,
            is_gone: false,
            is_reaction: true,
            has_other_revision: false,
            may_fail: false,
            is_evicted: false,
        }))
    }

    fn part_of(&mut self, change: &ChangeRecord, look: &mut dyn Look) -> Result<Part, Error> {
        let mut state = |before: bool| -> Result<Value, Error> {
            let found = if before { look.object_before(self.number) } else { look.object(self.number) };
            Ok(found?.unwrap_or_default())
        };
        Ok(match (&*self.object.gvk.group, &*self.object.gvk.kind) {
            ("", "Pod") => {
                self.may_fail = change.verb == Verb::Updated && body::mentions_trouble(&change.diff);
                let target = "status.conditions[DisruptionTarget]";
                self.is_evicted =
                    change.verb == Verb::Updated && change.paths.iter().any(|path| is_at(path, target));
                Part::Pod
            }
            ("apps", "ReplicaSet" | "ControllerRevision") if !self.above.is_empty() => Part::Revision,
            ("", "Node") => Part::Node,
            ("", "Namespace") => Part::Namespace,
            ("discovery.k8s.io", "EndpointSlice") => {
                let now = state(false)?;
                let before = if self.is_new { Value::Null } else { state(true)? };
                let (before, now) = if self.is_gone { (now, Value::Null) } else { (before, now) };
                Part::Slice(body::pods_of_slices(&before, &now))
            }
            ("autoscaling", "HorizontalPodAutoscaler") if self.is_reaction => {
                let (kind, name) = body::target(&state(false)?);
                Part::Autoscaler(kind, name)
            }
            _ => Part::Other,
        })
    }

    fn root_of(&self, verb: Verb, at: &dyn Fn(&str) -> bool) -> Option<Root> {
        if self.part == Part::Node && verb == Verb::Updated {
            let is_of_service =
                at("spec.unschedulable") || at("spec.taints") || at("status.conditions[Ready]");
            return is_of_service.then_some(Root::Service);
        }
        // The objects that a workload makes are created and deleted for it.
        if self.workload().uid != self.object.uid || self.missing.is_some() {
            return None;
        }
        match verb {
            Verb::Added => Some(Root::Created),
            _ if self.is_going => Some(Root::Deleted),
            Verb::Updated if is_workload(&self.object) && at("spec.template") => Some(Root::Template),
            Verb::Updated if at("spec.replicas") => Some(Root::Replicas),
            _ => None,
        }
    }

    /// The object that the record is about in the end: the topmost workload, or the topmost controller where there is none.
    pub(super) fn workload(&self) -> &ObjectId {
        let mut upwards = std::iter::once(&self.object).chain(&self.above);
        let topmost = upwards.clone().rfind(|it| is_workload(it));
        topmost.or_else(|| upwards.next_back()).unwrap_or(&self.object)
    }

    /// The controllers of its workload.
    pub(super) fn beyond(&self) -> impl Iterator<Item = &ObjectId> {
        let of = self.workload().uid.clone();
        let mut is_beyond = self.object.uid == of;
        self.above.iter().filter(move |it| {
            let is = is_beyond;
            is_beyond |= it.uid == of;
            is
        })
    }

    /// Whether a story may begin with it, unless a better beginning comes soon.
    pub(super) fn is_weak(&self) -> bool {
        self.part == Part::Pod && self.root.is_none() && (self.may_fail || self.is_going || self.is_evicted)
    }

    pub(super) fn is_of_pod(&self) -> bool {
        is(&self.object, "", "Pod")
    }
}

const REVISION: &str = "metadata.annotations[\"deployment.kubernetes.io/revision\"]";

/// Whether a path is this one or below it.
fn is_at(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '#']))
}

/// Whether controllers alone write where the object differs.
fn is_reaction(change: &ChangeRecord) -> bool {
    const OWN: [&str; 5] = [
        "status",
        "spec.nodeName",
        "metadata.finalizers",
        "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds",
    ];
    let is_scaled = |path: &String| path == "spec.replicas" && change.object.gvk.kind == "ReplicaSet";
    const DEPLOYMENTS: &str = "deployment.kubernetes.io/";
    // The first annotation of an object brings the whole map.
    let brings_theirs = |difference: &Value| {
        let new = difference.get("new").and_then(Value::as_object);
        difference.get("path").and_then(Value::as_str) == Some("metadata.annotations")
            && new.is_some_and(|new| new.keys().all(|name| name.starts_with(DEPLOYMENTS)))
    };
    change.paths.iter().all(|path| {
        OWN.iter().any(|own| is_at(path, own))
            || is_scaled(path)
            || path.strip_prefix("metadata.annotations[\"").is_some_and(|it| it.starts_with(DEPLOYMENTS))
            || (path == "metadata.annotations"
                && change.diff.as_array().into_iter().flatten().any(brings_theirs))
    })
}
