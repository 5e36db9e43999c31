//! The details of a change in the form in which they are packed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::{Fault, Outcome};
use crate::record::{ChangeRecord, Manager, is_one, one};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Details<'a> {
    #[serde(rename = "m")]
    pub(super) managers: Cow<'a, [Manager]>,
    #[serde(rename = "o", default, skip_serializing_if = "<[_]>::is_empty")]
    pub(super) owners: Cow<'a, [Manager]>,
    #[serde(rename = "p")]
    pub(super) paths: Cow<'a, [String]>,
    #[serde(rename = "s")]
    pub(super) summary: Cow<'a, str>,
    #[serde(rename = "d")]
    pub(super) diff: Cow<'a, Value>,
    #[serde(rename = "n", default, skip_serializing_if = "is_empty")]
    pub(super) dropped: Cow<'a, BTreeMap<String, u32>>,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<Cow<'a, str>>,
    #[serde(rename = "c", default = "one", skip_serializing_if = "is_one")]
    pub(super) merged: u32,
}

fn is_empty(dropped: &BTreeMap<String, u32>) -> bool {
    dropped.is_empty()
}

impl<'a> From<&'a ChangeRecord> for Details<'a> {
    fn from(change: &'a ChangeRecord) -> Self {
        Self {
            managers: (&change.managers).into(),
            owners: (&change.owners).into(),
            paths: (&change.paths).into(),
            summary: (&change.summary).into(),
            diff: Cow::Borrowed(&change.diff),
            dropped: Cow::Borrowed(&change.dropped),
            key: change.key.as_deref().map(Cow::Borrowed),
            merged: change.merged,
        }
    }
}

pub(super) fn write(change: &ChangeRecord) -> Outcome<Vec<u8>> {
    Details::from(change).written()
}

impl Details<'_> {
    pub(super) fn written(&self) -> Outcome<Vec<u8>> {
        serde_json::to_vec(self).map_err(|_| Fault::Invalid("the details of a change are no JSON"))
    }
}

pub(super) fn read(bytes: &[u8], number: i64) -> Outcome<Details<'static>> {
    if bytes.is_empty() {
        return Ok(Details { merged: 1, ..Details::default() });
    }
    serde_json::from_slice(bytes)
        .map_err(|_| Fault::damaged(format!("the details of version {number} are undecodable")))
}
