//! Ten and a hundred times as many objects, on an embedded server: how memory and times grow.
//!
//! A client that would need more memory than the machine has is left out at that size, and the output says so.

use serde_json::json;

use super::Bench;
use super::figures::Unit;
use super::library::{Library, Setup};
use super::machine;
use super::run::number;
use super::server::Server;
use tooling::Error;

const FACTORS: [usize; 3] = [1, 10, 100];
/// A generous estimate of memory per object: of the server, and of each client at its peak.
const SERVER_BYTES: u64 = 12_000;

pub(crate) const NAME: &str = "growth";
pub(crate) const BYTES: &str = "steady memory per object";

/// The setup's name in figures.
pub(crate) fn setup_name(objects: usize) -> String {
    format!("{objects} objects")
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
            measure(bench, &mut server, client, objects)?;
        }
    }
    Ok(())
}

fn measure(bench: &mut Bench<'_>, server: &mut Server, client: Library, objects: usize) -> Result<(), Error> {
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
    let figures = [
        ("wall", Unit::Seconds, sync.wall),
        ("CPU", Unit::Seconds, sync.cpu),
        (BYTES, Unit::Bytes, bytes_per_object),
        ("by index, one hit, decoded", Unit::Nanoseconds, number(times, "index")),
        ("snapshot, or a list of everything", Unit::Nanoseconds, number(times, "snapshot")),
    ];
    let setup = Setup { name: setup_name(objects), ..client.view("typed") };
    bench.figures.record(NAME, &setup, &figures);
    Ok(())
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
