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
use sequence::MOST;

pub(crate) mod align;
pub(crate) mod sequence;
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
    /// A text of several lines differs in some of them. Where tens of thousands differ, it is [`Changed`](Self::Changed) as a whole.
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
        let reached = |value| find::reached(value, self.path.field(), steps);
        match &self.edit {
            Edit::Added { new: value } | Edit::Removed { old: value } => !reached(value).is_empty(),
            // A map or list that is one difference as a whole may be the same there.
            Edit::Changed { old, new } => reached(old) != reached(new),
            Edit::Text { .. } | Edit::Reordered { .. } => false,
        }
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
/// an insertion in the middle is one insertion; in sequences of more than 20,000 elements or lines between the first and the last
/// difference, by parts. A map or list with more than 1,000 differences is one difference as a whole. The order of a list [has a meaning](Edit::Reordered) unless the API of Kubernetes
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
    let mut walk = Walk { path: Path::default(), documents: 0, left: MOST, found: Vec::new() };
    walk.value(lists, old, new);
    walk.found
}

struct Walk {
    path: Path,
    documents: usize,
    /// The number of elements and lines that may still be compared one by one.
    left: usize,
    found: Vec<Difference>,
}

/// The number of differences within a map or list. With more, it is one difference as a whole.
const MOST_DIFFERENCES: usize = 1_000;

/// A map or list has more than [`MOST_DIFFERENCES`].
struct TooMany;

impl Walk {
    fn value(&mut self, lists: Lists<'_>, old: &Value, new: &Value) {
        match (old, new) {
            _ if old == new => {}
            (Value::Object(before), Value::Object(now)) => {
                self.within_bounds(old, new, |walk, found| walk.map(lists, before, now, found));
            }
            (Value::Array(before), Value::Array(now)) => {
                self.within_bounds(old, new, |walk, found| walk.list(lists, before, now, found));
            }
            (Value::String(old), Value::String(new)) => self.string(old, new),
            _ => self.found(Edit::Changed { old: old.clone(), new: new.clone() }),
        }
    }

    /// `visit` gets the number of differences that were found before.
    fn within_bounds(
        &mut self,
        old: &Value,
        new: &Value,
        visit: impl FnOnce(&mut Self, usize) -> Result<(), TooMany>,
    ) {
        let found = self.found.len();
        if let Err(TooMany) = visit(self, found) {
            self.found.truncate(found);
            self.found(Edit::Changed { old: old.clone(), new: new.clone() });
        }
    }

    fn is_bounded(&self, found: usize) -> Result<(), TooMany> {
        if self.found.len() - found > MOST_DIFFERENCES { Err(TooMany) } else { Ok(()) }
    }

    fn map(
        &mut self,
        lists: Lists<'_>,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        found: usize,
    ) -> Result<(), TooMany> {
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
            self.is_bounded(found)?;
        }
        Ok(())
    }

    fn list(&mut self, lists: Lists<'_>, old: &[Value], new: &[Value], found: usize) -> Result<(), TooMany> {
        let alignment = align(self.path.field(), lists, old, new, &mut self.left);
        let kept: BTreeSet<usize> = alignment.pairs.iter().map(|(old, _)| *old).collect();
        let mut removed = (0..old.len()).filter(|at| !kept.contains(at)).peekable();
        let mut pairs = alignment.pairs.iter().peekable();
        let identity = &alignment.identity;

        for (at, now) in new.iter().enumerate() {
            self.is_bounded(found)?;
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
            self.is_bounded(found)?;
        }

        if alignment.is_reordered() {
            if alignment.pairs.len() > MOST_DIFFERENCES {
                return Err(TooMany);
            }
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
        self.is_bounded(found)
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
        let edit =
            if has_lines(old) || has_lines(new) { TextEdit::between(old, new, &mut self.left) } else { None };
        self.found(match edit {
            Some(lines) => Edit::Text { lines },
            None => Edit::Changed { old: old.into(), new: new.into() },
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
