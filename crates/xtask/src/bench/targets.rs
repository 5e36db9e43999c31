//! What is promised: each a ratio of one round against a peer, or of two figures of ours. The bounds are those of the
//! design's baseline: `must` holds when the work is called done, `goal` is where it goes.

use serde::{Deserialize, Serialize};

use super::figures::{Figures, median};
use super::growth::Point;
use super::library::Library;
use super::scenario::{reads, relist, stuck, subscriptions, sync, updates};
use super::server::Kind;

/// A target and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ratio {
    pub(crate) name: String,
    /// The median of `runs`.
    pub(crate) value: f64,
    pub(crate) must: f64,
    pub(crate) goal: f64,
    pub(crate) unit: String,
    /// What server it was measured with, if with any.
    pub(crate) server: Option<Kind>,
    /// One per round.
    pub(crate) runs: Vec<f64>,
}

/// The value of each round; `None` where that was not measured.
type Measure = fn(&Source<'_>) -> Option<Vec<f64>>;

/// What ratios are made from.
pub(crate) struct Source<'a> {
    pub(crate) figures: &'a Figures,
    pub(crate) growth: &'a [Point],
    /// The one that scenarios share.
    pub(crate) server: Kind,
}

/// With what server a target is measured.
#[derive(Clone, Copy)]
enum With {
    Shared,
    /// Testapi, whatever the others share.
    Embedded,
    None,
}

const TARGETS: [(&str, f64, f64, &str, With, Measure); 16] = [
    (
        "steady memory above base, packed layout, full objects kept / client-go typed",
        0.12,
        0.06,
        "",
        With::Shared,
        |source| source.against(sync::NAME, sync::STEADY, "typed", Library::ClientGo, "typed"),
    ),
    ("the same / kube-rs typed", 0.03, 0.013, "", With::Shared, |source| {
        source.against(sync::NAME, sync::STEADY, "typed", Library::KubeRs, "typed")
    }),
    ("the same / client-go dynamic (untyped view)", 0.035, 0.015, "", With::Shared, |source| {
        source.against(sync::NAME, sync::STEADY, "dynamic", Library::ClientGo, "dynamic")
    }),
    (
        "peak / steady of ours, first sync and re-list of an unchanged cluster",
        1.3,
        1.1,
        "",
        With::Shared,
        |source| {
            let sync = source.ours(sync::NAME, "typed", sync::PEAK)?;
            let relist = source.ours(relist::UNCHANGED, "typed", relist::PEAK)?;
            Some(pairs(sync, relist, f64::max))
        },
    ),
    ("sync CPU / client-go typed", 0.4, 0.22, "", With::Shared, |source| {
        source.against(sync::NAME, sync::CPU, "typed", Library::ClientGo, "typed")
    }),
    (
        "sync CPU, untyped view of built-in kinds / client-go dynamic",
        0.05,
        0.02,
        "",
        With::Shared,
        |source| source.against(sync::NAME, sync::CPU, "dynamic", Library::ClientGo, "dynamic"),
    ),
    ("sync wall / client-go typed, real server", 0.9, 0.5, "", With::Shared, |source| {
        let ratios = source.against(sync::NAME, sync::WALL, "typed", Library::ClientGo, "typed");
        ratios.filter(|_| source.server == Kind::Real)
    }),
    ("server CPU for the sync / client-go typed", 0.8, 0.5, "", With::Shared, |source| {
        source.against(sync::NAME, sync::SERVER_CPU, "typed", Library::ClientGo, "typed")
    }),
    ("CPU per update event / client-go typed", 0.4, 0.2, "", With::Shared, |source| {
        source.against(updates::NAME, updates::CPU, "typed", Library::ClientGo, "typed")
    }),
    ("get by key, decoded layout / client-go", 1.0, 0.5, "", With::None, |source| source.read("get by key")),
    ("by index, one hit / client-go", 0.3, 0.1, "", With::None, |source| source.read("by index, one hit")),
    ("lister with a label selector, 100,000 objects / client-go", 0.3, 0.02, "", With::None, |source| {
        source.read("by label selector, 100 hits")
    }),
    ("slowest get under one writer, two readers, one lister", 2.0, 0.1, "ms", With::None, |source| {
        let slowest = source.ours(reads::NAME, reads::SETUP, reads::SLOWEST)?;
        Some(slowest.iter().map(|nanoseconds| nanoseconds / 1e6).collect())
    }),
    (
        "100 subscriptions on one informer: CPU per event against 1 subscription",
        3.0,
        1.5,
        "x",
        With::Shared,
        |source| {
            let of = |handlers| {
                source.ours(subscriptions::NAME, &subscriptions::setup_name(handlers), subscriptions::CPU)
            };
            Some(pairs(of(100)?, of(1)?, |hundred, one| hundred / one))
        },
    ),
    (
        "memory with one handler stuck for ever under 1,000,000 updates to 10,000 keys / steady",
        2.0,
        1.2,
        "",
        With::Embedded,
        |source| source.ours(stuck::NAME, "typed", stuck::MEMORY).map(<[f64]>::to_vec),
    ),
    (
        "bytes per object at 1,000,000 objects against 10,000 (embedded server)",
        1.1,
        1.0,
        "",
        With::Embedded,
        |source| {
            let ours = source.growth.iter().filter(|point| point.client == Library::Informer.name());
            let (least, most) =
                (ours.clone().min_by_key(|it| it.objects)?, ours.max_by_key(|it| it.objects)?);
            (most.objects == least.objects * 100)
                .then(|| vec![most.bytes_per_object / least.bytes_per_object])
        },
    ),
];

