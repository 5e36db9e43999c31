//! The garbage collector: deletes or orphans the dependents of deleted objects.
//!
//! It finds dependents by scanning all objects, which suits tests and is slow for hundreds of thousands.

use serde_json::Value;

use crate::object::{Meta, metadata_mut};
use crate::store::decode;
use crate::turn::{Target, Turn};
use crate::write::{DeleteOptions, FOREGROUND, ORPHAN, Propagation, WriteOptions};

/// An object with finalizers is being deleted: carries out those of the garbage collector.
pub(super) fn deletion_began(turn: &Turn<'_>, target: &Target, object: &Value) {
    let finalizers = Meta(object).finalizers();
    if finalizers.contains(&ORPHAN) {
        for (dependent, before) in dependents(turn, Meta(object).uid()) {
            disown(turn, &dependent, &before, Meta(object).uid());
        }
        remove_finalizer(turn, target, ORPHAN);
    }
    if finalizers.contains(&FOREGROUND) {
        let options =
            DeleteOptions { propagation: Some(Propagation::Foreground), ..DeleteOptions::default() };
        for (dependent, _) in dependents(turn, Meta(object).uid()) {
            let _ = turn.delete(&dependent, &options);
        }
        finish_foreground(turn, target);
    }
}

/// An object was removed: deletes its dependents, unless they have other owners, and lets an owner go that has waited for
/// it.
pub(super) fn removed(turn: &Turn<'_>, object: &Value) {
    let uid = Meta(object).uid();
    for (dependent, before) in dependents(turn, uid) {
        if owners(&before).any(|owner| owner["uid"] != uid) {
            disown(turn, &dependent, &before, uid);
        } else {
            let options =
                DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
            let _ = turn.delete(&dependent, &options);
        }
    }
    for owner in owners(object) {
        if let Some(owner) = find(turn, object, owner) {
            finish_foreground(turn, &owner);
        }
    }
}

/// Removes the finalizer of an owner that is being deleted in the foreground, once no dependent blocks it.
fn finish_foreground(turn: &Turn<'_>, target: &Target) {
    let Some(object) = target.current().map(|object| decode(&object)) else { return };
    let waits = Meta(&object).is_being_deleted() && Meta(&object).finalizers().contains(&FOREGROUND);
    let uid = Meta(&object).uid();
    let blocks = |dependent: &Value| {
        owners(dependent).any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
    };
    if waits && !dependents(turn, uid).iter().any(|(_, dependent)| blocks(dependent)) {
        remove_finalizer(turn, target, FOREGROUND);
    }
}

fn remove_finalizer(turn: &Turn<'_>, target: &Target, finalizer: &str) {
    change(turn, target, |object| {
        let left: Vec<String> =
            Meta(object).finalizers().into_iter().filter(|name| *name != finalizer).map(Into::into).collect();
        metadata_mut(object).insert("finalizers".into(), left.into());
    });
}

fn disown(turn: &Turn<'_>, dependent: &Target, before: &Value, uid: &str) {
    let left: Vec<Value> = owners(before).filter(|owner| owner["uid"] != uid).cloned().collect();
    change(turn, dependent, |object| {
        metadata_mut(object).insert("ownerReferences".into(), left.into());
    });
}

fn change(turn: &Turn<'_>, target: &Target, change: impl FnOnce(&mut Value)) {
    let Some(mut object) = target.current().map(|object| decode(&object)) else { return };
    change(&mut object);
    // If the write is refused, the object stays as it is, as with the real collector.
    let _ = turn.update(target, object, &WriteOptions::by("kube-controller-manager"));
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

/// The object that a reference names, if it still has the uid of the reference.
fn find(turn: &Turn<'_>, dependent: &Value, reference: &Value) -> Option<Target> {
    let api_version = reference["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resources = turn.core.resources();
    let resource = resources.find_kind(group, version, reference["kind"].as_str()?)?;
    let namespace = if resource.namespaced { Meta(dependent).namespace() } else { "" };
    let target = Target::new(turn.core, resource, namespace, reference["name"].as_str()?)?;
    let uid = target.current().map(|object| Meta(&decode(&object)).uid().to_owned())?;
    (reference["uid"] == uid).then_some(target)
}

fn dependents(turn: &Turn<'_>, uid: &str) -> Vec<(Target, Value)> {
    let resources = turn.core.resources();
    let named = memchr::memmem::Finder::new(uid);
    let mut found = Vec::new();
    for resource in resources.iter() {
        let Some(target) = Target::new(turn.core, resource, "", "") else { continue };
        for object in target.objects.all(None) {
            // Most objects do not contain the uid, and are not decoded.
            if named.find(&object.body).is_none() {
                continue;
            }
            let value = decode(&object);
            if owners(&value).any(|owner| owner["uid"] == uid) {
                let target = Target {
                    namespace: object.namespace.as_ref().into(),
                    name: object.name.as_ref().into(),
                    ..target.clone()
                };
                found.push((target, value));
            }
        }
    }
    found
}
