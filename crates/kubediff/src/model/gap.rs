//! Time in which something was not watched.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A gap: from when to when which resources were not watched, and why. Changes in a gap are shown after it, as far as the
/// server still knows them; states in between may be missing.
///
/// As JSON it is one map, told from a change by `"change": "gap"`:
///
/// | field | |
/// |---|---|
/// | `cluster` | name of the cluster, or null |
/// | `change` | `gap` |
/// | `from` | RFC 3339 |
/// | `to` | RFC 3339; null when the gap lasts at the end of the session |
/// | `resources` | what was not watched, as `deployments.apps` |
/// | `cause` | in words |
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Name of the cluster.
    pub cluster: Option<String>,
    #[serde(rename = "change")]
    kind: Kind,
    /// Since when.
    pub from: Timestamp,
    /// Until when; `None` when it lasts.
    pub to: Option<Timestamp>,
    /// The resources that were not watched, in alphabetical order; everything when it is empty.
    pub resources: Vec<String>,
    /// Why.
    pub cause: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Gap,
}

impl Gap {
    /// A gap that began at `from` and lasts.
    pub fn since(from: Timestamp, resources: Vec<String>, cause: impl Into<String>) -> Self {
        Self { cluster: None, kind: Kind::Gap, from, to: None, resources, cause: cause.into() }
    }

    /// The same, ended.
    #[must_use]
    pub fn until(self, to: Timestamp) -> Self {
        Self { to: Some(to), ..self }
    }

    /// The same, with the cluster's name.
    #[must_use]
    pub(crate) fn of_cluster(self, name: &str) -> Self {
        Self { cluster: Some(name.to_owned()), ..self }
    }

    /// The resources that were not watched, in a few words: their names where they are few, else how many.
    pub fn what(&self) -> String {
        /// More are counted.
        const NAMED: usize = 3;
        match self.resources.len() {
            0 => "everything".to_owned(),
            count if count > NAMED => format!("{count} resources"),
            _ => self.resources.join(", "),
        }
    }
}
