//! Hides secrets: the values in Secrets, wherever they appear, and everything else that the user names.
//!
//! A value is replaced before any other code sees the object, by a keyed hash and its length:
//! `<hmac:1f3a9c2055d1e0b7 18 bytes>`. Equal values have equal hashes, so that "changed" and "changed back" are
//! distinguishable; without the key, which is random, the value cannot be found by trying.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

pub use key::{Epoch, HashKey, InvalidKeyId, KeyFileError, KeyId, NoRandomKey};
pub(crate) use marker::{length, may_be_in as may_have_mark, write_out as write_out_marks};
pub use redacted::Redacted;
pub(crate) use unkeyed::{may_be_none, take_hashes};

use crate::model::diff::Difference;
use crate::model::document;
use crate::model::gvk::{Gvk, Scope};
use crate::model::path::{PathPattern, Segment, Step, find};
use finder::Finder;
use known::{Budget, Known, essence};
use manifest::Kind;
use marker::Marker;
use print::Print;
use search::Search;
use unsure::Waited;
use vocabulary::Vocabulary;

mod aligned;
mod finder;
mod key;
mod known;
mod manifest;
mod marker;
mod mention;
mod ordinary;
mod parts;
mod print;
mod readings;
mod redacted;
mod runs;
mod search;
mod unkeyed;
mod unsure;
mod vocabulary;

/// Annotations in which tools keep the whole object as they applied it.
const APPLIED: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "kapp.k14s.io/original",
    "objectset.rio.cattle.io/applied",
];

/// The most texts of a Secret that are read. The search takes fewer of them, and none that is an ordinary word.
const READ: usize = 1_024;

/// Replaces secret values by hashes. Its clones know the same values.
///
/// Of a Secret, and of everything nested that has `kind: Secret`, also in documents inside of strings, name, namespace,
/// uid, type, versions, times, owners, managers and the names of keys are shown; every other string and number is
/// replaced. In all other objects, the values of Secrets that were [learnt](Self::learn) are searched, and replaced
/// where they are found: values of 8 bytes and more that [look secret](#which-values-look-secret), without white space at their ends, and
/// their [parts](#parts); as they are, in base64 in every alignment, base64 of that, URL-encoded and HTML-escaped, once and twice,
/// escaped as in JSON, and folded into lines. The object's own name, namespace, uid, kind, times and managers are always shown, and so
/// are names of fields that are words (`replicas`).
///
/// Values are not kept: a value is found by hashes of it.
///
/// # Which values look secret
///
/// Values with characters of two classes (lower case, upper case, digits, others) that do not consist of words of configurations,
/// numbers of up to five digits, and the cluster's own words: names, labels, images, managers, namespaces and hosts. So a Secret with
/// `username: postgres` hides that word in the Secret alone.
///
/// # Parts
///
/// The leaves of JSON and YAML, values of properties and connection strings, user and password of a URL or of docker's
/// configuration, and what one layer of base64 holds, of values of up to 64 KiB.
///
/// # Bounds
///
/// 256 values of each Secret, 10,000 of each namespace, and 2,000 former ones of each namespace are searched for, and about 100,000 in
/// all; [`over_bounds`](Self::over_bounds) says how many are not. A text that takes too long to search is hidden as a whole.
#[derive(Clone)]
pub struct Secrets {
    key: HashKey,
    hidden: Vec<(Scope, PathPattern)>,
    learnt: Arc<RwLock<Learnt>>,
}

