//! The options of a write, from its query.

use http::HeaderMap;
use serde_json::json;
use serve::{Query, Status};

use crate::refusal::{FieldError, invalid_options};

/// The options of a write.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    /// Whether nothing is stored.
    pub(crate) dry_run: bool,
    /// The field manager.
    pub(crate) manager: String,
    /// The treatment of unknown and duplicate fields.
    pub(crate) validation: FieldValidation,
    /// Whether an apply takes fields from other managers.
    pub(crate) force: bool,
    /// Whether the object comes from an apply, so that its `managedFields` are final.
    pub(crate) applied: bool,
    /// The subresource of the write, for `managedFields`.
    pub(crate) subresource: Option<String>,
}

/// The treatment of unknown and duplicate fields.
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
    /// The options of a write by the server itself, without warnings.
    pub(crate) fn by(manager: &str) -> Self {
        Self { manager: manager.into(), validation: FieldValidation::Ignore, ..Self::default() }
    }

    /// `kind` is the kind of the options: `CreateOptions`, `UpdateOptions`, `PatchOptions`.
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

/// The default field manager: the program that the `User-Agent` names.
fn manager_of(headers: &HeaderMap) -> String {
    let agent =
        headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let program = agent.split('/').next().unwrap_or_default();
    let program: String = program.chars().take(MANAGER_MAX).collect();
    if program.is_empty() { "unknown".into() } else { program }
}
