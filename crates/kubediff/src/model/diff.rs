//! The differences between two objects.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use text::{Hunk, InvalidTextEdit, Line, Side, TextEdit};

use crate::model::document;
use crate::model::lists::Lists;
use crate::model::path::keys::Identity;
use crate::model::path::{Path, PathPattern, Segment, find};
use crate::model::schema::KindSchema;
use align::align;

pub(crate) mod align;
mod text;

/// How deep documents in strings are parsed.
const MAX_DOCUMENTS: usize = 2;

/// One place where two objects differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Where.
    pub path: Path,
    /// The kind of difference.
    #[serde(flatten)]
    pub edit: Edit,
}

/// How a value differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Edit {
    /// Only the new object has it.
    Added {
        /// The value.
        new: Value,
    },
    /// Only the old object has it.
    Removed {
        /// The value.
        old: Value,
    },
    /// It was replaced.
    Changed {
        /// The value before.
        old: Value,
        /// The value now.
        new: Value,
    },
    /// A text of several lines differs in some of them.
    Text {
        /// Which.
        lines: TextEdit,
    },
    /// The elements of a list that both objects have changed places.
    Reordered {
        /// Their keys, or the elements themselves where they have no key, in the old order.
        old: Vec<String>,
        /// The same in the new order.
        new: Vec<String>,
        /// Whether the order of this list has a meaning. It has one unless the schema, or the API of Kubernetes itself, says that it
        /// has none.
        matters: bool,
    },
}

impl Difference {
    /// Whether it is at what the pattern names, in it, or around it in a value that came or went as a whole.
    pub(crate) fn is_at(&self, pattern: &PathPattern) -> bool {
        if pattern.covers(&self.path) {
            return true;
        }
        let Some(steps) = pattern.below(&self.path) else { return false };
        let values: &[&Value] = match &self.edit {
            Edit::Added { new } => &[new],
            Edit::Removed { old } => &[old],
            Edit::Changed { old, new } => &[old, new],
            Edit::Text { .. } | Edit::Reordered { .. } => &[],
        };
        values.iter().any(|value| find::leads(value, self.path.field(), steps))
    }
}

impl Edit {
    /// Replaces values by `part`, and texts where `text` gives another one.
    pub(crate) fn retext(&mut self, text: &dyn Fn(&str) -> Option<String>, part: &dyn Fn(&mut Value)) {
        match self {
            Self::Added { new: value } | Self::Removed { old: value } => part(value),
            Self::Changed { old, new } => [old, new].into_iter().for_each(part),
            Self::Text { lines } => lines.retext(text),
            Self::Reordered { old, new, .. } => {
                for key in old.iter_mut().chain(new) {
                    if let Some(other) = text(key) {
                        *key = other;
                    }
                }
            }
        }
    }
}

/// The differences between two objects, in the order of their fields' names.
///
/// Maps are compared by key. Elements of lists are found again by what tells them apart: a container by its name, a
/// condition by its type, a port by number and protocol. Where nothing does, by longest common subsequence, so that
/// an insertion in the middle is one insertion. The order of a list [has a meaning](Edit::Reordered) unless the API of Kubernetes
/// says that it has none, which `apiVersion` and `kind` tell. Strings that hold JSON, YAML (also several documents), TOML, INI or
/// properties are compared inside, and other strings of several lines by lines; a change of a document's layout or comments alone is shown by lines, too.
///
/// ```
/// use serde_json::json;
///
/// let old = json!({"containers": [{"name": "web", "image": "nginx:1.27"}]});
/// let new = json!({"containers": [{"name": "log", "image": "fluent"}, {"name": "web", "image": "nginx:1.28"}]});
/// let paths: Vec<String> = kubediff::diff(&old, &new).iter().map(|it| it.path.to_string()).collect();
/// assert_eq!(paths, ["containers[log]", "containers[web].image"]);
/// ```
pub fn diff(old: &Value, new: &Value) -> Vec<Difference> {
    differences(Lists::of_object(new, None), old, new)
}

/// [`diff()`] for objects of a kind the schema of which is known: lists are compared as it says.
///
/// A list with `x-kubernetes-list-type: map` is compared by its keys, several together where it has several
/// (`rules[example.com,/cart]`); a `set` by content, and in any order. For other lists [`diff()`]'s rules hold.
pub fn diff_as(schema: &KindSchema, old: &Value, new: &Value) -> Vec<Difference> {
    differences(Lists::of_object(new, Some(schema)), old, new)
}

pub(crate) fn differences(lists: Lists<'_>, old: &Value, new: &Value) -> Vec<Difference> {
    let mut walk = Walk { path: Path::default(), documents: 0, found: Vec::new() };
    walk.value(lists, old, new);
    walk.found
}

struct Walk {
    path: Path,
    documents: usize,
    found: Vec<Difference>,
}

