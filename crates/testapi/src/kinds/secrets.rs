//! Secrets: `stringData` is stored as base64.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// Moves `stringData` into `data`.
pub(super) fn encode(secret: &mut Value) {
    let Some(text) = secret.as_object_mut().and_then(|members| members.remove("stringData")) else { return };
    for (name, value) in text.as_object().into_iter().flatten() {
        if !secret["data"].is_object() {
            secret["data"] = json!({});
        }
        secret["data"][name] = BASE64_STANDARD.encode(value.as_str().unwrap_or_default()).into();
    }
}
