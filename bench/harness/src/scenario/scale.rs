//! Daemons of 1, 2, 4 and 8 clusters record into one PostgreSQL, at two paces. Unit costs come from every other
//! point; the formula (`model.rs`) gives all of them, which are held against what was measured, and then a fleet. What is
//! recorded is what was changed.

mod model;
mod page;

use std::thread;
use std::time::{Duration, Instant};

use kubediff_history::Reader;
use tooling::Error;

use super::daemon::{Daemon, LOOK, Place, Side, Wanted, agree, records};
use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::postgres::{Postgres, Spent};
use crate::server::Server;
use model::{Cost, Load, Units};

pub(crate) const NAME: &str = "scale";
const CLUSTERS: [usize; 4] = [1, 2, 4, 8];
/// Changes per second in all clusters. As many heartbeats come with them.
const PACES: [usize; 2] = [100, 500];
/// With `--debug`, which only checks the results.
const DEBUG: (usize, usize) = (2, 100);
/// A point takes so many times `--seconds`.
const SECONDS: f64 = 4.0;
/// The objects of a cluster are this part of `--objects`; one that stands still has all of them.
const PART: usize = 2;
/// After this time, the stories of the last changes are folded, and sinks have taken them.
const SETTLED: Duration = Duration::from_secs(2);
/// Daemons have nothing to do that need less CPU than that, each, for so long.
const BUSY: Duration = Duration::from_millis(100);
const QUIET: Duration = Duration::from_secs(2);
/// The most that it may take until the last changes are recorded.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster with its daemon.
struct Member {
    /// It ends before its server does.
    daemon: Daemon,
    server: Server,
    wanted: Wanted,
}

/// The figures of a load, per second.
pub(super) struct Point {
    load: Load,
    offered: f64,
    /// Until the last one was.
    recorded: f64,
    daemon: f64,
    postgres: f64,
    log: f64,
    tables: f64,
    memory: f64,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let postgres = Postgres::start()?;
    bench.report.version("PostgreSQL", &postgres.version()?);
    postgres.put_off_checkpoints()?;
    let objects = bench.options.objects / PART;
    let mut fleet = Vec::new();
    if bench.options.debug {
        grow(bench, &postgres, &mut fleet, DEBUG.0)?;
        measure(bench, &postgres, &mut fleet, DEBUG.1)?;
        return fleet.iter_mut().try_for_each(Member::check);
    }
    let mut largest = vec![Member::start(bench, &postgres, "largest", bench.options.objects)?];
    grow(bench, &postgres, &mut largest, 1)?;
    let more = largest.iter().map(Member::memory).sum::<Result<f64, Error>>()?;
    drop(largest);
    grow(bench, &postgres, &mut fleet, 1)?;
    let idle = measure(bench, &postgres, &mut fleet, 0)?;
    let mut points = Vec::new();
    for clusters in CLUSTERS {
        grow(bench, &postgres, &mut fleet, clusters)?;
        for pace in PACES {
            points.push(measure(bench, &postgres, &mut fleet, pace)?);
        }
    }
    let connections = postgres.spent()?.connections / fleet.len() as f64;
    fleet.iter_mut().try_for_each(Member::check)?;
    let cost = |of: fn(&Point) -> f64| {
        let fitted = (0..).zip(&points).filter(|(number, _)| is_fitted(*number));
        Cost::fitted(of(&idle), &fitted.map(|(_, point)| (point.load, of(point))).collect::<Vec<_>>())
    };
    let object = (more - idle.memory) / (bench.options.objects - objects) as f64;
    // Recent contents come with changes.
    let most = points.iter().map(|point| point.memory).fold(0.0, f64::max);
    let units = Units {
        daemon: cost(|it| it.daemon),
        postgres: cost(|it| it.postgres),
        log: cost(|it| it.log),
        tables: cost(|it| it.tables),
        memory: (most - object * objects as f64, object),
        row: postgres.bytes_of_objects()? / (objects * fleet.len() + bench.options.objects) as f64,
        connections,
    };
    println!("\n{}", page::text(&bench.report.machine, &postgres.version()?, &units, &points));
    Ok(())
}

/// Whether unit costs come from the point with this number: one of two, with each pace and each number of clusters.
fn is_fitted(number: usize) -> bool {
    matches!(number % 4, 0 | 3)
}

fn grow(bench: &mut Bench<'_>, postgres: &Postgres, fleet: &mut Vec<Member>, to: usize) -> Result<(), Error> {
    while fleet.len() < to {
        let objects = bench.options.objects / PART;
        fleet.push(Member::start(bench, postgres, &format!("{NAME}-{}", fleet.len()), objects)?);
    }
    postgres.tidy()?;
    // The work that a first list leaves is no part of the cost of changes.
    let begin = Instant::now();
    loop {
        let before = cpu(postgres, fleet)?;
        thread::sleep(QUIET);
        // The time of a process that has ended is rounded down.
        let went_on = cpu(postgres, fleet)?.saturating_sub(before);
        if went_on < BUSY * u32::try_from(fleet.len()).unwrap_or(u32::MAX) || begin.elapsed() > PATIENCE {
            return Ok(());
        }
    }
}

