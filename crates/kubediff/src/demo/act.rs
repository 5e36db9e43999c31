//! The acts of people and controllers in the demo: requests, and pauses between them.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    /// The field manager that owns it.
    pub manager: &'static str,
    /// Its request.
    pub verb: Verb,
    /// Where.
    pub path: String,
    /// With what; null where nothing is sent.
    pub body: Value,
    /// The controller of what is created, whose uid the server alone knows.
    pub owner: Option<Owner>,
}

/// The controller of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    /// `apps/v1`
    pub api: &'static str,
    /// `ReplicaSet`
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: String,
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// POST
    Create,
    /// PATCH, as RFC 7396 has it.
    Patch,
    /// DELETE
    Delete,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
        })
    }
}

/// Some requests that come together, after a pause.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// How long nothing happens before.
    pub pause: Duration,
    /// The caption for spectators.
    pub caption: Option<String>,
    /// In this order.
    pub acts: Vec<Act>,
}

impl Step {
    /// Something that happens this much later.
    pub(super) fn after(seconds: f64, acts: impl IntoIterator<Item = Act>) -> Self {
        Self { pause: Duration::from_secs_f64(seconds), caption: None, acts: acts.into_iter().collect() }
    }

    /// The same, with a caption for spectators.
    pub(super) fn told(mut self, caption: impl Into<String>) -> Self {
        self.caption = Some(caption.into());
        self
    }
}

impl Act {
    pub(super) fn create(manager: &'static str, path: impl Into<String>, body: Value) -> Self {
        Self { manager, verb: Verb::Create, path: path.into(), body, owner: None }
    }

    /// The same with a controller.
    pub(super) fn of(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    pub(super) fn patch(manager: &'static str, path: impl Into<String>, body: Value) -> Self {
        Self { manager, verb: Verb::Patch, path: path.into(), body, owner: None }
    }

    pub(super) fn delete(manager: &'static str, path: impl Into<String>) -> Self {
        Self { manager, verb: Verb::Delete, path: path.into(), body: Value::Null, owner: None }
    }
}
