//! The targets: each is a ratio, within a round, of our figure to a peer's or to another of ours. A run that misses a
//! `must` is a regression; a `goal` is an aim.

use serde::{Deserialize, Serialize};

use super::figures::{Figures, median};
use super::growth;
use super::library::Library;
use super::scenario::outage::{self, Informers};
use super::scenario::{
    audit, controller, daemon, delay, flood, hot, kinds, kubediff, queue, reads, reconcile, relist,
    storm_outage, stuck, subscriptions, sync, updates,
};
use super::server::Kind;

/// A target and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ratio {
    pub(crate) name: String,
    /// The median of `runs`.
    pub(crate) value: f64,
    pub(crate) must: f64,
    /// `None` if `must` is the best possible value.
    pub(crate) goal: Option<f64>,
    pub(crate) unit: String,
    /// The kind of server that it was measured with, if any.
    pub(crate) server: Option<Kind>,
    /// One per round.
    pub(crate) runs: Vec<f64>,
}

/// The value of each round; `None` if it was not measured.
type Measure = fn(&Results<'_>) -> Option<Vec<f64>>;

/// The results of a run, from which ratios are computed.
pub(crate) struct Results<'a> {
    pub(crate) figures: &'a Figures,
    /// The server that scenarios share.
    pub(crate) server: Kind,
}

/// The server that a target is measured with.
#[derive(Clone, Copy)]
enum With {
    Shared,
    /// Always testapi.
    Embedded,
    None,
}

struct Target {
    name: &'static str,
    must: f64,
    goal: Option<f64>,
    unit: &'static str,
    with: With,
    measure: Measure,
}

/// A ratio measured with the server that scenarios share.
const fn target(name: &'static str, must: f64, goal: f64, measure: Measure) -> Target {
    Target { name, must, goal: Some(goal), unit: "", with: With::Shared, measure }
}

impl Target {
    const fn in_unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    const fn with(self, with: With) -> Self {
        Self { with, ..self }
    }

    const fn without_goal(self) -> Self {
        Self { goal: None, ..self }
    }
}

