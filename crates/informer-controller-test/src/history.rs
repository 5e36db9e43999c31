//! The events of a run, in order: the basis of rules, of stories, and of the comparison of two runs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

/// Everything that happened in a run, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    pub(crate) entries: Vec<Entry>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) at: Duration,
    pub(crate) by: Author,
    pub(crate) what: What,
}

/// The author of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// The program under test.
    Program(Instance),
    /// The script of the test.
    World,
    /// The server's own controllers: garbage collection, namespaces, and those of Deployments and ReplicaSets.
    Cluster,
    /// The bench, which disturbs.
    Bench,
}

/// A process of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// 0, or 1 for the second instance.
    pub replica: u32,
    /// How many times the replica had been started before.
    pub restarts: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    Started,
    /// Why.
    Ended(String),
    /// A step of the script.
    Step(String),
    /// A disturbance began, or ended.
    Disturbed(String),
    /// A step of the script that the server refused, and why.
    Refused(String),
    /// A request was answered, or the program has given up waiting for its answer.
    Answered(Request),
    /// A reconciliation began, ...
    Began {
        controller: Arc<str>,
        key: String,
    },
    /// ... and ended, or was put off before it began.
    Reconciled {
        controller: Arc<str>,
        key: String,
        result: &'static str,
        error: Option<String>,
    },
    Changed(Change),
    /// A list or a watch has brought the states of a resource up to this revision: they have arrived.
    Seen(Seen),
    /// The external system changed.
    External(ExternalChange),
}

/// A request of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// When its answer was sent, since the start of the run.
    pub at: Duration,
    /// The process that sent it.
    pub by: Instance,
    /// `PATCH /api/v1/namespaces/shop/secrets/a?fieldManager=copies`
    pub line: String,
    /// The status of the answer; `None` if the connection was lost.
    pub status: Option<u16>,
    /// Whether it asks for a change of objects.
    pub writes: bool,
    /// The entries of the history when it left the program.
    pub(crate) departed: usize,
}

/// A change of an object in the server.
#[derive(Clone, PartialEq)]
pub struct Change {
    pub(crate) at: Duration,
    pub(crate) by: Author,
    /// `secrets`, `deployments.apps`.
    pub(crate) resource: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

/// The version of a resource that an instance has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) resource: Arc<str>,
    /// The collection and its selectors: each watch has its own place.
    pub(crate) scope: Arc<str>,
    pub(crate) upto: u64,
    /// Whether a list brought it: states between the last revision and this one stay unseen.
    pub(crate) by_list: bool,
}

/// A change in the [external system](crate::External).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalChange {
    /// When, since the start of the run.
    pub at: Duration,
    /// The object that the thing belongs to, as `namespace/name`.
    pub owner: String,
    /// The name of the thing.
    pub name: String,
    /// Whether it exists from now on.
    pub exists: bool,
}

/// The objects of the server at one moment, by `Kind namespace/name`.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    by_name: BTreeMap<String, Kept>,
}

/// An object, with who created it.
#[derive(Clone)]
struct Kept {
    object: Arc<Value>,
    created_by: Author,
}

impl Entry {
    /// Whether a leader renews its lease. There are more of these than of everything else.
    pub(crate) fn is_renewal(&self) -> bool {
        let What::Changed(change) = &self.what else { return false };
        let holder = |lease: Option<&Value>| lease.map(|lease| lease["spec"]["holderIdentity"].clone());
        change.kind() == "Lease" && holder(change.before()) == holder(change.after())
    }
}

impl History {
    /// When somebody acted last. Reads and renewals of a lease go on for ever.
    pub(crate) fn last_act(&self) -> Duration {
        let is_act = |entry: &Entry| match &entry.what {
            What::Answered(request) => request.writes && !request.line.contains("/leases/"),
            What::Seen(_) => false,
            _ => !entry.is_renewal(),
        };
        self.entries.iter().rfind(|entry| is_act(entry)).map_or(Duration::ZERO, |entry| entry.at)
    }

