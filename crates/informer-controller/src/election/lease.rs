//! The object `Lease` of `coordination.k8s.io/v1`, as far as an election needs it. All other fields are kept as they are.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::marks::Marks;

pub(crate) const API_VERSION: &str = "coordination.k8s.io/v1";
const KIND: &str = "Lease";

/// A released lease has no holder and this duration, in client-go too.
const RELEASED: i64 = 1;

/// One version of a lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    // The items of a list have neither.
    #[serde(default = "api_version")]
    api_version: String,
    #[serde(default = "kind")]
    kind: String,
    metadata: Box<Metadata>,
    #[serde(default)]
    spec: Option<Box<Spec>>,
}

fn api_version() -> String {
    API_VERSION.to_owned()
}

fn kind() -> String {
    KIND.to_owned()
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(flatten)]
    record: Record,
    #[serde(flatten)]
    rest: Rest,
}

/// The record that candidates read and write. Another record means that a candidate, or a person, has written it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    #[serde(skip_serializing_if = "Option::is_none")]
    holder_identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_duration_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acquire_time: Option<MicroTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renew_time: Option<MicroTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_transitions: Option<i64>,
}

/// Fields that an election does not know. Their content is in no log.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Rest(Map<String, Value>);

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} fields)", self.0.len())
    }
}

/// A time in microseconds, in the format that the API requires: six digits after the point, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MicroTime(Timestamp);

impl Lease {
    /// A lease that does not exist yet.
    pub fn new(name: &str) -> Self {
        let metadata = Metadata { name: name.to_owned(), ..Metadata::default() };
        Self { api_version: api_version(), kind: kind(), metadata: Box::new(metadata), spec: None }
    }

    /// Whether a server has returned it.
    pub(crate) fn exists(&self) -> bool {
        self.metadata.resource_version.is_some()
    }

    /// This version of the object with another record.
    pub(crate) fn with(&self, record: Record) -> Self {
        let mut lease = self.clone();
        lease.spec.get_or_insert_default().record = record;
        lease
    }

    /// This version of the object with these labels and annotations.
    pub fn marked(mut self, marks: &Marks) -> Self {
        let Metadata { labels, annotations, .. } = &mut *self.metadata;
        for (name, value) in &marks.labels {
            labels.get_or_insert_default().insert((*name).to_owned(), value.clone());
        }
        for (name, value) in &marks.annotations {
            match value {
                Some(value) => {
                    annotations.get_or_insert_default().insert((*name).to_owned(), value.clone());
                }
                None => drop(annotations.as_mut().and_then(|annotations| annotations.remove(*name))),
            }
        }
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(name).map(String::as_str)
    }

    /// The value of an annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// The uid and the resourceVersion; nothing before a server has returned it.
    pub(crate) fn incarnation(&self) -> Option<(&str, &str)> {
        self.metadata.uid.as_deref().zip(self.metadata.resource_version.as_deref())
    }

    /// The record; an empty one if the lease has no spec.
    pub fn record(&self) -> Record {
        self.spec.as_ref().map(|spec| spec.record.clone()).unwrap_or_default()
    }
}

impl Record {
    /// The record of a holder that begins a term.
    pub fn held(holder: &str, seconds: i64, since: MicroTime, transitions: u32) -> Self {
        Self {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(seconds),
            acquire_time: Some(since),
            renew_time: Some(since),
            lease_transitions: Some(transitions.into()),
        }
    }

    /// The same term, renewed.
    pub fn renewed(&self, at: MicroTime) -> Self {
        Self { renew_time: Some(at), ..self.clone() }
    }

    /// The record after the end of this term, given up.
    pub fn released(&self, at: MicroTime) -> Self {
        Self {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(RELEASED),
            acquire_time: Some(at),
            renew_time: Some(at),
            lease_transitions: self.lease_transitions,
        }
    }

    /// Whether the former holder gave the lease up. A record without a holder may also be the work of a person.
    pub fn is_released(&self) -> bool {
        self.holder().is_none() && self.lease_duration_seconds == Some(RELEASED)
    }

    /// Whether both are of the same term.
    pub(crate) fn is_same_term(&self, other: &Self) -> bool {
        let term =
            |record: &Self| (record.holder_identity.clone(), record.acquire_time, record.transitions());
        term(self) == term(other)
    }

    pub(crate) fn renew_time(&self) -> Option<MicroTime> {
        self.renew_time
    }

    /// The identity of the holder.
    pub fn holder(&self) -> Option<&str> {
        self.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// The stated duration, if it is a positive number.
    pub fn duration(&self) -> Option<Duration> {
        let seconds = u64::try_from(self.lease_duration_seconds?).ok()?;
        Some(Duration::from_secs(seconds)).filter(|duration| !duration.is_zero())
    }

    /// How often the holder has changed. Anything else than such a number counts as 0.
    pub(crate) fn transitions(&self) -> u32 {
        self.lease_transitions.and_then(|transitions| u32::try_from(transitions).ok()).unwrap_or(0)
    }
}

impl MicroTime {
    /// A time, cut to microseconds.
    pub fn new(time: Timestamp) -> Self {
        Self(Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time))
    }

    /// The next representable time.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(SignedDuration::from_micros(1)).unwrap_or(self.0))
    }
}

impl Serialize for MicroTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.6}", self.0))
    }
}

impl<'de> Deserialize<'de> for MicroTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// A server's behaviour, for models of one.
#[cfg(test)]
impl Lease {
    pub(crate) fn version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }

    pub(crate) fn with_version(&self, version: u64) -> Self {
        let mut lease = self.clone();
        lease.metadata.resource_version = Some(version.to_string());
        lease
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn q8_a_lease_is_written_as_the_api_requires() {
        let at = MicroTime::new("2026-11-22T18:30:09.5Z".parse().unwrap());
        let lease = Lease::new("cart").with(Record::held("a", 15, at, 3).renewed(at.next()));
        let expected = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": "cart" },
            "spec": {
                "holderIdentity": "a",
                "leaseDurationSeconds": 15,
                "acquireTime": "2026-11-22T18:30:09.500000Z",
                "renewTime": "2026-11-22T18:30:09.500001Z",
                "leaseTransitions": 3,
            },
        });
        assert_eq!(serde_json::to_value(&lease).unwrap(), expected);
    }

    #[test]
    fn q8_fields_of_others_are_kept() {
        let object = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": "cart", "namespace": "shop", "resourceVersion": "7", "labels": { "a": "b" } },
            "spec": { "holderIdentity": "a", "strategy": "OldestEmulationVersion" },
        });
        let lease: Lease = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(lease.with(lease.record())).unwrap(), object);
        assert!(!format!("{lease:?}").contains("Oldest"), "{lease:?}");
    }

    #[test]
    fn q8_what_is_missing_or_absurd_is_no_panic() {
        let read = |spec: Value| {
            let object =
                json!({ "apiVersion": API_VERSION, "kind": KIND, "metadata": { "name": "a" }, "spec": spec });
            serde_json::from_value::<Lease>(object).unwrap().record()
        };
        assert_eq!(read(Value::Null), Record::default());
        assert_eq!(read(json!({ "holderIdentity": "" })).holder(), None);
        for seconds in [-1, 0] {
            assert_eq!(read(json!({ "leaseDurationSeconds": seconds })).duration(), None);
        }
        for transitions in [json!(-1), json!(i64::MAX), Value::Null] {
            assert_eq!(read(json!({ "leaseTransitions": transitions })).transitions(), 0);
        }
        let last = read(json!({ "renewTime": "9999-12-30T21:59:59.999999Z" })).renew_time.unwrap();
        assert!(last.next() >= last);
    }
}
