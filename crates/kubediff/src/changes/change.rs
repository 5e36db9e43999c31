//! One change of one object.

use jiff::Timestamp;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use kubediff_history::Number;
pub use kubediff_history::{Origin, Verb};

use crate::hide::noise::{Dropped, Noise, Tally};
use crate::hide::secret::{KeyId, Redacted, Secrets};
use crate::model::diff::{Difference, differences};
use crate::model::gvk::Gvk;
use crate::model::lists::Lists;
use crate::model::managers::{Manager, former_owners, managers};
use crate::model::patch::{PatchOp, patch};
use crate::model::path::Path;
use crate::model::schema::Schemas;

/// A change of an object: what changed, when, and by which manager. Holds no secret: [`Change::between`] takes them out
/// first, and nothing else can make what is in it ([`Redacted`]).
///
/// As JSON it is one map with these fields, always all of them, in this order:
///
/// | field | |
/// |---|---|
/// | `number` | its place in the history; only where it has one |
/// | `cluster` | name of the cluster, or null |
/// | `gvk` | `{"group", "version", "kind"}`; the core group is `""` |
/// | `resource` | the plural name: `deployments` |
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
/// Where it is unknown who removed what is gone, `owners` follows: the managers that owned it, like `managers`.
///
/// A change that stands for several, because the reader of the output was slow, has `merged` besides: how many.
///
/// With [`Change::with_objects`] the fields `old` and `new` follow.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its place in the history, if it has one.
    pub number: Option<Number>,
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
    /// The kind of change.
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
    /// The managers that owned what was removed, where it is unknown who removed it.
    pub owners: Redacted<Vec<Manager>>,
    /// The differences that are not noise.
    pub diff: Redacted<Vec<Difference>>,
    /// The differences that are noise.
    pub dropped: Dropped,
    /// How many changes it stands for: more than one when they were merged, because the reader of the output was slow.
    pub merged: u32,
    /// The key of the hashes in it; `None` where a record does not name it. Hashes of different keys cannot be compared.
    pub key: Option<KeyId>,
    /// The object before.
    pub old: Option<Redacted<Value>>,
    /// The object now.
    pub new: Option<Redacted<Value>>,
    /// The headline, where the history has it: it is not made of the objects then.
    pub(crate) recorded: Option<String>,
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
    /// The noise to leave out.
    pub noise: Noise,
    /// The values to hide.
    pub secrets: Secrets,
    /// The server's schemas of lists, as far as they are known.
    pub schemas: Schemas,
}

/// The result of comparing two states.
#[derive(Debug)]
pub enum Compared {
    /// A change.
    Change(Box<Change>),
    /// Only noise differs, or nothing. The object now.
    Noise(Redacted<Value>),
    /// The states are equal, or a noise rule leaves out the kind as a whole.
    Nothing,
}

impl Compared {
    /// The change, if it is one.
    pub fn change(self) -> Option<Change> {
        match self {
            Self::Change(change) => Some(*change),
            Self::Noise(_) | Self::Nothing => None,
        }
    }
}

impl Profile {
    /// The states without secrets, or `None` when a noise rule leaves out the kind as a whole. Values of Secrets are learned
    /// first.
    pub(crate) fn redact(
        &self,
        gvk: &Gvk,
        old: Option<Value>,
        new: Option<Value>,
        merged: u32,
        tally: &mut Tally,
    ) -> Option<[Option<Redacted<Value>>; 2]> {
        self.secrets.learn_change(gvk, old.as_ref(), new.as_ref());
        if let Some(rule) = self.noise.hides(gvk) {
            tally.not_shown(rule.name(), merged);
            return None;
        }
        Some(self.secrets.redact_states(gvk, [old, new]))
    }
}

