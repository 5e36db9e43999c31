//! The harness of `cargo xtask bench`: our informer and other libraries do the same work on the same server. The
//! harness measures their processes from outside.
//!
//! Each client is a program of its own (`bench/PROTOCOL.md`), and so is the cluster's side (`bench/cluster`). The
//! clients run in turn, one at a time, for several rounds. The targets compare figures of the same round, because
//! absolute figures change with the machine. The run fails if a client's cache differs from the server; a slow client
//! does not fail it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool talks to its terminal")]

mod figures;
mod growth;
mod library;
mod machine;
mod markdown;
mod meter;
mod postgres;
mod program;
mod relay;
mod report;
mod run;
mod scenario;
mod server;
mod targets;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use tooling::Error;

use crate::figures::Figures;
use crate::library::{Library, Peer};
use crate::report::Report;
use crate::scenario::Scenario;
use crate::server::{Kind as ServerKind, Server};

/// Measures the memory, CPU and time that our informer and other libraries need
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
pub(crate) struct Options {
    /// The scenarios to run [default: all]
    #[arg(value_enum)]
    pub(crate) scenarios: Vec<Scenario>,
    /// Pods in the cluster
    #[arg(long, default_value_t = 10_000)]
    pub(crate) objects: usize,
    /// The libraries to compare with
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["client-go", "kube-rs", "controller-runtime"])]
    pub(crate) peers: Vec<Peer>,
    /// The number of rounds; results are medians
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// The server; some scenarios always use the embedded one
    #[arg(long, value_enum, default_value = "real")]
    pub(crate) server: ServerKind,
    /// The number of updates in the scenario `stuck` [default: 100 per object]
    #[arg(long)]
    pub(crate) stuck_updates: Option<usize>,
    /// The length of each kind of read, in seconds
    #[arg(long, default_value_t = 5.0)]
    pub(crate) seconds: f64,
    /// Write all figures to this file after each round; figures of other scenarios in the file stay
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Build without optimization, which is quick, and check the results only; no figures are compared
    #[arg(long, conflicts_with = "json")]
    pub(crate) debug: bool,
    /// Measure nothing; write the tables of docs/BENCHMARKS.md from a file of --json
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) render: Option<PathBuf>,
}

/// Everything that a scenario needs.
pub(crate) struct Bench<'a> {
    options: &'a Options,
    programs: Vec<(Library, PathBuf)>,
    /// The program `bench-cluster`.
    cluster: PathBuf,
    /// A directory for the files of this run.
    scratch: PathBuf,
    /// Started and loaded when the first scenario needs it.
    server: Option<Server>,
    /// The same with pods in ReplicaSets; it lives as long as one scenario.
    sets_server: Option<Server>,
    /// The same with the objects of whole controllers.
    owners_server: Option<Server>,
    /// Built when a scenario needs it, as is the next one.
    kubediff: Option<PathBuf>,
    seed: Option<PathBuf>,
    figures: Figures,
    report: Report,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.with_causes());
            error.exit_code()
        }
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

fn run(options: &Options) -> Result<(), Error> {
    if let Some(file) = &options.render {
        return markdown::write(&Report::read(file)?);
    }
    let scenarios = if options.scenarios.is_empty() { Scenario::ALL } else { &options.scenarios };
    let mut bench = Bench::new(options, scenarios)?;
    for scenario in scenarios {
        (bench.sets_server, bench.owners_server) = (None, None);
        for round in 1..=scenario.rounds(options.runs) {
            println!("\n=== {} {round}/{}", scenario.name(), scenario.rounds(options.runs));
            scenario.run(&mut bench)?;
            bench.report.finish(&bench.figures, options);
            // Written after each round: a later failure must not lose hours of work.
            if let (Some(file), false) = (&options.json, options.debug) {
                bench.report.clone().write(file)?;
            }
        }
    }
    if options.debug {
        println!(
            "\nAll had what the server has. Without optimization their figures mean nothing: there are no ratios."
        );
        return Ok(());
    }
    bench.report.print();
    Ok(())
}

