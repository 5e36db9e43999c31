//! The options of a write, from its query.

use http::HeaderMap;
use serde_json::json;
use serve::{Query, Status};

use crate::refusal::{FieldError, invalid_options};

/// What a write may say besides the object.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    /// Nothing is kept.
    pub(crate) dry_run: bool,
    /// Who writes, for `managedFields`.
    pub(crate) manager: String,
    /// What to do about fields that no schema has.
    pub(crate) validation: FieldValidation,
    /// Whether an apply takes fields from others.
    pub(crate) force: bool,
    /// Whether the object says who owns what already: it comes from an apply.
    pub(crate) applied: bool,
    /// Below which part of the object it is written, for `managedFields`.
    pub(crate) subresource: Option<String>,
}

/// What to do about fields that no schema has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The longest name of a field manager.
const MANAGER_MAX: usize = 128;

impl WriteOptions {
    /// For writes of the program itself, which nobody warns.
    pub(crate) fn by(manager: &str) -> Self {
        Self { manager: manager.into(), validation: FieldValidation::Ignore, ..Self::default() }
    }

    /// `kind` is that of the options: `CreateOptions`, `UpdateOptions`, `PatchOptions`.
    pub(crate) fn read(kind: &str, query: &Query, headers: &HeaderMap) -> Result<Self, Status> {
        let mut errors = Vec::new();
        let manager = query.get("fieldManager").unwrap_or_default();
        if manager.len() > MANAGER_MAX {
            let why = "may not be more than 128 bytes";
            errors.push(FieldError::too_long("fieldManager", why));
        }
        let dry_run = dry_run(query, &mut errors);
        let validation = match query.get("fieldValidation").unwrap_or_default() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let valid = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::unsupported("fieldValidation", json!(other), &valid));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(invalid_options(kind, &errors));
        }
        let manager = if manager.is_empty() { manager_of(headers) } else { manager.into() };
        Ok(Self {
            dry_run,
            manager,
            validation,
            force: query.get("force") == Some("true"),
            ..Self::default()
        })
    }
}

fn dry_run(query: &Query, errors: &mut Vec<FieldError>) -> bool {
    let values: Vec<&str> =
        query.iter().filter(|(name, _)| *name == "dryRun").map(|(_, value)| value).collect();
    let known = values.iter().all(|value| *value == "All");
    if !known {
        errors.push(FieldError::unsupported("dryRun", json!(values), &["All"]));
    }
    !values.is_empty()
}

/// Who does not say who he is, is the program that his user agent names.
fn manager_of(headers: &HeaderMap) -> String {
    let agent =
        headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let program = agent.split('/').next().unwrap_or_default();
    let program: String = program.chars().take(MANAGER_MAX).collect();
    if program.is_empty() { "unknown".into() } else { program }
}
