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

/// Hashes of texts that objects are named by.
#[derive(Default)]
pub(super) struct Vocabulary {
    hasher: RandomState,
    /// The words of the configuration.
    own: HashSet<u64>,
    names: Words,
    /// Labels are people's texts: a value of a Secret among them is no word.
    labels: Words,
}

/// Hashes of texts, in two generations.
#[derive(Default)]
struct Words {
    younger: HashSet<u64>,
    older: HashSet<u64>,
}

impl Words {
    fn has(&self, hash: u64) -> bool {
        self.younger.contains(&hash) || self.older.contains(&hash)
    }

    fn insert(&mut self, hash: u64) {
        if self.younger.len() >= GENERATION {
            self.older = mem::take(&mut self.younger);
        }
        self.younger.insert(hash);
    }

    fn remove(&mut self, hash: u64) {
        self.younger.remove(&hash);
        self.older.remove(&hash);
    }
}

impl Vocabulary {
    /// Takes the words of this object. A label that `is_known` holds a value of a Secret is left out.
    pub(super) fn learn(&mut self, object: &Value, is_known: impl Fn(&str) -> bool) {
        each_name(object, &mut |text| self.add(text));
        let Self { hasher, labels, .. } = self;
        each_label(object, &mut |text| {
            // No value is as short, and a label that is a word stays one until a Secret has it.
            let is_word = || text.len() < MIN_BYTES || labels.younger.contains(&hasher.hash_one(text));
            if is_word() || !is_known(text) {
                each_word(text, |word| labels.insert(hasher.hash_one(word)));
            }
        });
    }

    /// A Secret has this value now. A label that was learnt before it is no word any more.
    pub(super) fn unlearn(&mut self, value: &[u8]) {
        if let Ok(text) = str::from_utf8(value) {
            self.labels.remove(self.hasher.hash_one(text));
        }
    }

    /// Whether a value is of the cluster's words and those that configurations have everywhere.
    pub(super) fn excuses(&self, value: &[u8]) -> bool {
        let is_text = str::from_utf8(value).is_ok_and(|text| self.has(text));
        is_text || !ordinary::looks_secret(value, |word| ordinary::is_word(word) || self.has(word))
    }

    fn has(&self, text: &str) -> bool {
        let hash = self.hasher.hash_one(text);
        self.own.contains(&hash) || self.names.has(hash) || self.labels.has(hash)
    }

    /// Takes a name for good.
    pub(super) fn trust(&mut self, name: &str) {
        self.own.insert(self.hasher.hash_one(name));
    }

    /// Takes a name, and the words in it.
    pub(super) fn add(&mut self, text: &str) {
        let Self { hasher, names, .. } = self;
        each_word(text, |word| names.insert(hasher.hash_one(word)));
    }
}

/// A text as a whole, and the words in it.
fn each_word(text: &str, mut found: impl FnMut(&str)) {
    if text.len() >= MIN_BYTES && ordinary::has_two_classes(text.as_bytes()) {
        found(text);
    }
    let is_word = |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    text.split(|c: char| !c.is_ascii_alphabetic()).filter(is_word).for_each(found);
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
