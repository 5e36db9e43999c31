//! `kubediff serve` with an audit log: the CPU that 1,000 events a second cost. Meanwhile the cluster changes as in `daemon`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kubediff_history::{Filter, Page};
use serde_json::{Value, json};
use tooling::Error;

use super::daemon::{Daemon, Place, Side, Wanted, agree};
use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};

pub(crate) const NAME: &str = "audit";
pub(crate) const SETUP: &str = "50 changes/s, 1,000 audit events/s";
/// CPU that the events cost, of a second.
pub(crate) const CPU: &str = "CPU per second";
const LOG: &str = "audit.log";
const CHANGES: usize = 50;
const EVENTS: usize = 1_000;
/// How often an API server writes its events to the file, about.
const OFTEN: Duration = Duration::from_millis(50);
/// Before, without events and with them, each for so many times `--seconds`.
const SECONDS: f64 = 8.0;
/// The objects of a kind that events name.
const NAMES: usize = 100;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let kubediff = bench.kubediff()?;
    let mut server = bench.embedded()?;
    let resources = server.mix(bench.options.objects)?;
    let seconds = bench.options.seconds * SECONDS;
    let wanted = Wanted { seconds, resources, place: Place::file(), audit: Some(LOG) };
    let folder = bench.scratch.join(NAME);
    let mut daemon = Daemon::start(&kubediff, &server, &folder, &wanted)?;
    let log = daemon.folder().join(LOG);
    // A new history trains its dictionaries: that CPU must be in neither figure.
    server.churn(seconds, CHANGES)?;
    let meter = daemon.meter();
    let before = meter.cpu()?;
    let quiet = server.churn(seconds, CHANGES)?;
    let without = (meter.cpu()? - before).as_secs_f64() / quiet.seconds;
    let (memory, before) = (meter.memory()? as f64, meter.cpu()?);
    let (over, is_over) = channel::<()>();
    let (churned, written) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| write(&log, is_over));
        let churned = server.churn(seconds, CHANGES);
        drop(over);
        let written =
            writing.join().map_err(|_| Error::Found("the writer of events has panicked".to_owned()))?;
        Ok::<_, Error>((churned?, written?))
    })?;
    let with = (meter.cpu()? - before).as_secs_f64() / churned.seconds;
    let more = (meter.memory()? as f64 - memory).max(0.0);
    agree(&mut daemon, &mut server, &wanted)?;
    let by_users = Filter { user: Some("user-*".to_owned()), ..Filter::default() };
    let found = daemon.reader()?.records(&by_users, &Page::newest(1));
    let found = found.map_err(|error| Error::format("the history", error))?;
    // A slow machine records later than the seconds in which an event may follow its change: rightly without users then.
    if found.records.is_empty() && !bench.options.debug {
        return Err(Error::Found(format!("{NAME}: no change has a user")));
    }
    let setup = Setup { client: Library::Informer, name: SETUP.to_owned(), arguments: Vec::new() };
    let figures = [
        (CPU, Unit::Seconds, with - without),
        ("without events", Unit::Seconds, without),
        ("events per second", Unit::Count, written as f64 / churned.seconds),
        ("memory more", Unit::Bytes, more),
    ];
    bench.figures.record(NAME, &setup, &figures);
    drop(daemon);
    std::fs::remove_dir_all(&folder).map_err(Error::io(&folder))
}

/// Writes events at an even pace until it is over. Returns how many.
fn write(log: &Path, is_over: Receiver<()>) -> Result<usize, Error> {
    let mut file = File::create(log).map_err(Error::io(log))?;
    let (begin, mut written) = (Instant::now(), 0);
    while is_over.recv_timeout(OFTEN) == Err(RecvTimeoutError::Timeout) {
        let due = usize::try_from(begin.elapsed().as_millis()).unwrap_or(usize::MAX) * EVENTS / 1_000;
        let lines: String = (written..due).map(|number| format!("{}\n", event(number))).collect();
        file.write_all(lines.as_bytes()).map_err(Error::io(log))?;
        written = due;
    }
    Ok(written)
}

/// An event at the level Metadata, as kube-apiserver writes it. Of ten, five are of what changes as noise.
fn event(number: usize) -> Value {
    let index = number / 10 % NAMES;
    let (verb, group, resource, part, name) = match number % 10 {
        0..4 => ("update", "coordination.k8s.io", "leases", "", format!("node-{index}")),
        4 => ("patch", "", "nodes", "status", format!("node-{index}")),
        5..8 => ("patch", "", "pods", "status", format!("pod-{index}")),
        8 => ("patch", "shop.example.com", "orders", "status", format!("order-{index}")),
        _ => ("update", "apps", "deployments", "", format!("deployment-{index}")),
    };
    let namespace =
        if resource == "leases" { "kube-node-lease".to_owned() } else { format!("shop-{}", index % 20) };
    let now = Timestamp::now();
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
        "auditID": format!("8f6f0b1e-5a1c-4f0e-9d3a-{number:012}"), "stage": "ResponseComplete",
        "requestURI": format!("/apis/{group}/v1/namespaces/{namespace}/{resource}/{name}/{part}?fieldManager=kubectl"), "verb": verb,
        "user": {"username": format!("user-{}@example.com", number % 50), "uid": "0d4bb4f0",
            "groups": ["system:authenticated", "developers"], "extra": {"authentication.kubernetes.io/credential-id": ["X509SHA256=1f"]}},
        "sourceIPs": ["10.20.30.40"], "userAgent": "kubectl/v1.34.0 (linux/amd64) kubernetes/abcdef0",
        "objectRef": {"resource": resource, "namespace": namespace, "name": name, "apiGroup": group, "apiVersion": "v1",
            "subresource": part},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": now.to_string(), "stageTimestamp": now.to_string(),
        "annotations": {"authorization.k8s.io/decision": "allow",
            "authorization.k8s.io/reason": "RBAC: allowed by ClusterRoleBinding \"developers\" of ClusterRole \"edit\" to Group \"developers\""},
    })
}
