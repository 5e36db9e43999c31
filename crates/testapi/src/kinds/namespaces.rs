//! The server's additions to namespaces, and its refusals.

use serde_json::{Value, json};
use serve::{Reason, Status};

use crate::object::{Meta, metadata_mut, set_pointer};
use crate::store::decode;
use crate::turn::{Target, Turn};

/// The namespaces that nobody can delete.
const PERMANENT: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The label by which selectors find a namespace by its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Whether nobody can delete the object.
pub(crate) fn is_permanent(target: &Target) -> bool {
    target.is("", "namespaces") && PERMANENT.contains(&target.name.as_str())
}

/// Sets the finalizer, status and label of a new namespace.
pub(super) fn prepare_create(object: &mut Value) {
    let mut finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push("kubernetes".into());
    }
    object["spec"] = json!({ "finalizers": finalizers });
    object["status"] = json!({ "phase": "Active" });
    label(object);
}

/// Labels a namespace with its name, which nobody can change.
pub(super) fn label(object: &mut Value) {
    let name = Meta(object).name().to_owned();
    let labels = metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(NAME_LABEL.into(), name.into());
    }
}

/// Refuses a new object whose namespace does not exist or is being deleted.
pub(crate) fn check_namespace_is_open(
    turn: &Turn<'_>,
    target: &Target,
    object: &Value,
) -> Result<(), Status> {
    let name = &target.namespace;
    if !target.resource.namespaced {
        return Ok(());
    }
    let found = turn.core.objects("", "namespaces").and_then(|namespaces| namespaces.current("", name));
    let Some(found) = found else { return Err(Status::not_found("", "namespaces", name)) };
    if !Meta(&decode(&found)).is_being_deleted() {
        return Ok(());
    }
    let resource = &target.resource;
    let message = format!(
        "{} {:?} is forbidden: unable to create new content in namespace {name} because it is being terminated",
        resource.qualified_name(),
        Meta(object).name()
    );
    let why = format!("namespace {name} is being terminated");
    Err(Status::new(Reason::Forbidden, message)
        .about(&resource.group, &resource.plural, Meta(object).name())
        .cause("NamespaceTerminating", why, "metadata.namespace"))
}

/// Marks a namespace as being deleted. Returns whether it has to wait for its finalizers.
pub(crate) fn terminate_namespace(object: &mut Value, now: &str) -> bool {
    let waits = object["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    if waits && !Meta(object).is_being_deleted() {
        metadata_mut(object).insert("deletionTimestamp".into(), now.into());
        set_pointer(object, "/status/phase", "Terminating".into());
    }
    waits
}
