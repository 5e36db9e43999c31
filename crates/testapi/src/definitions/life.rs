//! The life of a definition: accepted at once, and deleted after its objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Definition;
use crate::kinds;
use crate::store::{GroupResource, decode, encode};
use crate::write::{DeleteOptions, Meta, Target, Turn, WriteOptions, metadata_mut, set_pointer, typed};

/// A definition waits with this until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Who establishes definitions, in `managedFields`.
const MANAGER: &str = "kube-apiserver";

/// Fills in what a definition does not say.
pub(crate) fn fill_in(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if spec["names"].is_object() {
        let missing = |name: &Value| name.as_str().unwrap_or_default().is_empty();
        if missing(&spec["names"]["singular"]) && !kind.is_empty() {
            spec["names"]["singular"] = kind.to_lowercase().into();
        }
        if missing(&spec["names"]["listKind"]) && !kind.is_empty() {
            spec["names"]["listKind"] = format!("{kind}List").into();
        }
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({ "strategy": "None" });
    }
}

/// The first status of a definition.
pub(crate) fn prepare_create(object: &mut Value) {
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let stored: Vec<Value> = versions
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    object["status"] = json!({ "conditions": null, "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": stored });
}

/// A definition is new or has changed: what it defines is served from now on.
pub(crate) fn changed(turn: &Turn<'_>, target: &Target, object: &Value) {
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

/// What is kept is read with the new schemas: fields may go and defaults come, at the versions that the objects have. Watches
/// end, and none begins where it was.
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

/// Whether nothing has been said of a definition yet.
fn is_new(object: &Value) -> bool {
    object["status"]["conditions"].as_array().is_none_or(Vec::is_empty)
}

/// What the server says of a definition, or of its new names, which it has accepted.
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

/// A definition is to be deleted: it has to wait until its objects are gone.
pub(crate) fn terminate(turn: &Turn<'_>, object: &mut Value) {
    if Meta(object).is_being_deleted() {
        return;
    }
    let now = turn.now();
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".into(), now.clone().into());
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut() {
        finalizers.push(CLEANUP.into());
    }
    let terminating = json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now,
        "reason": "InstanceDeletionPending", "message": "CustomResourceDefinition marked for deletion; \
            CustomResource deletion will begin soon",
    });
    if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.push(terminating);
    }
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
            // It is gone, or waits for its finalizers; either is right.
            let _ = turn.delete(&target, &DeleteOptions::default());
        }
    }
    finish(turn, id);
}

/// An object of a definition is gone: if the definition has waited for that, it goes too.
pub(crate) fn finish(turn: &Turn<'_>, id: &GroupResource) {
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

/// A definition is gone: so are its objects, and watches of them end.
pub(crate) fn removed(turn: &Turn<'_>, object: &Value) {
    let id = Definition::read(object).id;
    let mut definitions = turn.core.definitions();
    definitions.remove(&id);
    turn.core.serve_definitions(definitions);
    turn.core.store.close(&id);
}

/// All definitions that are kept are served, and no others.
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
