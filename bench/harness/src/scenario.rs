//! What can be measured. Each scenario says in its own file what it does and records figures; here they have their names.

pub(super) mod delay;
pub(super) mod hot;
mod idle;
pub(super) mod kinds;
pub(super) mod kubediff;
mod late_index;
pub(super) mod outage;
pub(super) mod reads;
pub(super) mod reconcile;
pub(super) mod relist;
mod restart;
pub(super) mod stuck;
pub(super) mod subscriptions;
pub(super) mod sync;
pub(super) mod updates;

use super::{Bench, growth};
use crate::error::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// The first content
    Sync,
    /// A list of what is there already, unchanged and with a tenth changed
    Relist,
    /// Changes of objects, with one handler
    Updates,
    /// Changes at an even pace, and how late the handler is told
    Delay,
    /// A controller: each pod that has changed, its node and its siblings are read
    Reconcile,
    /// The server away, and back
    Outage,
    /// 1, 10 and 100 handlers on one informer
    Subscriptions,
    /// A handler that never returns
    Stuck,
    /// Reads of the cache, alone and beside a writer
    Reads,
    /// Reads of few objects among many, again and again
    Hot,
    /// An index for an informer that runs
    LateIndex,
    /// Ten and a hundred times as many objects
    Growth,
    /// All kinds of a cluster at once
    Kinds,
    /// The tool at everything that a cluster has
    Kubediff,
    /// Nothing to do
    Idle,
    /// A restart with a saved cache
    Restart,
}

impl Scenario {
    pub(crate) const ALL: &[Self] = &[
        Self::Sync,
        Self::Relist,
        Self::Updates,
        Self::Delay,
        Self::Reconcile,
        Self::Outage,
        Self::Subscriptions,
        Self::Stuck,
        Self::Reads,
        Self::Hot,
        Self::LateIndex,
        Self::Growth,
        Self::Kinds,
        Self::Kubediff,
        Self::Idle,
        Self::Restart,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Relist => "relist",
            Self::Updates => "updates",
            Self::Delay => "delay",
            Self::Reconcile => "reconcile",
            Self::Outage => "outage",
            Self::Subscriptions => "subscriptions",
            Self::Stuck => "stuck",
            Self::Reads => "reads",
            Self::Hot => "hot",
            Self::LateIndex => "late-index",
            Self::Growth => "growth",
            Self::Kinds => "kinds",
            Self::Kubediff => "kubediff",
            Self::Idle => "idle",
            Self::Restart => "restart",
        }
    }

    /// How often it is run where the others are run so many times: what takes ten minutes and hardly varies is run once.
    pub(super) fn rounds(self, runs: usize) -> usize {
        match self {
            Self::Growth => runs.min(1),
            _ => runs,
        }
    }

    pub(super) fn run(self, bench: &mut Bench<'_>) -> Result<(), Error> {
        match self {
            Self::Sync => sync::run(bench),
            Self::Relist => relist::run(bench),
            Self::Updates => updates::run(bench),
            Self::Delay => delay::run(bench),
            Self::Reconcile => reconcile::run(bench),
            Self::Outage => outage::run(bench),
            Self::Subscriptions => subscriptions::run(bench),
            Self::Stuck => stuck::run(bench),
            Self::Reads => reads::run(bench),
            Self::Hot => hot::run(bench),
            Self::LateIndex => late_index::run(bench),
            Self::Growth => growth::run(bench),
            Self::Kinds => kinds::run(bench),
            Self::Kubediff => kubediff::run(bench),
            Self::Idle => idle::run(bench),
            Self::Restart => restart::run(bench),
        }
    }
}
