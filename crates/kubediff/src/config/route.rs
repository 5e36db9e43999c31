//! Which changes go where.

use std::fmt;

use informer::Selector;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::resource::ResourceName;
use super::value::Text;
use crate::changes::change::{Origin, Verb};
use crate::model::glob::Glob;
use crate::model::path::PathPattern;
use crate::story::MilestoneKind;

/// Which changes go where. Routes are tried in their order, and the first that matches a change is the last that is
/// tried, unless it says `continue: true`. A route without sinks drops what it matches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Route {
    /// Which changes. Default: all.
    #[serde(default, rename = "match", skip_serializing_if = "Match::is_everything")]
    pub matches: Match,
    /// The names of the sinks that get them. Empty for none.
    pub sinks: Vec<String>,
    /// How much it matters.
    #[serde(default, skip_serializing_if = "is_info")]
    pub severity: Severity,
    /// Whether a story is told instead of the changes that belong to it: `true`, or the milestones that are told, `[trouble, closed]`. A
    /// story matches with the change that it began with. A change of no story is told alone.
    #[serde(default, skip_serializing_if = "Milestones::is_empty")]
    #[cfg_attr(test, schemars(with = "super::schema::Fold"))]
    pub fold: Milestones,
    /// The text of messages, in the syntax of Jinja: `{{ text }}` is the usual one. There are `cluster`, `change`,
    /// `kind`, `group`, `version`, `resource`, `namespace`, `name`, `uid`, `summary`, `managers`, `user`, `paths`, `diff`,
    /// `source`, `observed_at`, `severity`, `labels`, `annotations`, `old` and `new`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Whether the routes after this one are tried, too.
    #[serde(default, rename = "continue", skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
}

/// The milestones of stories that a route tells; none for a route that tells changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Milestones(pub Vec<MilestoneKind>);

impl Milestones {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Milestones {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Switch)
    }
}

struct Switch;

impl<'de> Visitor<'de> for Switch {
    type Value = Milestones;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`true`, `false` or milestones of stories: `[opened, trouble, closed]`")
    }

    fn visit_bool<E>(self, is_on: bool) -> Result<Milestones, E> {
        let all = || vec![MilestoneKind::Opened, MilestoneKind::Trouble, MilestoneKind::Closed];
        Ok(Milestones(if is_on { all() } else { Vec::new() }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Milestones, A::Error> {
        let milestones: Vec<MilestoneKind> = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
        match milestones.is_empty() {
            true => Err(A::Error::custom(
                "name at least one of `opened`, `trouble` and `closed`, or write `false`",
            )),
            false => Ok(Milestones(milestones)),
        }
    }
}

/// Which changes a route is about: those that every field matches. A field matches if one of its elements does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Match {
    /// Resources, as kubectl names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Text<ResourceName>>,
    /// Namespaces; `*` stands for any characters. Objects without a namespace do not match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<Glob>,
    /// Names of objects; `*` stands for any characters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Glob>,
    /// The labels that the object has after the change, or had before, as `kubectl -l` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Text<Selector>>,
    /// Where the object differs: `spec.template.spec.containers[*].image`. Of an object that came or went, what it has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Text<PathPattern>>,
    /// The managers that made it; `*` stands for any characters: `kubectl-*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<Glob>,
    /// The users whose requests made it, from the audit log; `*` stands for any characters. A change whose user is unknown does not match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<Glob>,
    /// The kinds of change: `added`, `updated`, `deleted`, `recreated`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<super::schema::Verb>"))]
    pub changes: Vec<Verb>,
    /// How it became known: `watch`, `list`, `restart`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<super::schema::Origin>"))]
    pub sources: Vec<Origin>,
}

impl Match {
    /// The names of fields in it, and of labels.
    pub(crate) fn names_of_fields(&self) -> impl Iterator<Item = &str> {
        let labels = self.labels.iter().flat_map(|labels| labels.0.requirements());
        let labels = labels.map(|requirement| requirement.key());
        self.paths.iter().flat_map(|path| path.0.names()).chain(labels)
    }
}

/// How much a change matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It is good to know.
    #[default]
    Info,
    /// Somebody should look.
    Warning,
    /// Somebody has to look now.
    Critical,
}

impl Match {
    fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

impl Severity {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_info(severity: &Severity) -> bool {
    *severity == Severity::Info
}
