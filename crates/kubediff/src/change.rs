//! One change of one object.

use jiff::Timestamp;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::diff::{Difference, diff, diff_as};
use crate::gvk::Gvk;
use crate::managers::{Manager, managers};
use crate::noise::{Dropped, Noise, Tally};
use crate::patch::{PatchOp, patch};
use crate::path::Path;
use crate::schema::Schemas;
use crate::secret::{KeyId, Redacted, Secrets};

/// A change of an object: what changed, when, and by which manager. Holds no secret: [`Change::between`] takes them out
/// first, and nothing else can make what is in it ([`Redacted`]).
///
/// As JSON it is one map with these fields, always all of them, in this order:
///
/// | field | |
/// |---|---|
/// | `cluster` | name of the cluster, or null |
/// | `gvk` | `{"group", "version", "kind"}`; the core group is `""` |
/// | `namespace` | or null, for a cluster-scoped object |
/// | `name` | |
/// | `uid` | of the new incarnation, when it was re-created |
/// | `change` | `added`, `updated`, `deleted` or `recreated` |
/// | `rv_before` | resourceVersion of the state before, or null |
/// | `rv` | resourceVersion of the state now. When deleted: of the last state known, which in a watch is the deletion's |
/// | `observed_at` | RFC 3339 |
/// | `origin` | `watch`, `list` (states in between may be missing), or `restart` (it happened while kubediff did not run) |
/// | `managers` | `[{"manager", "operation", "subresource"?, "time"}]`, latest first; empty when it cannot be known |
/// | `paths` | where it differs, as text |
/// | `diff` | `[{"path", "kind", ...}]`, see below; empty when added or deleted |
/// | `summary` | the change in a few words |
/// | `dropped` | how many differences each noise rule left out of `diff` |
/// | `key` | id of the key of the hashes (`<hmac:...>`) that stand for secrets: only those of one key can be compared |
///
/// A difference has a `kind`: `added` (with `new`), `removed` (`old`), `changed` (`old`, `new`), `text` (`lines`: a unified
/// diff), `reordered` (`old`, `new`: keys in order; `matters`).
///
/// A change that stands for several, because the reader of the output was slow, has `merged` besides: how many.
///
/// With [`Change::with_objects`] the fields `old` and `new` follow.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Name of the cluster.
    pub cluster: Option<String>,
    /// Kind of the object.
    pub gvk: Gvk,
    /// The plural name of the resource: `deployments`.
    pub resource: String,
    /// Namespace, unless the object is cluster-scoped.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Identity of the incarnation: the new one, when it was re-created.
    pub uid: String,
    /// What happened.
    pub verb: Verb,
    /// Version of the state before.
    pub rv_before: Option<String>,
    /// Version of the state now, or of the last state known.
    pub rv: Option<String>,
    /// When we saw it.
    pub observed_at: Timestamp,
    /// How we saw it.
    pub origin: Origin,
    /// The managers that made it, the latest first.
    pub managers: Redacted<Vec<Manager>>,
    /// The differences that are not noise.
    pub diff: Redacted<Vec<Difference>>,
    /// The differences that are noise.
    pub dropped: Dropped,
    /// How many changes it stands for: more than one when they were merged, because the reader of the output was slow.
    pub merged: u32,
    /// The key of the hashes in it. Those of changes with another key cannot be compared with them.
    pub key: KeyId,
    /// The object before.
    pub old: Option<Redacted<Value>>,
    /// The object now.
    pub new: Option<Redacted<Value>>,
}

/// The kinds of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// It was not there before.
    Added,
    /// It is another state of the same object.
    Updated,
    /// It is gone.
    Deleted,
    /// It is another object of the same name.
    Recreated,
}

/// How a change became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// An event of a watch.
    Watch,
    /// A list differed from the known state; states in between may be missing.
    List,
    /// It happened while kubediff did not run.
    Restart,
}

/// Where, when and how a change was seen.
#[derive(Debug, Clone)]
pub struct Sighting<'a> {
    /// Name of the cluster.
    pub cluster: Option<&'a str>,
    /// Kind of the object.
    pub gvk: &'a Gvk,
    /// The plural name of the resource: `deployments`.
    pub resource: &'a str,
    /// When.
    pub observed_at: Timestamp,
    /// How the change became known: `source` in the JSON record.
    pub origin: Origin,
}

/// How to compare objects.
#[derive(Debug, Clone)]
pub struct Profile {
    /// What to leave out.
    pub noise: Noise,
    /// What to hide.
    pub secrets: Secrets,
    /// What the server says of lists, as far as it is known.
    pub schemas: Schemas,
}

/// Bytes that are not the JSON of an object.
#[derive(Debug, thiserror::Error)]
#[error("the {side} state is undecodable: {source}")]
pub struct Undecodable {
    side: &'static str,
    source: serde_json::Error,
}

impl Change {
    /// The change from `old` to `new`, or `None` when there is nothing to show: noise at most, which `tally` then has.
    ///
    /// The name, the uid and the rest of the identity are those that the objects have in their metadata.
    pub fn between(
        sighting: &Sighting<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
        profile: &Profile,
        tally: &mut Tally,
    ) -> Option<Self> {
        Self::between_owned(sighting, old.cloned(), new.cloned(), profile, tally)
    }

