//! Replaces the values that are known, wherever in an object they are.

use serde_json::{Map, Value};

use super::forms::Encoding;
use super::key::HashKey;
use super::known::{Found, Known};
use super::marker::{self, hidden};

/// A search for all values that are known.
pub(super) struct Search<'a> {
    pub(super) key: &'a HashKey,
    pub(super) known: &'a Known,
}

impl Search<'_> {
    /// Searches everything but what identifies the object.
    pub(super) fn object(&self, object: &mut Value) {
        const SHOWN: &[&str] = &["apiVersion", "kind"];
        const SHOWN_METADATA: &[&str] = &[
            "name",
            "generateName",
            "namespace",
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "deletionTimestamp",
        ];
        let Value::Object(map) = object else { return self.value(object) };
        self.names(map);
        for (name, value) in map.iter_mut() {
            match value {
                Value::Object(metadata) if name == "metadata" => {
                    self.names(metadata);
                    for (name, value) in metadata.iter_mut() {
                        if !SHOWN_METADATA.contains(&name.as_str()) {
                            self.value(value);
                        }
                    }
                }
                Value::String(_) if SHOWN.contains(&name.as_str()) => {}
                value => self.value(value),
            }
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::String(text) => {
                if let Some(searched) = self.text(text) {
                    *text = searched;
                }
            }
            Value::Number(number) => {
                if let Some(searched) = self.text(&number.to_string()) {
                    *value = searched.into();
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|element| self.value(element)),
            Value::Object(map) => {
                self.names(map);
                map.values_mut().for_each(|value| self.value(value));
            }
        }
    }

    /// Values may be names of what a user keeps. A word may be one by chance: it is the name of an API's field.
    fn names(&self, map: &mut Map<String, Value>) {
        let renamed: Vec<(String, String)> = map
            .keys()
            .filter_map(|name| {
                let found = self.known.search(name);
                let is_plain = |found: &Found| matches!(found.value, Some((_, Encoding::Plain)));
                let is_shown = found.is_empty() || is_word(name) && found.iter().all(is_plain);
                (!is_shown).then(|| (name.clone(), self.without(name, found)))
            })
            .collect();
        for (name, searched) in renamed {
            if let Some(value) = map.remove(&name) {
                map.insert(searched, value);
            }
        }
    }

    /// `text` without the values in it, if it has any.
    pub(super) fn text(&self, text: &str) -> Option<String> {
        let found = self.known.search(text);
        (!found.is_empty()).then(|| self.without(text, found))
    }

    fn without(&self, text: &str, found: Vec<Found>) -> String {
        let mut searched = String::new();
        let mut rest = 0;
        for Found { place, value } in found {
            searched.push_str(text.get(rest..place.start).unwrap_or_default());
            rest = place.end;
            searched.push_str(&match value {
                Some((mark, Encoding::Plain)) => marker::text(mark, ""),
                Some((mark, Encoding::Base64)) => marker::text(mark, ", base64"),
                Some((mark, Encoding::Base64Twice)) => marker::text(mark, ", base64 of base64"),
                None => hidden(self.key, text.get(place).unwrap_or_default().as_bytes()),
            });
        }
        searched.push_str(text.get(rest..).unwrap_or_default());
        searched
    }
}

/// `replicas`, `clusterIPs`.
fn is_word(name: &str) -> bool {
    const LONGEST: usize = 24;
    name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_alphabetic())
}