fn cpu(postgres: &Postgres, fleet: &[Member]) -> Result<Duration, Error> {
    fleet.iter().map(|member| member.daemon.meter().cpu()).chain([postgres.cpu()]).sum()
}

/// Measures so many changes per second, with as many heartbeats.
fn measure(
    bench: &mut Bench<'_>,
    postgres: &Postgres,
    fleet: &mut [Member],
    pace: usize,
) -> Result<Point, Error> {
    let seconds = bench.options.seconds * SECONDS;
    let clusters = fleet.len();
    // A connection costs as much as many changes, so they are made before.
    let readers = fleet.iter().map(|member| member.daemon.reader()).collect::<Result<Vec<_>, Error>>()?;
    let before = (spent(postgres, fleet)?, Instant::now());
    let recorded = thread::scope(|scope| {
        let churns: Vec<_> = (fleet.iter_mut().zip(readers))
            .map(|(member, reader)| scope.spawn(move || member.churn(reader, seconds, 2 * pace / clusters)))
            .collect();
        let ended = churns.into_iter().map(|churn| {
            churn.join().map_err(|_| Error::Found("a thread that changes objects has panicked".to_owned()))?
        });
        ended.sum::<Result<f64, Error>>()
    })?;
    let until_recorded = before.1.elapsed().as_secs_f64();
    thread::sleep(SETTLED);
    let (after, took) = (spent(postgres, fleet)?, before.1.elapsed().as_secs_f64());
    let ((cpu, server), (cpu_after, server_after)) = (before.0, after);
    let memory: Result<Vec<f64>, Error> = fleet.iter().map(Member::memory).collect();
    let objects = (bench.options.objects / PART * clusters) as f64;
    let point = Point {
        load: Load { clusters: clusters as f64, objects, changes: recorded / took },
        daemon: (cpu_after - cpu).as_secs_f64() / took,
        postgres: (server_after.cpu - server.cpu).as_secs_f64() / took,
        log: (server_after.log - server.log) / took,
        tables: (server_after.bytes - server.bytes) / took,
        offered: pace as f64,
        recorded: recorded / until_recorded,
        memory: memory?.iter().sum::<f64>() / clusters as f64,
    };
    let name = format!("{clusters} clusters, {pace} changes/s");
    let setup = Setup { client: Library::Informer, name, arguments: Vec::new() };
    bench.figures.record(
        NAME,
        &setup,
        &[
            ("recorded per second", Unit::Count, point.recorded),
            ("CPU of daemons per second", Unit::Seconds, point.daemon),
            ("CPU of PostgreSQL per second", Unit::Seconds, point.postgres),
            ("log per second", Unit::Bytes, point.log),
            ("tables per second", Unit::Bytes, point.tables),
            ("memory of each daemon", Unit::Bytes, point.memory),
        ],
    );
    Ok(point)
}

fn spent(postgres: &Postgres, fleet: &[Member]) -> Result<(Duration, Spent), Error> {
    let spent = postgres.spent()?;
    let cpu: Result<Duration, Error> = fleet.iter().map(|member| member.daemon.meter().cpu()).sum();
    Ok((cpu?, spent))
}

impl Member {
    fn start(bench: &mut Bench<'_>, postgres: &Postgres, name: &str, objects: usize) -> Result<Self, Error> {
        let kubediff = bench.kubediff()?;
        let mut server = bench.embedded()?;
        let resources = server.mix(objects)?;
        let place = Place { cluster: name.to_owned(), address: Some(postgres.login(name)?) };
        let wanted = Wanted { seconds: 0.0, resources, place, audit: None };
        let daemon = Daemon::start(&kubediff, &server, &bench.scratch.join(name), &wanted)?;
        Ok(Self { daemon, server, wanted })
    }

    fn memory(&self) -> Result<f64, Error> {
        Ok(self.daemon.meter().memory()? as f64)
    }

    /// Makes changes and heartbeats, and waits until the changes are recorded. Returns how many were.
    fn churn(&mut self, mut reader: Reader, seconds: f64, per_second: usize) -> Result<f64, Error> {
        if per_second == 0 {
            thread::sleep(Duration::from_secs_f64(seconds));
            return Ok(0.0);
        }
        let before = records(&mut reader)?;
        let made = self.server.churn(seconds, per_second)?;
        let begin = Instant::now();
        loop {
            let recorded = (records(&mut reader)? - before) as f64;
            if recorded >= made.changes {
                return Ok(recorded);
            }
            if begin.elapsed() > PATIENCE {
                let changes = made.changes;
                return Err(Error::Found(format!("{NAME}: {recorded} of {changes} changes are recorded")));
            }
            thread::sleep(LOOK);
        }
    }

    fn check(&mut self) -> Result<(), Error> {
        agree(&mut self.daemon, &mut self.server, &self.wanted)
    }
}