    fn between_owned(
        sighting: &Sighting<'_>,
        old: Option<Value>,
        new: Option<Value>,
        profile: &Profile,
        tally: &mut Tally,
    ) -> Option<Self> {
        if old == new {
            tally.unchanged += 1;
            return None;
        }
        profile.secrets.learn_change(sighting.gvk, old.as_ref(), new.as_ref());
        if let Some(rule) = profile.noise.hides(sighting.gvk) {
            tally.not_shown(rule.name());
            return None;
        }
        let verb = Verb::of(old.as_ref(), new.as_ref());
        let [old, new] = [old, new].map(|object| Some(profile.secrets.redact(sighting.gvk, object?)));
        // Managers of the deleted object have not written to this one.
        let managers = managers(old.as_deref().filter(|_| verb == Verb::Updated), new.as_deref());

        let mut differences = Vec::new();
        let mut dropped = Dropped::default();
        if let (Some(old), Some(new)) = (&old, &new) {
            differences = match profile.schemas.of(sighting.gvk) {
                Some(schema) => diff_as(&schema, old, new),
                None => diff(old, new),
            };
            let namespace = metadata(Some(new), "namespace");
            let recreated = verb == Verb::Recreated;
            dropped = profile.noise.sift(sighting.gvk, namespace.as_deref(), recreated, &mut differences);
            tally.left_out(&dropped);
            if differences.is_empty() && verb == Verb::Updated {
                match profile.noise.reason(&dropped) {
                    Some(rule) => tally.not_shown(rule),
                    None => tally.unchanged += 1,
                }
                return None;
            }
        }

        let text = |name: &str| metadata(new.as_deref().or(old.as_deref()), name);
        Some(Self {
            cluster: sighting.cluster.map(str::to_owned),
            gvk: sighting.gvk.clone(),
            resource: sighting.resource.to_owned(),
            namespace: text("namespace"),
            name: text("name").unwrap_or_default(),
            uid: text("uid").unwrap_or_default(),
            verb,
            rv_before: new.as_ref().and_then(|_| metadata(old.as_deref(), "resourceVersion")),
            rv: text("resourceVersion"),
            observed_at: sighting.observed_at,
            origin: sighting.origin,
            managers: Redacted::vouched(managers),
            diff: Redacted::vouched(differences),
            dropped,
            key: profile.secrets.key_id(),
            merged: 1,
            old,
            new,
        })
    }

    /// [`Change::between`] for objects as JSON.
    ///
    /// # Errors
    ///
    /// When bytes are not JSON.
    pub fn between_json(
        sighting: &Sighting<'_>,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        profile: &Profile,
        tally: &mut Tally,
    ) -> Result<Option<Self>, Undecodable> {
        if old == new {
            tally.unchanged += 1;
            return Ok(None);
        }
        let read = |bytes: Option<&[u8]>, side| {
            bytes
                .map(serde_json::from_slice::<Value>)
                .transpose()
                .map_err(|source| Undecodable { side, source })
        };
        let (old, new) = (read(old, "old")?, read(new, "new")?);
        Ok(Self::between_owned(sighting, old, new, profile, tally))
    }

    /// Where it differs.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.diff.iter().map(|difference| &difference.path)
    }

    /// The whole difference as a JSON Patch, noise included: it turns [`old`](Self::old) into [`new`](Self::new), with
    /// secrets replaced in both. Empty unless both exist.
    pub fn patch(&self) -> Redacted<Vec<PatchOp>> {
        Redacted::vouched(match (&self.old, &self.new) {
            (Some(old), Some(new)) => patch(old, new),
            _ => Vec::new(),
        })
    }

    /// The same with the objects, for JSON.
    pub fn with_objects(&self) -> WithObjects<'_> {
        WithObjects(self)
    }
}

/// A [`Change`] which as JSON has the fields `old` and `new` besides.
#[derive(Debug, Clone, Copy)]
pub struct WithObjects<'a>(&'a Change);

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self, false, serializer)
    }
}

impl Serialize for WithObjects<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, true, serializer)
    }
}

fn serialize<S: Serializer>(change: &Change, objects: bool, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_struct("Change", if objects { 18 } else { 16 })?;
    map.serialize_field("cluster", &change.cluster)?;
    map.serialize_field("gvk", &change.gvk)?;
    map.serialize_field("namespace", &change.namespace)?;
    map.serialize_field("name", &change.name)?;
    map.serialize_field("uid", &change.uid)?;
    map.serialize_field("change", &change.verb)?;
    map.serialize_field("rv_before", &change.rv_before)?;
    map.serialize_field("rv", &change.rv)?;
    map.serialize_field("observed_at", &change.observed_at)?;
    map.serialize_field("source", &change.origin)?;
    map.serialize_field("managers", &change.managers)?;
    map.serialize_field("paths", &change.paths().collect::<Vec<_>>())?;
    map.serialize_field("diff", &change.diff)?;
    map.serialize_field("summary", &change.headline())?;
    map.serialize_field("dropped", &change.dropped)?;
    map.serialize_field("key", &change.key)?;
    if change.merged > 1 {
        map.serialize_field("merged", &change.merged)?;
    }
    if objects {
        map.serialize_field("old", &change.old)?;
        map.serialize_field("new", &change.new)?;
    }
    map.end()
}

impl Verb {
    fn of(old: Option<&Value>, new: Option<&Value>) -> Self {
        match (old, new) {
            (None, _) => Self::Added,
            (_, None) => Self::Deleted,
            _ if metadata(old, "uid") != metadata(new, "uid") => Self::Recreated,
            _ => Self::Updated,
        }
    }

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

fn metadata(object: Option<&Value>, name: &str) -> Option<String> {
    object?.get("metadata")?.get(name)?.as_str().map(str::to_owned)
}