impl Walk {
    fn value(&mut self, lists: Lists<'_>, old: &Value, new: &Value) {
        match (old, new) {
            _ if old == new => {}
            (Value::Object(old), Value::Object(new)) => self.map(lists, old, new),
            (Value::Array(old), Value::Array(new)) => self.list(lists, old, new),
            (Value::String(old), Value::String(new)) => self.string(old, new),
            _ => self.found(Edit::Changed { old: old.clone(), new: new.clone() }),
        }
    }

    fn map(&mut self, lists: Lists<'_>, old: &Map<String, Value>, new: &Map<String, Value>) {
        // Sorted whether or not serde_json keeps maps sorted: that is a feature which any crate of a build may change.
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let (old, new) = (old.get(name), new.get(name));
            if old == new {
                continue;
            }
            self.within(Segment::Field(name.clone()), |walk| match (old, new) {
                (Some(old), Some(new)) => walk.value(lists.field(name), old, new),
                (Some(old), None) => walk.found(Edit::Removed { old: old.clone() }),
                (None, Some(new)) => walk.found(Edit::Added { new: new.clone() }),
                (None, None) => {}
            });
        }
    }

    fn list(&mut self, lists: Lists<'_>, old: &[Value], new: &[Value]) {
        let alignment = align(self.path.field(), lists, old, new);
        let kept: BTreeSet<usize> = alignment.pairs.iter().map(|(old, _)| *old).collect();
        let mut removed = (0..old.len()).filter(|at| !kept.contains(at)).peekable();
        let mut pairs = alignment.pairs.iter().peekable();
        let identity = &alignment.identity;

        for (at, now) in new.iter().enumerate() {
            let Some(&(before_at, _)) = pairs.next_if(|(_, new)| *new == at) else {
                self.within(identity.segment(at, Age::New), |walk| {
                    walk.found(Edit::Added { new: now.clone() })
                });
                continue;
            };
            while let Some(gone) = removed.next_if(|gone| *gone < before_at) {
                self.removed(identity, old, gone);
            }
            if let Some(before) = old.get(before_at) {
                let segment = match identity {
                    Identity::Keyed(_) => identity.segment(before_at, Age::Old),
                    Identity::Set | Identity::Sequence => identity.segment(at, Age::New),
                };
                self.within(segment, |walk| walk.value(lists.element(), before, now));
            }
        }
        for gone in removed {
            self.removed(identity, old, gone);
        }

        if alignment.is_reordered() {
            let mut in_old_order = alignment.pairs.clone();
            in_old_order.sort_unstable();
            let label = |&(at, _): &(usize, usize)| match (identity, old.get(at)) {
                (Identity::Keyed(keyed), _) => keyed.old.get(at).cloned().unwrap_or_default(),
                (_, Some(Value::String(text))) => text.clone(),
                (_, element) => element.map(Value::to_string).unwrap_or_default(),
            };
            self.found(Edit::Reordered {
                old: in_old_order.iter().map(label).collect(),
                new: alignment.pairs.iter().map(label).collect(),
                matters: match identity {
                    Identity::Keyed(keyed) => keyed.order_matters,
                    Identity::Sequence => true,
                    Identity::Set => false,
                },
            });
        }
    }

    fn removed(&mut self, identity: &Identity, old: &[Value], at: usize) {
        if let Some(element) = old.get(at) {
            self.within(identity.segment(at, Age::Old), |walk| {
                walk.found(Edit::Removed { old: element.clone() })
            });
        }
    }

    fn string(&mut self, old: &str, new: &str) {
        if self.documents < MAX_DOCUMENTS
            && let Some((old, new)) = document::read(self.path.field(), old, new)
        {
            let before = self.found.len();
            self.documents += 1;
            self.within(Segment::Document, |walk| walk.value(Lists::unknown(), &old, &new));
            self.documents -= 1;
            if self.found.len() > before {
                return;
            }
        }
        let has_lines = |text: &str| text.trim_end_matches('\n').contains('\n');
        self.found(if has_lines(old) || has_lines(new) {
            Edit::Text { lines: TextEdit::between(old, new) }
        } else {
            Edit::Changed { old: old.into(), new: new.into() }
        });
    }

    fn within(&mut self, segment: Segment, visit: impl FnOnce(&mut Self)) {
        self.path.push(segment);
        visit(self);
        self.path.pop();
    }

    fn found(&mut self, edit: Edit) {
        self.found.push(Difference { path: self.path.clone(), edit });
    }
}

/// Which of two lists a place is in.
#[derive(Clone, Copy)]
enum Age {
    Old,
    New,
}

impl Identity {
    fn segment(&self, at: usize, age: Age) -> Segment {
        match self {
            Self::Keyed(keyed) => {
                let keys = match age {
                    Age::Old => &keyed.old,
                    Age::New => &keyed.new,
                };
                keys.get(at).map_or(Segment::Index(at), |key| Segment::Key(key.clone()))
            }
            Self::Set => Segment::Element,
            Self::Sequence => match age {
                Age::Old => Segment::Former(at),
                Age::New => Segment::Index(at),
            },
        }
    }
}
