//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use informer::{FieldSelector, Selector};

use crate::render::Color;

/// Shows what changes in a Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(name = "kubediff", version = VERSION, about, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// With the package's name, because there is another program called kubediff.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CARGO_PKG_NAME"), ")");

const EXIT_CODES: &str = "Exit codes: 0 ended as asked, 1 something unexpected, 2 the command line, a resource, a selector \
or a rule cannot be understood, 3 the cluster cannot be reached. A second Ctrl-C ends at once, with 130.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows changes as they happen
    #[command(after_help = EXIT_CODES)]
    Watch(WatchArgs),

    #[cfg(feature = "demo")]
    /// Shows the changes of a small shop in an embedded API server: no cluster needed
    #[command(after_help = EXIT_CODES)]
    Demo(DemoArgs),
}

/// How to reach the cluster, as kubectl has it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Path to the kubeconfig; else $KUBECONFIG, ~/.kube/config, or the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context to use
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Impersonate this user
    #[arg(long = "as", value_name = "USER")]
    pub as_user: Option<String>,

    /// Impersonate this group; may be given several times
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user")]
    pub as_groups: Vec<String>,
}

/// What to watch, and how to show it.
#[derive(Debug, Default, Args)]
pub struct WatchArgs {
    /// What to watch, in kubectl's syntax: `deploy`, `deployments.apps`, `apps/v1/deployments`, `all`; several with
    /// spaces or commas. Default: everything that the server lets you list and watch, custom resources included
    #[arg(value_name = "RESOURCE")]
    pub resources: Vec<String>,

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

    /// List the noise rules and end
    #[arg(long)]
    pub list_noise: bool,

    /// How to show it.
    #[command(flatten)]
    pub show: ShowArgs,

    /// How to reach the cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// How to show changes.
#[derive(Debug, Clone, Default, Args)]
pub struct ShowArgs {
    /// How to show changes
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "diff")]
    pub output: Output,

    /// Switch noise rules on or off: names separated by commas, `-` before one switches it off; `all`, `none`. The rules:
    /// `kubediff watch --list-noise`
    #[arg(long, value_name = "RULES", allow_hyphen_values = true)]
    pub noise: Option<String>,

    /// When to use colours: auto, always, never
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,

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

/// A namespace's name is a DNS label (RFC 1123).
fn namespace(text: &str) -> Result<String, &'static str> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let valid = (1..=63).contains(&text.len())
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if valid {
        Ok(text.to_owned())
    } else {
        Err("a namespace has lower-case letters, digits and `-` in its name")
    }
}

#[cfg(feature = "demo")]
fn speed(text: &str) -> Result<f64, &'static str> {
    match text.parse() {
        Ok(factor) if (0.1..=1_000.0).contains(&factor) => Ok(factor),
        _ => Err("a speed is a number from 0.1 to 1000"),
    }
}
