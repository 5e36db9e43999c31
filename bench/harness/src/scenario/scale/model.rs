//! The formula: a daemon that stands still costs something, and so do a commit and a change.

/// A daemon commits no more often than this, in seconds.
const COMMIT_INTERVAL: f64 = 0.2;

/// The load of a fleet in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Load {
    pub(super) clusters: f64,
    /// Objects of all clusters.
    pub(super) objects: f64,
    /// Recorded in all clusters.
    pub(super) changes: f64,
}

impl Load {
    /// Commits of all daemons. Changes come at random: a commit follows the one before after the interval, or with the next change.
    pub(super) fn commits(self) -> f64 {
        let each = self.changes / self.clusters;
        if each > 0.0 {
            self.clusters / (COMMIT_INTERVAL + (-COMMIT_INTERVAL * each).exp() / each)
        } else {
            0.0
        }
    }
}

/// What each of these costs, in seconds or bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    /// A second of one daemon.
    pub(super) idle: f64,
    pub(super) commit: f64,
    pub(super) change: f64,
}

impl Cost {
    /// Of one second.
    pub(super) fn of(self, load: Load) -> f64 {
        self.idle * load.clusters + self.commit * load.commits() + self.change * load.changes
    }

    /// From what a second of one daemon costs that stands still, and from loads and what a second of each costs: the least squares of the
    /// differences, each as a part of what was measured.
    pub(super) fn fitted(idle: f64, measured: &[(Load, f64)]) -> Self {
        let [mut aa, mut ab, mut bb, mut a, mut b] = [0.0; 5];
        for (load, cost) in measured {
            let above = cost - idle * load.clusters;
            let (commits, changes) = (load.commits() / above, load.changes / above);
            (aa, ab, bb) = (aa + commits * commits, ab + commits * changes, bb + changes * changes);
            (a, b) = (a + commits, b + changes);
        }
        let rest = aa * bb - ab * ab;
        // Where commits cost next to nothing, they would give something back.
        let commit = ((a * bb - b * ab) / rest).max(0.0);
        Self { idle, commit, change: (b - ab * commit) / bb }
    }
}

/// All unit costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Units {
    /// CPU of daemons.
    pub(super) daemon: Cost,
    /// CPU of PostgreSQL.
    pub(super) postgres: Cost,
    /// Bytes of its write-ahead log, without the pages that it writes whole after a checkpoint.
    pub(super) log: Cost,
    /// Bytes of its tables and indexes.
    pub(super) tables: Cost,
    /// Bytes of a daemon without objects, and of each object.
    pub(super) memory: (f64, f64),
    /// Bytes of the row of an object, with its indexes.
    pub(super) row: f64,
    /// Connections of a daemon.
    pub(super) connections: f64,
}

impl Units {
    /// Memory of each daemon.
    pub(super) fn memory(&self, load: Load) -> f64 {
        self.memory.0 + self.memory.1 * load.objects / load.clusters
    }

    /// Bytes of the write-ahead log in a second, if each page of the objects changes between two checkpoints.
    fn log_with_pages(&self, load: Load) -> f64 {
        self.log.of(load) + self.row * load.objects / CHECKPOINT
    }
}

/// What a fleet needs of something that has an end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Need {
    pub(super) what: &'static str,
    pub(super) needed: f64,
    pub(super) limit: f64,
    pub(super) unit: &'static str,
}

impl Need {
    pub(super) fn share(&self) -> f64 {
        self.needed / self.limit
    }
}

/// The server that a fleet is held against, and how long changes are kept.
pub(super) const CORES: f64 = 16.0;
pub(super) const LOG_PER_SECOND: f64 = 125e6;
pub(super) const DISK: f64 = 10e12;
pub(super) const CONNECTIONS: f64 = 1_000.0;
pub(super) const DAYS: f64 = 30.0;
pub(super) const DAY: f64 = 86_400.0;
/// Seconds from one checkpoint to the next.
const CHECKPOINT: f64 = 300.0;
/// A processor is full when this part of it is busy on average.
const FULL: f64 = 0.7;
/// Memory that a daemon may have by the chart.
pub(super) const MEMORY: f64 = 512e6;

