//! `kubediff serve` beside a program in the manner of arriqaaq/kubediff ("the seed"): the same cluster of many kinds with
//! the same changes, half of which are heartbeats. Each writes what it tells to a file.

mod ours;
mod seed;

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tooling::Error;

use crate::Bench;
use crate::figures::{Unit, median};
use crate::library::{Library, Setup};
use crate::meter::Meter;
use crate::server::{Churned, Digest, Server};
use seed::Seed;

pub(super) use ours::{Daemon, records};

pub(crate) const NAME: &str = "daemon";
pub(crate) const SETUP: &str = "50 changes/s";
/// The seed's own setting: it tells of every object anew each minute.
pub(crate) const RESYNC: &str = "50 changes/s, resync each minute";
pub(crate) const MEMORY: &str = "steady memory";
pub(crate) const CPU: &str = "CPU per minute";

/// Objects for one of `--objects`, which is the number of pods of other scenarios.
const OBJECTS: usize = 5;
const PER_SECOND: usize = 50;
/// The changes go on for so many times `--seconds`; memory is read in the last four fifths.
const SECONDS: f64 = 15.0;
/// How often memory is read.
const READ: Duration = Duration::from_millis(500);
/// The most that it may take until all is recorded, and until the last change is.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often the history is looked at meanwhile.
pub(super) const LOOK: Duration = Duration::from_millis(50);

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let (kubediff, seed) = (bench.kubediff()?, bench.seed()?);
    let mut server = bench.embedded()?;
    let resources = server.mix(bench.options.objects * OBJECTS)?;
    let wanted =
        Wanted { seconds: bench.options.seconds * SECONDS, resources, place: Place::file(), audit: None };
    let folder = bench.scratch.join(NAME);
    let ours = Daemon::start(&kubediff, &server, &folder, &wanted)?;
    let figures = measured(ours, &mut server, &wanted)?;
    bench.record_daemon(Library::Informer, SETUP, &figures);
    for (setup, resync) in [(SETUP, "0s"), (RESYNC, "1m")] {
        let Some(seed) = &seed else { continue };
        let theirs = Seed::start(seed, &server, &folder, &wanted, resync)?;
        bench.report.version("seed", &theirs.version);
        let figures = measured(theirs, &mut server, &wanted)?;
        bench.record_daemon(Library::ClientGo, setup, &figures);
    }
    // It may be large.
    std::fs::remove_dir_all(&folder).map_err(Error::io(&folder))
}

/// The work of both sides.
pub(super) struct Wanted {
    pub(super) seconds: f64,
    /// `GROUP/VERSION/PLURAL/KIND`
    pub(super) resources: Vec<String>,
    pub(super) place: Place,
    /// The file of an audit log, in the daemon's folder.
    pub(super) audit: Option<&'static str>,
}

/// Where `kubediff serve` records.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) cluster: String,
    /// Of a database; a file without it.
    pub(super) address: Option<String>,
}

impl Place {
    pub(super) fn file() -> Self {
        Self { cluster: "bench".to_owned(), address: None }
    }
}

/// One of the two sides. It has everything that the server had at the start.
pub(super) trait Side {
    fn meter(&self) -> Meter;
    /// How long it took to have it.
    fn synced_after(&self) -> f64;
    /// Bytes on the disk.
    fn bytes(&self) -> Result<u64, Error>;
    fn digest(&mut self) -> Result<Digest, Error>;
}

struct Measured {
    synced_after: f64,
    sync_cpu: f64,
    peak: f64,
    memory: f64,
    cpu: f64,
    churned: Churned,
    bytes: f64,
}

impl Bench<'_> {
    fn record_daemon(&mut self, client: Library, name: &str, it: &Measured) {
        let setup = Setup { client, name: name.to_owned(), arguments: Vec::new() };
        self.figures.record(
            NAME,
            &setup,
            &[
                ("synced after", Unit::Seconds, it.synced_after),
                ("CPU until then", Unit::Seconds, it.sync_cpu),
                ("peak memory until then", Unit::Bytes, it.peak),
                (MEMORY, Unit::Bytes, it.memory),
                (CPU, Unit::Seconds, it.cpu),
                ("changes", Unit::Count, it.churned.changes),
                ("heartbeats", Unit::Count, it.churned.noise),
                ("files", Unit::Bytes, it.bytes),
            ],
        );
    }
}

fn measured(mut side: impl Side, server: &mut Server, wanted: &Wanted) -> Result<Measured, Error> {
    let meter = side.meter();
    let (peak, before) = (meter.peak()? as f64, meter.cpu()?);
    let (over, is_over) = channel::<()>();
    let (churned, memory) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| memory(meter, is_over, wanted.seconds));
        let churned = server.churn(wanted.seconds, PER_SECOND);
        drop(over);
        let read =
            reading.join().map_err(|_| Error::Found("the reader of memory has panicked".to_owned()))?;
        Ok::<_, Error>((churned?, read?))
    })?;
    let cpu = (meter.cpu()? - before).as_secs_f64();
    agree(&mut side, server, wanted)?;
    Ok(Measured {
        synced_after: side.synced_after(),
        sync_cpu: before.as_secs_f64(),
        peak,
        memory,
        cpu: cpu / churned.seconds * 60.0,
        churned,
        bytes: side.bytes()? as f64,
    })
}

/// The median of resident memory in the last four fifths of that time.
fn memory(meter: Meter, is_over: Receiver<()>, seconds: f64) -> Result<f64, Error> {
    let (begin, mut read) = (Instant::now(), Vec::new());
    while is_over.recv_timeout(READ) == Err(RecvTimeoutError::Timeout) {
        if begin.elapsed().as_secs_f64() >= seconds / 5.0 {
            read.push(meter.memory()? as f64);
        }
    }
    Ok(median(&read))
}

/// Waits until it has what the server has: a difference that stays fails the whole run.
pub(super) fn agree(side: &mut impl Side, server: &mut Server, wanted: &Wanted) -> Result<(), Error> {
    let expected = server.digest(&wanted.resources)?;
    let begin = Instant::now();
    loop {
        let found = side.digest()?;
        if found.agrees_with(&expected, false) {
            return Ok(());
        }
        if begin.elapsed() > PATIENCE {
            return Err(Error::Found(format!("{NAME}: a side has {found:?}, the server {expected:?}")));
        }
        std::thread::sleep(LOOK);
    }
}
