//! `kubediff watch -A` on a whole cluster: memory and time until it is ready.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::kinds;
use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::meter::Meter;

pub(crate) const NAME: &str = "kubediff";
pub(crate) const SETUP: &str = "kubediff watch -A";
pub(crate) const PEAK: &str = "peak memory";
pub(crate) const READY: &str = "ready after";

/// Part of the line that kubediff writes to stderr when all informers are synced.
const IS_READY: &str = "objects; ";
/// How many of ten objects are pods; the others belong to a few more kinds.
const PODS_OF_TEN: usize = 9;
/// How long after that line the peak is read.
const AFTERWARDS: Duration = Duration::from_millis(500);

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let server = kinds::server_with(bench, bench.options.objects * PODS_OF_TEN / 10)?;
    // It may be built first.
    let program = bench.kubediff()?;
    let begin = Instant::now();
    let mut command = Command::new(program);
    command.args(["watch", "-A", "--kubeconfig"]).arg(server.kubeconfig());
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Error::missing("`kubediff`", format!("it could not be run: {error}")))?;
    let stderr = child.stderr.take();
    let mut lines =
        stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines().map_while(Result::ok));
    let ready = lines.by_ref().find(|line| line.contains(IS_READY));
    let (wall, meter) = (begin.elapsed(), Meter::new(child.id()));
    let measured = ready.is_some().then(|| (meter.cpu(), std::thread::sleep(AFTERWARDS), meter.peak()));
    // The figures are taken; how it ends does not matter.
    let _ = child.kill();
    let _ = child.wait();
    let Some((cpu, (), peak)) = measured else {
        return Err(Error::Found("kubediff ended before it was ready".to_owned()));
    };
    let setup = Setup { client: Library::Informer, name: SETUP.to_owned(), arguments: Vec::new() };
    let (cpu, peak) = (cpu?.as_secs_f64(), peak? as f64);
    let figures =
        [(READY, Unit::Seconds, wall.as_secs_f64()), ("CPU", Unit::Seconds, cpu), (PEAK, Unit::Bytes, peak)];
    bench.figures.record(NAME, &setup, &figures);
    Ok(())
}
