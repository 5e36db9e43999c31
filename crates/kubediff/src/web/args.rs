//! The command line of the page.

use std::ffi::OsString;

use clap::Args;

use crate::query::SourceArgs;

/// Where the page is, and what it shows.
#[derive(Debug, Clone, Args)]
pub struct UiArgs {
    /// The port on 127.0.0.1, for a tunnel to it. Without it the page has a free port, and on Linux an address of its own, whose cookies no other server of this machine
    /// gets
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    pub port: u16,

    /// Answer on standard input and output instead, by HTTP/2, as `--daemon` asks it
    #[arg(long, hide = true)]
    pub stdio: bool,

    /// Where the answers are read.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// The time and the command that sees it.
#[derive(Debug, Clone, Args)]
pub struct AtArgs {
    /// The time: 2026-11-23T14:05:00Z, 14:05, 'yesterday 14:05', -2h; the number of a record as #812; or now, which follows the newest record
    #[arg(value_name = "TIME", allow_hyphen_values = true)]
    pub time: String,

    /// Where the history is.
    #[command(flatten)]
    pub source: SourceArgs,

    /// The command, such as `kubectl get pods -A`. Without one, the kubeconfig for that time is printed, and served until Ctrl-C
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<OsString>,
}
