//! The namespaces that every server has, and the namespace controller, which empties deleted namespaces.

use serde_json::{Value, json};
use serve::Status;

use crate::object::Meta;
use crate::store::decode;
use crate::turn::{Target, Turn};
use crate::write::{DeleteOptions, WriteOptions};

/// The namespaces of a new cluster.
const FROM_THE_START: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates the namespaces of a new cluster.
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

/// Creates a namespace unless it exists. For calls from Rust; HTTP clients have to create their namespaces.
pub(crate) fn ensure(turn: &Turn<'_>, name: &str) -> Result<(), Status> {
    let resources = turn.core.resources();
    let Some(resource) = resources.find("", "v1", "namespaces") else { return Ok(()) };
    let Some(target) = Target::new(turn.core, resource, "", "") else { return Ok(()) };
    if target.objects.current("", name).is_none() {
        turn.create(&target, json!({ "metadata": { "name": name } }), &WriteOptions::by("testapi"))?;
    }
    Ok(())
}

/// Deletes all objects in a namespace that is being deleted, and the namespace itself if nothing is left.
pub(super) fn empty(turn: &Turn<'_>, name: &str) {
    if !turn.core.options.empty_namespaces {
        return;
    }
    let resources = turn.core.resources();
    for resource in resources.iter().filter(|resource| resource.namespaced) {
        let Some(target) = Target::new(turn.core, resource, name, "") else { continue };
        for object in target.objects.all(Some(name)) {
            let target = Target { name: object.name.as_ref().into(), ..target.clone() };
            // Objects with finalizers stay for now; both results are fine.
            let _ = turn.delete(&target, &DeleteOptions::default());
        }
    }
    finish(turn, name);
}

/// After an object was removed: removes a namespace that is being deleted and has no objects left.
pub(super) fn finish(turn: &Turn<'_>, name: &str) {
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
    /// Removes the finalizer `kubernetes` from a namespace.
    fn finalize_namespace(&self, target: &Target, before: &Value) {
        let mut namespace = before.clone();
        let others = before["spec"]["finalizers"].as_array().into_iter().flatten();
        let others: Vec<Value> = others.filter(|finalizer| **finalizer != "kubernetes").cloned().collect();
        namespace["spec"] = if others.is_empty() { json!({}) } else { json!({ "finalizers": others }) };
        let options = WriteOptions {
            subresource: Some("finalize".into()),
            ..WriteOptions::by("kube-controller-manager")
        };
        // The turn excludes conflicting writes.
        let _ = self.update(target, namespace, &options);
    }
}
