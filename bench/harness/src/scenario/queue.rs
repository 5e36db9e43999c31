//! Work queues of many items: how long an item takes to be added, and to be taken and done, and what it takes while it waits.

use serde_json::json;

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::run::number;

pub(crate) const NAME: &str = "queue";
pub(crate) const SETUP: &str = "waiting items";

pub(crate) const ADD: &str = "add";
pub(crate) const GET_ONE: &str = "get and done, 1 worker";
pub(crate) const GET_EIGHT: &str = "get and done, 8 workers";
pub(crate) const MEMORY: &str = "memory per waiting item, without its key";

/// Items per object of the other scenarios: 1,000,000 by default.
const PER_OBJECT: usize = 100;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let items = bench.options.objects * PER_OBJECT;
    for client in Library::QUEUES {
        let setup = Setup { client, name: SETUP.to_owned(), arguments: Vec::new() };
        let Some(mut run) = bench.start_at(&setup, None)? else { continue };
        run.ask(&format!("queue-keys {}", json!({ "items": items })))?;
        let keys = run.steady()?;
        let waiting = number(&run.ask("queue-fill")?, "waiting");
        if waiting != items as f64 {
            return Err(Error::Found(format!("{}: {waiting} of {items} items wait", client.name())));
        }
        let memory = (run.steady()? - keys) / items as f64;
        drop(run);
        // In a process without that memory.
        let Some(mut run) = bench.start_at(&setup, None)? else { continue };
        run.ask(&format!("queue-keys {}", json!({ "items": items })))?;
        let answer = run.ask("queue")?;
        let time = |name: &str| number(&answer["nanoseconds"], name);
        bench.figures.record(
            NAME,
            &setup,
            &[
                (ADD, Unit::Nanoseconds, time("add")),
                (GET_ONE, Unit::Nanoseconds, time("getOne")),
                (GET_EIGHT, Unit::Nanoseconds, time("getEight")),
                (MEMORY, Unit::Bytes, memory),
            ],
        );
    }
    Ok(())
}
