//! How far each scope has come, for callers that wait for one of them.

use super::{Desk, Engine, Lent};
use crate::reflector::Status;
use crate::{ResourceVersion, Scope};

/// How far one scope has come.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Whether its initial list is in the cache.
    pub is_synced: bool,
    /// The version of the scope that the cache reflects.
    pub resource_version: ResourceVersion,
    /// The status of its reflector.
    pub status: Status,
}

impl Default for Reach {
    /// For a scope that has not started.
    fn default() -> Self {
        Self { is_synced: false, resource_version: ResourceVersion::UNSET, status: Status::NotStarted }
    }
}

impl Engine {
    /// How far a scope has come. `None` where it has not started, or was removed.
    ///
    /// # Errors
    ///
    /// While the writer is with a [`Compute`](super::Compute).
    pub fn reach(&self, scope: &Scope) -> Result<Option<Reach>, Lent> {
        let Desk::Here(writer) = &self.desk else { return Err(Lent) };
        let source = self.scopes.iter().find(|source| source.scope == *scope);
        Ok(source.map(|source| {
            let (is_synced, resource_version) = writer.reach(source.id);
            Reach { is_synced, resource_version, status: source.status.clone() }
        }))
    }
}
