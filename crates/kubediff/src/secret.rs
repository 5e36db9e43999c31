//! Hides secrets: the values in Secrets, and everything else that the user names.
//!
//! A value is replaced before any other code sees the object, by a keyed hash and its length:
//! `<hmac:1f3a9c20 18 bytes>`. Equal values have equal hashes, so that "changed" and "changed back" are
//! distinguishable; without the key, which is random, the value cannot be found by trying.

use std::fmt;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value};
use sha2::Sha256;

use crate::gvk::{Gvk, Scope};
use crate::path::{PathPattern, Segment, Step};

/// Annotations in which tools keep the whole object as they applied it.
const APPLIED: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "kapp.k14s.io/original",
    "objectset.rio.cattle.io/applied",
];

/// A shorter value is no secret, and would be found in half of all annotations.
const MIN_BYTES: usize = 4;

/// Replaces secret values by hashes. Holds the key: never printed, and the same for the same hashes.
#[derive(Clone)]
pub struct Secrets {
    key: [u8; 32],
    hidden: Vec<(Scope, PathPattern)>,
}

/// The system gave no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("no random key for hiding secrets: {0}")]
pub struct NoRandomKey(#[from] getrandom::Error);

impl Secrets {
    /// With a random key that is never shown and ends with the process.
    ///
    /// # Errors
    ///
    /// When the system gives no random numbers.
    pub fn with_random_key() -> Result<Self, NoRandomKey> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self::with_key(key))
    }

    /// With the key of an installation, so that hashes can be compared over time.
    pub fn with_key(key: [u8; 32]) -> Self {
        Self { key, hidden: Vec::new() }
    }

    /// Hides what is at `path` of objects of `scope`, besides Secrets.
    ///
    /// A path into a document that a string holds hides the whole string.
    pub fn hide(&mut self, scope: Scope, path: PathPattern) {
        self.hidden.push((scope, path));
    }

    /// Takes the secrets out of the object.
    pub(crate) fn redact(&self, gvk: &Gvk, object: &mut Value) {
        let hidden: Vec<&[Step]> = self
            .hidden
            .iter()
            .filter(|(scope, _)| scope.matches(gvk))
            .map(|(_, path)| until_document(path.steps()))
            .collect();
        // If caller or object says that it is a Secret, nothing is shown.
        let is_secret = gvk.is_secret() || object.get("kind").is_some_and(|kind| kind == "Secret");
        if is_secret {
            self.secret(object);
        }
        for steps in &hidden {
            self.hide_at(object, None, steps);
        }
        if !hidden.is_empty() {
            if !is_secret {
                self.applied(object, &hidden);
            }
            if let Some(managed) = object.pointer_mut("/metadata/managedFields") {
                forget_elements(managed);
            }
        }
    }

    fn secret(&self, object: &mut Value) {
        let values = plain_values(object);
        for (field, encoded) in [("data", true), ("stringData", false)] {
            match object.get_mut(field) {
                Some(Value::Object(map)) => {
                    map.values_mut().for_each(|value| *value = self.hash(value, encoded))
                }
                Some(Value::Null) | None => {}
                // An unusual form for a Secret; all the more reason.
                Some(other) => *other = self.hash(other, false),
            }
        }
        let shows = |text: &str| values.iter().any(|value| text.contains(value.as_str()));
        let is_document = |text: &str| text.trim_start().starts_with(['{', '[']) || text.len() > 1024;
        if let Some(annotations) = annotations(object) {
            for (name, value) in annotations {
                let text = value.as_str().unwrap_or_default();
                if APPLIED.contains(&name.as_str()) || is_document(text) || shows(text) {
                    *value = self.hash(value, false);
                }
            }
        }
    }

    /// Hides the same in the copies that tools keep of the object as applied.
    fn applied(&self, object: &mut Value, hidden: &[&[Step]]) {
        let Some(annotations) = annotations(object) else { return };
        for (_, value) in annotations.iter_mut().filter(|(name, _)| APPLIED.contains(&name.as_str())) {
            let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            *value = match parsed {
                Some(mut applied @ Value::Object(_)) => {
                    for steps in hidden {
                        self.hide_at(&mut applied, None, steps);
                    }
                    applied.to_string().into()
                }
                _ => self.hash(value, false),
            };
        }
    }

    fn hide_at(&self, value: &mut Value, field: Option<&str>, steps: &[Step]) {
        let Some((step, rest)) = steps.split_first() else {
            if !value.is_null() {
                *value = self.hash(value, false);
            }
            return;
        };
        match value {
            Value::Object(map) => {
                for (name, value) in
                    map.iter_mut().filter(|(name, _)| step.matches(&Segment::Field((*name).clone())))
                {
                    self.hide_at(value, Some(name), rest);
                }
            }
            Value::Array(list) => {
                for (at, element) in list.iter_mut().enumerate() {
                    if let Some(rest) = Step::into_element(steps, Segment::Index(at), field, element) {
                        self.hide_at(element, field, rest);
                    }
                }
            }
            _ => {}
        }
    }

    fn hash(&self, value: &Value, encoded: bool) -> Value {
        let bytes = match value {
            Value::String(text) if encoded => {
                BASE64.decode(text).unwrap_or_else(|_| text.clone().into_bytes())
            }
            Value::String(text) => text.clone().into_bytes(),
            other => other.to_string().into_bytes(),
        };
        // A key of 32 bytes is of a length that HMAC accepts: every length is.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return "<hidden>".into() };
        mac.update(&bytes);
        let mut text = "<hmac:".to_owned();
        for byte in mac.finalize().into_bytes().iter().take(4) {
            let _ = write!(text, "{byte:02x}");
        }
        let _ = write!(text, " {} bytes>", bytes.len());
        text.into()
    }
}

/// How long the value was that `text` is, or stands for.
pub(crate) fn length(text: &str) -> usize {
    let hidden = text.strip_prefix("<hmac:").and_then(|rest| rest.strip_suffix(" bytes>"));
    let length = hidden.and_then(|rest| rest.split_once(' ')).and_then(|(_, length)| length.parse().ok());
    length.unwrap_or(text.len())
}

/// The values of a Secret as they might be copied into an annotation: plain and in base64.
fn plain_values(secret: &Value) -> Vec<String> {
    let mut values = Vec::new();
    for text in ["data", "stringData"].iter().filter_map(|field| secret.get(field)).flat_map(texts) {
        let decoded = BASE64.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        values.extend(decoded);
        values.push(BASE64.encode(text));
        values.push(text.to_owned());
    }
    values.retain(|value| value.len() >= MIN_BYTES);
    values
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::Object(map) => map.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Ownership of an element of a set is written with the element's value (`v:"..."`).
fn forget_elements(managed: &mut Value) {
    match managed {
        Value::Object(map) => {
            map.retain(|name, _| !name.starts_with("v:"));
            map.values_mut().for_each(forget_elements);
        }
        Value::Array(list) => list.iter_mut().for_each(forget_elements),
        _ => {}
    }
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}

fn until_document(steps: &[Step]) -> &[Step] {
    let end = steps.iter().position(|step| *step == Step::Document).unwrap_or(steps.len());
    steps.get(..end).unwrap_or(steps)
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("hidden", &self.hidden).finish_non_exhaustive()
    }
}
