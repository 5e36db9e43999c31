//! Kind-specific behaviour: defaults, immutable fields and validation.
//!
//! Kinds without code here get the general treatment: fields are stored as sent, the status is written through the
//! subresource `status` if there is one, and the generation counts changes outside of metadata and status. Validation
//! covers only what clients meet in ordinary use.

mod checks;
mod defaults;
mod fill;
mod generation;
mod namespaces;
mod pods;
mod secrets;
mod services;
mod workloads;

use serde_json::{Value, json};

use crate::definitions;
use crate::object::{metadata_mut, set_pointer};
use crate::turn::{Target, Turn};

pub(crate) use checks::errors;
pub(crate) use generation::{has_generation, is_new_generation};
pub(crate) use namespaces::{check_namespace_is_open, is_permanent, terminate_namespace};

/// The first step of each write: removes unknown fields and sets defaults.
pub(crate) fn complete(target: &Target, object: &mut Value) {
    if let Some(schema) = target.schema() {
        if target.definition.is_some() {
            schema.prune(object);
            schema.fill_defaults(object);
        } else {
            schema.normalize(object);
        }
    }
    if target.definition.is_some() {
        return;
    }
    metadata_mut(object);
    if target.is("", "secrets") {
        secrets::encode(object);
    }
    if target.is("", "namespaces") {
        namespaces::label(object);
    }
    defaults::fill_in(target, object);
}

/// Sets the fields of a new object that only the server writes.
pub(crate) fn prepare_create(turn: &Turn<'_>, target: &Target, object: &mut Value) {
    let resource = &target.resource;
    if target.has_status() {
        remove(object, "status");
    }
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") => namespaces::prepare_create(object),
        ("", "pods") => pods::prepare_create(object),
        ("", "services") => services::prepare(turn, None, object),
        ("", "nodes") => {
            let taint = json!([{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }]);
            fill::fill(object, &["spec", "taints"], taint);
        }
        ("", "persistentvolumes") => add_finalizer(object, "kubernetes.io/pv-protection"),
        ("", "persistentvolumeclaims") => add_finalizer(object, "kubernetes.io/pvc-protection"),
        ("apiextensions.k8s.io", _) => definitions::prepare_create(object),
        ("apps", "controllerrevisions") => {}
        ("apps" | "batch", plural) | ("", plural @ "replicationcontrollers") => {
            workloads::prepare_create(plural, object);
        }
        _ => {}
    }
    if let Some(status) = defaults::first_status(target, &turn.now()) {
        object["status"] = status;
    }
}

/// Sets missing fields of the new state, and restores fields that this write cannot change.
pub(crate) fn prepare_update(
    turn: &Turn<'_>,
    target: &Target,
    before: &Value,
    object: &mut Value,
    finalize: bool,
) {
    if finalize {
        restore(object, before, "status");
        if !object["spec"].is_object() {
            object["spec"] = json!({});
        }
    } else if target.status {
        keep_all_but_status(target, before, object);
    } else if target.has_status() {
        restore(object, before, "status");
    }
    if target.is("", "services") {
        services::prepare(turn, Some(before), object);
    }
    if target.is("", "namespaces") && !finalize {
        restore(object, before, "spec");
    }
}

/// Whether an update of a missing object creates it.
pub(crate) fn is_created_by_update(target: &Target) -> bool {
    match &*target.resource.group {
        "" => matches!(&*target.resource.plural, "limitranges" | "events" | "services" | "endpoints"),
        "rbac.authorization.k8s.io" | "coordination.k8s.io" | "node.k8s.io" => true,
        _ => false,
    }
}

/// Whether an update may leave out the resourceVersion.
pub(crate) fn is_updated_unconditionally(target: &Target) -> bool {
    if target.definition.is_some() {
        return false;
    }
    match &*target.resource.group {
        "admissionregistration.k8s.io"
        | "apiextensions.k8s.io"
        | "coordination.k8s.io"
        | "node.k8s.io"
        | "policy" => false,
        "storage.k8s.io" => matches!(&*target.resource.plural, "storageclasses" | "volumeattributesclasses"),
        _ => true,
    }
}

/// Whether the response to a deletion is the object.
pub(crate) fn answers_deleted(target: &Target) -> bool {
    match &*target.resource.group {
        "resource.k8s.io" => true,
        "storage.k8s.io" => &*target.resource.plural != "csistoragecapacities",
        "" => matches!(
            &*target.resource.plural,
            "resourcequotas"
                | "persistentvolumes"
                | "serviceaccounts"
                | "persistentvolumeclaims"
                | "namespaces"
                | "pods"
                | "services"
                | "podtemplates"
        ),
        _ => false,
    }
}

/// Takes only the status from the new state, and the metadata that a write of the status may change.
fn keep_all_but_status(target: &Target, before: &Value, object: &mut Value) {
    restore_all(object, before, |name| !matches!(name, "status" | "metadata"));
    if target.definition.is_none() && object.get("status").is_none() {
        object["status"] = json!({});
    }
    if target.is("", "pods") && before["status"]["qosClass"].is_string() {
        set_pointer(object, "/status/qosClass", before["status"]["qosClass"].clone());
    }
    let keeps = |name: &str| match target.definition {
        Some(_) => name != "managedFields",
        None => match &*target.resource.group {
            "apps" => name == "labels",
            "" => &*target.resource.plural == "pods" && name == "ownerReferences",
            _ => false,
        },
    };
    restore_all(&mut object["metadata"], &before["metadata"], keeps);
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let finalizers = metadata_mut(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|known| known == finalizer)
    {
        finalizers.push(finalizer.into());
    }
}

/// Restores the members with such names. Most are as they were.
fn restore_all(object: &mut Value, before: &Value, is_restored: impl Fn(&str) -> bool) {
    let (Some(members), Some(before)) = (object.as_object_mut(), before.as_object()) else { return };
    members.retain(|name, _| !is_restored(name) || before.contains_key(name));
    for (name, then) in before.iter().filter(|(name, _)| is_restored(name)) {
        if members.get(name) != Some(then) {
            members.insert(name.clone(), then.clone());
        }
    }
}

fn restore(object: &mut Value, before: &Value, name: &str) {
    match before.get(name) {
        Some(then) => object[name] = then.clone(),
        None => remove(object, name),
    }
}

fn remove(object: &mut Value, name: &str) {
    if let Some(members) = object.as_object_mut() {
        members.remove(name);
    }
}
