//! Hides secrets: the values in Secrets, wherever they appear, and everything else that the user names.
//!
//! A value is replaced before any other code sees the object, by a keyed hash and its length:
//! `<hmac:1f3a9c20 18 bytes>`. Equal values have equal hashes, so that "changed" and "changed back" are
//! distinguishable; without the key, which is random, the value cannot be found by trying.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

pub use key::{Epoch, HashKey, InvalidKeyId, KeyFileError, KeyId, NoRandomKey};
pub(crate) use marker::length;
pub use redacted::Redacted;

use crate::model::document;
use crate::model::gvk::{Gvk, Scope};
use crate::model::path::{PathPattern, Segment, Step, find};
use known::{Known, essence};
use marker::{hidden, mark};
use search::Search;

mod former;
mod forms;
mod key;
mod known;
mod manifest;
mod marker;
mod readings;
mod redacted;
mod search;

/// Annotations in which tools keep the whole object as they applied it.
const APPLIED: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "kapp.k14s.io/original",
    "objectset.rio.cattle.io/applied",
];

/// Replaces secret values by hashes. Its clones know the same values.
///
/// Of a Secret, and of everything nested that has `kind: Secret`, also in documents inside of strings, name, namespace,
/// uid, type, versions, times, owners, managers and the names of keys are shown; every other string and number is
/// replaced. In all other objects, the values of Secrets that were [learnt](Self::learn) are searched, and replaced
/// where they are found: values of 8 bytes and more, without white space at their ends; as they are, in base64 in every
/// alignment, base64 of that, URL-encoded, escaped as in JSON, and folded into lines. The object's own name,
/// namespace, uid, kind and times are always shown, and so are names of fields that are words (`replicas`).
///
/// Values are not kept: what a value is found by are hashes of it.
#[derive(Clone)]
pub struct Secrets {
    key: HashKey,
    hidden: Vec<(Scope, PathPattern)>,
    known: Arc<RwLock<Known>>,
}

impl Secrets {
    /// With a random key that is never shown and ends with the process.
    ///
    /// # Errors
    ///
    /// When the system gives no random numbers.
    pub fn with_random_key() -> Result<Self, NoRandomKey> {
        Ok(Self::new(HashKey::random()?))
    }

    /// With these bytes as key.
    pub fn with_key(key: [u8; 32]) -> Self {
        Self::new(HashKey::from_bytes(key))
    }

    /// With the key of an installation, so that hashes can be compared over time.
    pub fn new(key: HashKey) -> Self {
        Self { key, hidden: Vec::new(), known: Arc::default() }
    }

    /// Which key the hashes have.
    pub fn key_id(&self) -> KeyId {
        self.key.id()
    }

    /// Hides what is at `path` of objects of `scope`, besides Secrets.
    ///
    /// A path into a document that a string holds hides the whole string.
    pub fn hide(&mut self, scope: Scope, path: PathPattern) {
        self.hidden.push((scope, path));
    }

    /// Looks for the values of this state of a Secret in all other objects from now on. Values that the Secret had before
    /// are still looked for, and so are those of Secrets that are gone: the last 10,000 of them. Objects of other kinds
    /// have no effect.
    ///
    /// [`Change::between`](crate::Change::between) does so with both states. The objects of a watch's first list must be learnt
    /// before anything is shown.
    pub fn learn(&self, gvk: &Gvk, object: &Value) {
        if is_secret(gvk, object) {
            let values = values(object);
            self.write().learn(&identity(object), &values, |value| mark(&self.key, value));
        }
    }

    /// Learns from both states of an object, before either is redacted: each may mention what is hidden of the other.
    pub(crate) fn learn_change(&self, gvk: &Gvk, old: Option<&Value>, new: Option<&Value>) {
        for object in old.into_iter().chain(new) {
            self.learn(gvk, object);
            self.learn_hidden(gvk, object);
        }
        if let (Some(gone), None) = (old, new)
            && is_secret(gvk, gone)
        {
            self.write().learn(&identity(gone), &[], |value| mark(&self.key, value));
        }
    }

    /// Looks for what is hidden in `object` apart from Secrets of their own: values of nested Secrets, and at paths.
    fn learn_hidden(&self, gvk: &Gvk, object: &Value) {
        let mut found = Vec::new();
        if !is_secret(gvk, object) {
            nested_values(object, &mut found);
        }
        for steps in self.paths(gvk) {
            find::at(object, None, steps, &mut |value| {
                found.extend(texts(value).map(|text| text.as_bytes().to_vec()))
            });
        }
        for value in found.iter().filter_map(|value| essence(value)) {
            self.write().learn_former(value, |value| mark(&self.key, value));
        }
    }

