//! Changes of pods as fast as the server makes them, into `kubediff serve`: how many it takes in a second, and how much
//! memory it needs meanwhile, with its history in a file and in PostgreSQL. In the end the history has what the server has.

use std::time::Instant;

use tooling::Error;

use super::daemon::{Daemon, Place, Side, Wanted, agree};
use super::kinds::PODS_RESOURCE;
use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::postgres::Postgres;

pub(crate) const NAME: &str = "flood";
pub(crate) const IN_FILE: &str = "kubediff serve";
pub(crate) const IN_POSTGRES: &str = "kubediff serve, PostgreSQL";
pub(crate) const TAKEN: &str = "taken per second";
/// Changes for each pod.
const CHANGES: usize = 20;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    one(bench, None)?;
    let postgres = Postgres::start()?;
    bench.report.version("PostgreSQL", &postgres.version()?);
    one(bench, Some(&postgres))
}

fn one(bench: &mut Bench<'_>, postgres: Option<&Postgres>) -> Result<(), Error> {
    let kubediff = bench.kubediff()?;
    let mut server = bench.embedded()?;
    server.load(bench.options.objects)?;
    let place = Place { address: postgres.map(|it| it.login(NAME)).transpose()?, ..Place::file() };
    let wanted = Wanted { seconds: 0.0, resources: vec![PODS_RESOURCE.to_owned()], place, audit: None };
    let folder = bench.scratch.join(NAME);
    let mut daemon = Daemon::start(&kubediff, &server, &folder, &wanted)?;
    let meter = daemon.meter();
    let steady = meter.memory()? as f64;
    meter.forget_peak()?;
    let spent = postgres.map(Postgres::spent).transpose()?;
    let (before, cpu) = (daemon.records()?, meter.cpu()?);
    let count = bench.options.objects * if bench.options.debug { CHANGES / 2 } else { CHANGES };

    let begin = Instant::now();
    server.change(count, 0)?;
    let made = begin.elapsed().as_secs_f64();
    let last = server.sentinel()?;
    daemon.wait_for("pods", last.resource_version())?;
    let taken = begin.elapsed().as_secs_f64();
    let (records, cpu) = (daemon.records()? - before, (meter.cpu()? - cpu).as_secs_f64());
    let peak = meter.peak()? as f64;
    let spent = postgres.zip(spent).map(|(it, before)| Ok::<_, Error>((before, it.spent()?))).transpose()?;
    agree(&mut daemon, &mut server, &wanted)?;

    let name = if postgres.is_some() { IN_POSTGRES } else { IN_FILE };
    let setup = Setup { client: Library::Informer, name: name.to_owned(), arguments: Vec::new() };
    // The last one is the sentinel's.
    let changes = (count + 1) as f64;
    bench.figures.record(
        NAME,
        &setup,
        &[
            ("changes made", Unit::Count, changes),
            ("made per second", Unit::Count, changes / made),
            (TAKEN, Unit::Count, changes / taken),
            ("records", Unit::Count, records as f64),
            ("recorded per second", Unit::Count, records as f64 / taken),
            ("CPU per change", Unit::Seconds, cpu / changes),
            ("memory before", Unit::Bytes, steady),
            ("peak memory", Unit::Bytes, peak),
            ("gaps", Unit::Count, daemon.gaps()? as f64),
            ("files", Unit::Bytes, daemon.bytes()? as f64),
        ],
    );
    if let Some((before, after)) = spent {
        let cpu = (after.cpu - before.cpu).as_secs_f64();
        let figures = [
            ("CPU of PostgreSQL per change", Unit::Seconds, cpu / changes),
            ("log of PostgreSQL per change", Unit::Bytes, (after.log - before.log) / changes),
            ("tables per change", Unit::Bytes, (after.bytes - before.bytes) / changes),
        ];
        bench.figures.record(NAME, &setup, &figures);
    }
    drop(daemon);
    std::fs::remove_dir_all(&folder).map_err(Error::io(&folder))
}
