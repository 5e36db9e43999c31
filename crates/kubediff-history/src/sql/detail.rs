//! The details of a change in the form in which they are packed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::{Fault, Outcome};
use crate::record::{ChangeRecord, Manager, is_one, one};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Details<'a, D: Clone = Value> {
    #[serde(rename = "m")]
    pub(crate) managers: Cow<'a, [Manager]>,
    #[serde(rename = "o", default, skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) owners: Cow<'a, [Manager]>,
    #[serde(rename = "p")]
    pub(crate) paths: Cow<'a, [String]>,
    #[serde(rename = "s")]
    pub(crate) summary: Cow<'a, str>,
    #[serde(rename = "d")]
    pub(crate) diff: Cow<'a, D>,
    #[serde(rename = "n", default, skip_serializing_if = "is_empty")]
    pub(crate) dropped: Cow<'a, BTreeMap<String, u32>>,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<Cow<'a, str>>,
    #[serde(rename = "c", default = "one", skip_serializing_if = "is_one")]
    pub(crate) merged: u32,
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

pub(crate) fn write(change: &ChangeRecord) -> Outcome<Vec<u8>> {
    Details::from(change).written()
}

impl Details<'_> {
    pub(crate) fn written(&self) -> Outcome<Vec<u8>> {
        serde_json::to_vec(self).map_err(|_| Fault::Invalid("the details of a change are no JSON"))
    }
}

pub(crate) fn read(bytes: &[u8], number: i64) -> Outcome<Details<'static>> {
    parsed(bytes, number)
}

/// The same without differences, which are most of it.
pub(crate) fn read_words(bytes: &[u8], number: i64) -> Outcome<Details<'static>> {
    let details = parsed::<IgnoredAny>(bytes, number)?;
    let Details { managers, owners, paths, summary, dropped, key, merged, .. } = details;
    Ok(Details { managers, owners, paths, summary, diff: Cow::default(), dropped, key, merged })
}

fn parsed<D: Clone + Default + DeserializeOwned>(bytes: &[u8], number: i64) -> Outcome<Details<'static, D>> {
    if bytes.is_empty() {
        return Ok(Details { merged: 1, ..Details::default() });
    }
    serde_json::from_slice(bytes)
        .map_err(|_| Fault::damaged(format!("the details of version {number} are undecodable")))
}