    /// Looks again for what was hidden in a stored state of an object, as far as `now` has it: a later state, or the same.
    pub(crate) fn learn_hidden_before(&self, stored: &Value, now: &Value) {
        for value in former::values(&self.key, stored, now) {
            if let Some(value) = essence(&value) {
                self.write().learn_former(value, |value| mark(&self.key, value));
            }
        }
    }

    /// Whether a stored text may have something hidden in it.
    pub(crate) fn may_hide(stored: &[u8]) -> bool {
        stored.windows(former::BEGIN.len()).any(|window| window == former::BEGIN.as_bytes())
    }

    /// The object without secrets.
    pub fn redact(&self, gvk: &Gvk, mut object: Value) -> Redacted<Value> {
        if is_secret(gvk, &object) {
            manifest::hide(&self.key, &mut object);
        } else {
            self.nested(&mut object);
        }
        let paths: Vec<&[Step]> = self.paths(gvk).collect();
        for steps in &paths {
            self.hide_steps(&mut object, None, steps);
        }
        if !paths.is_empty() {
            self.applied(&mut object, &paths);
            if let Some(managed) = object.pointer_mut("/metadata/managedFields") {
                forget_elements(managed);
            }
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Search { key: &self.key, known: &known }.object(&mut object);
        Redacted::vouched(object)
    }

    /// A state that was redacted before, without what has come to be a secret since: at paths that are hidden now, and values
    /// that are known now.
    pub(crate) fn redact_again(&self, gvk: &Gvk, mut object: Value) -> Redacted<Value> {
        let paths: Vec<&[Step]> = self.paths(gvk).collect();
        for steps in &paths {
            self.hide_steps(&mut object, None, steps);
        }
        if !paths.is_empty() {
            self.applied(&mut object, &paths);
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Search { key: &self.key, known: &known }.object(&mut object);
        Redacted::vouched(object)
    }

    /// The text without values of Secrets: for messages of others, which may quote content.
    pub fn redact_text(&self, text: &str) -> Redacted<String> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let searched = Search { key: &self.key, known: &known }.text(text);
        Redacted::vouched(searched.unwrap_or_else(|| text.to_owned()))
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn paths<'a>(&'a self, gvk: &'a Gvk) -> impl Iterator<Item = &'a [Step]> {
        let paths = self.hidden.iter().filter(|(scope, _)| scope.matches(gvk));
        paths.map(|(_, path)| until_document(path.steps()))
    }

    /// Hides everything in `value` that is a Secret. Returns whether there was one.
    fn nested(&self, value: &mut Value) -> bool {
        match value {
            Value::Object(map) if manifest::is_secret(map) => {
                manifest::hide(&self.key, value);
                true
            }
            Value::Object(map) if manifest::is_list(map) => {
                for (name, value) in map.iter_mut() {
                    match (name.as_str(), value) {
                        ("items", Value::Array(items)) => {
                            items.iter_mut().for_each(|item| manifest::hide(&self.key, item));
                        }
                        ("kind" | "apiVersion" | "metadata", _) => {}
                        (_, other) => manifest::everything(&self.key, other),
                    }
                }
                true
            }
            Value::Object(map) => self.nested_in(map.values_mut()),
            Value::Array(list) => self.nested_in(list.iter_mut()),
            Value::String(text) => {
                let Some(redacted) = self.manifests(text) else { return false };
                *value = redacted.into();
                true
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// The same in each of these: all of them, wherever one was found.
    fn nested_in<'v>(&self, values: impl Iterator<Item = &'v mut Value>) -> bool {
        let mut found = false;
        for value in values {
            found |= self.nested(value);
        }
        found
    }

    /// The documents in `text` as JSON, if one of them has a Secret. The whole text is hidden when it seems to have one
    /// and cannot be read.
    fn manifests(&self, text: &str) -> Option<String> {
        if !(text.contains("Secret") && text.contains("kind")) {
            return None;
        }
        match document::all(text) {
            Some(mut documents) => {
                let found = self.nested_in(documents.iter_mut());
                found.then(|| documents.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n"))
            }
            None => seems_to_have_a_secret(text).then(|| hidden(&self.key, text.as_bytes())),
        }
    }

    /// Hides the same in the copies that tools keep of the object as applied.
    fn applied(&self, object: &mut Value, hidden_paths: &[&[Step]]) {
        let Some(annotations) = annotations(object) else { return };
        for (_, value) in annotations.iter_mut().filter(|(name, _)| APPLIED.contains(&name.as_str())) {
            let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            *value = match parsed {
                Some(mut applied @ Value::Object(_)) => {
                    for steps in hidden_paths {
                        self.hide_steps(&mut applied, None, steps);
                    }
                    applied.to_string().into()
                }
                _ => self.hash(value),
            };
        }
    }

    fn hide_steps(&self, value: &mut Value, field: Option<&str>, steps: &[Step]) {
        let Some((step, rest)) = steps.split_first() else {
            if !value.is_null() {
                *value = self.hash(value);
            }
            return;
        };
        match value {
            Value::Object(map) => {
                for (name, value) in
                    map.iter_mut().filter(|(name, _)| step.matches(&Segment::Field((*name).clone())))
                {
                    self.hide_steps(value, Some(name), rest);
                }
            }
            Value::Array(list) => {
                for (at, element) in list.iter_mut().enumerate() {
                    if let Some(rest) = Step::into_element(steps, Segment::Index(at), field, element) {
                        self.hide_steps(element, field, rest);
                    }
                }
            }
            _ => {}
        }
    }

    fn hash(&self, value: &Value) -> Value {
        match value {
            // It was hidden as part of a Secret.
            Value::String(text) if length(text).is_some() => value.clone(),
            Value::String(text) => hidden(&self.key, text.as_bytes()).into(),
            other => hidden(&self.key, other.to_string().as_bytes()).into(),
        }
    }
}

/// If caller or object says that it is a Secret, nothing is shown.
fn is_secret(gvk: &Gvk, object: &Value) -> bool {
    crate::model::gvk::is_secret(gvk) || object.as_object().is_some_and(manifest::is_secret)
}

/// Which Secret it is, whatever its state.
fn identity(secret: &Value) -> String {
    let text = |at: &str| secret.pointer(at).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"))
}

/// The values of a Secret that are looked for elsewhere: not those that are shown of the Secret itself.
fn values(secret: &Value) -> Vec<Vec<u8>> {
    let text = |at: &str| secret.pointer(at).and_then(Value::as_str).unwrap_or_default().as_bytes();
    let shown = [text("/metadata/namespace"), text("/metadata/name"), text("/type")];
    let mut values = Vec::new();
    for (field, encoded) in [("data", true), ("stringData", false)] {
        for text in secret.get(field).into_iter().flat_map(texts) {
            let decoded = if encoded { BASE64.decode(text).ok() } else { None };
            values.push(decoded.unwrap_or_else(|| text.as_bytes().to_vec()));
        }
    }
    values.retain_mut(|value| match essence(value) {
        Some(essence) if !shown.contains(&essence) => {
            *value = essence.to_vec();
            true
        }
        _ => false,
    });
    values
}

/// The values of all Secrets in `value`.
fn nested_values(value: &Value, found: &mut Vec<Vec<u8>>) {
    match value {
        Value::Object(map) if manifest::is_secret(map) => found.extend(values(value)),
        Value::Object(map) if manifest::is_list(map) => {
            let items = map.get("items").and_then(Value::as_array).into_iter().flatten();
            found.extend(items.flat_map(values));
        }
        Value::Object(map) => map.values().for_each(|value| nested_values(value, found)),
        Value::Array(list) => list.iter().for_each(|value| nested_values(value, found)),
        Value::String(text) if text.contains("Secret") && text.contains("kind") => {
            document::all(text).iter().flatten().for_each(|value| nested_values(value, found));
        }
        _ => {}
    }
}

/// All texts in a value.
fn texts(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(list) => Box::new(list.iter().flat_map(texts)),
        Value::Object(map) => Box::new(map.values().flat_map(texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Box::new(std::iter::empty()),
    }
}

/// Whether `kind: Secret` is in a text that is no document: a template, a part of one, one with an error. Quotes and
/// the backslashes before them do not matter.
fn seems_to_have_a_secret(text: &str) -> bool {
    let is_filling = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    text.match_indices("kind").any(|(at, kind)| {
        let rest = text.get(at + kind.len()..).unwrap_or_default().trim_start_matches(is_filling);
        let Some(value) = rest.strip_prefix([':', '=']) else { return false };
        let value = value.trim_start_matches(is_filling);
        let Some(after) = value.strip_prefix("Secret") else { return false };
        let after = after.strip_prefix("List").unwrap_or(after);
        !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
    })
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
