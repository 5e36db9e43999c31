//! `cargo xtask`: everything that this repository automates, in Rust, so that one command means the same on a
//! developer's machine and in CI.
//!
//! One module per command. What a command finds goes to stdout; why it could not do its work goes to stderr.
//! Exit codes: 0 all is well, 1 a check found something, 2 wrong usage, 3 something is missing on this machine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool talks to its terminal")]

mod artifact;
mod bench;
mod contract;
mod control_plane;
mod deny;
mod error;
mod fuzz;
mod interleavings;
mod messages;
mod metadata;
mod mutants;
mod process;
mod protobuf;
mod schema;
mod simulate;
mod source;
mod test;
mod test_run;
mod tidy;
mod tree;
mod try_it;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Error;
use crate::mutants::Catcher;
use crate::tree::Tree;

/// The automation of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that must hold before a change goes in: format, lints, docs, tests, tidy, licences, contract
    Test {
        /// Leave out the tests against a real server
        #[arg(long)]
        fast: bool,
    },
    /// kubediff on a real API server of its own, for whoever has no cluster at hand
    Try,
    /// Which clauses of docs/CONTRACT.md have tests, and where these ran
    Contract {
        /// Run the tests of the workspace first, instead of using the last recorded run
        #[arg(long)]
        run: bool,
        /// Print the names of the tests
        #[arg(long)]
        names: bool,
    },
    /// What threads share, in the orders in which they may meet, by loom
    Loom,
    /// Any input for what reads bytes or takes operations, by cargo-fuzz; needs a nightly compiler
    Fuzz {
        /// One of `fuzz/fuzz_targets`; all of them without it
        target: Option<String>,
        /// How long, for each
        #[arg(long, default_value_t = 120)]
        seconds: u64,
    },
    /// The engine under a simulated server, network and clock: many runs, or one of them readably
    #[command(group(clap::ArgGroup::new("what").required(true)))]
    Simulate {
        /// All seeds from A up to B, on all cores
        #[arg(long, group = "what", value_name = "A..B")]
        seeds: Option<String>,
        /// This one
        #[arg(long, group = "what")]
        seed: Option<u64>,
        /// Show each step
        #[arg(long, requires = "seed")]
        trace: bool,
    },
    /// What informers cost, ours and the peers', on one server: memory, CPU, time
    #[command(disable_help_flag = true)]
    Bench {
        /// Options of the harness (`--help` lists them)
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<OsString>,
    },
    /// Deliberate bugs, one at a time, to see whether the tests notice
    Mutants {
        /// Only those with one of these in their name
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// Who is to catch them
        #[arg(long, value_enum, value_delimiter = ',', default_values = ["simulation", "conformance"])]
        by: Vec<Catcher>,
        /// Ask each of those, not only until one has caught it
        #[arg(long)]
        all: bool,
        /// What simulation plays
        #[arg(long, default_value = "0..20000")]
        seeds: String,
    },
    /// The rules of the house that no compiler checks
    Tidy {
        /// Write the table of crates and their lines in docs/ARCHITECTURE.md anew
        #[arg(long)]
        lines: bool,
    },
    /// Licences, sources and banned crates, by cargo-deny where it is installed
    Deny,
    /// Write down the schemas of a real API server for testapi; needs kubectl
    Schema,
    /// Write down the fields of Kubernetes' protobuf messages for testapi
    Protobuf,
    /// Write down Kubernetes' protobuf messages for informer-protobuf; needs Go
    Messages,
    /// The real etcd and kube-apiserver for tests
    ControlPlane {
        #[command(subcommand)]
        command: ControlPlane,
    },
}

#[derive(Subcommand)]
enum ControlPlane {
    /// Build the binary into its cache and print its path; takes minutes the first time
    Build,
    /// Build if needed, then run until stdin closes; options go to the binary (`-- --help` lists them)
    Run {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.with_causes());
            error.exit_code()
        }
    }
}

fn execute(command: Command) -> Result<(), Error> {
    let tree = Tree::here();
    match command {
        Command::Test { fast } => test::run(&tree, fast),
        Command::Try => try_it::run(&tree),
        Command::Contract { run, names } => contract::run(&tree, run, names),
        Command::Bench { options } => bench::run(&tree, &options),
        Command::Loom => interleavings::run(&tree),
        Command::Fuzz { target, seconds } => fuzz::run(&tree, target.as_deref(), seconds),
        Command::Mutants { only, by, all, seeds } => {
            mutants::run(&tree, &mutants::Options { only: &only, by: &by, all, seeds: &seeds })
        }
        Command::Simulate { seeds, seed, trace } => {
            let one = |seed| simulate::What::Seed { seed, trace };
            let what = seed.map(one).or(seeds.map(simulate::What::Seeds));
            what.map_or(Ok(()), |what| simulate::run(&tree, what))
        }
        Command::Tidy { lines } => tidy::run(&tree, lines),
        Command::Deny => deny::run(&tree),
        Command::Schema => schema::run(&tree),
        Command::Protobuf => protobuf::run(&tree),
        Command::Messages => messages::run(&tree),
        Command::ControlPlane { command: ControlPlane::Build } => control_plane::build(),
        Command::ControlPlane { command: ControlPlane::Run { options } } => control_plane::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
