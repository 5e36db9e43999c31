//! The log of a source: each change of its status once, however often a request is retried (contract M2).

use std::fmt;

use informer_core::Scope;
use informer_core::reflector::{Cause, Status};

use crate::options::resource::ResourceType;
use crate::options::selection::Selection;

/// Follows the status of one source.
pub(super) struct Journal {
    resource: ResourceType,
    selection: Selection,
    scope: Scope,
    standing: Standing,
}

enum Standing {
    /// The source has not been live yet, and nothing has failed.
    New,
    Live,
    /// Something has failed. `said` has the troubles that the log has, `failures` the number of failed attempts.
    Troubled {
        said: Vec<Trouble>,
        failures: u64,
    },
}

/// A trouble that deserves a log line of its own, once until the source is live again.
#[derive(Debug, PartialEq, Eq)]
struct Trouble {
    denied: bool,
    cause: &'static str,
    code: Option<u16>,
}

/// The most lines until the source is live again, for a server that fails differently each time.
const MOST_SAID: usize = 8;

impl Journal {
    pub(super) fn new(resource: ResourceType, selection: Selection, scope: Scope) -> Self {
        Self { resource, selection, scope, standing: Standing::New }
    }

    /// Logs a new status.
    pub(super) fn status(&mut self, status: &Status) {
        match status {
            Status::Live { resource_version } => return self.live(resource_version),
            Status::Retrying { .. } | Status::Stalled | Status::Denied { .. } if !self.is_new(status) => {
                return;
            }
            _ => {}
        }
        let Self { resource, selection, scope, .. } = &self;
        let namespace = Namespace(scope);
        match status {
            Status::Retrying { cause, .. } => {
                tracing::warn!(%resource, %selection, %namespace, %cause, "the informer is interrupted, and retries");
            }
            Status::Stalled => {
                tracing::warn!(%resource, %selection, %namespace, "the informer is stalled: a transform or an index function does not return");
            }
            // A 401 or 403 needs an administrator; a missing resource may still appear.
            Status::Denied { status } if status.is_unauthorized() || status.is_forbidden() => {
                tracing::error!(%resource, %selection, %namespace, %status, "the informer is denied, and retries slowly");
            }
            Status::Denied { status } => {
                tracing::warn!(%resource, %selection, %namespace, %status, "the informer is denied, and retries slowly");
            }
            Status::Stopped => {
                tracing::info!(%resource, %selection, %namespace, "the informer stopped");
            }
            // The other statuses are on the way to another one.
            _ => {}
        }
    }

    fn live(&mut self, resource_version: &impl fmt::Display) {
        let Self { resource, selection, scope, standing } = self;
        let namespace = Namespace(scope);
        match std::mem::replace(standing, Standing::Live) {
            // A watch has replaced another one; nothing has changed.
            Standing::Live => {}
            Standing::New => {
                tracing::info!(%resource, %selection, %namespace, %resource_version, "the informer is live");
            }
            Standing::Troubled { failures, .. } => {
                tracing::info!(%resource, %selection, %namespace, %resource_version, failures, "the informer is live again");
            }
        }
    }

    /// Counts a failure. Returns whether it deserves a log line.
    fn is_new(&mut self, status: &Status) -> bool {
        let trouble = match status {
            Status::Retrying { cause, .. } => {
                Trouble { denied: false, cause: cause.name(), code: code(cause) }
            }
            Status::Denied { status } => Trouble { denied: true, cause: "denied", code: Some(status.code) },
            _ => Trouble { denied: false, cause: "stalled", code: None },
        };
        if !matches!(self.standing, Standing::Troubled { .. }) {
            self.standing = Standing::Troubled { said: Vec::new(), failures: 0 };
        }
        let Standing::Troubled { said, failures } = &mut self.standing else { return false };
        *failures += 1;
        let new = said.len() < MOST_SAID && !said.contains(&trouble);
        if new {
            said.push(trouble);
        }
        new
    }
}

fn code(cause: &Cause) -> Option<u16> {
    match cause {
        Cause::Refused(status) | Cause::ErrorEvent(status) | Cause::VersionUnavailable(status) => {
            Some(status.code)
        }
        _ => None,
    }
}

struct Namespace<'a>(&'a Scope);

impl fmt::Display for Namespace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Scope::All => f.write_str("all"),
            Scope::Namespace(namespace) => f.write_str(namespace),
        }
    }
}
