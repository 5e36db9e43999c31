//! Tests of a gate and of the inbox of a controller, with every order of their steps, under loom (`cargo xtask loom`). A
//! wake-up that is lost leaves all threads asleep, which loom reports.

mod gate;
mod inbox;

/// Limits the switches between threads that no lock causes: with all of them the tests would take hours.
fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder
}
