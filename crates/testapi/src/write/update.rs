//! Replaces objects.

use std::sync::Arc;

use serde_json::{Value, json};
use serve::{Object, Status};

use super::create::drop_empty;
use super::{WriteOptions, input, names};
use crate::object::{Meta, metadata_mut, set, set_type};
use crate::refusal::{FieldError, conflict, invalid, modified, unknown};
use crate::store::encode;
use crate::turn::{Target, Turn};
use crate::{kinds, managed};

impl Turn<'_> {
    /// Replaces an object, as PUT does.
    pub(crate) fn update(
        &self,
        target: &Target,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<(Arc<Object>, bool), Status> {
        input::check_name(target, &object)?;
        input::check_namespace(target, &object)?;
        let Some(existing) = target.current() else {
            if kinds::is_created_by_update(target) && !target.status {
                if !Meta(&object).uid().is_empty() {
                    return Err(uid_precondition(target, Meta(&object).uid(), ""));
                }
                version(&object)?;
                metadata_mut(&mut object).remove("resourceVersion");
                let target = Target { name: String::new(), ..target.clone() };
                return Ok((self.create(&target, object, options)?, true));
            }
            return Err(target.not_found());
        };
        let before = self.core.recent.typed(&target.resource, &existing);
        let (asked, uid) = (Meta(&object).uid(), Meta(&before).uid());
        if !asked.is_empty() && asked != uid {
            return Err(uid_precondition(target, asked, uid));
        }
        Ok((self.replace(target, &existing, &before, object, options)?, false))
    }

    /// Replaces an existing object by the result of an update, patch or apply.
    pub(super) fn replace(
        &self,
        target: &Target,
        existing: &Arc<Object>,
        before: &Value,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Object>, Status> {
        check_version(target, existing, &object)?;
        self.restore_metadata(target, before, &mut object);
        kinds::complete(target, &mut object);
        self.track(target, Some(before), &mut object, options);
        let finalize = options.subresource.as_deref() == Some("finalize");
        kinds::prepare_update(self, target, before, &mut object, finalize);
        self.restore_generation(target, before, &mut object);
        let mut errors = update_errors(target, before, &object);
        errors.extend(names::metadata_errors(target, &object));
        errors.extend(kinds::errors(target, Some(before), &object, options.subresource.as_deref()));
        if !errors.is_empty() {
            return Err(invalid(&target.resource.group, &target.resource.kind, &target.name, &errors));
        }
        // An unchanged object gets no new version.
        set(metadata_mut(&mut object), "resourceVersion", before["metadata"].get("resourceVersion").cloned());
        set_type(&target.resource, &mut object);
        managed::keep_times(before, &mut object);
        if object == *before {
            return Ok(Arc::clone(existing));
        }
        if options.dry_run {
            return Ok(Arc::new(encode(&mut object, existing.revision, target.order())));
        }
        if is_finished(before, &object) {
            self.remove(target, &mut before.clone());
            self.after_removal(target, before);
            return Ok(Arc::new(encode(&mut object, existing.revision, target.order())));
        }
        let changed = self.put(target, &mut object);
        self.after_change(target, Some(before), &object);
        self.core.recent.keep(&changed, object);
        Ok(changed)
    }

    /// Restores the metadata that only the server writes.
    fn restore_metadata(&self, target: &Target, before: &Value, object: &mut Value) {
        let then = &before["metadata"];
        let metadata = metadata_mut(object);
        set(metadata, "creationTimestamp", then.get("creationTimestamp").cloned());
        set(metadata, "generation", then.get("generation").cloned());
        let namespace = (!target.namespace.is_empty()).then(|| target.namespace.as_str().into());
        set(metadata, "namespace", namespace);
        if metadata.get("uid").and_then(Value::as_str).unwrap_or_default().is_empty() {
            set(metadata, "uid", then.get("uid").cloned());
        }
        set(metadata, "deletionTimestamp", then.get("deletionTimestamp").cloned());
        set(metadata, "deletionGracePeriodSeconds", then.get("deletionGracePeriodSeconds").cloned());
        metadata.remove("selfLink");
        drop_empty(metadata);
    }

    fn restore_generation(&self, target: &Target, before: &Value, object: &mut Value) {
        let Some(generation) = Meta(before).generation() else { return };
        let generation = generation + i64::from(kinds::is_new_generation(target, before, object));
        metadata_mut(object).insert("generation".into(), generation.into());
    }
}

/// The resourceVersion in an object; 0 if it has none.
fn version(object: &Value) -> Result<u64, Status> {
    match Meta(object).resource_version() {
        "" => Ok(0),
        asked => asked
            .parse()
            .map_err(|_| unknown(format!("strconv.ParseUint: parsing {asked:?}: invalid syntax"))),
    }
}

/// Checks that the object has the resourceVersion of the existing one.
fn check_version(target: &Target, existing: &Object, object: &Value) -> Result<(), Status> {
    let version = version(object)?;
    if version == 0 && !kinds::is_updated_unconditionally(target) {
        let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        return Err(invalid(&target.resource.group, &target.resource.plural, &target.name, &[error]));
    }
    if version != 0 && version != existing.revision {
        return Err(modified(&target.resource, &target.name));
    }
    Ok(())
}

fn uid_precondition(target: &Target, asked: &str, uid: &str) -> Status {
    let resource = &target.resource;
    // The keys of custom resources in etcd contain the group.
    let group = if resource.typed_items { format!("{}/", resource.group) } else { String::new() };
    let key = match target.namespace.as_str() {
        "" => format!("/registry/{group}{}/{}", resource.plural, target.name),
        namespace => format!("/registry/{group}{}/{namespace}/{}", resource.plural, target.name),
    };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {asked}, UID in object meta: {uid}"
    );
    conflict(&resource.group, &resource.plural, &target.name, &why)
}

fn update_errors(target: &Target, before: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (then, now) = (Meta(before), Meta(object));
    if then.is_being_deleted() {
        let kept = then.finalizers();
        let new: Vec<&str> =
            now.finalizers().into_iter().filter(|finalizer| !kept.contains(finalizer)).collect();
        if !new.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {}",
                json_list(&new)
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &why));
        }
    }
    for name in ["name", "namespace", "uid"] {
        let (then, now) = (&before["metadata"][name], &object["metadata"][name]);
        if then != now {
            errors.push(FieldError::invalid(format!("metadata.{name}"), now, "field is immutable"));
        }
    }
    // The real server validates twice. Where validation is declarative, it drops what it finds again: for all kinds that
    // kube-apiserver itself has, since 1.37.
    let resource = &target.resource;
    let is_of_extensions = matches!(&*resource.group, "apiextensions.k8s.io" | "apiregistration.k8s.io");
    if resource.typed_items || is_of_extensions {
        errors.extend(errors.clone());
    }
    errors
}

/// `[]string{"a", "b"}`, as Go prints it.
fn json_list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| json!(name).to_string()).collect();
    format!("[]string{{{}}}", names.join(", "))
}

/// Whether this change removes the last finalizer of an object that is being deleted.
fn is_finished(before: &Value, object: &Value) -> bool {
    let then = Meta(before);
    then.is_being_deleted()
        && then.grace_period().unwrap_or(0) == 0
        && Meta(object).finalizers().is_empty()
        && object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}
