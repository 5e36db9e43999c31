//! The life of namespaces.

use serde_json::{Value, json};
use serve::{Reason, Status};

use crate::store::decode;
use crate::write::{DeleteOptions, Meta, Target, Turn, WriteOptions, metadata_mut, set_pointer};

/// Those that a server makes itself and lets nobody delete.
pub(crate) const ALWAYS_THERE: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Those that are there from the start.
const FROM_THE_START: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The label by which selectors find a namespace by its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Makes the namespaces that every server has.
pub(crate) fn create_first(turn: &Turn<'_>) -> Result<(), Status> {
    let resources = turn.core.resources();
    let Some(resource) = resources.find("", "v1", "namespaces") else { return Ok(()) };
    let Some(target) = Target::new(turn.core, resource, "", "") else { return Ok(()) };
    let options = WriteOptions::by("kube-apiserver");
    for name in FROM_THE_START {
        turn.create(&target, json!({ "metadata": { "name": name } }), &options)?;
    }
    Ok(())
}

/// Makes a namespace if there is none of this name, for calls of Rust; clients of the API have to make theirs.
pub(crate) fn ensure(turn: &Turn<'_>, name: &str) -> Result<(), Status> {
    let resources = turn.core.resources();
    let Some(resource) = resources.find("", "v1", "namespaces") else { return Ok(()) };
    let Some(target) = Target::new(turn.core, resource, "", "") else { return Ok(()) };
    if target.objects.current("", name).is_none() {
        turn.create(&target, json!({ "metadata": { "name": name } }), &WriteOptions::by("testapi"))?;
    }
    Ok(())
}

/// What a namespace says from the start.
pub(crate) fn prepare_create(object: &mut Value) {
    let mut finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push("kubernetes".into());
    }
    object["spec"] = json!({ "finalizers": finalizers });
    object["status"] = json!({ "phase": "Active" });
    label(object);
}

/// Labels a namespace with its name, which nobody can change.
pub(crate) fn label(object: &mut Value) {
    let name = Meta(object).name().to_owned();
    let labels = metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(NAME_LABEL.into(), name.into());
    }
}

/// That the namespace of a new object is there and takes it.
pub(crate) fn check_open(turn: &Turn<'_>, target: &Target, object: &Value) -> Result<(), Status> {
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

/// A namespace is to be deleted. Whether it has to wait until its finalizers are done.
pub(crate) fn terminate(turn: &Turn<'_>, object: &mut Value) -> bool {
    let waits = object["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    if waits && !Meta(object).is_being_deleted() {
        let now = turn.now();
        metadata_mut(object).insert("deletionTimestamp".into(), now.into());
        set_pointer(object, "/status/phase", "Terminating".into());
    }
    waits
}

/// Deletes what is in a namespace that is being deleted and, if nothing is left, the namespace.
pub(crate) fn empty(turn: &Turn<'_>, name: &str) {
    if !turn.core.options.empty_namespaces {
        return;
    }
    let resources = turn.core.resources();
    for resource in resources.iter().filter(|resource| resource.namespaced) {
        let Some(target) = Target::new(turn.core, resource, name, "") else { continue };
        for object in target.objects.all(Some(name)) {
            let target = Target { name: object.name.as_ref().into(), ..target.clone() };
            // It is gone, or waits for its finalizers; either is right.
            let _ = turn.delete(&target, &DeleteOptions::default());
        }
    }
    finish(turn, name);
}

/// Something in a namespace is gone: if the namespace has waited for that, it goes too.
pub(crate) fn finish(turn: &Turn<'_>, name: &str) {
    let resources = turn.core.resources();
    let Some(resource) = resources.find("", "v1", "namespaces") else { return };
    let Some(target) = Target::new(turn.core, resource, "", name) else { return };
    let Some(namespace) = target.current().map(|namespace| decode(&namespace)) else { return };
    let namespaced = resources.iter().filter(|resource| resource.namespaced);
    let mut collections = namespaced.filter_map(|resource| Target::new(turn.core, resource, "", ""));
    let is_empty = collections.all(|target| target.objects.is_empty_in(name));
    if turn.core.options.empty_namespaces && Meta(&namespace).is_being_deleted() && is_empty {
        turn.finalize_namespace(&target, &namespace);
    }
}

impl Turn<'_> {
    /// Takes the server's own finalizer off a namespace.
    fn finalize_namespace(&self, target: &Target, before: &Value) {
        let mut namespace = before.clone();
        let others = before["spec"]["finalizers"].as_array().into_iter().flatten();
        let others: Vec<Value> = others.filter(|finalizer| **finalizer != "kubernetes").cloned().collect();
        namespace["spec"] = if others.is_empty() { json!({}) } else { json!({ "finalizers": others }) };
        let options = WriteOptions {
            subresource: Some("finalize".into()),
            ..WriteOptions::by("kube-controller-manager")
        };
        // Nobody else writes in this turn.
        let _ = self.update(target, namespace, &options);
    }
}
