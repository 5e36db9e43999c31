//! The command line.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use informer::{FieldSelector, Selector};

use crate::cluster::ClusterArgs;
use crate::config::ConfigArgs;
use crate::model::targets::namespace;
use crate::query::ReplayArgs;
use crate::show::render::Color;

/// Shows what changes in a Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(name = "kubediff", version = VERSION, about, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// With the package's name, because there is another program called kubediff.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CARGO_PKG_NAME"), ")");

const EXIT_CODES: &str = "Exit codes: 0 ended as asked, 1 something unexpected, 2 the command line, a resource, a selector \
or a rule cannot be understood, 3 the cluster cannot be reached, or lets you watch nothing of it. A second Ctrl-C ends at \
once, with 130.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows changes as they happen
    #[command(after_help = EXIT_CODES)]
    Watch(Box<WatchArgs>),

    /// Records changes in a file as they happen, until it is interrupted; `kubediff replay` shows them
    #[command(after_help = EXIT_CODES)]
    Record(Box<RecordArgs>),

    /// Shows what `kubediff record` has recorded
    #[command(after_help = REPLAY)]
    Replay(ReplayArgs),

    /// Watches all the time: keeps the history, and tells others what changed
    #[command(after_help = SERVE_EXIT_CODES)]
    Serve(ServeArgs),

    /// Shows how a running `kubediff serve` is: each watch, each sink
    Status(StatusArgs),

    /// Checks the configuration of `kubediff serve`, or converts another program's
    Config(ConfigArgs),

    /// Opens a page on a history in the browser: what happened, to which object, by which manager
    #[command(after_help = UI)]
    Ui(crate::web::UiArgs),

    #[cfg(feature = "mcp")]
    /// Answers an assistant's questions to a history, by the Model Context Protocol
    #[command(after_help = MCP)]
    Mcp(crate::mcp::McpArgs),
    /// Runs kubectl, k9s or another client against the cluster as it was at a time
    #[command(after_help = AT)]
    At(Box<crate::web::AtArgs>),

    /// A question to a history.
    #[command(flatten)]
    Query(crate::query::Query),

    #[cfg(feature = "demo")]
    /// Shows the changes of a small shop in an embedded API server: no cluster needed
    #[command(after_help = EXIT_CODES)]
    Demo(DemoArgs),
}

const UI: &str = "Example:\n  The page of a file, also while a daemon writes to it:\n    kubediff ui --history history.db\n\nThe page is on this \
machine alone. It changes nothing.\n\nExit codes: 0 ended as asked, 1 the history cannot be read or the port is taken, 2 the command line cannot be \
understood.";

#[cfg(feature = "mcp")]
const MCP: &str = "Example:\n  What the client of an assistant starts:\n    kubediff mcp --history history.db\n\nIt answers on standard \
input and output, changes nothing, and ends with its input.\n\nExit codes: 0 ended as asked, 1 the history cannot be read or the input is not \
the protocol, 2 the command line cannot be understood, 3 there is no way to the daemon.";
const AT: &str = "Examples:\n  The pods as they were at five past two:\n    kubediff at 14:05 --history history.db -- kubectl get pods -A\n  \
k9s, an hour before now, by the daemon in the cluster:\n    kubediff at -1h --daemon kubediff/kubediff -- k9s\n\nThe command has its own kubeconfig, \
and can change nothing.\n\nExit codes: that of the command, or 1 the history cannot be read or does not have the time, 2 the command line cannot be \
understood, 3 the daemon cannot be asked, 127 there is no such command.";

const REPLAY: &str = "Example:\n  Record what a rollout changes in the namespace shop, then look at it:\n    \
kubediff record rollout.jsonl -n shop\n    kubediff replay rollout.jsonl\n\nExit codes: 0 shown, 1 the recording cannot be \
read, 2 the command line cannot be understood.";

const SERVE_EXIT_CODES: &str = "Signals: TERM and INT end it; seen changes are recorded first. HUP reads the configuration again, \
which happens by itself when the file changes.\n\nExit codes: 0 ended as asked, 1 something unexpected, 2 the command line or the \
configuration cannot be understood, 3 there is no way to a cluster.";

