//! Changes of pods as fast as the server makes them, into `kubediff serve`: how many it takes in a second, and how much
//! memory it needs meanwhile. In the end its history has what the server has.

use std::time::Instant;

use tooling::Error;

use super::daemon::{Daemon, Side, Wanted, agree};
use super::kinds::PODS_RESOURCE;
use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};

const NAME: &str = "flood";
/// Changes for each pod.
const CHANGES: usize = 20;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let kubediff = bench.kubediff()?;
    let mut server = bench.embedded()?;
    server.load(bench.options.objects)?;
    let wanted = Wanted { seconds: 0.0, resources: vec![PODS_RESOURCE.to_owned()] };
    let folder = bench.scratch.join(NAME);
    let mut daemon = Daemon::start(&kubediff, &server, &folder, &wanted)?;
    let meter = daemon.meter();
    let steady = meter.memory()? as f64;
    meter.forget_peak()?;
    let (before, cpu) = (daemon.records()?, meter.cpu()?);
    let count = bench.options.objects * CHANGES;

    let begin = Instant::now();
    server.change(count, 0)?;
    let made = begin.elapsed().as_secs_f64();
    let last = server.sentinel()?;
    daemon.wait_for("pods", last.resource_version())?;
    let taken = begin.elapsed().as_secs_f64();
    let (records, cpu) = (daemon.records()? - before, (meter.cpu()? - cpu).as_secs_f64());
    let peak = meter.peak()? as f64;
    agree(&mut daemon, &mut server, &wanted)?;

    let setup = Setup { client: Library::Informer, name: "kubediff serve".to_owned(), arguments: Vec::new() };
    // The last one is the sentinel's.
    let changes = (count + 1) as f64;
    bench.figures.record(
        NAME,
        &setup,
        &[
            ("changes made", Unit::Count, changes),
            ("made per second", Unit::Count, changes / made),
            ("taken per second", Unit::Count, changes / taken),
            ("records", Unit::Count, records as f64),
            ("recorded per second", Unit::Count, records as f64 / taken),
            ("CPU per change", Unit::Seconds, cpu / changes),
            ("memory before", Unit::Bytes, steady),
            ("peak memory", Unit::Bytes, peak),
            ("gaps", Unit::Count, daemon.gaps()? as f64),
            ("files", Unit::Bytes, daemon.bytes()? as f64),
        ],
    );
    drop(daemon);
    std::fs::remove_dir_all(&folder).map_err(Error::io(&folder))
}
