//! `cargo xtask simulate`: runs runs the engine under a simulated server, network and clock (`crates/simulation`).

use std::process::Command;

use tooling::{Error, process};

use crate::tree::Tree;

/// The seeds to run.
pub(crate) enum What {
    /// `A..B`
    Seeds(String),
    Seed {
        seed: u64,
        trace: bool,
    },
}

/// Builds and runs the simulation, which itself reports and shrinks failures.
pub(crate) fn run(tree: &Tree, what: What) -> Result<(), Error> {
    let mut simulation: Command = process::cargo(tree.root());
    simulation.args(["run", "--quiet", "--release", "--package", "simulation", "--"]);
    match what {
        What::Seeds(range) => simulation.args(["--seeds", &range]),
        What::Seed { seed, trace } => {
            simulation.args(["--seed", &seed.to_string()]).args(trace.then_some("--trace"))
        }
    };
    process::run(&mut simulation)
}
