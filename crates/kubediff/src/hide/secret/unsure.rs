//! Texts that may be secrets of which the Secret is not known yet: it may come a moment later.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::mem;

use serde_json::Value;

use super::known::MIN_BYTES;
use super::ordinary::{has_two_classes, is_measure};
use crate::model::gvk::Gvk;

/// The number of words of each generation that have waited once.
const GENERATION: usize = 100_000;

/// Words that have waited once, as hashes. None waits again.
#[derive(Default)]
pub(super) struct Waited {
    hasher: RandomState,
    younger: HashSet<u64>,
    older: HashSet<u64>,
}

impl Waited {
    /// Whether the word is new.
    pub(super) fn insert(&mut self, word: &str) -> bool {
        let hash = self.hasher.hash_one(word);
        if self.younger.len() >= GENERATION {
            self.older = mem::take(&mut self.younger);
        }
        self.younger.insert(hash) && !self.older.contains(&hash)
    }
}

/// Fields that the API fills with random texts, and those that name what is public: the cluster's own words.
const PUBLIC: &[&str] = &[
    "apiVersion",
    "kind",
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "ownerReferences",
    "image",
    "imageID",
    "containerID",
    "nodeName",
    "serviceAccountName",
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "deployment.kubernetes.io/revision",
    "kubernetes.io/config.hash",
    "kubernetes.io/config.mirror",
    "holderIdentity",
];

/// The words of `new` that may be secrets and that `old` does not have in the same place.
pub(super) fn words(gvk: &Gvk, old: Option<&Value>, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    // The server fills the status of its own kinds.
    let has_own_status = gvk.group.contains('.') && !gvk.group.ends_with(".k8s.io");
    for (name, value) in new.as_object().into_iter().flatten() {
        if !PUBLIC.contains(&name.as_str()) && (name != "status" || has_own_status) {
            of_value(old.and_then(|old| old.get(name)), value, &mut found);
        }
    }
    found
}

fn of_value(old: Option<&Value>, new: &Value, found: &mut Vec<String>) {
    match new {
        Value::String(text) if old.and_then(Value::as_str) != Some(text) => of_text(text, found),
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                of_value(old.and_then(|old| old.get(at)), value, found);
            }
        }
        Value::Object(map) => {
            for (name, value) in map.iter().filter(|(name, _)| !PUBLIC.contains(&name.as_str())) {
                let before = old.and_then(|old| old.get(name));
                if before.is_none() {
                    of_text(name, found);
                }
                of_value(before, value, found);
            }
        }
        _ => {}
    }
}

fn of_text(text: &str, found: &mut Vec<String>) {
    let is_border = |c: char| c.is_whitespace() || "\"'`,;()[]{}<>".contains(c);
    let words = text.split(is_border).map(|word| word.trim_end_matches(['.', ':', '!', '?']));
    found.extend(words.filter(|word| may_be_secret(word)).map(str::to_owned));
}

/// By its looks alone: long enough, not of one class, and no time, quantity or duration.
fn may_be_secret(word: &str) -> bool {
    word.len() >= MIN_BYTES
        && has_two_classes(word.as_bytes())
        && !is_measure(word)
        && !is_sentence_part(word)
}

/// `Available`, `MinimumReplicasAvailable`: letters alone, of which at most every third is a capital.
fn is_sentence_part(word: &str) -> bool {
    let capitals = word.bytes().filter(u8::is_ascii_uppercase).count();
    word.bytes().all(|byte| byte.is_ascii_alphabetic()) && 3 * capitals <= word.len()
}
