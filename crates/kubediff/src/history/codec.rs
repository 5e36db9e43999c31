//! A change as the history keeps it, and back.

use kubediff_history::ChangeRecord;
use serde_json::Value;

use crate::changes::change::Change;
use crate::hide::noise::Dropped;
use crate::hide::secret::{KeyId, Redacted};
use crate::model::diff::Difference;

/// A record whose differences this version of kubediff cannot read: a newer one has written them.
#[derive(Debug, thiserror::Error)]
#[error("record {number} was written by another version of kubediff: {reason}")]
pub struct UnknownForm {
    number: kubediff_history::Number,
    reason: String,
}

impl Change {
    /// The change of a record. Its objects are not in it; [`headline`](Self::headline) is the recorded one.
    ///
    /// # Errors
    ///
    /// When another version of kubediff wrote the record in a form that this one does not know.
    pub fn of_record(record: ChangeRecord) -> Result<Self, UnknownForm> {
        let unknown = |reason: String| UnknownForm { number: record.number, reason };
        let diff: Vec<Difference> = match record.diff {
            Value::Null => Vec::new(),
            diff => serde_json::from_value(diff).map_err(|error| unknown(error.to_string()))?,
        };
        let key: Option<KeyId> = record
            .key
            .map(|key| key.parse())
            .transpose()
            .map_err(|_| unknown("its key has no id".to_owned()))?;
        Ok(Self {
            number: Some(record.number),
            cluster: Some(record.cluster),
            gvk: record.object.gvk,
            resource: record.object.resource,
            namespace: record.object.namespace,
            name: record.object.name,
            uid: record.object.uid,
            verb: record.verb,
            rv_before: record.rv_before,
            rv: Some(record.rv).filter(|rv| !rv.is_empty()),
            observed_at: record.observed_at,
            origin: record.origin,
            // The history got these from `to_record`, which takes what is redacted.
            managers: Redacted::vouched(record.managers),
            owners: Redacted::vouched(record.owners),
            diff: Redacted::vouched(diff),
            dropped: Dropped(record.dropped),
            merged: record.merged,
            key,
            old: None,
            new: None,
            recorded: Some(record.summary),
        })
    }

    /// The part of it that the history keeps, besides the object.
    ///
    /// # Errors
    ///
    /// When a difference cannot be JSON, which does not happen with differences of JSON objects.
    pub fn to_record(&self) -> Result<kubediff_history::Change, serde_json::Error> {
        Ok(kubediff_history::Change {
            verb: self.verb,
            replaces: None,
            rv_before: self.rv_before.clone(),
            managers: self.managers.to_vec(),
            owners: self.owners.to_vec(),
            paths: self.paths().map(ToString::to_string).collect(),
            diff: serde_json::to_value(&self.diff)?,
            summary: self.headline(),
            dropped: self.dropped.0.clone(),
            key: self.key.map(|key| key.to_string()),
            merged: self.merged,
        })
    }
}
