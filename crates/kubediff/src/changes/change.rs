//! One change of one object.

use std::convert::Infallible;
use std::ops::{Deref, DerefMut};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use kubediff_history::{ChangeRecord, Number, ObjectId};
pub use kubediff_history::{Origin, Verb};

use crate::changes::headline::headline;
use crate::changes::states::States;
use crate::hide::noise::{Dropped, Noise, Tally};
use crate::hide::secret::{Redacted, Secrets};
use crate::model::diff::{Difference, differences};
use crate::model::gvk::Gvk;
use crate::model::lists::Lists;
use crate::model::managers::{former_owners, managers};
use crate::model::patch::{PatchOp, patch};
use crate::model::schema::Schemas;
use crate::text::terminal::escape;

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
/// | `source` | `watch`, `list` (states in between may be missing), or `restart` (it happened while kubediff did not run) |
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
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Change {
    record: Record,
    /// The object before.
    #[serde(skip)]
    pub old: Option<Redacted<Value>>,
    /// The object now.
    #[serde(skip)]
    pub new: Option<Redacted<Value>>,
}

/// A record whose differences hold no secret.
type Record = ChangeRecord<Redacted<Vec<Difference>>>;

impl Deref for Change {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

impl DerefMut for Change {
    fn deref_mut(&mut self) -> &mut Record {
        &mut self.record
    }
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
    /// When kubediff received it.
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
    /// An Event that came, changed or went: no change, but kept in a history.
    Event(Box<Change>),
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
            Self::Event(_) | Self::Noise(_) | Self::Nothing => None,
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
            if !self.noise.keeps(gvk) {
                return None;
            }
        }
        Some(self.secrets.redact_states(gvk, [old, new]))
    }
}

impl Change {
    /// The change from one state to the other, of which it hides the secrets first. The states are the first and the last of
    /// `merged` changes.
    ///
    /// The name, the uid and the rest of the identity are those that the objects have in their metadata. `tally` counts
    /// what is left out.
    pub fn between(
        sighting: &Sighting<'_>,
        States { old, new }: States,
        merged: u32,
        profile: &Profile,
        tally: &mut Tally,
    ) -> Compared {
        if old == new {
            tally.unchanged += 1;
            return Compared::Nothing;
        }
        match profile.redact(sighting.gvk, old, new, merged, tally) {
            Some([old, new]) => Self::between_redacted(sighting, old, new, merged, profile, tally),
            None => Compared::Nothing,
        }
    }

    /// [`Change::between`] for states without secrets, as the history has them.
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
        let mut dropped = Dropped::new();
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
                dropped = Dropped::new();
            }
            tally.add(&own);
        }

        let text = |name: &str| metadata(new.as_deref().or(old.as_deref()), name);
        let object = ObjectId {
            gvk: sighting.gvk.clone(),
            resource: sighting.resource.to_owned(),
            namespace: text("namespace"),
            name: text("name").unwrap_or_default(),
            uid: text("uid").unwrap_or_default(),
        };
        let summary = headline(verb, sighting.observed_at, [old.as_ref(), new.as_ref()], &found);
        let record = ChangeRecord {
            number: None,
            cluster: sighting.cluster.map(str::to_owned),
            object,
            verb,
            rv_before: new.as_ref().and_then(|_| metadata(old.as_deref(), "resourceVersion")),
            rv: text("resourceVersion"),
            observed_at: sighting.observed_at,
            origin: sighting.origin,
            managers,
            paths: found.iter().map(|difference| difference.path.to_string()).collect(),
            diff: Redacted::vouched(found),
            summary,
            dropped,
            key: Some(profile.secrets.key_id().to_string()),
            owners,
            merged,
            user: None,
        };
        let change = Box::new(Self { record, old, new });
        if profile.noise.keeps(sighting.gvk) { Compared::Event(change) } else { Compared::Change(change) }
    }

    /// The change of a record. Its objects are not in it.
    ///
    /// # Errors
    ///
    /// When another version of kubediff wrote the record in a form that this one does not know.
    pub fn of_record(record: ChangeRecord) -> Result<Self, UnknownForm> {
        let number = record.number.unwrap_or_default();
        let record = record.with_diff(|diff| match diff {
            Value::Null => Ok(Vec::new()),
            diff => serde_json::from_value(diff),
        });
        Ok(Self::recorded(record.map_err(|reason| UnknownForm { number, reason })?, [None, None]))
    }

    /// A change that was printed or recorded, and so holds no secret.
    pub(crate) fn recorded(
        record: ChangeRecord<Vec<Difference>>,
        [old, new]: [Option<Redacted<Value>>; 2],
    ) -> Self {
        let Ok(record) = record.with_diff(|diff| Ok::<_, Infallible>(Redacted::vouched(diff)));
        Self { record, old, new }
    }

    /// Leaves out the differences that are none; without any, it is no change.
    pub(crate) fn only(mut self, is_one: impl Fn(&Difference) -> bool) -> Option<Self> {
        let mut found = std::mem::take(&mut self.record.diff).into_inner();
        found.retain(is_one);
        if found.is_empty() && self.verb == Verb::Updated {
            return None;
        }
        let states = [self.old.as_ref(), self.new.as_ref()];
        self.record.summary = headline(self.record.verb, self.record.observed_at, states, &found);
        self.record.paths = found.iter().map(|difference| difference.path.to_string()).collect();
        self.record.diff = Redacted::vouched(found);
        Some(self)
    }

    /// The record for the history.
    ///
    /// # Errors
    ///
    /// When a difference cannot be JSON, which does not happen with differences of JSON objects.
    pub fn to_record(&self) -> Result<ChangeRecord, serde_json::Error> {
        self.record.clone().with_diff(serde_json::to_value)
    }

    /// The change in one line: `updated Deployment shop/cart: image web 1.27 -> 1.28`.
    pub fn text(&self) -> Redacted<String> {
        let object = match &self.object.namespace {
            Some(namespace) => format!("{namespace}/{}", self.object.name),
            None => self.object.name.clone(),
        };
        let headline = &self.summary;
        let colon = if headline.is_empty() { "" } else { ": " };
        let verb = self.verb.as_str();
        let cluster = self.cluster.as_deref().map(|name| format!("[{name}] ")).unwrap_or_default();
        let text = format!("{cluster}{verb} {} {object}{colon}{headline}", self.object.gvk.kind);
        Redacted::vouched(escape(&text).into_owned())
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
        WithObjects { change: self, old: &self.old, new: &self.new }
    }
}

/// A [`Change`] which as JSON has the fields `old` and `new` besides.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct WithObjects<'a> {
    #[serde(flatten)]
    change: &'a Change,
    old: &'a Option<Redacted<Value>>,
    new: &'a Option<Redacted<Value>>,
}

/// A record whose differences this version of kubediff cannot read: a newer one has written them.
#[derive(Debug, thiserror::Error)]
#[error("record {number} was written by another version of kubediff: {reason}")]
pub struct UnknownForm {
    number: Number,
    reason: serde_json::Error,
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
