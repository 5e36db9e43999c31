//! Ten and a hundred times as many objects, on an embedded server: how memory and times grow.
//!
//! A client that would need more memory than the machine has is left out at that size, and the output says so.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Bench;
use super::library::Library;
use super::machine;
use super::run::number;
use super::server::Server;
use tooling::Error;

const FACTORS: [usize; 3] = [1, 10, 100];
/// A generous estimate of memory per object: of the server, and of each client at its peak.
const SERVER_BYTES: u64 = 12_000;

/// One client with this number of objects.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Point {
    pub(crate) client: String,
    pub(crate) objects: usize,
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
    /// Steady memory above base.
    pub(crate) bytes_per_object: f64,
    /// The time of a lookup with one hit, whose object is decoded.
    pub(crate) index_nanoseconds: f64,
    pub(crate) snapshot_nanoseconds: f64,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let mut server = bench.embedded()?;
    // Without optimization the greatest size takes minutes and shows nothing new.
    let factors = FACTORS.into_iter().filter(|factor| *factor <= 10 || !bench.options.debug);
    for objects in factors.map(|factor| bench.options.objects * factor).collect::<Vec<_>>() {
        if !is_room(objects, SERVER_BYTES + client_bytes(Library::Informer))? {
            println!("  {objects} objects: left out, there is too little memory for the server");
            continue;
        }
        server.load(objects)?;
        for client in Library::CACHES {
            if bench.program(client).is_none() {
                continue;
            }
            if !is_room(objects, client_bytes(client))? {
                println!("  {:<10} {objects} objects: left out, there is too little memory", client.name());
                continue;
            }
            let point = measure(bench, &mut server, client, objects)?;
            println!("  {:<10} {}", client.name(), json!(point));
            bench.report.grow(point);
        }
    }
    Ok(())
}

fn measure(
    bench: &mut Bench<'_>,
    server: &mut Server,
    client: Library,
    objects: usize,
) -> Result<Point, Error> {
    let nothing = || Error::Found("a program is missing".to_owned());
    let kubeconfig = server.kubeconfig().to_owned();
    let setup = client.view("typed");
    // Nothing changes the objects of this server.
    let expected = server.digest(&[])?;
    let mut run = bench.start_at(&setup, Some(&kubeconfig))?.ok_or_else(nothing)?;
    let sync = run.sync(server)?;
    let steady = run.steady()?;
    run.compare(&expected)?;
    let bytes_per_object = (steady - run.base()) / objects as f64;
    drop(run);
    // A second run, because an index costs time and memory too.
    let mut run = bench.start_at(&setup.with(&["--index"]), Some(&kubeconfig))?.ok_or_else(nothing)?;
    run.sync(server)?;
    // Clients without indexes do not have these figures.
    let lookups = run.ask(&format!("lookups {}", json!({ "seconds": 0.5 }))).unwrap_or_default();
    run.compare(&expected)?;
    let times = &lookups["nanoseconds"];
    Ok(Point {
        client: client.name().to_owned(),
        objects,
        wall_seconds: sync.wall,
        cpu_seconds: sync.cpu,
        bytes_per_object,
        index_nanoseconds: number(times, "index"),
        snapshot_nanoseconds: number(times, "snapshot"),
    })
}

/// The memory per object that a client needs at its peak.
fn client_bytes(client: Library) -> u64 {
    match client {
        Library::Informer => 4_000,
        Library::ClientGo => 40_000,
        Library::KubeRs => 90_000,
        Library::ControllerRuntime => 0,
    }
}

/// Whether this number of objects leaves a quarter of the memory free.
fn is_room(objects: usize, bytes: u64) -> Result<bool, Error> {
    Ok(objects as u64 * bytes < machine::available_memory()? / 4 * 3)
}
