//! `cargo xtask bench`: our informer and the peers', doing the same work on the same server, measured from outside.
//!
//! Each client is a program of its own (`bench/PROTOCOL.md`), and so is the cluster's side (`bench/cluster`). The clients run
//! in turn, one at a time, several rounds; what counts are ratios of one round, not the figures, which move with
//! the machine. A program that ends with something else in its cache than the server has fails the whole run; how fast
//! it was does not.

mod chart;
mod figures;
mod growth;
mod library;
mod machine;
mod markdown;
mod meter;
mod program;
mod report;
mod run;
mod scenario;
mod server;
mod targets;

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::process;
use crate::tree::Tree;
use figures::Figures;
use library::Library;
use report::Report;
use server::Server;

pub(crate) use library::Peer;
pub(crate) use scenario::Scenario;
pub(crate) use server::Kind as ServerKind;

/// What is measured, and how much of it.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// What to measure; everything without it
    #[arg(value_enum)]
    pub(crate) scenarios: Vec<Scenario>,
    /// Pods in the cluster
    #[arg(long, default_value_t = 10_000)]
    pub(crate) objects: usize,
    /// Whom to compare with
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["client-go", "kube-rs"])]
    pub(crate) peers: Vec<Peer>,
    /// Rounds; the result is their median
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// The server; some scenarios have an embedded one of their own
    #[arg(long, value_enum, default_value = "real")]
    pub(crate) server: ServerKind,
    /// Updates beside a handler that is stuck; a hundred for each object without it
    #[arg(long)]
    pub(crate) stuck_updates: Option<usize>,
    /// Seconds of nothing to do, and of each kind of read
    #[arg(long, default_value_t = 5.0)]
    pub(crate) seconds: f64,
    /// Write everything that was measured to this file, after each round; what it has of other scenarios stays
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Build without optimization, which is quick, to see whether the answers are right: there are no ratios then
    #[arg(long, conflicts_with = "json")]
    pub(crate) debug: bool,
    /// Measure nothing: write the tables and charts of docs/BENCHMARKS.md from such a file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) render: Option<PathBuf>,
}

/// Everything that a scenario needs.
pub(crate) struct Bench<'a> {
    options: &'a Options,
    programs: Vec<(Library, PathBuf)>,
    /// The cluster's side.
    cluster: PathBuf,
    /// For files that live as long as this.
    scratch: PathBuf,
    /// Started when a scenario asks for it, and loaded once.
    server: Option<Server>,
    figures: Figures,
    report: Report,
}

pub(crate) fn run(tree: &Tree, options: &Options) -> Result<(), Error> {
    if let Some(file) = &options.render {
        return markdown::write(tree, &Report::read(file)?);
    }
    let scenarios = if options.scenarios.is_empty() { Scenario::ALL } else { &options.scenarios };
    let mut bench = Bench::new(tree, options)?;
    for scenario in scenarios {
        for round in 1..=scenario.rounds(options.runs) {
            println!("\n=== {} {round}/{}", scenario.name(), scenario.rounds(options.runs));
            scenario.run(&mut bench)?;
            bench.report.finish(&bench.figures, options);
            // Hours of work are not to be lost by what comes after them.
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

/// Each scenario with a few objects: whether every program has in the end what the server has. Not how fast.
pub(crate) fn check(tree: &Tree, real_server: bool) -> Result<(), Error> {
    if !cfg!(target_os = "linux") {
        println!("Left out: processes are measured by what Linux says of them.");
        return Ok(());
    }
    let is_there = |peer: &Peer| *peer != Peer::ClientGo || process::is_installed("go", "version");
    let options = Options {
        scenarios: Vec::new(),
        objects: 200,
        peers: [Peer::ClientGo, Peer::KubeRs].into_iter().filter(is_there).collect(),
        runs: 1,
        server: if real_server { ServerKind::Real } else { ServerKind::Testapi },
        stuck_updates: Some(2_000),
        seconds: 0.5,
        json: None,
        debug: true,
        render: None,
    };
    run(tree, &options)
}

impl<'a> Bench<'a> {
    fn new(tree: &Tree, options: &'a Options) -> Result<Self, Error> {
        let output = tree.root().join("target/bench");
        std::fs::create_dir_all(&output).map_err(Error::io(&output))?;
        let built = Built { directory: &output, profile: if options.debug { "dev" } else { "release" } };
        let clients = [Library::Informer].into_iter().chain(options.peers.iter().map(|peer| peer.client()));
        let mut programs = Vec::new();
        for client in clients {
            println!("Building {}", client.name());
            programs.push((client, client.build(tree, &built)?));
        }
        let cluster = built.rust(tree, "bench/cluster", "bench-cluster")?;
        let scratch = output.join(format!("run-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).map_err(Error::io(&scratch))?;
        let (figures, report) = (Figures::default(), Report::new());
        Ok(Self { options, programs, cluster, scratch, server: None, figures, report })
    }

    fn program(&self, client: Library) -> Option<&Path> {
        self.programs.iter().find(|(it, _)| *it == client).map(|(_, program)| program.as_path())
    }

    /// The server that most scenarios share, with its pods.
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

    /// A server without history, for one scenario alone.
    fn embedded(&mut self) -> Result<Server, Error> {
        let server = Server::start(ServerKind::Testapi, &self.cluster, &self.scratch)?;
        self.report.version("embedded server", server.version());
        Ok(server)
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        // The servers first: their files are in it.
        self.server = None;
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// Where programs are built, and how.
struct Built<'a> {
    directory: &'a Path,
    /// `release` for figures, `dev` for answers.
    profile: &'static str,
}

impl Built<'_> {
    /// Builds a program that is a workspace of its own.
    fn rust(&self, tree: &Tree, directory: &str, name: &str) -> Result<PathBuf, Error> {
        let mut cargo = process::cargo(&tree.root().join(directory));
        cargo.args(["build", "--quiet", "--profile", self.profile]).env("CARGO_TARGET_DIR", self.directory);
        // Nobody looks at these with a debugger, and it is a third of the work.
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
        process::run(&mut cargo)?;
        let folder = if self.profile == "dev" { "debug" } else { self.profile };
        Ok(self.directory.join(folder).join(name))
    }
}
