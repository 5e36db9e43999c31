//! Serves custom resources from their definitions: a definition is accepted at once, and deleted after its objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::definitions::{CLEANUP, Definition};
use crate::kinds;
use crate::object::{Meta, metadata_mut, set_pointer, typed};
use crate::store::{GroupResource, decode, encode};
use crate::turn::{Target, Turn};
use crate::write::{DeleteOptions, WriteOptions};

/// The field manager of the controller's writes.
const MANAGER: &str = "kube-apiserver";

/// Serves a new or changed definition.
pub(super) fn changed(turn: &Turn<'_>, target: &Target, object: &Value) {
    let definition = Definition::read(object);
    let id = definition.id.clone();
    if Meta(object).is_being_deleted() {
        clean_up(turn, &id);
        return;
    }
    let mut definitions = turn.core.definitions();
    turn.core.store.open(id.clone());
    let definition = Arc::new(definition);
    let former = definitions.insert(id, definition.clone());
    turn.core.serve_definitions(definitions);
    if former.is_some_and(|former| !former.reads_like(&definition)) {
        read_again(turn, &definition);
    }
    if is_new(object) || object["status"]["acceptedNames"] != object["spec"]["names"] {
        accept(turn, target, object);
    }
}

/// Prunes and defaults the stored objects by the new schemas. Their resourceVersions stay the same. Watches end, and
/// cannot resume.
fn read_again(turn: &Turn<'_>, definition: &Definition) {
    let Some(target) = definition.stored().and_then(|resource| Target::new(turn.core, resource, "", ""))
    else {
        return;
    };
    let read = |object: Arc<serve::Object>| {
        let mut value = decode(&object);
        kinds::complete(&target, &mut value);
        Arc::new(encode(&mut value, object.revision, target.order()))
    };
    turn.writer.replace(&target.objects, target.objects.all(None).into_iter().map(read).collect());
}

/// Whether the definition has no conditions yet.
fn is_new(object: &Value) -> bool {
    object["status"]["conditions"].as_array().is_none_or(Vec::is_empty)
}

/// Writes the status of a definition: it is established, or its new names are accepted.
fn accept(turn: &Turn<'_>, target: &Target, object: &Value) {
    let now = turn.now();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message,
        })
    };
    let mut object = object.clone();
    if is_new(&object) {
        let conditions = json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ]);
        set_pointer(&mut object, "/status/conditions", conditions);
    }
    let names = object["spec"]["names"].clone();
    set_pointer(&mut object, "/status/acceptedNames", names);
    let target = Target { name: Meta(&object).name().into(), status: true, ..target.clone() };
    let version = target.current().map(|current| current.revision.to_string());
    metadata_mut(&mut object).insert("resourceVersion".into(), version.into());
    let options = WriteOptions { subresource: Some("status".into()), ..WriteOptions::by(MANAGER) };
    let _ = turn.update(&target, object, &options);
}

fn clean_up(turn: &Turn<'_>, id: &GroupResource) {
    let definition = turn.core.definition(id);
    let resource = definition.as_ref().and_then(|definition| definition.resources.first());
    if let Some(target) = resource.and_then(|resource| Target::new(turn.core, resource, "", "")) {
        for object in target.objects.all(None) {
            let target = Target {
                namespace: object.namespace.as_ref().into(),
                name: object.name.as_ref().into(),
                ..target.clone()
            };
            // Objects with finalizers stay for now; both results are fine.
            let _ = turn.delete(&target, &DeleteOptions::default());
        }
    }
    finish(turn, id);
}

/// After an object of a definition was removed: removes a definition that is being deleted and has no objects left.
pub(super) fn finish(turn: &Turn<'_>, id: &GroupResource) {
    let resources = turn.core.resources();
    let Some(resource) = resources.find("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
        return;
    };
    let name = format!("{}.{}", id.plural, id.group);
    let Some(target) = Target::new(turn.core, resource, "", &name) else { return };
    let Some(definition) = target.current().map(|current| typed(resource, &current)) else { return };
    let is_empty = turn.core.store.objects(id).is_none_or(|objects| objects.all(None).is_empty());
    if !Meta(&definition).is_being_deleted() || !is_empty {
        return;
    }
    let mut object = definition.clone();
    let left = Meta(&definition).finalizers().into_iter().filter(|finalizer| *finalizer != CLEANUP);
    let left: Vec<String> = left.map(Into::into).collect();
    metadata_mut(&mut object).insert("finalizers".into(), left.into());
    let _ = turn.update(&target, object, &WriteOptions::by(MANAGER));
}

/// A definition was removed: stops serving it, and ends watches of its objects.
pub(super) fn removed(turn: &Turn<'_>, object: &Value) {
    let id = Definition::read(object).id;
    let mut definitions = turn.core.definitions();
    definitions.remove(&id);
    turn.core.serve_definitions(definitions);
    turn.core.store.close(&id);
}

/// Serves the stored definitions and no others.
pub(crate) fn serve_all(turn: &Turn<'_>) {
    let Some(kept) = turn.core.objects("apiextensions.k8s.io", "customresourcedefinitions") else { return };
    let kept = kept.all(None);
    let definitions = kept.iter().map(|object| Definition::read(&decode(object)));
    let definitions: BTreeMap<_, _> =
        definitions.map(|definition| (definition.id.clone(), Arc::new(definition))).collect();
    for id in turn.core.definitions().keys().filter(|id| !definitions.contains_key(*id)) {
        turn.core.store.close(id);
    }
    for id in definitions.keys() {
        turn.core.store.open(id.clone());
    }
    turn.core.serve_definitions(definitions);
}
