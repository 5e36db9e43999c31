//! The details of a change in the form in which they are packed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::{Fault, Outcome};
use crate::batch::Change;
use crate::record::Manager;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Details {
    #[serde(rename = "m")]
    pub(super) managers: Vec<Manager>,
    #[serde(rename = "p")]
    pub(super) paths: Vec<String>,
    #[serde(rename = "s")]
    pub(super) summary: String,
    #[serde(rename = "d")]
    pub(super) diff: Value,
}

#[derive(Serialize)]
struct Borrowed<'a> {
    m: &'a [Manager],
    p: &'a [String],
    s: &'a str,
    d: &'a Value,
}

pub(super) fn write(change: &Change) -> Outcome<Vec<u8>> {
    let details = Borrowed { m: &change.managers, p: &change.paths, s: &change.summary, d: &change.diff };
    serde_json::to_vec(&details).map_err(|_| Fault::Invalid("the details of a change are no JSON"))
}

pub(super) fn read(bytes: &[u8], number: i64) -> Outcome<Details> {
    if bytes.is_empty() {
        return Ok(Details::default());
    }
    serde_json::from_slice(bytes)
        .map_err(|_| Fault::damaged(format!("the details of version {number} are undecodable")))
}