/// What a fleet needs.
pub(super) fn needs(units: &Units, load: Load) -> [Need; 6] {
    let need = |what, needed, limit, unit| Need { what, needed, limit, unit };
    let each =
        Load { clusters: 1.0, objects: load.objects / load.clusters, changes: load.changes / load.clusters };
    [
        need("CPU of each daemon, of one core", units.daemon.of(each), FULL, "cores"),
        need("memory of each daemon", units.memory(load), MEMORY, "B"),
        need("CPU of PostgreSQL", units.postgres.of(load), CORES * FULL, "cores"),
        need("its connections", units.connections * load.clusters, CONNECTIONS, ""),
        need("its write-ahead log, per second", units.log_with_pages(load), LOG_PER_SECOND, "B"),
        need("its disk, for 30 days", units.tables.of(load) * DAY * DAYS, DISK, "B"),
    ]
}

/// What ends first.
pub(super) fn first_limit(needs: &[Need]) -> Option<&Need> {
    needs.iter().max_by(|a, b| a.share().total_cmp(&b.share()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(clusters: f64, changes: f64) -> Load {
        Load { clusters, objects: clusters * 1_000.0, changes }
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-9 * expected.abs().max(1.0)
    }

    #[test]
    fn commits_are_as_many_as_changes_when_those_are_rare_and_five_a_second_when_they_are_not() {
        assert_eq!(load(3.0, 0.0).commits(), 0.0);
        // 1 / (0.2 + e^-0.02 / 0.1) = 1 / (0.2 + 9.801986733)
        assert!(is_near(load(1.0, 0.1).commits(), 0.099_980_137_08), "{}", load(1.0, 0.1).commits());
        // e^-20 is nothing.
        assert!((load(4.0, 400.0).commits() - 20.0).abs() < 1e-6);
    }

    #[test]
    fn unit_costs_come_from_some_loads_and_give_another() {
        let cost = Cost { idle: 0.001, commit: 0.002, change: 0.0005 };
        // 8 x 0.001 + 40 x 0.002 + 4,000 x 0.0005, with 5 commits of each
        assert!((cost.of(load(8.0, 4_000.0)) - 2.088).abs() < 1e-6);
        let measured = |load: Load| (load, cost.of(load));
        let from = Cost::fitted(0.001, &[measured(load(1.0, 100.0)), measured(load(4.0, 500.0))]);
        assert!(is_near(from.commit, 0.002) && is_near(from.change, 0.0005), "{from:?}");
    }

    #[test]
    fn commits_never_give_something_back() {
        // 100 changes cost less than a fifth of 500.
        let from = Cost::fitted(0.0, &[(load(1.0, 100.0), 0.01), (load(1.0, 500.0), 0.1)]);
        // (100 / 0.01 + 500 / 0.1) / ((100 / 0.01)^2 + (500 / 0.1)^2)
        assert!(from.commit == 0.0 && is_near(from.change, 0.000_12), "{from:?}");
    }

    #[test]
    fn the_first_limit_is_what_is_used_most_of() {
        let cost = |change| Cost { idle: 0.0, commit: 0.0, change };
        let units = Units {
            daemon: cost(0.000_35),
            postgres: cost(0.000_1),
            log: cost(1_250.0),
            tables: cost(1_000.0),
            memory: (20e6, 2_000.0),
            row: 3_750.0,
            connections: 2.0,
        };
        let needs = needs(&units, Load { clusters: 100.0, objects: 1e6, changes: 50_000.0 });
        let shares = needs.map(|need| need.share());
        // 500 x 0.00035 / 0.7; (20 + 10,000 x 0.002) / 512; 5 / 11.2; 200 / 1,000;
        // (62.5 + 3,750 / 300) / 125; 50 MB x 86,400 x 30 / 10 TB
        let expected = [0.25, 0.078_125, 0.446_428_571_428, 0.2, 0.6, 12.96];
        assert!(
            shares.iter().zip(expected).all(|(share, expected)| (share - expected).abs() < 1e-9),
            "{shares:?}"
        );
        assert_eq!(first_limit(&needs).map(|need| need.what), Some("its disk, for 30 days"));
    }
}
