//! The contents of the history: versions, changes, gaps.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::body::Body;

/// The place of a record in the history. Later records have greater numbers, and none is used twice. The first is 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Number(pub u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Group, version and kind of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gvk {
    /// `apps`; empty for the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `Deployment`.
    pub kind: String,
}

impl Gvk {
    /// From the two fields of an object.
    ///
    /// ```
    /// use kubediff_history::Gvk;
    ///
    /// assert_eq!(Gvk::new("apps/v1", "Deployment").group, "apps");
    /// assert_eq!(Gvk::new("v1", "Pod").group, "");
    /// ```
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// `apps/v1`, as an object says it.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// One incarnation of one object. The uid tells incarnations apart, and within a resource it alone does.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId {
    /// Its kind.
    pub gvk: Gvk,
    /// The plural name of its resource: `deployments`.
    pub resource: String,
    /// Its namespace, unless it is cluster-scoped.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// The kind of a change of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// It was created.
    Added,
    /// It is another state of the same incarnation.
    #[default]
    Updated,
    /// It was deleted. The version's content is the last state.
    Deleted,
    /// It is another incarnation of the same name, whose predecessor's deletion was not seen.
    Recreated,
}

/// How a version became known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// An event of a watch.
    #[default]
    Watch,
    /// A list differed from the known state; versions in between may be missing.
    List,
    /// It happened while nothing watched.
    Restart,
}

/// A field manager that wrote to an object: a name that a client chose, not an authenticated user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// `kubectl-edit`.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// `status` or `scale`, when it wrote through one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// When it wrote, to the second.
    #[serde(default)]
    pub time: Option<Timestamp>,
    /// Whether the object does not show that it wrote, only that what changed is its own, and nobody else's. As JSON only
    /// where it is true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probable: bool,
}

/// The user whose request made a change, as the API server has authenticated them and its audit log names them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct User {
    /// `jane@example.com`, `system:serviceaccount:argocd:controller`.
    pub name: String,
    /// The groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The program, as it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The address from which the request came, the first of those that the server names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The user that acted in this one's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impersonator: Option<String>,
    /// Whether others may have made the change. As JSON only where it is true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probable: bool,
}

/// An entry of the log. As JSON a gap is `{"gap": {...}}`, a scrub `{"scrubbed": {...}}`, an Event `{"event": {...}}`, and a change is the
/// map that it is alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Record {
    /// A time in which nothing was watched.
    Gap(Gap),
    /// A scrub has masked earlier versions.
    Scrubbed(Scrubbed),
    /// An Event of the cluster, which is no change.
    Event(Event),
    /// A change of an object.
    #[serde(untagged)]
    Change(Box<ChangeRecord>),
}

/// A change of an object: one type from the comparison of two states to the sinks. `D` is the form of the differences.
///
/// As JSON it is one map of these fields, in this order. `number` is left out before the history has given one, `owners` where
/// there are none, `merged` where it is one, `user` where it is unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeRecord<D = Value> {
    /// Its place in the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
    /// The cluster's name, else its uid.
    pub cluster: Option<String>,
    /// The object; of a recreated one, the new incarnation.
    #[serde(flatten)]
    pub object: ObjectId,
    /// The kind of change.
    #[serde(rename = "change")]
    pub verb: Verb,
    /// Version of the state before.
    pub rv_before: Option<String>,
    /// Version of the state after; when deleted, of the last state known.
    pub rv: Option<String>,
    /// When it was seen; of several that were merged, the first. Clause K1 says how times follow each other in a history.
    pub observed_at: Timestamp,
    /// How it was seen.
    #[serde(rename = "source")]
    pub origin: Origin,
    /// The managers that made it, the latest first; empty when that cannot be known.
    pub managers: Vec<Manager>,
    /// Where the object differs: each path as kubediff prints it, such as `spec.containers[web].image`.
    pub paths: Vec<String>,
    /// How it differs, in the form of the writer.
    pub diff: D,
    /// The change in a few words.
    pub summary: String,
    /// How many differences each noise rule left out of `diff`.
    pub dropped: BTreeMap<String, u32>,
    /// The id of the key of the hashes in it, if it may have some.
    pub key: Option<String>,
    /// The managers that owned what was removed, where it is unknown who removed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Manager>,
    /// How many changes it stands for: more than one when they were merged.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub merged: u32,
    /// The user whose request made it; of a deletion, the user who asked for that. `None` without an audit log, or when its entry is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<User>,
}