const TARGETS: [Target; 54] = [
    target(
        "steady memory above base, default layout, full objects kept / client-go typed",
        0.06,
        0.045,
        |results| results.against(sync::NAME, "typed", sync::STEADY, Library::ClientGo),
    ),
    target("the same / kube-rs typed", 0.014, 0.011, |results| {
        results.against(sync::NAME, "typed", sync::STEADY, Library::KubeRs)
    }),
    target("the same / client-go dynamic (untyped view)", 0.016, 0.012, |results| {
        results.against(sync::NAME, "dynamic", sync::STEADY, Library::ClientGo)
    }),
    target("all kinds of a cluster at once, untyped: memory / client-go dynamic", 0.18, 0.08, |results| {
        results.against(kinds::NAME, "dynamic", kinds::MEMORY, Library::ClientGo)
    }),
    target("peak / steady of ours, first sync and re-list of an unchanged cluster", 1.1, 1.03, |results| {
        let sync = results.ours(sync::NAME, "typed", sync::PEAK)?;
        let relist = results.ours(relist::UNCHANGED, "typed", relist::PEAK)?;
        Some(pairs(sync, relist, f64::max))
    }),
    target("sync CPU / client-go typed", 0.32, 0.18, |results| {
        results.against(sync::NAME, "typed", sync::CPU, Library::ClientGo)
    }),
    target("sync CPU, untyped view of built-in kinds / client-go dynamic", 0.045, 0.025, |results| {
        results.against(sync::NAME, "dynamic", sync::CPU, Library::ClientGo)
    }),
    target("sync wall / client-go typed, real server", 0.7, 0.45, |results| results.real_wall("typed")),
    target("sync with one typed handler: CPU / client-go with one", 0.55, 0.4, |results| {
        results.against(sync::NAME, sync::ONE_HANDLER, sync::CPU, Library::ClientGo)
    }),
    target("sync with one typed handler: wall / client-go with one, real server", 0.85, 0.6, |results| {
        results.real_wall(sync::ONE_HANDLER)
    }),
    target("server CPU for the sync / client-go typed", 0.8, 0.5, |results| {
        results.against(sync::NAME, "typed", sync::SERVER_CPU, Library::ClientGo)
    }),
    target("CPU per update event / client-go typed", 0.55, 0.4, |results| {
        results.against(updates::NAME, "typed", updates::CPU, Library::ClientGo)
    }),
    target("delay from the write to the handler at 100 writes/s, mean / client-go", 1.0, 0.9, |results| {
        results.against(delay::NAME, "typed", delay::MEAN, Library::ClientGo)
    }),
    target("the same, 99th percentile", 1.0, 0.9, |results| {
        results.against(delay::NAME, "typed", delay::P99, Library::ClientGo)
    }),
    target("get of a hot object by key, default layout / client-go", 1.5, 0.8, |results| {
        results.against(hot::NAME, hot::SETUP, reads::GET, Library::ClientGo)
    })
    .with(With::None),
    target("the same, beside a writer", 0.8, 0.6, |results| {
        results.against(hot::NAME, hot::BESIDE_WRITER, reads::GET, Library::ClientGo)
    })
    .with(With::None),
    target("one hit of an index on hot objects, default layout / client-go", 1.0, 0.5, |results| {
        results.against(hot::NAME, hot::SETUP, reads::INDEX_ONE, Library::ClientGo)
    })
    .with(With::None),
    target("`reconcile`: CPU per change / client-go", 1.4, 1.0, |results| {
        results.against(reconcile::NAME, "typed", reconcile::CPU, Library::ClientGo)
    }),
    target("`reconcile`: memory above base / client-go", 0.2, 0.12, |results| {
        results.against(reconcile::NAME, "typed", reconcile::MEMORY, Library::ClientGo)
    }),
    target("`outage` of 6 s, 1 informer: time until current / client-go", 1.0, 0.3, |results| {
        results.outage(Informers::One, 0, outage::TIME)
    }),
    target("`outage` of 6 s, all kinds: time until current / client-go", 1.0, 0.3, |results| {
        results.outage(Informers::OfAllKinds, 0, outage::TIME)
    }),
    target("`outage` of 60 s, 1 informer: time until current / client-go", 1.0, 0.3, |results| {
        results.outage(Informers::One, 1, outage::TIME)
    }),
    target("`outage` of 60 s, all kinds: time until current / client-go", 1.0, 0.3, |results| {
        results.outage(Informers::OfAllKinds, 1, outage::TIME)
    }),
    target("`outage` of 60 s, 1 informer: attempts and requests per second", 1.1, 1.1, |results| {
        let setup = Informers::One.setup_name(*outage::AWAY.get(1)?);
        results.ours(outage::NAME, &setup, outage::RATE).map(<[f64]>::to_vec)
    })
    .without_goal()
    .in_unit("/s"),
    target("get by key, decoded layout, 100,000 objects at random / client-go", 2.5, 1.0, |results| {
        results.against(reads::NAME, reads::SETUP, reads::GET, Library::ClientGo)
    })
    .with(With::None),
    target("by index, one hit, decoded layout / client-go", 1.2, 0.5, |results| {
        results.against(reads::NAME, reads::SETUP, reads::INDEX_ONE, Library::ClientGo)
    })
    .with(With::None),
    target("lister with a label selector, 100,000 objects / client-go", 0.001, 0.0, |results| {
        results.against(reads::NAME, reads::SETUP, reads::SELECTOR, Library::ClientGo)
    })
    .without_goal()
    .with(With::None),
    target(
        "slowest get under one writer, two readers, one lister, the thread's own time",
        2.0,
        0.1,
        |results| {
            let slowest = results.ours(reads::NAME, reads::SETUP, reads::SLOWEST)?;
            Some(slowest.iter().map(|nanoseconds| nanoseconds / 1e6).collect())
        },
    )
    .in_unit("ms")
    .with(With::None),
    target("`queue`: add / client-go", 1.0, 0.33, |results| {
        results.against(queue::NAME, queue::SETUP, queue::ADD, Library::ClientGo)
    })
    .with(With::None),
    target("`queue`: get and done, 1 worker / client-go", 0.8, 0.33, |results| {
        results.against(queue::NAME, queue::SETUP, queue::GET_ONE, Library::ClientGo)
    })
    .with(With::None),
    target("`queue`: get and done, 8 workers / client-go", 0.8, 0.33, |results| {
        results.against(queue::NAME, queue::SETUP, queue::GET_EIGHT, Library::ClientGo)
    })
    .with(With::None),
    target("`queue`: memory per waiting item / client-go", 1.0, 0.33, |results| {
        results.against(queue::NAME, queue::SETUP, queue::MEMORY, Library::ClientGo)
    })
    .with(With::None),
    target("`queue`: add / controller-runtime", 1.0, 0.33, |results| {
        results.against(queue::NAME, queue::SETUP, queue::ADD, Library::ControllerRuntime)
    })
    .with(With::None),
    target("`queue`: get and done, 1 worker / controller-runtime", 1.0, 0.33, |results| {
        results.against(queue::NAME, queue::SETUP, queue::GET_ONE, Library::ControllerRuntime)
    })
    .with(With::None),
    target("`queue`: get and done, 8 workers / controller-runtime", 1.0, 0.33, |results| {
        results.against(queue::NAME, queue::SETUP, queue::GET_EIGHT, Library::ControllerRuntime)
    })
    .with(With::None),
    target("`queue`: memory per waiting item / controller-runtime", 1.0, 0.33, |results| {
        results.against(queue::NAME, queue::SETUP, queue::MEMORY, Library::ControllerRuntime)
    })
    .with(With::None),
    target(
        "`controller`: CPU per change / the better of controller-runtime and kube-rs",
        1.0,
        0.7,
        |results| results.against_better(controller::NAME, controller::SETUP, controller::CPU),
    ),
    target("`controller`: memory above base / the better one", 0.35, 0.2, |results| {
        results.against_better(controller::NAME, controller::SETUP, controller::MEMORY)
    }),
    target(
        "`controller`: delay until the owned object follows, mean / the better one",
        1.0,
        1.0,
        |results| results.against_better(controller::NAME, controller::SETUP, controller::MEAN),
    )
    .without_goal(),
    target("the same, 99th percentile / the better one", 1.0, 1.0, |results| {
        results.against_better(controller::NAME, controller::SETUP, controller::P99)
    })
    .without_goal(),
    target("`storm-outage` of 6 s: time until all are reconciled / the better one", 1.0, 0.3, |results| {
        results.storm_outage(0, storm_outage::TIME)
    }),
    target("the same: requests in the first minute / the better one", 1.0, 0.3, |results| {
        results.storm_outage(0, storm_outage::REQUESTS)
    }),
    target("`storm-outage` of 60 s: time until all are reconciled / the better one", 1.0, 0.3, |results| {
        results.storm_outage(1, storm_outage::TIME)
    }),
    target("the same: requests in the first minute / the better one", 1.0, 0.3, |results| {
        results.storm_outage(1, storm_outage::REQUESTS)
    }),
    target("100 subscriptions on one informer: CPU per event against 1 subscription", 2.0, 1.5, |results| {
        let of = |handlers| {
            results.ours(subscriptions::NAME, &subscriptions::setup_name(handlers), subscriptions::CPU)
        };
        Some(pairs(of(100)?, of(1)?, |hundred, one| hundred / one))
    })
    .in_unit("x"),
    target(
        "memory with one handler stuck for ever under 1,000,000 updates to 10,000 keys / steady",
        1.6,
        1.2,
        |results| results.ours(stuck::NAME, "typed", stuck::MEMORY).map(<[f64]>::to_vec),
    )
    .with(With::Embedded),
    target("bytes per object at 1,000,000 objects against 10,000 (embedded server)", 0.7, 0.0, |results| {
        let of = |objects| results.ours(growth::NAME, &growth::setup_name(objects), growth::BYTES);
        Some(pairs(of(1_000_000)?, of(10_000)?, |most, least| most / least))
    })
    .without_goal()
    .with(With::Embedded),
    target("`kubediff watch -A`, 10,000 objects of all kinds: peak memory", 30.0, 20.0, |results| {
        let peak = results.ours(kubediff::NAME, kubediff::SETUP, kubediff::PEAK)?;
        Some(peak.iter().map(|bytes| bytes / 1e6).collect())
    })
    .in_unit("MB"),
    target("the same: ready after", 1.5, 0.0, |results| {
        results.ours(kubediff::NAME, kubediff::SETUP, kubediff::READY).map(<[f64]>::to_vec)
    })
    .without_goal()
    .in_unit("s"),
    target(
        "`daemon`, 50,000 objects of eight kinds, 50 changes/s: memory / the baseline",
        0.1,
        0.04,
        |results| results.against(daemon::NAME, daemon::SETUP, daemon::MEMORY, Library::ClientGo),
    )
    .with(With::Embedded),
    target("the same: CPU", 0.3, 0.1, |results| {
        results.against(daemon::NAME, daemon::SETUP, daemon::CPU, Library::ClientGo)
    })
    .with(With::Embedded),
    target("the same: CPU / the baseline with its resync each minute", 0.3, 0.1, |results| {
        let ours = results.ours(daemon::NAME, daemon::SETUP, daemon::CPU)?;
        let theirs = results.figures.runs(daemon::NAME, Library::ClientGo, daemon::RESYNC, daemon::CPU)?;
        Some(pairs(ours, theirs, |ours, theirs| ours / theirs))
    })
    .with(With::Embedded),
    target("`audit`: CPU of 1,000 audit events, of a core", 0.05, 0.05, |results| {
        results.ours(audit::NAME, audit::SETUP, audit::CPU).map(<[f64]>::to_vec)
    })
    .without_goal()
    .with(With::Embedded),
    // In PostgreSQL at least 0.9 of it, and as many as the aim.
    target("`flood`: taken per second with a file / with PostgreSQL", 1.11, 1.0, |results| {
        let of = |setup| results.ours(flood::NAME, setup, flood::TAKEN);
        Some(pairs(of(flood::IN_FILE)?, of(flood::IN_POSTGRES)?, |file, postgres| file / postgres))
    })
    .with(With::Embedded),
];

