//! The cluster's own words: names, labels, images, managers, namespaces and hosts. None of them is a secret, whatever a Secret
//! holds: else one Secret with `checkout-db` in it would hide that name from all readers.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::mem;

use serde_json::Value;

use super::known::MIN_BYTES;
use super::ordinary;

/// The number of texts of each generation. Texts that objects still have come to the younger one again.
const GENERATION: usize = 200_000;

/// Hashes of texts that objects are named by, in two generations.
#[derive(Default)]
pub(super) struct Vocabulary {
    hasher: RandomState,
    younger: HashSet<u64>,
    older: HashSet<u64>,
}

impl Vocabulary {
    /// Takes the words of this object. Labels are people's texts: one that `is_known` holds a value of a Secret is left out.
    pub(super) fn learn(&mut self, object: &Value, is_known: impl Fn(&str) -> bool) {
        each_name(object, &mut |text| self.add(text));
        each_label(object, &mut |text| {
            if !is_known(text) {
                self.add(text);
            }
        });
    }

    /// Whether a value is of the cluster's words and those that configurations have everywhere.
    pub(super) fn excuses(&self, value: &[u8]) -> bool {
        let is_text = str::from_utf8(value).is_ok_and(|text| self.has(text));
        is_text || !ordinary::looks_secret(value, |word| ordinary::is_word(word) || self.has(word))
    }

    fn has(&self, text: &str) -> bool {
        let hash = self.hasher.hash_one(text);
        self.younger.contains(&hash) || self.older.contains(&hash)
    }

    /// Takes a text, and the words in it.
    pub(super) fn add(&mut self, text: &str) {
        if text.len() >= MIN_BYTES && ordinary::has_two_classes(text.as_bytes()) {
            self.insert(text);
        }
        let is_word = |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        text.split(|c: char| !c.is_ascii_alphabetic()).filter(is_word).for_each(|word| self.insert(word));
    }

    fn insert(&mut self, text: &str) {
        if self.younger.len() >= GENERATION {
            self.older = mem::take(&mut self.younger);
        }
        self.younger.insert(self.hasher.hash_one(text));
    }
}

/// Names, namespaces, managers, images and hosts.
fn each_name(object: &Value, found: &mut impl FnMut(&str)) {
    let metadata = &object["metadata"];
    for field in ["name", "generateName", "namespace"] {
        found(metadata[field].as_str().unwrap_or_default());
    }
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        found(owner["name"].as_str().unwrap_or_default());
    }
    for entry in metadata["managedFields"].as_array().into_iter().flatten() {
        found(entry["manager"].as_str().unwrap_or_default());
    }
    inside(object, found);
}

/// The names and images of containers and the names of hosts, wherever a template has them.
fn inside(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| inside(value, found)),
        Value::Object(map) => {
            for (field, value) in map {
                match (field.as_str(), value) {
                    ("containers" | "initContainers" | "ephemeralContainers", Value::Array(containers)) => {
                        for container in containers {
                            found(container["name"].as_str().unwrap_or_default());
                            container["image"]
                                .as_str()
                                .into_iter()
                                .for_each(|image| parts_of_image(image, found));
                        }
                    }
                    (
                        "host" | "hostname" | "nodeName" | "serviceName" | "serviceAccountName",
                        Value::String(name),
                    ) => {
                        found(name);
                    }
                    ("managedFields", _) => {}
                    (_, value) => inside(value, found),
                }
            }
        }
        _ => {}
    }
}

/// `registry.example.com/team/app:v1` as a whole, without its tag, and each of its parts.
fn parts_of_image(image: &str, found: &mut impl FnMut(&str)) {
    found(image);
    let (path, digest) = image.split_once('@').unwrap_or((image, ""));
    found(digest);
    let tag = path.rfind(':').filter(|at| path.get(*at..).is_some_and(|tag| !tag.contains('/')));
    let (repository, tag) = path.split_at(tag.unwrap_or(path.len()));
    found(repository);
    found(tag.trim_start_matches(':'));
    repository.split('/').for_each(&mut *found);
}

fn each_label(object: &Value, found: &mut impl FnMut(&str)) {
    let maps = ["/metadata/labels", "/spec/template/metadata/labels", "/spec/selector/matchLabels"];
    for (name, value) in maps.iter().filter_map(|at| object.pointer(at)?.as_object()).flatten() {
        found(name);
        found(value.as_str().unwrap_or_default());
    }
}
