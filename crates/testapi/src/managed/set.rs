//! Sets of field paths, as trees.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::schema::path::Element;
use crate::schema::{Type, TypeRef};

/// The paths from a node: those of one step, and longer ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    members: BTreeSet<Element>,
    children: BTreeMap<Element, FieldSet>,
}

impl FieldSet {
    /// A set of paths of names: `metadata.labels`.
    pub(crate) fn of(paths: &[&str]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.split('.').map(Element::field).collect::<Vec<_>>());
        }
        set
    }

    /// An empty path is ignored.
    pub(crate) fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => _ = self.members.insert(last.clone()),
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    pub(crate) fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|child| child.has(rest)),
        }
    }

    /// The rest of the paths after a step.
    pub(crate) fn behind(&self, step: &Element) -> Option<&Self> {
        self.children.get(step).filter(|child| !child.is_empty())
    }

    /// Whether the set contains the path of this one step.
    pub(crate) fn has_member(&self, step: &Element) -> bool {
        self.members.contains(step)
    }

    /// The paths in either set.
    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.members.extend(other.members.iter().cloned());
        for (step, others) in &other.children {
            let own = self.children.remove(step).unwrap_or_default();
            self.children.insert(step.clone(), own.union(others));
        }
        self
    }

    /// The paths in both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let members = self.members.intersection(&other.members).cloned().collect();
        Self {
            members,
            children: self.pruned(|step, child| Some(child.intersection(other.children.get(step)?))),
        }
    }

    /// The paths in this set and not in the other.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.pruned(|step, child| {
            Some(other.children.get(step).map_or_else(|| child.clone(), |other| child.difference(other)))
        });
        Self { members, children }
    }

    /// The paths in this set that are neither in the other nor below one of its paths.
    pub(crate) fn outside(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.pruned(|step, child| {
            let stays = !other.members.contains(step);
            stays
                .then(|| other.children.get(step).map_or_else(|| child.clone(), |other| child.outside(other)))
        });
        Self { members, children }
    }

    fn pruned(&self, change: impl Fn(&Element, &Self) -> Option<Self>) -> BTreeMap<Element, Self> {
        let changed =
            self.children.iter().filter_map(|(step, child)| Some((step.clone(), change(step, child)?)));
        changed.filter(|(_, child)| !child.is_empty()).collect()
    }

    /// This set with every named field of the type of which it contains a part.
    pub(crate) fn with_named_fields(&self, of: Option<&TypeRef>) -> Self {
        let mut members = self.members.clone();
        let mut children = BTreeMap::new();
        for (step, child) in &self.children {
            let below = match (step, of) {
                (Element::Field(name), Some(of)) => {
                    if of.field(name).is_some() {
                        members.insert(step.clone());
                    }
                    of.child(name)
                }
                (Element::Key(_), Some(of)) if matches!(of.definition(), Type::List { .. }) => of.items(),
                _ => None,
            };
            children.insert(step.clone(), child.with_named_fields(below.as_ref()));
        }
        Self { members, children }
    }

    /// All paths; at each step the short ones come first.
    pub(crate) fn paths(&self) -> Vec<Vec<Element>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Vec<Element>>) {
        for member in &self.members {
            let mut path = prefix.clone();
            path.push(member.clone());
            paths.push(path);
        }
        for (step, child) in &self.children {
            prefix.push(step.clone());
            child.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// Whether a `fieldsV1` contains a path of this set.
    pub(crate) fn is_any_in(&self, encoded: &Value) -> bool {
        let is_leaf = |below: &Value| below.get(".").is_some() || below.as_object().is_none_or(Map::is_empty);
        self.members.iter().any(|member| encoded.get(member.encode()).is_some_and(is_leaf))
            || self
                .children
                .iter()
                .any(|(step, child)| encoded.get(step.encode()).is_some_and(|below| child.is_any_in(below)))
    }

    /// The form of `fieldsV1`: `{"f:spec": {".": {}, "f:replicas": {}}}`.
    pub(crate) fn encode(&self) -> Value {
        let mut object = Map::new();
        for member in &self.members {
            object.insert(member.encode(), Value::Object(Map::new()));
        }
        for (step, child) in &self.children {
            let mut below = child.encode();
            if self.members.contains(step) && !(child.members.is_empty() && child.children.is_empty()) {
                below["."] = Value::Object(Map::new());
            }
            object.insert(step.encode(), below);
        }
        Value::Object(object)
    }

    /// Reads `fieldsV1`.
    pub(crate) fn decode(fields: &Value) -> Result<Self, String> {
        let mut set = Self::default();
        for (name, below) in fields.as_object().into_iter().flatten() {
            if name == "." {
                continue;
            }
            let Some(step) = Element::decode(name)? else { continue };
            let child = Self::decode(below)?;
            let is_leaf = child.members.is_empty() && child.children.is_empty();
            if is_leaf || below.get(".").is_some() {
                set.members.insert(step.clone());
            }
            if !is_leaf {
                set.children.insert(step, child);
            }
        }
        Ok(set)
    }
}