    /// The changes of objects, in order.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.entries.iter().filter_map(|entry| match &entry.what {
            What::Changed(change) => Some(change),
            _ => None,
        })
    }

    /// The changes of objects that the program made, in order.
    pub fn writes(&self) -> impl Iterator<Item = &Change> {
        self.changes().filter(|change| change.by.is_program())
    }

    /// The changes in the external system, in order.
    pub fn external(&self) -> impl Iterator<Item = &ExternalChange> {
        self.entries.iter().filter_map(|entry| match &entry.what {
            What::External(change) => Some(change),
            _ => None,
        })
    }

    /// The requests of the program, in the order of their answers. Watches are among them, with the status at their beginning.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.entries.iter().filter_map(|entry| match &entry.what {
            What::Answered(request) => Some(request),
            _ => None,
        })
    }

    /// The steps of the script that the server refused, and why.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| match &entry.what {
            What::Refused(words) => Some(&**words),
            _ => None,
        })
    }

    /// The objects as they were after the last change.
    pub fn objects(&self) -> Objects {
        let mut objects = Objects::default();
        self.changes().for_each(|change| objects.apply(change));
        objects
    }
}

impl Change {
    /// When, since the start of the run.
    pub fn at(&self) -> Duration {
        self.at
    }

    /// The author of the change.
    pub fn by(&self) -> Author {
        self.by
    }

    /// The resource: `secrets`, `deployments.apps`.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The object before; `None` if the change created it.
    pub fn before(&self) -> Option<&Value> {
        self.before.as_deref()
    }

    /// The object after; `None` if the change removed it.
    pub fn after(&self) -> Option<&Value> {
        self.after.as_deref()
    }

    /// The object after, or the last state of a removed one.
    pub fn object(&self) -> &Value {
        self.after().or(self.before()).unwrap_or(&Value::Null)
    }

    /// The kind of the object.
    pub fn kind(&self) -> &str {
        self.object()["kind"].as_str().unwrap_or_default()
    }

    /// `namespace/name`, or `name`.
    pub fn key(&self) -> String {
        key(self.object())
    }

    /// The uid of the object.
    pub fn uid(&self) -> &str {
        uid(self.object())
    }

    /// Whether it created the object.
    pub fn creates(&self) -> bool {
        self.before.is_none()
    }

    /// Whether it removed the object, or began its deletion.
    pub fn deletes(&self) -> bool {
        let being_deleted = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        match (self.before(), self.after()) {
            (_, None) => true,
            (before, Some(after)) => being_deleted(after) && !before.is_some_and(being_deleted),
        }
    }
}

impl Objects {
    /// All objects of a kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let first = format!("{kind} ");
        self.by_name.iter().filter(move |(name, _)| name.starts_with(&first)).map(|(_, kept)| &*kept.object)
    }

    /// An object by its kind and key (`namespace/name` or `name`).
    pub fn get(&self, kind: &str, key: &str) -> Option<&Value> {
        self.by_name.get(&format!("{kind} {key}")).map(|kept| &*kept.object)
    }

    /// The creator of an object that exists.
    pub fn created_by(&self, kind: &str, key: &str) -> Option<Author> {
        self.by_name.get(&format!("{kind} {key}")).map(|kept| kept.created_by)
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = &Value> {
        self.by_name.values().map(|kept| &*kept.object)
    }

    pub(crate) fn apply(&mut self, change: &Change) {
        let name = format!("{} {}", change.kind(), change.key());
        match &change.after {
            Some(after) => {
                let kept = self
                    .by_name
                    .entry(name)
                    .or_insert_with(|| Kept { object: after.clone(), created_by: change.by });
                kept.object = after.clone();
            }
            None => drop(self.by_name.remove(&name)),
        }
    }
}

impl Author {
    /// Whether the program did it.
    pub fn is_program(self) -> bool {
        matches!(self, Self::Program(_))
    }
}

/// As a subject of a sentence.
impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(Instance { replica: 0, .. }) => f.write_str("the program"),
            Self::Program(_) => f.write_str("the second instance"),
            Self::World => f.write_str("the script"),
            Self::Cluster => f.write_str("the cluster"),
            Self::Bench => f.write_str("the bench"),
        }
    }
}

/// Without the objects' bodies.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Change({:?} {} {}@{})", self.by, self.kind(), self.key(), self.revision)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by {}", self.created_by)
    }
}

/// `namespace/name`, or `name`.
pub(crate) fn key(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}