pub(crate) fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_one(merged: &u32) -> bool {
    *merged <= 1
}

impl<D> ChangeRecord<D> {
    /// The same with its differences in another form.
    ///
    /// # Errors
    ///
    /// When `form` fails.
    pub fn with_diff<T, E>(self, form: impl FnOnce(D) -> Result<T, E>) -> Result<ChangeRecord<T>, E> {
        Ok(ChangeRecord {
            number: self.number,
            cluster: self.cluster,
            object: self.object,
            verb: self.verb,
            rv_before: self.rv_before,
            rv: self.rv,
            observed_at: self.observed_at,
            origin: self.origin,
            managers: self.managers,
            paths: self.paths,
            diff: form(self.diff)?,
            summary: self.summary,
            dropped: self.dropped,
            key: self.key,
            owners: self.owners,
            merged: self.merged,
            user: self.user,
        })
    }
}

/// A time in which changes may have been missed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Its place in the history: where it ended.
    pub number: Number,
    /// When it began.
    pub from: Timestamp,
    /// When it ended.
    pub to: Timestamp,
    /// The resource, `deployments.apps`; all of them without one.
    pub resource: Option<String>,
    /// Why.
    pub reason: String,
}

/// Values in records were masked that must not be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scrubbed {
    /// Its place in the history.
    pub number: Number,
    /// When it ended.
    pub at: Timestamp,
    /// The first record that it has looked at.
    pub from: Number,
    /// The last one.
    pub to: Number,
    /// In how many versions there was something to mask.
    pub masked: u64,
    /// Why it was.
    pub cause: String,
}

/// An Event of the cluster: what a component said about an object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Its place in the history.
    pub number: Number,
    /// When it was seen.
    pub observed_at: Timestamp,
    /// The Event as the server has it: `involvedObject`, `reason`, `message`, `count` and more.
    pub object: Value,
}

/// A version of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// The number of the change that led to it, or of its first sight.
    pub number: Number,
    /// The object.
    pub object: ObjectId,
    /// Its resourceVersion.
    pub rv: String,
    /// When it was seen.
    pub observed_at: Timestamp,
    /// The change that led to it; `None` when the object existed before the history.
    pub change: Option<Box<ChangeRecord>>,
    /// The content.
    pub body: Body,
}

/// One incarnation as the history has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Incarnation {
    /// The object.
    pub object: ObjectId,
    /// Its oldest version here.
    pub first: Number,
    /// Its newest version.
    pub newest: Number,
    /// When it was deleted, or seen to be replaced.
    pub ended_at: Option<Timestamp>,
    pub(crate) id: i64,
}

impl Record {
    /// Its place in the history.
    pub fn number(&self) -> Number {
        match self {
            Self::Change(change) => change.number.unwrap_or_default(),
            Self::Gap(gap) => gap.number,
            Self::Scrubbed(scrubbed) => scrubbed.number,
            Self::Event(event) => event.number,
        }
    }

    /// When it was seen, or when it ended.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Change(change) => change.observed_at,
            Self::Gap(gap) => gap.to,
            Self::Scrubbed(scrubbed) => scrubbed.at,
            Self::Event(event) => event.observed_at,
        }
    }
}

impl Verb {
    /// As it is written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Recreated => "recreated",
        }
    }
}

impl Origin {
    /// As it is written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::List => "list",
            Self::Restart => "restart",
        }
    }
}

impl ObjectId {
    /// `deployments.apps`, as positions and gaps name resources.
    pub fn qualified_resource(&self) -> String {
        if self.gvk.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.gvk.group)
        }
    }
}