impl Source<'_> {
    fn ours(&self, scenario: &str, setup: &str, figure: &str) -> Option<&[f64]> {
        self.figures.runs(scenario, Library::Informer, setup, figure)
    }

    /// Ours by a peer's, of each round.
    fn against(
        &self,
        scenario: &str,
        figure: &str,
        setup: &str,
        peer: Library,
        peers_setup: &str,
    ) -> Option<Vec<f64>> {
        let ours = self.ours(scenario, setup, figure)?;
        let theirs = self.figures.runs(scenario, peer, peers_setup, figure)?;
        Some(pairs(ours, theirs, |ours, theirs| ours / theirs))
    }

    fn read(&self, operation: &str) -> Option<Vec<f64>> {
        self.against(reads::NAME, operation, reads::SETUP, Library::ClientGo, reads::SETUP)
    }
}

fn pairs(first: &[f64], second: &[f64], combine: fn(f64, f64) -> f64) -> Vec<f64> {
    first.iter().zip(second).map(|(first, second)| combine(*first, *second)).collect()
}

/// All that can be told from what was measured, in their order.
pub(crate) fn ratios(source: &Source<'_>) -> Vec<Ratio> {
    let measured = TARGETS.iter().filter_map(|(name, must, goal, unit, with, measure)| {
        let runs = measure(source).filter(|runs| !runs.is_empty())?;
        let (name, unit) = ((*name).to_owned(), (*unit).to_owned());
        let server = match with {
            With::Shared => Some(source.server),
            With::Embedded => Some(Kind::Testapi),
            With::None => None,
        };
        Some(Ratio { name, value: median(&runs), must: *must, goal: *goal, unit, server, runs })
    });
    measured.collect()
}

/// Their names, in their order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|(name, ..)| *name)
}

impl Ratio {
    pub(crate) fn verdict(&self) -> &'static str {
        match self.value {
            value if value <= self.goal => "goal",
            value if value <= self.must => "must",
            _ => "missed",
        }
    }

    /// The server that it was measured with, for tables.
    pub(crate) fn server(&self) -> &'static str {
        match self.server {
            Some(Kind::Real) => "real",
            Some(Kind::Testapi) => "testapi",
            None => "none",
        }
    }

    /// The least and the greatest of the rounds.
    pub(crate) fn spread(&self) -> (f64, f64) {
        let least = self.runs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::Unit;
    use super::super::library::Setup;
    use super::*;

    #[test]
    fn a_ratio_is_of_one_round_and_its_value_the_median_of_the_rounds() {
        let mut figures = Figures::default();
        for (ours, theirs) in [(1.0, 10.0), (2.0, 10.0), (6.0, 20.0)] {
            for (client, value) in [(Library::Informer, ours), (Library::ClientGo, theirs)] {
                figures.record(sync::NAME, &client.view("typed"), &[(sync::CPU, Unit::Seconds, value)]);
            }
        }
        let ratios = ratios(&Source { figures: &figures, growth: &[], server: Kind::Real });
        let [ratio] = &ratios[..] else { panic!("{ratios:?}") };
        assert_eq!(ratio.name, "sync CPU / client-go typed");
        assert_eq!((ratio.value, ratio.verdict()), (0.2, "goal"));
        assert_eq!(ratio.spread(), (0.1, 0.3));
        assert_eq!(ratio.server(), "real");
    }

    #[test]
    fn a_ratio_says_with_what_server_it_was_measured() {
        let mut figures = Figures::default();
        for client in [Library::Informer, Library::ClientGo] {
            figures.record(sync::NAME, &client.view("typed"), &[(sync::CPU, Unit::Seconds, 1.0)]);
            let reads = Setup { client, name: reads::SETUP.to_owned(), arguments: Vec::new() };
            figures.record(reads::NAME, &reads, &[("get by key", Unit::Nanoseconds, 1.0)]);
        }
        figures.record(stuck::NAME, &Library::Informer.view("typed"), &[(stuck::MEMORY, Unit::Times, 1.0)]);
        let servers = |server| {
            let ratios = ratios(&Source { figures: &figures, growth: &[], server });
            ratios
                .iter()
                .map(|ratio| (ratio.name.split(' ').next().unwrap().to_owned(), ratio.server()))
                .collect::<Vec<_>>()
        };
        let of = |sync| {
            [("sync", sync), ("get", "none"), ("memory", "testapi")]
                .map(|(name, server)| (name.to_owned(), server))
        };
        assert_eq!(servers(Kind::Real), of("real"));
        assert_eq!(servers(Kind::Testapi), of("testapi"));
    }
}
