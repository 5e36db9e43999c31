//! The command line of the page.

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
