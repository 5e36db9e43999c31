//! The details of a change in the form in which they are packed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::{Fault, Outcome};
use crate::batch::Change;
use crate::record::Manager;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Details {
    #[serde(rename = "m")]
    pub(super) managers: Vec<Manager>,
    #[serde(rename = "o", default)]
    pub(super) owners: Vec<Manager>,
    #[serde(rename = "p")]
    pub(super) paths: Vec<String>,
    #[serde(rename = "s")]
    pub(super) summary: String,
    #[serde(rename = "d")]
    pub(super) diff: Value,
    #[serde(rename = "n", default)]
    pub(super) dropped: BTreeMap<String, u32>,
    #[serde(rename = "k", default)]
    pub(super) key: Option<String>,
    #[serde(rename = "c", default = "one")]
    pub(super) merged: u32,
}

/// How many changes a change is unless it says otherwise.
fn one() -> u32 {
    1
}

#[derive(Serialize)]
struct Borrowed<'a> {
    m: &'a [Manager],
    #[serde(skip_serializing_if = "<[Manager]>::is_empty")]
    o: &'a [Manager],
    p: &'a [String],
    s: &'a str,
    d: &'a Value,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    n: &'a BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<&'a str>,
    #[serde(skip_serializing_if = "is_one")]
    c: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(merged: &u32) -> bool {
    *merged == 1
}

pub(super) fn write(change: &Change) -> Outcome<Vec<u8>> {
    let details = Borrowed {
        m: &change.managers,
        o: &change.owners,
        p: &change.paths,
        s: &change.summary,
        d: &change.diff,
        n: &change.dropped,
        k: change.key.as_deref(),
        c: change.merged,
    };
    serde_json::to_vec(&details).map_err(|_| Fault::Invalid("the details of a change are no JSON"))
}

pub(super) fn read(bytes: &[u8], number: i64) -> Outcome<Details> {
    if bytes.is_empty() {
        return Ok(Details { merged: 1, ..Details::default() });
    }
    serde_json::from_slice(bytes)
        .map_err(|_| Fault::damaged(format!("the details of version {number} are undecodable")))
}
