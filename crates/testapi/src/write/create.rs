//! Creates objects.

use std::sync::Arc;

use serde_json::Value;
use serve::{Object, Status};

use super::{WriteOptions, input, names};
use crate::kinds;
use crate::object::{Meta, metadata_mut, set};
use crate::refusal::{FieldError, already_exists, invalid, unknown};
use crate::store::{decode, encode};
use crate::turn::{Target, Turn};

impl Turn<'_> {
    /// Creates an object in the collection that `target` names.
    pub(crate) fn create(
        &self,
        target: &Target,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Object>, Status> {
        input::check_namespace(target, &object)?;
        kinds::check_namespace_is_open(self, target, &object)?;
        if !Meta(&object).resource_version().is_empty() {
            return Err(unknown("resourceVersion should not be set on objects to be created"));
        }
        self.fill_new_metadata(target, &mut object);
        let target = &Target { name: Meta(&object).name().into(), ..target.clone() };
        kinds::complete(target, &mut object);
        self.track(target, None, &mut object, options);
        kinds::prepare_create(self, target, &mut object);
        let mut errors = new_object_errors(target, &object);
        errors.extend(kinds::errors(target, None, &object, None));
        if !errors.is_empty() {
            return Err(invalid(&target.resource.group, &target.resource.kind, &target.name, &errors));
        }
        if let Some(existing) = target.current() {
            let existing = decode(&existing);
            return Err(already_exists(&target.resource, &target.name, Meta(&existing).is_being_deleted()));
        }
        if options.dry_run {
            return Ok(Arc::new(encode(&mut object, 0, target.order())));
        }
        let created = self.put(target, &mut object);
        self.after_change(target, None, &object);
        self.core.recent.keep(&created, object);
        Ok(created)
    }

    /// Sets the metadata that only the server writes.
    fn fill_new_metadata(&self, target: &Target, object: &mut Value) {
        let generated = match (Meta(object).name(), Meta(object).generate_name()) {
            ("", prefix) if !prefix.is_empty() => Some(self.core.generated_name(prefix)),
            _ => None,
        };
        let metadata = metadata_mut(object);
        if let Some(name) = generated {
            metadata.insert("name".into(), name.into());
        }
        metadata.insert("uid".into(), self.core.new_uid().into());
        metadata.insert("creationTimestamp".into(), self.now().into());
        let namespace = (!target.namespace.is_empty()).then(|| target.namespace.as_str().into());
        set(metadata, "namespace", namespace);
        for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.remove(name);
        }
        if kinds::has_generation(target) {
            metadata.insert("generation".into(), 1.into());
        }
        drop_empty(metadata);
    }
}

/// Removes empty members, as Go does.
pub(super) fn drop_empty(metadata: &mut serde_json::Map<String, Value>) {
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    });
}

fn new_object_errors(target: &Target, object: &Value) -> Vec<FieldError> {
    let name = Meta(object).name();
    let mut errors = if name.is_empty() {
        vec![FieldError::required("metadata.name", "name or generateName is required")]
    } else {
        names::name_errors(&target.resource, name)
    };
    errors.extend(names::metadata_errors(target, object));
    errors
}
