//! kubectl on the past beside kubectl on the server itself: all pods as a table and as objects, one after the other. The history is of
//! `kubediff serve`, and a fifth of its pods has changed a few times. Needs kubectl.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tooling::{Error, process};

use super::daemon::{Daemon, LOOK, Place, Wanted};
use super::kinds::PODS_RESOURCE;
use crate::Bench;
use crate::figures::{Unit, median};
use crate::library::{Library, Setup};
use crate::meter::Meter;
use crate::server::Server;

const NAME: &str = "past";
/// One of so many pods is changed,
const CHANGED: usize = 5;
/// and so often.
const CHANGES: usize = 3;
/// How often each side is asked, and how many instants are asked for first bytes.
const TIMES: usize = 5;
const TABLE: &[&str] = &["get", "pods", "-A"];
const OBJECTS: &[&str] = &["get", "--raw", "/api/v1/pods"];
/// The most that `kubediff at` may take to end.
const END: Duration = Duration::from_secs(30);

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    if !process::is_installed("kubectl", "help") {
        println!("  There is no kubectl: left out.");
        return Ok(());
    }
    let kubediff = bench.kubediff()?;
    let (folder, count) = (bench.scratch.join(NAME), bench.options.objects);
    let server = bench.server()?;
    let real = server.kubeconfig().to_owned();
    let last = record(&kubediff, server, &folder, count)?;
    let history = folder.join("kubediff/history.db");

    let served = Served::open(&kubediff, &history, last)?;
    let cache = folder.join("cache");
    let pods = |at: &Path| asked(at, &cache, TABLE).map(|table| names(&table.text));
    let (expected, found) = (pods(&real)?, pods(&served.kubeconfig)?);
    if expected != found || found.len() <= count {
        return Err(Error::Found(format!("{NAME}: the past has other pods than the server")));
    }
    drop(served);
    for (name, line) in [("kubectl get pods -A", TABLE), ("kubectl get --raw /api/v1/pods", OBJECTS)] {
        let served = Served::open(&kubediff, &history, last)?;
        // Discovery is in kubectl's cache then, as that of the server is.
        asked(&served.kubeconfig, &cache, &["api-resources"])?;
        let meter = Meter::new(served.child.id());
        let idle = meter.memory()?;
        meter.forget_peak()?;
        let mut took = [Vec::new(), Vec::new()];
        for _ in 0..TIMES {
            for (at, took) in [&real, &served.kubeconfig].into_iter().zip(&mut took) {
                took.push(asked(at, &cache, line)?.all);
            }
        }
        let best = |took: &[f64]| took.iter().copied().fold(f64::INFINITY, f64::min);
        let [server, past] = took;
        let figures = [
            ("server", Unit::Seconds, median(&server)),
            ("its best", Unit::Seconds, best(&server)),
            ("past", Unit::Seconds, median(&past)),
            ("best", Unit::Seconds, best(&past)),
            ("past / server", Unit::Times, median(&past) / median(&server)),
            ("best / best", Unit::Times, best(&past) / best(&server)),
            ("idle memory", Unit::Bytes, idle as f64),
            ("peak above it", Unit::Bytes, meter.peak()?.saturating_sub(idle) as f64),
        ];
        bench.figures.record(NAME, &setup(name), &figures);
    }

    let mut first = Vec::new();
    for part in 0..TIMES as u64 {
        forget(&history)?;
        let begin = Instant::now();
        let served = Served::open(&kubediff, &history, (last * (2 * part + 1) / (2 * TIMES as u64)).max(1))?;
        let opened = begin.elapsed().as_secs_f64();
        first.push(opened + asked(&served.kubeconfig, &cache, OBJECTS)?.first);
    }
    let most = first.iter().copied().fold(0.0, f64::max);
    let figures = [("median", Unit::Seconds, median(&first)), ("longest", Unit::Seconds, most)];
    bench.figures.record(NAME, &setup("first byte of a new process, file not in memory"), &figures);
    std::fs::remove_dir_all(&folder).map_err(Error::io(&folder))
}

fn setup(name: &str) -> Setup {
    Setup { client: Library::Informer, name: name.to_owned(), arguments: Vec::new() }
}

/// Records all pods, and changes of some. Returns the number of the last record.
fn record(kubediff: &Path, server: &mut Server, folder: &Path, count: usize) -> Result<u64, Error> {
    let wanted =
        Wanted { seconds: 0.0, resources: vec![PODS_RESOURCE.to_owned()], place: Place::file(), audit: None };
    let daemon = Daemon::start(kubediff, server, folder, &wanted)?;
    let among = (count / CHANGED).max(1);
    server.change(among * CHANGES, among)?;
    let last = server.sentinel()?;
    daemon.wait_for("pods", last.resource_version())?;
    daemon.records()
}

/// The past at a record, as `kubediff at` serves it.
struct Served {
    child: Child,
    kubeconfig: PathBuf,
}

impl Served {
    fn open(kubediff: &Path, history: &Path, record: u64) -> Result<Self, Error> {
        let mut command = Command::new(kubediff);
        command.args(["at", &format!("#{record}"), "--history"]).arg(history);
        let (child, said) = piped(command.stdin(Stdio::null()).stderr(Stdio::null()))?;
        let mut served = Self { child, kubeconfig: PathBuf::new() };
        let line = BufReader::new(said).lines().map_while(Result::ok).next().unwrap_or_default();
        let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=");
        served.kubeconfig = kubeconfig
            .ok_or_else(|| Error::format("the line of `kubediff at`", "it has no kubeconfig"))?
            .into();
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It removes its kubeconfig.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > END {
                println!("  `kubediff at` does not end");
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// The output of kubectl, and the seconds until its first part and until its end.
struct Answer {
    first: f64,
    all: f64,
    text: Vec<u8>,
}

fn asked(kubeconfig: &Path, cache: &Path, line: &[&str]) -> Result<Answer, Error> {
    let begin = Instant::now();
    let mut command = Command::new("kubectl");
    command
        .args(line)
        .args(["--request-timeout", "5m", "--kubeconfig"])
        .arg(kubeconfig)
        .arg("--cache-dir")
        .arg(cache);
    let (mut child, mut said) = piped(&mut command)?;
    let failed = |error| Error::io("the output of kubectl".as_ref())(error);
    let mut text = vec![0; 1 << 20];
    let length = said.read(&mut text).map_err(failed)?;
    let first = begin.elapsed().as_secs_f64();
    text.truncate(length);
    said.read_to_end(&mut text).map_err(failed)?;
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        return Err(Error::Found(format!("kubectl {}: {status}", line.join(" "))));
    }
    Ok(Answer { first, all: begin.elapsed().as_secs_f64(), text })
}

fn piped(command: &mut Command) -> Result<(Child, ChildStdout), Error> {
    let name = process::describe(command);
    let missing = |why: String| Error::missing(name.as_str(), why);
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Err(missing(format!("it could not be run: {error}"))),
    };
    let said = child.stdout.take().ok_or_else(|| missing("it has no output".to_owned()))?;
    Ok((child, said))
}

/// The first two columns of a table.
fn names(table: &[u8]) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join("/");
    String::from_utf8_lossy(table).lines().map(line).collect()
}

/// Drops a file from the page cache.
fn forget(file: &Path) -> Result<(), Error> {
    let mut input = std::ffi::OsString::from("if=");
    input.push(file);
    process::run(Command::new("dd").arg(input).args(["iflag=nocache", "count=0", "status=none"]))
}
