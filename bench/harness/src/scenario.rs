//! The scenarios. Each has a file of its own, which says what it does and records figures; this file names them.

pub(crate) mod audit;
pub(super) mod controller;
pub(super) mod daemon;
pub(super) mod delay;
pub(super) mod flood;
pub(super) mod hot;
pub(super) mod kinds;
pub(super) mod kubediff;
pub(super) mod outage;
mod past;
pub(super) mod queue;
pub(super) mod reads;
pub(super) mod reconcile;
pub(super) mod relist;
mod scale;
mod storm;
pub(super) mod storm_outage;
pub(super) mod stuck;
pub(super) mod subscriptions;
pub(super) mod sync;
pub(super) mod updates;
mod web;

use super::{Bench, growth};
use tooling::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// The initial list
    Sync,
    /// A re-list, with nothing changed and with a tenth changed
    Relist,
    /// Updates, with one handler
    Updates,
    /// Updates at an even pace: the delay until the handler is notified
    Delay,
    /// A controller that reads each changed pod, its node and its siblings
    Reconcile,
    /// The server is away for a time
    Outage,
    /// 1, 10 and 100 handlers on one informer
    Subscriptions,
    /// A handler that never returns
    Stuck,
    /// Reads of the cache, alone and beside a writer
    Reads,
    /// Repeated reads of a few of many objects
    Hot,
    /// A work queue of many items
    Queue,
    /// A controller that keeps an object for each of many others
    Controller,
    /// Many changes at once, and a reconciler that is slow and fails
    Storm,
    /// A controller whose server is away for a time in the middle of changes
    StormOutage,
    /// Ten and a hundred times as many objects
    Growth,
    /// All kinds of a cluster at once
    Kinds,
    /// kubediff on a whole cluster
    Kubediff,
    /// kubediff's daemon beside arriqaaq/kubediff's way
    Daemon,
    /// kubediff's daemon with an audit log
    Audit,
    /// kubediff's daemon, with changes as fast as the server makes them, its history in a file and in PostgreSQL
    Flood,
    /// Daemons of 1, 2, 4 and 8 clusters with one PostgreSQL, and what a fleet would cost
    Scale,
    /// The page of kubediff on a long history
    Web,
    /// kubectl on the past beside kubectl on the server
    Past,
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
        Self::Queue,
        Self::Controller,
        Self::Storm,
        Self::StormOutage,
        Self::Growth,
        Self::Kinds,
        Self::Kubediff,
        Self::Daemon,
        Self::Audit,
        Self::Flood,
        Self::Scale,
        Self::Web,
        Self::Past,
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
            Self::Queue => "queue",
            Self::Controller => "controller",
            Self::Storm => "storm",
            Self::StormOutage => storm_outage::NAME,
            Self::Growth => "growth",
            Self::Kinds => "kinds",
            Self::Kubediff => "kubediff",
            Self::Daemon => "daemon",
            Self::Audit => audit::NAME,
            Self::Flood => "flood",
            Self::Scale => "scale",
            Self::Web => "web",
            Self::Past => "past",
        }
    }

    /// Whether it runs the libraries' programs, and not kubediff alone.
    pub(super) fn needs_clients(self) -> bool {
        !matches!(
            self,
            Self::Kubediff | Self::Daemon | Self::Audit | Self::Flood | Self::Scale | Self::Web | Self::Past
        )
    }

    /// The number of rounds. Scenarios that take ten minutes and hardly vary run once.
    pub(super) fn rounds(self, runs: usize) -> usize {
        match self {
            Self::Growth | Self::Scale | Self::Web | Self::Past => runs.min(1),
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
            Self::Queue => queue::run(bench),
            Self::Controller => controller::run(bench),
            Self::Storm => storm::run(bench),
            Self::StormOutage => storm_outage::run(bench),
            Self::Growth => growth::run(bench),
            Self::Kinds => kinds::run(bench),
            Self::Kubediff => kubediff::run(bench),
            Self::Daemon => daemon::run(bench),
            Self::Audit => audit::run(bench),
            Self::Flood => flood::run(bench),
            Self::Scale => scale::run(bench),
            Self::Web => web::run(bench),
            Self::Past => past::run(bench),
        }
    }
}
