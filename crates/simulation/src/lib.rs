//! Runs the engine of `informer` under a simulated server, network and clock. One thread, and one seed decides
//! everything.
//!
//! The engine is the real one: decoders, reflectors, staging, cache, fan-out, mailboxes. The rest is simulated: a
//! naive server with a complete history (`truth`), a network that delivers bytes in any pieces, late, or never, slow
//! user code, readers of any speed, and a clock that is a number. A seed gives a [`Plan`]. A run plays the plan, and
//! after each step every [`Invariant`] must hold. At the end nothing fails any more, and the informer must become live
//! and current. A run may have two informers of one server, which share the machine of `informer_core::upstream`.
//! A run may have a controller: the work queue and the control loop of the core over the same cache (`controller`).
//! The oracle consists of `client` (what one source may request, and what the cache may have of it), `subscription`
//! (what one subscription may receive) and `world::checks` (which compares both with `truth`). `doubt` says where the
//! oracle accepts more than one state.
//!
//! ```text
//!   seed -> Plan -> steps ->  server -> network -> engine (reflectors, cache, mailboxes) -> readers
//!                               |                    |  ^                                    |
//!                               |                    v  | user code                          |
//!                             truth  <---------------- invariants ---------------------------+
//! ```

mod client;
mod content;
mod controller;
mod doubt;
mod guest;
mod informer;
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

/// The result of a run in which every invariant held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The number of its steps.
    pub steps: usize,
    /// Whether the whole cache could be compared with the server at the end.
    pub compared: bool,
}

/// Plays a plan. `trace` gets a line for each step and for each of its effects.
///
/// # Errors
///
/// The first invariant that does not hold.
pub fn run(plan: &Plan, trace: &mut Trace) -> Result<Passed, Violation> {
    run_with(plan, trace, |_| Ok(()))
}

/// Plays a plan. After each step `demand` must hold, too.
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
