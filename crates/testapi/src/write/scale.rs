//! The subresource `scale`.

use std::sync::Arc;

use serde_json::{Value, json};
use serve::{Object, Status};

use super::WriteOptions;
use super::patch::{Patch, apply_to};
use crate::definitions::ScalePaths;
use crate::managed::Scaling;
use crate::object::{Meta, set_pointer};
use crate::refusal::modified;
use crate::store::decode;
use crate::turn::{Target, Turn};

/// Where objects of a kind keep their scale.
fn paths(target: &Target) -> Result<ScalePaths, Status> {
    let paths = match &target.definition {
        Some(definition) => definition.scale(&target.resource.version).cloned(),
        None => target.has_subresource("scale").then(|| ScalePaths {
            spec: "/spec/replicas".into(),
            status: "/status/replicas".into(),
            selector: Some("/spec/selector".into()),
        }),
    };
    paths.ok_or_else(|| target.not_found())
}

/// The scale of an object.
pub(crate) fn scale(target: &Target, object: &Object) -> Result<Value, Status> {
    let paths = paths(target)?;
    let object = decode(object);
    let count = |path: &str| object.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let mut spec = json!({});
    if count(&paths.spec) != 0 {
        spec["replicas"] = count(&paths.spec).into();
    }
    let mut status = json!({ "replicas": count(&paths.status) });
    if let Some(selector) = paths.selector.and_then(|path| object.pointer(&path).map(selector_text)) {
        status["selector"] = selector.into();
    }
    let mut metadata = json!({ "name": Meta(&object).name() });
    for name in ["namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(name) {
            metadata[name] = value.clone();
        }
    }
    Ok(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status,
    }))
}

/// `app=cart,tier in (a,b)`, from a selector in any of the forms that kinds have.
fn selector_text(selector: &Value) -> String {
    let Some(members) = selector.as_object() else { return selector.as_str().unwrap_or_default().into() };
    let is_selector = members.contains_key("matchLabels") || members.contains_key("matchExpressions");
    let labels = json!({ "matchLabels": selector });
    serve::selector_text(if is_selector { selector } else { &labels }).unwrap_or_default()
}

impl Turn<'_> {
    /// Replaces an object's scale.
    pub(crate) fn update_scale(
        &self,
        target: &Target,
        scale: &Value,
        options: &WriteOptions,
    ) -> Result<Arc<Object>, Status> {
        let existing = target.current().ok_or_else(|| target.not_found())?;
        let version = Meta(scale).resource_version();
        if !version.is_empty() && version != existing.revision.to_string() {
            return Err(modified(&target.resource, &target.name));
        }
        self.set_scale(target, &existing, scale, options)
    }

    /// Changes an object's scale.
    pub(crate) fn patch_scale(
        &self,
        target: &Target,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Arc<Object>, Status> {
        let existing = target.current().ok_or_else(|| target.not_found())?;
        let mut new = scale(target, &existing)?;
        match patch {
            Patch::Apply(config) => crate::patch::merge(&mut new, config.clone()),
            // A scale has no lists, so a strategic merge is a merge.
            Patch::Strategic(by) => crate::patch::merge(&mut new, by.clone()),
            other => apply_to(&mut new, target, other)?,
        }
        self.set_scale(target, &existing, &new, options)
    }

    fn set_scale(
        &self,
        target: &Target,
        existing: &Arc<Object>,
        scale: &Value,
        options: &WriteOptions,
    ) -> Result<Arc<Object>, Status> {
        let paths = paths(target)?;
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        let before = self.core.recent.typed(&target.resource, existing);
        let mut object = Value::clone(&before);
        set_pointer(&mut object, &paths.spec, replicas.into());
        let options = WriteOptions { subresource: Some("scale".into()), applied: true, ..options.clone() };
        let scaling = match replicas {
            _ if before.pointer(&paths.spec) == object.pointer(&paths.spec) => Scaling::Same,
            0 => Scaling::ToZero,
            _ => Scaling::To,
        };
        let field = paths.spec.trim_start_matches('/').replace('/', ".");
        self.scaled(target, &mut object, &field, scaling, &options);
        self.replace(target, existing, &before, object, &options)
    }
}