/// Bytes that are not the JSON of an object.
#[derive(Debug, thiserror::Error)]
#[error("the {side} state is undecodable: {source}")]
pub struct Undecodable {
    pub(crate) side: &'static str,
    pub(crate) source: serde_json::Error,
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
        if old == new {
            tally.unchanged += 1;
            return None;
        }
        let [old, new] = profile.redact(sighting.gvk, old.cloned(), new.cloned(), 1, tally)?;
        Self::between_redacted(sighting, old, new, 1, profile, tally).change()
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
        Ok(Self::between_merged(sighting, old, new, 1, profile, tally)?.change())
    }

    /// [`Change::between`] for states without secrets, as the history has them: the first and the last of `merged`
    /// changes.
    ///
    /// Merged changes cannot be compared one by one any more. So a change without a difference is shown all the
    /// same, unless the noise that was left out explains why the object was written: it may have changed, and changed
    /// back.
    pub fn between_redacted(
        sighting: &Sighting<'_>,
        old: Option<Redacted<Value>>,
        new: Option<Redacted<Value>>,
        merged: u32,
        profile: &Profile,
        tally: &mut Tally,
    ) -> Compared {
        let verb = verb(old.as_deref(), new.as_deref());
        // Managers of the deleted object have not written to this one.
        let former = old.as_deref().filter(|_| verb == Verb::Updated);
        let managers = managers(former, new.as_deref());
        let owners = match (managers.is_empty(), former, new.as_deref()) {
            (true, Some(old), Some(new)) => former_owners(old, new),
            _ => Vec::new(),
        };

        let mut found = Vec::new();
        let mut dropped = Dropped::default();
        if let (Some(old), Some(new)) = (&old, &new) {
            let schema = profile.schemas.of(sighting.gvk);
            found = differences(Lists::of(sighting.gvk, schema.as_ref()), old, new);
            let differ = !found.is_empty();
            let namespace = metadata(Some(new), "namespace");
            let recreated = verb == Verb::Recreated;
            dropped = profile.noise.sift(sighting.gvk, namespace.as_deref(), recreated, &mut found);
            let mut own = Tally::default();
            own.left_out(&dropped);
            if found.is_empty() && verb == Verb::Updated {
                match profile.noise.reason(&dropped) {
                    Some(rule) => own.not_shown(rule, merged),
                    None => own.unchanged += 1,
                }
                let may_have_changed_back = merged > 1 && differ && !own.is_explained();
                if !may_have_changed_back {
                    tally.add(&own);
                    return Compared::Noise(new.clone());
                }
                own.changes.clear();
                dropped = Dropped::default();
            }
            tally.add(&own);
        }

        let text = |name: &str| metadata(new.as_deref().or(old.as_deref()), name);
        Compared::Change(Box::new(Self {
            number: None,
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
            owners: Redacted::vouched(owners),
            diff: Redacted::vouched(found),
            dropped,
            key: Some(profile.secrets.key_id()),
            merged,
            old,
            new,
            recorded: None,
        }))
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
    let mut map = serializer.serialize_struct("Change", if objects { 22 } else { 20 })?;
    if let Some(number) = change.number {
        map.serialize_field("number", &number)?;
    }
    map.serialize_field("cluster", &change.cluster)?;
    map.serialize_field("gvk", &change.gvk)?;
    map.serialize_field("resource", &change.resource)?;
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
    if !change.owners.is_empty() {
        map.serialize_field("owners", &change.owners)?;
    }
    if change.merged > 1 {
        map.serialize_field("merged", &change.merged)?;
    }
    if objects {
        map.serialize_field("old", &change.old)?;
        map.serialize_field("new", &change.new)?;
    }
    map.end()
}

/// The kind of change, from the states before and now.
fn verb(old: Option<&Value>, new: Option<&Value>) -> Verb {
    match (old, new) {
        (None, _) => Verb::Added,
        (_, None) => Verb::Deleted,
        _ if metadata(old, "uid") != metadata(new, "uid") => Verb::Recreated,
        _ => Verb::Updated,
    }
}

pub(crate) fn metadata(object: Option<&Value>, name: &str) -> Option<String> {
    object?.get("metadata")?.get(name)?.as_str().map(str::to_owned)
}