impl<'a> Bench<'a> {
    fn new(options: &'a Options, scenarios: &[Scenario]) -> Result<Self, Error> {
        let output = root().join("target/bench");
        std::fs::create_dir_all(&output).map_err(Error::io(&output))?;
        let clients = [Library::Informer].into_iter().chain(options.peers.iter().map(|peer| peer.client()));
        let are_needed = scenarios.iter().any(|scenario| scenario.needs_clients());
        let mut programs = Vec::new();
        for client in clients.filter(|_| are_needed) {
            println!("Building {}", client.name());
            programs.push((client, client.build(options.debug)?));
        }
        let cluster = library::rust("bench-cluster", "bench-cluster", options.debug)?;
        let scratch = output.join(format!("run-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).map_err(Error::io(&scratch))?;
        let (figures, report) = (Figures::default(), Report::new());
        let (server, sets_server, owners_server, kubediff, seed) = (None, None, None, None, None);
        Ok(Self {
            options,
            programs,
            cluster,
            scratch,
            server,
            sets_server,
            owners_server,
            kubediff,
            seed,
            figures,
            report,
        })
    }

    fn program(&self, client: Library) -> Option<&Path> {
        self.programs.iter().find(|(it, _)| *it == client).map(|(_, program)| program.as_path())
    }

    /// The server, with pods, that most scenarios share.
    fn server(&mut self) -> Result<&mut Server, Error> {
        if self.server.is_none() {
            let mut server = Server::start(self.options.server, &self.cluster, &self.scratch)?;
            println!("{}: loading {} pods", server.version(), self.options.objects);
            self.report.version("server", server.version());
            server.load(self.options.objects)?;
            self.server = Some(server);
        }
        self.server.as_mut().ok_or_else(|| Error::Found("there is no server".to_owned()))
    }

    /// The server with pods in ReplicaSets.
    fn sets_server(&mut self) -> Result<&mut Server, Error> {
        if self.sets_server.is_none() {
            let mut server = Server::start(self.options.server, &self.cluster, &self.scratch)?;
            println!("{}: loading {} pods in ReplicaSets", server.version(), self.options.objects);
            self.report.version("server", server.version());
            server.load_sets(self.options.objects, scenario::reconcile::PER_SET)?;
            self.sets_server = Some(server);
        }
        self.sets_server.as_mut().ok_or_else(|| Error::Found("there is no server".to_owned()))
    }

    /// The server with the objects of whole controllers.
    fn owners_server(&mut self) -> Result<&mut Server, Error> {
        if self.owners_server.is_none() {
            let mut server = Server::start(self.options.server, &self.cluster, &self.scratch)?;
            println!("{}: loading {} ConfigMaps", server.version(), self.options.objects);
            self.report.version("server", server.version());
            server.load_owners(self.options.objects)?;
            self.owners_server = Some(server);
        }
        self.owners_server.as_mut().ok_or_else(|| Error::Found("there is no server".to_owned()))
    }

    fn kubediff(&mut self) -> Result<PathBuf, Error> {
        if self.kubediff.is_none() {
            println!("Building kubediff");
            self.kubediff = Some(library::rust("kubectl-changes", "kubediff", self.options.debug)?);
        }
        self.kubediff.clone().ok_or_else(|| Error::Found("there is no kubediff".to_owned()))
    }

    /// The program in the manner of arriqaaq/kubediff; `None` without client-go.
    fn seed(&mut self) -> Result<Option<PathBuf>, Error> {
        if self.seed.is_none() && self.options.peers.contains(&Peer::ClientGo) {
            println!("Building the seed");
            self.seed = Some(library::go("seed")?);
        }
        Ok(self.seed.clone())
    }

    /// A server without history, for one scenario alone.
    fn embedded(&mut self) -> Result<Server, Error> {
        let server = Server::start(ServerKind::Testapi, &self.cluster, &self.scratch)?;
        self.report.version("embedded server", server.version());
        Ok(server)
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        // Servers keep files in the directory, so they end first.
        (self.server, self.sets_server, self.owners_server) = (None, None, None);
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