impl Results<'_> {
    fn ours(&self, scenario: &str, setup: &str, figure: &str) -> Option<&[f64]> {
        self.figures.runs(scenario, Library::Informer, setup, figure)
    }

    /// Our figure divided by a peer's of the same name, for each round.
    fn against(&self, scenario: &str, setup: &str, figure: &str, peer: Library) -> Option<Vec<f64>> {
        let ours = self.ours(scenario, setup, figure)?;
        let theirs = self.figures.runs(scenario, peer, setup, figure)?;
        Some(pairs(ours, theirs, |ours, theirs| ours / theirs))
    }

    /// Our figure divided by that of the better one of the other libraries that run controllers, for each round. `None` unless
    /// all of them took part.
    fn against_better(&self, scenario: &str, setup: &str, figure: &str) -> Option<Vec<f64>> {
        let all = Library::CONTROLLERS.into_iter().filter(|peer| *peer != Library::Informer);
        let ratios = all.map(|peer| self.against(scenario, setup, figure, peer));
        // A greater ratio is one to a lower figure.
        ratios.reduce(|most, next| Some(pairs(&most?, &next?, f64::max))).flatten()
    }

    /// Only a real server has the delays of a real server.
    fn real_wall(&self, setup: &str) -> Option<Vec<f64>> {
        let ratios = self.against(sync::NAME, setup, sync::WALL, Library::ClientGo);
        ratios.filter(|_| self.server == Kind::Real)
    }

    fn outage(&self, informers: Informers, away: usize, figure: &str) -> Option<Vec<f64>> {
        let setup = informers.setup_name(*outage::AWAY.get(away)?);
        self.against(outage::NAME, &setup, figure, Library::ClientGo)
    }

    fn storm_outage(&self, away: usize, figure: &str) -> Option<Vec<f64>> {
        let setup = storm_outage::setup_name(*outage::AWAY.get(away)?);
        self.against_better(storm_outage::NAME, &setup, figure)
    }
}