/// How the daemon runs.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// The configuration: a file, or a folder with a file `config.yaml`
    #[arg(short = 'c', long, value_name = "FILE")]
    pub config: PathBuf,

    /// How to reach the cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// The memory that the daemon may have, as `512MiB`: over 80 % of it, caches are given up. Default: that of its container
    #[arg(long, value_name = "SIZE")]
    pub memory_limit: Option<crate::config::Size>,

    /// Report connection events on standard error; twice: more of them
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Which daemon to ask.
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// Where the daemon's health and metrics are
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub address: String,

    /// A file with the daemon's `listenToken`
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// How to show it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub output: StatusOutput,
}

/// How the state of a daemon is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum StatusOutput {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// The arguments of `watch`.
#[derive(Debug, Default, Args)]
pub struct WatchArgs {
    /// The targets.
    #[command(flatten)]
    pub what: WhatArgs,

    /// Record everything in this file, too; it is made if there is none. `kubediff log`, `blame` and others answer from it
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,

    /// List the noise rules and end
    #[arg(long)]
    pub list_noise: bool,

    /// How to show it.
    #[command(flatten)]
    pub show: ShowArgs,

    /// The noise to leave out.
    #[command(flatten)]
    pub session: SessionArgs,

    /// How to reach the cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The arguments of `record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The file for the recording, which must not exist: JSON lines, as `watch -o json --objects` prints them
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The targets.
    #[command(flatten)]
    pub what: WhatArgs,

    /// The noise to leave out.
    #[command(flatten)]
    pub session: SessionArgs,

    /// How to reach the cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The targets to watch.
#[derive(Debug, Default, Args)]
pub struct WhatArgs {
    /// Targets to watch, in kubectl's syntax: resources as `deploy,cm`, `deployments.apps`, `apps/v1/deployments`, `all`; objects
    /// as `deploy/cart` or `deploy cart front`. Default: everything that the server lets you list and watch, custom resources
    /// included
    #[arg(value_name = "RESOURCE")]
    pub targets: Vec<String>,

    /// The namespace; the default is the context's
    #[arg(short = 'n', long, value_name = "NAME", value_parser = namespace)]
    pub namespace: Option<String>,

    /// Look at all namespaces, and at resources that have none, whatever -n says
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,

    /// Only objects with matching labels
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<Selector>,

    /// Only objects with matching fields
    #[arg(long, value_name = "SELECTOR")]
    pub field_selector: Option<FieldSelector>,
}

/// How to show changes.
#[derive(Debug, Clone, Default, Args)]
pub struct ShowArgs {
    /// How to show changes
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "diff")]
    pub output: Output,

    /// One line per change
    #[arg(long, conflicts_with = "objects")]
    pub oneline: bool,

    /// In JSON: also the objects as they were and are, as `old` and `new`
    #[arg(long)]
    pub objects: bool,

    /// When to use colours: auto, always, never
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// The noise to leave out, and how to go on.
#[derive(Debug, Clone, Default, Args)]
pub struct SessionArgs {
    /// Show what a noise rule leaves out; names separated by commas, or `all`. The rules: `kubediff watch --list-noise`
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub show: Vec<String>,

    /// Hide more: a noise rule by name, such as `status`, or the values at a path, such as `.spec.token`, which are then
    /// shown as hashes. May be given several times
    #[arg(long, value_name = "RULE|PATH")]
    pub hide: Vec<Hide>,

    /// How many MiB of changes may wait for a slow reader of the output; beyond it, changes of one object are merged, and
    /// say so
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub buffer: u32,

    /// Report connection events on standard error; twice: more of them
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Options of the demo.
#[cfg(feature = "demo")]
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Which story is played: the same number, the same story
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// How fast: 2 is twice as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,

    /// How to show it.
    #[command(flatten)]
    pub show: ShowArgs,

    /// The noise to leave out.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// How changes are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people: one line per difference
    #[default]
    Diff,
    /// For programs: one JSON object per line
    Json,
}

/// Options that hide: noise, or the values at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hide {
    /// A noise rule, by its name.
    Rule(String),
    /// A path into objects, without the point that it may begin with.
    Path(String),
}

impl FromStr for Hide {
    type Err = Infallible;

    /// Names of rules have letters and hyphens; anything else is a path.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_rule = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_,".contains(c));
        Ok(match text.strip_prefix('.') {
            None if is_rule => Self::Rule(text.to_owned()),
            path => Self::Path(path.unwrap_or(text).to_owned()),
        })
    }
}

#[cfg(feature = "demo")]
fn speed(text: &str) -> Result<f64, &'static str> {
    match text.parse() {
        Ok(factor) if (0.1..=1_000.0).contains(&factor) => Ok(factor),
        _ => Err("a speed is a number from 0.1 to 1000"),
    }
}