/// Values and words learnt from objects.
struct Learnt {
    known: Known,
    vocabulary: Vocabulary,
    /// Whether Secrets are watched, so that more may be learnt at any time.
    is_watching: bool,
    waited: Waited,
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
        let learnt = Learnt {
            known: Known::new(&key),
            vocabulary: Vocabulary::default(),
            is_watching: false,
            waited: Waited::default(),
        };
        Self { key, hidden: Vec::new(), learnt: Arc::new(RwLock::new(learnt)) }
    }

    /// Others, which know nothing yet.
    pub(crate) fn with_same_key(&self) -> Self {
        Self::new(self.key.clone())
    }

    /// Which key the hashes have.
    pub fn key_id(&self) -> KeyId {
        self.key.id()
    }

    /// Hides what is at `path` of objects of `scope`, besides Secrets.
    ///
    /// A path into a document that a string holds hides the whole string.
    pub fn hide(&mut self, scope: Scope, path: PathPattern) {
        self.hidden.push((scope, path.until_document()));
    }

    /// Looks for the values of this state of a Secret in all other objects from now on. Values that the Secret had before
    /// are still looked for, and so are those of Secrets that are gone. Objects of other kinds have no effect.
    ///
    /// [`Change::between`](crate::Change::between) does so with both states. The objects of a watch's first list must be learnt
    /// before anything is shown.
    pub fn learn(&self, gvk: &Gvk, object: &Value) {
        if is_secret(gvk, object) {
            self.learn_values(object, &values(object), texts_of(object).count().saturating_sub(READ));
        }
    }

    fn learn_values(&self, secret: &Value, values: &[Vec<u8>], unread: usize) {
        let name = secret.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let mut learnt = self.write();
        values.iter().for_each(|value| learnt.vocabulary.unlearn(value));
        learnt.known.learn(namespace(secret), name, values, unread, |value| self.key.value_id(value));
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
            self.learn_values(gone, &[], 0);
        }
        new.or(old).into_iter().for_each(|object| self.learn_words(object));
    }

    /// Takes the names, labels and images of an object for the cluster's words.
    pub(crate) fn learn_words(&self, object: &Value) {
        let mut learnt = self.write();
        let Learnt { known, vocabulary, .. } = &mut *learnt;
        vocabulary.learn(object, |label| {
            let finder = Finder { known, vocabulary: &Vocabulary::default() };
            finder.find(label, &mut Budget::new()).map_or(true, |found| !found.is_empty())
        });
    }

    /// Takes the name of an object for one of the cluster's words, before the object itself is compared.
    pub(crate) fn learn_name(&self, name: &str) {
        self.write().vocabulary.add(name);
    }

    /// Takes names of fields that the configuration has for words: a Secret with one of them must not keep a rule from its field.
    pub(crate) fn trust<'n>(&self, names: impl IntoIterator<Item = &'n str>) {
        let mut learnt = self.write();
        names.into_iter().for_each(|name| learnt.vocabulary.trust(name));
    }

    /// Looks for what is hidden in `object` apart from Secrets of their own: values of nested Secrets, and at paths.
    fn learn_hidden(&self, gvk: &Gvk, object: &Value) {
        let mut found = Vec::new();
        if !is_secret(gvk, object) {
            values_in_object(object, &mut found);
        }
        for steps in self.paths(gvk) {
            find::at(object, None, steps, Step::into_hidden_element, &mut |value| {
                found.extend(texts(value).map(|text| text.as_bytes().to_vec()))
            });
        }
        self.learn_former(object, &found);
    }

    /// Looks for this value from now on, whatever it looks like, and for its parts. False for one that is too short to be looked for.
    pub(crate) fn learn_value(&self, namespace: Option<&str>, value: &[u8]) -> bool {
        let Some(value) = essence(value) else { return false };
        let namespace = namespace.unwrap_or_default();
        let known = &mut self.write().known;
        for value in [Some(value.to_vec()), marker::written_out_bytes(value)].into_iter().flatten() {
            known.learn_former(namespace, &value, true, self.key.value_id(&value));
        }
        for part in
            parts::parts(value).iter().filter_map(|part| essence(part)).filter(|part| looks_secret(part))
        {
            known.learn_former(namespace, part, false, self.key.value_id(part));
        }
        true
    }

    fn learn_former(&self, object: &Value, values: &[Vec<u8>]) {
        for value in values.iter().filter_map(|value| essence(value)).filter(|value| looks_secret(value)) {
            self.write().known.learn_former(namespace(object), value, false, self.key.value_id(value));
        }
    }

    /// Looks for the values that a history knows by their hashes. Returns those that were made with another key.
    pub(crate) fn restore(&self, prints: &[(String, Vec<u8>)]) -> Vec<Vec<u8>> {
        let mut learnt = self.write();
        let mut foreign = Vec::new();
        for (namespace, sealed) in prints {
            match Print::open(&self.key, sealed) {
                Some(print) => learnt.known.restore(namespace, &print),
                None => foreign.push(sealed.clone()),
            }
        }
        foreign
    }

    /// The hashes of what was learnt since the last time, with its namespace, and of what was forgotten, without one: for a history.
    pub(crate) fn news(&self) -> Vec<(Option<String>, Vec<u8>)> {
        let news = self.write().known.news();
        news.into_iter().map(|(namespace, print)| (namespace, print.sealed(&self.key))).collect()
    }

    /// A text that was searched at this number may have more values at a higher one.
    pub(crate) fn edition(&self) -> u64 {
        self.read().known.edition()
    }

    /// Secrets are watched from now on.
    pub(crate) fn watches(&self) {
        self.write().is_watching = true;
    }

    /// Whether a new state of an object has a text that looks like a secret, and that no Secret has until now. Each such text is
    /// answered once: then it has waited for its Secret.
    pub(crate) fn is_unsure(&self, gvk: &Gvk, old: Option<&Value>, new: &Value) -> bool {
        if is_secret(gvk, new) || !self.read().is_watching {
            return false;
        }
        let words = unsure::words(gvk, old, new);
        if words.is_empty() {
            return false;
        }
        let mut learnt = self.write();
        let Learnt { known, vocabulary, waited, .. } = &mut *learnt;
        let finder = Finder { known, vocabulary };
        let mut is_unsure = false;
        for word in words.iter().filter(|word| !vocabulary.excuses(word.as_bytes())) {
            let is_known = finder.find(word, &mut Budget::new()).is_ok_and(|found| !found.is_empty());
            is_unsure |= !is_known && waited.insert(word);
        }
        is_unsure
    }

    /// Takes the texts of a new state that look like secrets for secrets: there is no time to wait for them.
    pub(crate) fn learn_unsure(&self, gvk: &Gvk, old: Option<&Value>, new: &Value) {
        let words: Vec<_> = unsure::words(gvk, old, new).into_iter().map(String::into_bytes).collect();
        self.learn_former(new, &words);
    }

    /// How many values of Secrets are not searched for in other objects, because there are too many.
    pub fn over_bounds(&self) -> usize {
        self.read().known.over()
    }

    /// The object without secrets. A state that was redacted before stays as it is, but for what has come to be a secret since.
    pub fn redact(&self, gvk: &Gvk, object: Value) -> Redacted<Value> {
        let [redacted, _] = self.redact_states(gvk, [Some(object), None]);
        redacted.unwrap_or_default()
    }

    /// Two states of an object without secrets, both with the same knowledge.
    pub(crate) fn redact_states(
        &self,
        gvk: &Gvk,
        states: [Option<Value>; 2],
    ) -> [Option<Redacted<Value>>; 2] {
        let of =
            states.iter().flatten().next().map(|object| namespace(object).to_owned()).unwrap_or_default();
        let marker = Marker { key: &self.key, namespace: &of };
        let learnt = self.read();
        let Learnt { known, vocabulary, .. } = &*learnt;
        let mut search = Search::new(marker, Finder { known, vocabulary });
        states.map(|object| {
            let mut object = object?;
            self.hide_fields(gvk, marker, &mut object);
            search.object(&mut object);
            Some(Redacted::vouched(object))
        })
    }

    /// Gives a stored state the texts of the object where what is hidden in it is the same: it may be hidden no more.
    pub(crate) fn align(&self, stored: Option<&mut Value>, now: Option<&Value>) {
        if let (Some(stored), Some(now)) = (stored, now) {
            aligned::align(Marker { key: &self.key, namespace: namespace(now) }, stored, now);
        }
    }

    /// A stored part of an object without values that have become known since.
    pub(crate) fn redact_again(&self, namespace: Option<&str>, part: &mut Value) {
        let marker = Marker { key: &self.key, namespace: namespace.unwrap_or_default() };
        let learnt = self.read();
        let Learnt { known, vocabulary, .. } = &*learnt;
        Search::new(marker, Finder { known, vocabulary }).value(part);
    }

    /// A stored text without values that have become known since; `None` where it has none.
    pub(crate) fn text_again(&self, namespace: Option<&str>, text: &str) -> Option<String> {
        let marker = Marker { key: &self.key, namespace: namespace.unwrap_or_default() };
        let learnt = self.read();
        let Learnt { known, vocabulary, .. } = &*learnt;
        Search::new(marker, Finder { known, vocabulary }).text(text)
    }

    /// Hides what is at the paths that the user names, in stored differences.
    pub(crate) fn hide_differences(
        &self,
        gvk: &Gvk,
        namespace: Option<&str>,
        differences: &mut [Difference],
    ) {
        let marker = Marker { key: &self.key, namespace: namespace.unwrap_or_default() };
        for (_, pattern) in self.hidden.iter().filter(|(scope, _)| scope.matches(gvk)) {
            for Difference { path, edit } in differences.iter_mut() {
                if !pattern.covers(path) && pattern.below(path).is_none() {
                    continue;
                }
                let steps = pattern.below(path).unwrap_or_default();
                let line = |text: &str| (!text.contains('\n')).then(|| marker.hidden(text));
                edit.retext(&line, &|value| hide_steps(marker, value, path.field(), steps));
            }
        }
    }

    /// Whether `text` is shown as `shown` in objects of a namespace because it is hidden there.
    pub(crate) fn hides_as(&self, namespace: Option<&str>, text: &str, shown: &str) -> bool {
        if !shown.contains("<hmac:") {
            return false;
        }
        let marker = Marker { key: &self.key, namespace: namespace.unwrap_or_default() };
        let mut searched = Value::from(text);
        self.redact_again(namespace, &mut searched);
        marker.hidden(text) == shown || searched == shown
    }

    /// Hides Secrets, and what is at the paths that the user names.
    fn hide_fields(&self, gvk: &Gvk, marker: Marker<'_>, object: &mut Value) {
        if is_secret(gvk, object) {
            manifest::hide(marker, object);
        } else {
            nested_in_object(marker, object);
        }
        let paths: Vec<&[Step]> = self.paths(gvk).collect();
        for steps in &paths {
            hide_steps(marker, object, None, steps);
        }
        if !paths.is_empty() {
            applied(marker, object, &paths);
            if let Some(managed) = object.pointer_mut("/metadata/managedFields") {
                forget_elements(managed);
            }
        }
    }

    /// The text without values of Secrets: for messages of others, which may quote content.
    pub fn redact_text(&self, text: &str) -> Redacted<String> {
        let marker = Marker { key: &self.key, namespace: "" };
        let learnt = self.read();
        let Learnt { known, vocabulary, .. } = &*learnt;
        let searched = Search::new(marker, Finder { known, vocabulary }).text(text);
        Redacted::vouched(searched.unwrap_or_else(|| text.to_owned()))
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Learnt> {
        self.learnt.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Learnt> {
        self.learnt.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn paths<'a>(&'a self, gvk: &'a Gvk) -> impl Iterator<Item = &'a [Step]> {
        let paths = self.hidden.iter().filter(|(scope, _)| scope.matches(gvk));
        paths.map(|(_, path)| path.steps())
    }
}

/// Hides everything in `object` that is a Secret, apart from the fields that managers own: the server writes those, and they are as
/// many as all others.
fn nested_in_object(marker: Marker<'_>, object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        nested(marker, object);
        return;
    };
    let managed = metadata.get_mut("managedFields").map(Value::take);
    nested(marker, object);
    if let (Some(managed), Some(at)) = (managed, object.pointer_mut("/metadata/managedFields")) {
        *at = managed;
    }
}

/// Hides everything in `value` that is a Secret. Returns whether there was one.
fn nested(marker: Marker<'_>, value: &mut Value) -> bool {
    match value {
        Value::Object(map) => match Kind::of(map) {
            Kind::Secret => {
                manifest::hide(marker, value);
                true
            }
            Kind::List => {
                for (name, value) in map.iter_mut() {
                    match (name.as_str(), value) {
                        ("items", Value::Array(items)) => {
                            items.iter_mut().for_each(|item| manifest::hide(marker, item));
                        }
                        ("kind" | "apiVersion" | "metadata", _) => {}
                        (_, other) => manifest::everything(marker, other),
                    }
                }
                true
            }
            Kind::Other => nested_in(marker, map.values_mut()),
        },
        Value::Array(list) => nested_in(marker, list.iter_mut()),
        Value::String(text) => {
            let Some(redacted) = manifests(marker, text) else { return false };
            *value = redacted.into();
            true
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The same in each of these: all of them, wherever one was found.
fn nested_in<'v>(marker: Marker<'_>, values: impl Iterator<Item = &'v mut Value>) -> bool {
    let mut found = false;
    for value in values {
        found |= nested(marker, value);
    }
    found
}

/// The documents in `text` as JSON, if one of them has a Secret. The whole text is hidden when it seems to have one
/// and cannot be read.
fn manifests(marker: Marker<'_>, text: &str) -> Option<String> {
    if !mention::may_be_in(text) {
        return None;
    }
    let whole = || marker.hidden(text);
    let hidden = match document::all(text) {
        Some(mut documents) => {
            // A mark that the text itself has not is written there in another way.
            if !text.contains("<hmac:") {
                documents.iter_mut().for_each(marker::write_out);
            }
            let found = nested_in(marker, documents.iter_mut());
            found.then(|| documents.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n"))
        }
        None => mention::seems_to_be_in(text).then(whole),
    };
    // A manifest in comments is hidden with the text around it.
    hidden.or_else(|| {
        let has_secret = |comments: &String| match document::all(comments) {
            Some(mut documents) => nested_in(marker, documents.iter_mut()),
            None => mention::seems_to_be_in(comments),
        };
        mention::comments(text).iter().any(has_secret).then(whole)
    })
}

/// Hides the same in the copies that tools keep of the object as applied.
fn applied(marker: Marker<'_>, object: &mut Value, hidden_paths: &[&[Step]]) {
    let Some(annotations) = annotations(object) else { return };
    for (_, value) in annotations.iter_mut().filter(|(name, _)| APPLIED.contains(&name.as_str())) {
        let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        *value = match parsed {
            Some(mut applied @ Value::Object(_)) => {
                for steps in hidden_paths {
                    hide_steps(marker, &mut applied, None, steps);
                }
                applied.to_string().into()
            }
            _ => hash(marker, value),
        };
    }
}

fn hide_steps(marker: Marker<'_>, value: &mut Value, field: Option<&str>, steps: &[Step]) {
    let Some((step, rest)) = steps.split_first() else {
        if !value.is_null() {
            *value = hash(marker, value);
        }
        return;
    };
    match value {
        Value::Object(map) => {
            for (name, value) in
                map.iter_mut().filter(|(name, _)| step.matches(&Segment::Field((*name).clone())))
            {
                hide_steps(marker, value, Some(name), rest);
            }
        }
        Value::Array(list) => {
            for (at, element) in list.iter_mut().enumerate() {
                if let Some(rest) = Step::into_hidden_element(steps, Segment::Index(at), field, element) {
                    hide_steps(marker, element, field, rest);
                }
            }
        }
        _ => {}
    }
}

fn hash(marker: Marker<'_>, value: &Value) -> Value {
    match value {
        Value::String(text) => marker.hidden(text).into(),
        other => marker.hidden(&other.to_string()).into(),
    }
}

/// If caller or object says that it is a Secret, nothing is shown.
fn is_secret(gvk: &Gvk, object: &Value) -> bool {
    crate::model::gvk::is_secret(gvk) || object.as_object().is_some_and(manifest::is_secret)
}

fn namespace(object: &Value) -> &str {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a value may be a secret, whatever the cluster's words are.
fn looks_secret(value: &[u8]) -> bool {
    ordinary::looks_secret(value, ordinary::is_word)
}

/// The values of a Secret that are looked for elsewhere, and then their parts: not those that are shown of the Secret itself.
fn values(secret: &Value) -> Vec<Vec<u8>> {
    let text = |at: &str| secret.pointer(at).and_then(Value::as_str).unwrap_or_default().as_bytes();
    let shown = [text("/metadata/namespace"), text("/metadata/name"), text("/type")];
    let mut values: Vec<Vec<u8>> = Vec::new();
    // A stored state has marks in place of values.
    for (text, encoded) in texts_of(secret).take(READ).filter(|(text, _)| length(text).is_none()) {
        let decoded = if encoded { BASE64.decode(text).ok() } else { None };
        values.push(decoded.unwrap_or_else(|| text.as_bytes().to_vec()));
    }
    let parts: Vec<Vec<u8>> = values.iter().flat_map(|value| parts::parts(value)).collect();
    values.extend(parts);
    let written: Vec<Vec<u8>> = values.iter().filter_map(|value| marker::written_out_bytes(value)).collect();
    values.extend(written);
    values.retain_mut(|value: &mut Vec<u8>| match essence(value) {
        Some(essence) if !shown.contains(&essence) && looks_secret(essence) => {
            *value = essence.to_vec();
            true
        }
        _ => false,
    });
    values
}

/// The texts of a Secret, and whether they are in base64.
fn texts_of(secret: &Value) -> impl Iterator<Item = (&str, bool)> {
    let fields = [("data", true), ("stringData", false)];
    fields.into_iter().flat_map(|(field, encoded)| {
        secret.get(field).into_iter().flat_map(texts).map(move |text| (text, encoded))
    })
}

/// The values of all Secrets in `object`, apart from the fields that managers own.
fn values_in_object(object: &Value, found: &mut Vec<Vec<u8>>) {
    let map = object.as_object().filter(|map| matches!(Kind::of(map), Kind::Other));
    let Some(map) = map else { return nested_values(object, found) };
    for (name, value) in map {
        match value {
            Value::Object(metadata) if name == "metadata" => metadata
                .iter()
                .filter(|(name, _)| *name != "managedFields")
                .for_each(|(_, value)| nested_values(value, found)),
            value => nested_values(value, found),
        }
    }
}

/// The values of all Secrets in `value`.
fn nested_values(value: &Value, found: &mut Vec<Vec<u8>>) {
    match value {
        Value::Object(map) => match Kind::of(map) {
            Kind::Secret => found.extend(values(value)),
            Kind::List => {
                let items = map.get("items").and_then(Value::as_array).into_iter().flatten();
                found.extend(items.flat_map(values));
            }
            Kind::Other => map.values().for_each(|value| nested_values(value, found)),
        },
        Value::Array(list) => list.iter().for_each(|value| nested_values(value, found)),
        Value::String(text) if mention::may_be_in(text) => {
            let comments = mention::comments(text);
            let texts = std::iter::once(text.as_str()).chain(comments.iter().map(String::as_str));
            texts.filter_map(document::all).flatten().for_each(|value| nested_values(&value, found));
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

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("hidden", &self.hidden).finish_non_exhaustive()
    }
}
