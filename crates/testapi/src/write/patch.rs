//! Patches objects.

use std::sync::Arc;

use serde_json::Value;
use serve::{Object, Status};

use super::{FieldValidation, WriteOptions, input};
use crate::object::Meta;
use crate::refusal::{FieldError, invalid, invalid_options, unsupported_media_type, unsupported_patch};
use crate::turn::{Target, Turn};
use crate::{go, patch};

/// A patch, in one of the formats of the API.
#[derive(Debug, Clone)]
pub enum Patch {
    /// RFC 6902, `application/json-patch+json`: the text of a list of operations.
    Json(Vec<u8>),
    /// RFC 7396, `application/merge-patch+json`.
    Merge(Value),
    /// `application/strategic-merge-patch+json`: like a merge patch, but lists merge by the schema. For built-in kinds
    /// only.
    Strategic(Value),
    /// `application/apply-patch+yaml`: the applied configuration (server-side apply).
    Apply(Value),
}

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

impl Patch {
    /// Parses the body of a request with this content type.
    pub(crate) fn read(target: &Target, content_type: &str, body: &[u8]) -> Result<Self, Status> {
        let custom = target.definition.is_some();
        match content_type.split(';').next().unwrap_or_default().trim() {
            JSON => Ok(Self::Json(body.to_vec())),
            MERGE => Ok(Self::Merge(patch::merge_body(body)?)),
            STRATEGIC if !custom => Ok(Self::Strategic(patch::strategic_body(body)?)),
            APPLY => Ok(Self::Apply(input::parse_yaml(body)?)),
            _ if custom => Err(unsupported_media_type(&[JSON, MERGE, APPLY])),
            _ => Err(unsupported_patch()),
        }
    }

    pub(crate) fn check(&self, options: &WriteOptions, named_manager: bool) -> Result<(), Status> {
        let is_apply = matches!(self, Self::Apply(_));
        let mut errors = Vec::new();
        if !is_apply && options.force {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        if is_apply && !named_manager {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        if errors.is_empty() { Ok(()) } else { Err(invalid_options("PatchOptions", &errors)) }
    }
}

impl Patch {
    /// Checks that the server could decode the patched object.
    fn check_values(&self, target: &Target, patched: &Value) -> Result<(), Status> {
        let wrong = target.schema().and_then(|schema| schema.undecodable(patched));
        wrong.map_or(Ok(()), |why| Err(self.invalid(patched, &why)))
    }

    /// The refusal of a patched object.
    fn invalid(&self, patched: &Value, why: &str) -> Status {
        let shown = if let Self::Strategic(patch) = self { go::print(patch) } else { patched.to_string() };
        invalid("", "", "", &[FieldError::invalid("patch", Value::from(shown), why)])
    }

    /// Warnings, or a refusal, for unknown fields of the patched object.
    fn check_fields(
        &self,
        target: &Target,
        patched: &Value,
        options: &WriteOptions,
    ) -> Result<Vec<String>, Status> {
        if options.validation == FieldValidation::Ignore {
            return Ok(Vec::new());
        }
        let Some(schema) = target.schema() else { return Ok(Vec::new()) };
        let unknown = schema.unknown_fields(patched);
        let words: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        if words.is_empty() || options.validation == FieldValidation::Warn {
            return Ok(words);
        }
        Err(self.invalid(patched, &format!("strict decoding error: {}", words.join(", "))))
    }
}

impl Turn<'_> {
    /// Changes an object; applying may create it.
    pub(crate) fn patch(
        &self,
        target: &Target,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<(Arc<Object>, bool), Status> {
        if let Patch::Apply(config) = patch {
            return self.apply(target, config, options);
        }
        let existing = target.current().ok_or_else(|| target.not_found())?;
        let before = self.core.recent.typed(&target.resource, &existing);
        let mut object = Value::clone(&before);
        apply_to(&mut object, target, patch)?;
        patch.check_values(target, &object)?;
        self.warnings.borrow_mut().extend(patch.check_fields(target, &object, options)?);
        input::check_type(&target.resource, &object)?;
        input::check_name(target, &object)?;
        input::check_namespace(target, &object)?;
        // The patched object contains the resourceVersion that `replace` checks: the current one, unless the patch sets
        // another.
        Ok((self.replace(target, &existing, &before, object, options)?, false))
    }

    fn apply(
        &self,
        target: &Target,
        config: &Value,
        options: &WriteOptions,
    ) -> Result<(Arc<Object>, bool), Status> {
        input::check_applied_type(target, config)?;
        let existing = target.current();
        let before = existing.as_ref().map(|existing| self.core.recent.typed(&target.resource, existing));
        if before.is_none() && target.status {
            return Err(target.not_found());
        }
        let object = self.applied(target, before.as_deref(), config, options)?;
        input::check_name(target, &object)?;
        input::check_namespace(target, &object)?;
        match (existing, before) {
            (Some(existing), Some(before)) => {
                let options = WriteOptions { applied: true, ..options.clone() };
                Ok((self.replace(target, &existing, &before, object, &options)?, false))
            }
            _ => {
                if !Meta(&object).uid().is_empty() {
                    return Err(target.not_found());
                }
                let options = WriteOptions { applied: true, ..options.clone() };
                let target = Target { name: String::new(), ..target.clone() };
                Ok((self.create(&target, object, &options)?, true))
            }
        }
    }
}

/// Changes an object by a patch that is no apply.
pub(super) fn apply_to(object: &mut Value, target: &Target, by: &Patch) -> Result<(), Status> {
    match by {
        Patch::Json(operations) => patch::json(object, operations),
        Patch::Merge(by) => {
            patch::merge(object, by.clone());
            Ok(())
        }
        Patch::Strategic(by) => patch::strategic(target.schema().as_ref(), object, by.clone()),
        Patch::Apply(_) => Ok(()),
    }
}
