//! The leader, for observers.

use crate::gate::Gate;

/// Where an election stands, as far as this candidate knows.
///
/// A candidate learns of others only while it waits in [`acquire`](super::Election::acquire), or leads.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ElectionStatus {
    /// The holder's identity; `None` if nobody holds the lease, or before the first look.
    pub leader: Option<String>,
    /// The number of the term, which rises with each change of the holder: `leaseTransitions`.
    pub generation: Option<u32>,
    /// Why the last request for the lease has failed; `None` if it has not.
    pub problem: Option<String>,
    pub(super) gate: Option<Gate>,
}

impl ElectionStatus {
    /// Whether this candidate leads, at the moment of this call.
    pub fn is_leading(&self) -> bool {
        self.gate.as_ref().is_some_and(Gate::is_open)
    }
}

impl PartialEq for ElectionStatus {
    fn eq(&self, other: &Self) -> bool {
        (&self.leader, self.generation, &self.problem, self.gate.is_some())
            == (&other.leader, other.generation, &other.problem, other.gate.is_some())
    }
}
