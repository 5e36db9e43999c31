//! What the log has of a source's life: each change of where it stands once, however often it is retried (contract M2).

use std::fmt;

use informer_core::Scope;
use informer_core::reflector::{Cause, Status};

use crate::resource::ResourceType;

/// Follows the status of one source.
pub(super) struct Journal {
    resource: ResourceType,
    scope: Scope,
    standing: Standing,
}

enum Standing {
    /// It has not been live yet, and nothing went wrong.
    New,
    Live,
    /// Something is wrong; what of it was said, and how many attempts have failed.
    Troubled {
        said: Vec<Trouble>,
        failures: u64,
    },
}

/// What is worth a line of its own, once until the source is live again.
#[derive(Debug, PartialEq, Eq)]
struct Trouble {
    denied: bool,
    cause: &'static str,
    code: Option<u16>,
}

/// A server that finds a new way to fail each time is not worth more lines than this.
const MOST_SAID: usize = 8;

impl Journal {
    pub(super) fn new(resource: ResourceType, scope: Scope) -> Self {
        Self { resource, scope, standing: Standing::New }
    }

    /// Takes a new status. Those of an attempt under way are on the way to another one, and say nothing.
    pub(super) fn status(&mut self, status: &Status) {
        match status {
            Status::Connecting | Status::Syncing { .. } => {}
            Status::Live { resource_version } => self.live(resource_version),
            Status::Retrying { cause, .. } => {
                if self.is_new(Trouble { denied: false, cause: cause.name(), code: code(cause) }) {
                    let Self { resource, scope, .. } = &self;
                    tracing::warn!(%resource, namespace = %Namespace(scope), %cause, "the informer is interrupted, and tries again");
                }
            }
            Status::Denied { status } => {
                if self.is_new(Trouble { denied: true, cause: "denied", code: Some(status.code) }) {
                    let Self { resource, scope, .. } = &self;
                    let namespace = Namespace(scope);
                    // Somebody has to grant it; what does not exist may come to.
                    if status.is_unauthorized() || status.is_forbidden() {
                        tracing::error!(%resource, %namespace, %status, "the informer is denied, and asks again slowly");
                    } else {
                        tracing::warn!(%resource, %namespace, %status, "the informer is denied, and asks again slowly");
                    }
                }
            }
            Status::Stopped => {
                tracing::info!(resource = %self.resource, namespace = %Namespace(&self.scope), "the informer stopped");
            }
        }
    }

    fn live(&mut self, resource_version: &impl fmt::Display) {
        let Self { resource, scope, standing } = self;
        let namespace = Namespace(scope);
        match std::mem::replace(standing, Standing::Live) {
            // A watch like any other.
            Standing::Live => {}
            Standing::New => {
                tracing::info!(%resource, %namespace, %resource_version, "the informer is live");
            }
            Standing::Troubled { failures, .. } => {
                tracing::info!(%resource, %namespace, %resource_version, failures, "the informer is live again");
            }
        }
    }

    /// Notes a failure; whether it is one that was not there before.
    fn is_new(&mut self, trouble: Trouble) -> bool {
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
