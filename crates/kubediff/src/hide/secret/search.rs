//! Replaces the values that are known, wherever in an object they are.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use serde_json::{Map, Value};

use super::finder::{Encoding, Finder, Found};
use super::known::{Budget, TooMuch};
use super::marker::Marker;
use super::ordinary;

/// A shorter text is searched in less time than it takes to remember it.
const REMEMBERED: usize = 32;

/// A search for all values that are known, in states of one object.
pub(super) struct Search<'a> {
    marker: Marker<'a>,
    finder: Finder<'a>,
    budget: Budget,
    hasher: RandomState,
    /// Hashes of texts without any: most are the same in the next state.
    clean: HashSet<u64>,
}

impl<'a> Search<'a> {
    pub(super) fn new(marker: Marker<'a>, finder: Finder<'a>) -> Self {
        let (hasher, clean) = Default::default();
        Self { marker, finder, budget: Budget::new(), hasher, clean }
    }

    /// Searches everything but what identifies the object, and its managers.
    pub(super) fn object(&mut self, object: &mut Value) {
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
        if self.finder.known.is_empty() {
            return;
        }
        self.budget = Budget::new();
        let Value::Object(map) = object else { return self.value(object) };
        self.names(map);
        for (name, value) in map.iter_mut() {
            match value {
                Value::Object(metadata) if name == "metadata" => {
                    self.names(metadata);
                    for (name, value) in metadata.iter_mut() {
                        match (name.as_str(), value) {
                            ("managedFields", Value::Array(entries)) => self.managed_fields(entries),
                            (name, value) if !SHOWN_METADATA.contains(&name) => self.value(value),
                            _ => {}
                        }
                    }
                }
                Value::String(_) if SHOWN.contains(&name.as_str()) => {}
                value => self.value(value),
            }
        }
    }

    fn managed_fields(&mut self, entries: &mut [Value]) {
        for entry in entries {
            match entry {
                Value::Object(map) => {
                    for (_, value) in map.iter_mut().filter(|(name, _)| *name != "manager") {
                        self.value(value);
                    }
                }
                entry => self.value(entry),
            }
        }
    }

    /// Searches all texts of a value.
    pub(super) fn value(&mut self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::String(text) => {
                if let Some(searched) = self.text(text) {
                    *text = searched;
                }
            }
            // No value is as short.
            Value::Number(number) if number.as_u64().is_some_and(|number| number < 10_000_000) => {}
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
    fn names(&mut self, map: &mut Map<String, Value>) {
        let mut renamed = Vec::new();
        for name in map.keys() {
            let is_plain = |found: &Found| {
                let is_field = !found.named || ordinary::is_word(name);
                is_field && matches!(found.value, Some((.., Encoding::Plain)))
            };
            match self.finder.find(name, &mut self.budget) {
                Ok(found) if found.is_empty() || is_word(name) && found.iter().all(is_plain) => {}
                Ok(found) => renamed.push((name.clone(), self.without(name, found))),
                Err(TooMuch) => renamed.push((name.clone(), self.marker.hidden(name))),
            }
        }
        for (name, searched) in renamed {
            if let Some(value) = map.remove(&name) {
                map.insert(searched, value);
            }
        }
    }

    /// `text` without the values in it, if it has any.
    pub(super) fn text(&mut self, text: &str) -> Option<String> {
        let hash = (text.len() >= REMEMBERED).then(|| self.hasher.hash_one(text));
        if hash.is_some_and(|hash| self.clean.contains(&hash)) {
            return None;
        }
        match self.finder.find(text, &mut self.budget) {
            Ok(found) if found.is_empty() => {
                self.clean.extend(hash);
                None
            }
            Ok(found) => Some(self.without(text, found)),
            Err(TooMuch) => Some(self.marker.hidden(text)),
        }
    }

    fn without(&self, text: &str, found: Vec<Found>) -> String {
        let mut searched = String::new();
        let mut rest = 0;
        for Found { place, value, .. } in found {
            searched.push_str(text.get(rest..place.start).unwrap_or_default());
            rest = place.end;
            let written = text.get(place).unwrap_or_default();
            let mark = |(value, bytes, encoding)| {
                let form = match encoding {
                    Encoding::Plain => "escaped",
                    Encoding::Base64 => "base64",
                    Encoding::Base64Twice => "base64 of base64",
                };
                self.marker.value(value, bytes, written.as_bytes(), form)
            };
            searched.push_str(&value.map_or_else(|| self.marker.hidden(written), mark));
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
