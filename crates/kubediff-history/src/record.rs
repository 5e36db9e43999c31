//! The contents of the history: versions, changes, gaps.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
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
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// An entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A change of an object.
    Change(Box<ChangeRecord>),
    /// A time in which nothing was watched.
    Gap(Gap),
}

/// A change of an object, as it is stored.
///
/// As JSON it is one map: `number`, `cluster`, `gvk`, `resource`, `namespace`, `name`, `uid`, `change`, `rv_before`,
/// `rv`, `observed_at`, `source`, `managers`, `paths`, `diff`, `summary`, `dropped`, `key`, `owners` where there are any, and
/// `merged` where it is more than one.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeRecord {
    /// Its place in the history.
    pub number: Number,
    /// The cluster's name, else its uid.
    pub cluster: String,
    /// The object; of a recreated one, the new incarnation.
    pub object: ObjectId,
    /// The kind of change.
    pub verb: Verb,
    /// Version of the state before.
    pub rv_before: Option<String>,
    /// Version of the state after; when deleted, of the last state known.
    pub rv: String,
    /// When it was seen.
    pub observed_at: Timestamp,
    /// How it was seen.
    pub origin: Origin,
    /// The managers that made it; empty when that cannot be known.
    pub managers: Vec<Manager>,
    /// The managers that owned what was removed, where it is unknown who removed it.
    pub owners: Vec<Manager>,
    /// Where the object differs.
    pub paths: Vec<String>,
    /// How it differs, in the form of the writer.
    pub diff: Value,
    /// The change in a few words.
    pub summary: String,
    /// How many differences each noise rule left out of `diff`.
    pub dropped: BTreeMap<String, u32>,
    /// The id of the key of the hashes in it, if it may have some.
    pub key: Option<String>,
    /// How many changes it stands for.
    pub merged: u32,
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
            Self::Change(change) => change.number,
            Self::Gap(gap) => gap.number,
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

impl Serialize for ChangeRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Change", 20)?;
        map.serialize_field("number", &self.number)?;
        map.serialize_field("cluster", &self.cluster)?;
        map.serialize_field("gvk", &self.object.gvk)?;
        map.serialize_field("resource", &self.object.resource)?;
        map.serialize_field("namespace", &self.object.namespace)?;
        map.serialize_field("name", &self.object.name)?;
        map.serialize_field("uid", &self.object.uid)?;
        map.serialize_field("change", &self.verb)?;
        map.serialize_field("rv_before", &self.rv_before)?;
        map.serialize_field("rv", &self.rv)?;
        map.serialize_field("observed_at", &self.observed_at)?;
        map.serialize_field("source", &self.origin)?;
        map.serialize_field("managers", &self.managers)?;
        map.serialize_field("paths", &self.paths)?;
        map.serialize_field("diff", &self.diff)?;
        map.serialize_field("summary", &self.summary)?;
        map.serialize_field("dropped", &self.dropped)?;
        map.serialize_field("key", &self.key)?;
        if !self.owners.is_empty() {
            map.serialize_field("owners", &self.owners)?;
        }
        if self.merged > 1 {
            map.serialize_field("merged", &self.merged)?;
        }
        map.end()
    }
}

/// A change is the map that it is alone; a gap is `{"gap": {...}}`.
impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Change(change) => change.serialize(serializer),
            Self::Gap(gap) => {
                let mut map = serializer.serialize_struct("Gap", 1)?;
                map.serialize_field("gap", gap)?;
                map.end()
            }
        }
    }
}