fn pairs(first: &[f64], second: &[f64], combine: fn(f64, f64) -> f64) -> Vec<f64> {
    first.iter().zip(second).map(|(first, second)| combine(*first, *second)).collect()
}

/// The results of all targets that were measured, in their order.
pub(crate) fn ratios(results: &Results<'_>) -> Vec<Ratio> {
    let measured = TARGETS.iter().filter_map(|target| {
        let runs = (target.measure)(results).filter(|runs| !runs.is_empty())?;
        let (name, unit) = (target.name.to_owned(), target.unit.to_owned());
        let server = match target.with {
            With::Shared => Some(results.server),
            With::Embedded => Some(Kind::Testapi),
            With::None => None,
        };
        Some(Ratio { name, value: median(&runs), must: target.must, goal: target.goal, unit, server, runs })
    });
    measured.collect()
}

/// The names of all targets, in their order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|target| target.name)
}

impl Ratio {
    pub(crate) fn verdict(&self) -> &'static str {
        match self.value {
            value if self.goal.is_some_and(|goal| value <= goal) => "goal",
            value if value <= self.must => "must",
            _ => "missed",
        }
    }

    /// The goal, for tables.
    pub(crate) fn goal(&self) -> String {
        self.goal.map_or_else(String::new, |goal| goal.to_string())
    }

    /// The server that it was measured with, for tables.
    pub(crate) fn server(&self) -> &'static str {
        match self.server {
            Some(Kind::Real) => "real",
            Some(Kind::Testapi) => "testapi",
            None => "none",
        }
    }

    /// The least and the greatest value of the rounds.
    pub(crate) fn spread(&self) -> (f64, f64) {
        let least = self.runs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (least, most)
    }
}

#[cfg(test)]
mod tests;
