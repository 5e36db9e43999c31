//! Questions: which records, which objects, which version.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::record::{Number, Verb};

/// Which objects. Everything by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Their kinds; all if empty.
    pub kinds: Vec<KindName>,
    /// Their namespaces; all if empty. `""` means cluster-scoped objects.
    pub namespaces: Vec<String>,
    /// A name.
    pub name: Option<String>,
    /// A part of a name, in upper or lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// A uid.
    pub uid: Option<String>,
}

/// A kind, as a question names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KindName {
    /// Its API group; any without one. The core group is `""`.
    pub group: Option<String>,
    /// A resource or kind: `deployments` or `Deployment`, in upper or lower case.
    pub resource: String,
}

/// `deployments.apps`, as positions and gaps name resources.
impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_deref() {
            None | Some("") => f.write_str(&self.resource),
            Some(group) => write!(f, "{}.{group}", self.resource),
        }
    }
}

/// Which records. Everything by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The objects.
    pub scope: Scope,
    /// Seen at this time or later.
    pub from: Option<Timestamp>,
    /// Seen before this time.
    pub to: Option<Timestamp>,
    /// Made by this manager, among others perhaps; `*` stands for any characters.
    pub manager: Option<String>,
    /// Made by a request of this user; `*` stands for any characters.
    pub user: Option<String>,
    /// Changes at one of these paths or below it: `spec`, `spec.containers[web]`. All if empty.
    pub paths: Vec<String>,
    /// Kinds of changes; all if empty.
    pub verbs: Vec<Verb>,
    /// Whether Events are among the results, too, unless there are `paths`, `verbs`, a `manager` or a `user`: those about the objects of the scope,
    /// and about objects that these control.
    pub events: bool,
    /// Whether gaps in this time are among the results, too: those of the scope's resource, or of all resources. The
    /// other conditions do not apply to them.
    pub gaps: bool,
    /// Whether the differences of changes are not needed: [`ChangeRecord::diff`](crate::ChangeRecord::diff) may be left out.
    pub in_words: bool,
}

impl Filter {
    /// Whether Events are asked for, and not left out by what they do not have.
    pub(crate) fn takes_events(&self) -> bool {
        let is_of_changes = self.manager.is_some() || self.user.is_some();
        self.events && !is_of_changes && self.paths.is_empty() && self.verbs.is_empty()
    }
}

/// Which part of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// In which order.
    pub order: Order,
    /// Only records beyond this one, in that order.
    pub after: Option<Number>,
    /// Only records up to this one, in that order.
    pub until: Option<Number>,
    /// How many records at most: 1 to 10,000.
    pub limit: usize,
}

/// The order of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The latest first.
    NewestFirst,
    /// In the order in which they were committed.
    OldestFirst,
}

/// Which version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// The newest one, noise included.
    Newest,
    /// The one of this record.
    Number(Number),
    /// The one before this record.
    Before(Number),
    /// The one with this resourceVersion.
    Rv(String),
    /// The one at this time. Noise after the newest version counts from its own time on.
    Time(Timestamp),
}

impl Page {
    /// The latest records.
    pub fn newest(limit: usize) -> Self {
        Self { order: Order::NewestFirst, after: None, until: None, limit }
    }

    /// The oldest records.
    pub fn oldest(limit: usize) -> Self {
        Self { order: Order::OldestFirst, after: None, until: None, limit }
    }

    /// The page after the one that ended with this record.
    #[must_use]
    pub fn after(self, number: Number) -> Self {
        Self { after: Some(number), ..self }
    }

    /// The part of the page up to this record.
    #[must_use]
    pub fn until(self, number: Number) -> Self {
        Self { until: Some(number), ..self }
    }
}

/// The rest of a path that starts with `[...]`.
pub(crate) fn element(path: &str) -> Option<&str> {
    let inside = path.strip_prefix('[')?;
    let Some(quoted) = inside.strip_prefix('"') else { return Some(inside.split_once(']')?.1) };
    let mut escaped = false;
    let end = quoted.char_indices().find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    quoted.get(end?.0 + 1..)?.strip_prefix(']')
}
