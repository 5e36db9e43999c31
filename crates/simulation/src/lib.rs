//! The engine of `informer` under a simulated server, network and clock: one thread, and one seed that decides everything.
//!
//! The engine is the real one, with all that it is made of: decoders, reflectors, staging, cache, fan-out, mailboxes. Around it
//! is a naive server (`truth` is what it remembers), a network that brings bytes in any pieces, late or not at all, user code
//! that takes its time, readers of any speed, and a clock that is a number. A [`Plan`] is drawn from a seed and played; after each step the [`Invariant`]s have to hold. At the end
//! nothing fails any more and everything has to come right.
//!
//! ```text
//!   seed -> Plan -> steps ->  server -> network -> engine (reflectors, cache, mailboxes) -> readers
//!                               |                    |  ^                                    |
//!                               |                    v  | user code                          |
//!                             truth  <---------------- invariants ---------------------------+
//! ```

mod client;
mod content;
mod doubt;
mod guest;
mod invariant;
mod network;
mod past;
pub mod plan;
mod protobuf;
mod render;
mod saving;
mod served;
mod server;
mod shrink;
mod storage;
mod stored;
mod subscription;
mod trace;
mod truth;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use invariant::{Invariant, Violation};
pub use plan::Plan;
pub use shrink::shrink;
pub use trace::Trace;
pub use truth::{KEYS, Key};
pub use world::World;

/// What came of a run in which everything held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// How many steps it had.
    pub steps: usize,
    /// Whether the whole cache could be compared with the server in the end.
    pub compared: bool,
}

/// Plays a plan. A line for each step, and for what follows from it, goes to `trace`.
///
/// # Errors
///
/// The first invariant that does not hold.
pub fn run(plan: &Plan, trace: &mut Trace) -> Result<Passed, Violation> {
    run_with(plan, trace, |_| Ok(()))
}

/// Plays a plan, with one more thing that has to hold after each step.
///
/// # Errors
///
/// The first invariant that does not hold, [`Invariant::Extra`] for `demand`.
pub fn run_with(
    plan: &Plan,
    trace: &mut Trace,
    mut demand: impl FnMut(&World<'_>) -> Result<(), String>,
) -> Result<Passed, Violation> {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(plan, trace)?;
        for (number, step) in plan.steps.iter().enumerate() {
            world.step(number, *step)?;
            demand(&world).map_err(|what| Invariant::Extra.violated(what))?;
        }
        Ok(Passed { steps: plan.steps.len(), compared: world.rest()? })
    }));
    let outcome = played.unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Invariant::Panic.violated(message.unwrap_or("without a message")))
    });
    if let Err(violation) = &outcome {
        trace.line(|| format!("VIOLATED {violation}"));
    }
    outcome
}
