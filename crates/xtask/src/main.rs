//! `cargo xtask`: the automation of this repository in Rust, so that a command does the same on a developer's machine
//! and in CI.
//!
//! Each command has a module. Findings go to stdout, errors to stderr. Exit codes: 0 success, 1 a check found
//! something, 2 wrong usage, 3 something is missing on this machine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool talks to its terminal")]

mod artifact;
mod bench;
mod contract;
mod control_plane;
mod definitions;
mod deny;
mod dist;
mod fuzz;
mod image;
mod interleavings;
mod kubernetes;
mod memory_chart;
mod messages;
mod metadata;
mod mutants;
mod package;
mod page;
mod protobuf;
mod public_api;
mod recording;
mod running;
mod schema;
mod simulate;
mod soak;
mod source;
mod test;
mod test_run;
mod tidy;
mod tree;
mod try_it;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use tooling::Error;

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
    /// Run all checks that a change must pass: format, lints, docs, tests, tidy, licences, contract
    Test {
        /// Leave out the tests against a real server
        #[arg(long, conflicts_with = "kubernetes")]
        fast: bool,
        /// Only the contract, against a real server of another release: `1.34.4`
        #[arg(long, value_name = "RELEASE")]
        kubernetes: Option<String>,
    },
    /// Test kubediff's page in a real browser
    Page,
    /// Try kubediff on a real API server, without a cluster
    Try,
    /// Show which clauses of docs/CONTRACT.md have tests, and on which servers they passed
    Contract {
        /// Run the tests of the workspace first, instead of using the last recorded run
        #[arg(long)]
        run: bool,
        /// Print the names of the tests
        #[arg(long)]
        names: bool,
    },
    /// Test shared data structures in all interleavings of threads, with loom
    Loom,
    /// Fuzz parsers and data structures, with cargo-fuzz; needs a nightly compiler
    Fuzz {
        /// One of `fuzz/fuzz_targets`; all of them without it
        target: Option<String>,
        /// Seconds for each target
        #[arg(long, default_value_t = 120)]
        seconds: u64,
    },
    /// Run the engine under a simulated server, network and clock: many seeds, or one with its steps
    #[command(group(clap::ArgGroup::new("what").required(true)))]
    Simulate {
        /// All seeds from A up to B, on all cores
        #[arg(long, group = "what", value_name = "A..B")]
        seeds: Option<String>,
        /// A single seed
        #[arg(long, group = "what")]
        seed: Option<u64>,
        /// Show each step
        #[arg(long, requires = "seed")]
        trace: bool,
    },
    /// Play the stories of processes many times: leader elections on a real server, a history whose writer is killed, rehearsals
    Soak {
        /// Only stories with one of these in their name
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// How often each of them
        #[arg(long, default_value_t = 100)]
        times: u32,
    },
    /// Measure the memory, CPU and time that our informer and other libraries need
    #[command(disable_help_flag = true)]
    Bench {
        /// Options of the harness (`--help` lists them)
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<OsString>,
    },
    /// Put deliberate bugs into the code, one at a time, and check that the tests find them
    Mutants {
        /// Only bugs with one of these in their name
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// The tests that have to find them
        #[arg(long, value_enum, value_delimiter = ',', default_values = ["simulation", "core", "shards", "conformance"])]
        by: Vec<Catcher>,
        /// Run all of these tests, even after one has found the bug
        #[arg(long)]
        all: bool,
        /// The seeds of the simulation
        #[arg(long, default_value = "0..20000")]
        seeds: String,
    },
    /// Check the rules of this repository that no compiler checks
    Tidy {
        /// Update what is made of other files: the table of crates in docs/ARCHITECTURE.md, the promises of `informer`
        #[arg(long, alias = "lines")]
        write: bool,
    },
    /// Check licences, sources and banned crates, with cargo-deny if it is installed
    Deny,
    /// Build kubediff as people download it: archive, manual, completions, krew manifest, image, chart, checksums
    Dist {
        /// The target; this machine without it
        #[arg(long, value_name = "TRIPLE")]
        target: Option<String>,
    },
    /// Run the checks of a release besides `test`: packages as their users build them, downloads, the image, and advisories
    ReleaseCheck,
    /// Compare the public surface of the libraries with the lists in docs/api; needs rustup and a nightly compiler
    Api {
        /// Write the lists
        #[arg(long)]
        write: bool,
    },
    /// Make the packages, and build and try them outside of this repository, as their users do
    Package,
    /// Record the demo of kubediff as docs/demo.svg
    Recording,
    /// Draw the memory of caches, as measured in docs/BENCHMARKS.md, as docs/benchmarks/memory.svg
    Chart,
    /// Move everything that follows a release of Kubernetes to another one, and show what it changes for users
    Kubernetes {
        /// In full: `1.37.2`
        #[arg(value_name = "RELEASE")]
        release: String,
    },
    /// Write the schemas and resources of a real API server for testapi; needs kubectl
    Schema,
    /// Write the fields of Kubernetes' protobuf messages for testapi
    Protobuf,
    /// Write Kubernetes' protobuf messages for informer-protobuf; needs Go
    Messages,
    /// Build or run the real etcd and kube-apiserver of the tests
    ControlPlane {
        #[command(subcommand)]
        command: ControlPlane,
    },
}

#[derive(Subcommand)]
enum ControlPlane {
    /// Build the binary into its cache and print its path; takes minutes the first time
    Build {
        /// Another release of Kubernetes than go.mod has: `1.34.4`
        #[arg(long, value_name = "RELEASE")]
        kubernetes: Option<String>,
    },
    /// Build if needed, then run until stdin closes; options go to the binary (`-- --help` lists them)
    Run {
        /// Another release of Kubernetes than go.mod has: `1.34.4`
        #[arg(long, value_name = "RELEASE")]
        kubernetes: Option<String>,
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
        Command::Test { fast: _, kubernetes: Some(release) } => test::other_release(&tree, &release),
        Command::Test { fast, kubernetes: None } => test::run(&tree, fast),
        Command::Page => page::run(&tree),
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
        Command::Tidy { write } => tidy::run(&tree, write),
        Command::Soak { only, times } => soak::run(&tree, &only, times),
        Command::ReleaseCheck => test::release_check(&tree),
        Command::Dist { target } => dist::run(&tree, target.as_deref()),
        Command::Api { write } => public_api::run(&tree, write),
        Command::Package => package::run(&tree),
        Command::Recording => recording::run(&tree),
        Command::Chart => memory_chart::run(&tree),
        Command::Deny => deny::run(&tree),
        Command::Kubernetes { release } => kubernetes::run(&tree, &release),
        Command::Schema => schema::run(&tree),
        Command::Protobuf => protobuf::run(&tree),
        Command::Messages => messages::run(&tree),
        Command::ControlPlane { command: ControlPlane::Build { kubernetes } } => {
            control_plane::build(kubernetes.as_deref())
        }
        Command::ControlPlane { command: ControlPlane::Run { kubernetes, options } } => {
            control_plane::run(kubernetes.as_deref(), &options)
        }
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
