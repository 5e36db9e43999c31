//! `kubediff`: what changed in the cluster.

use std::process::ExitCode;

use clap::Parser;
use kubediff::args::{Cli, Command};
use kubediff::exit::{self, Exit};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { command: Command::Watch(args) } = Cli::parse();
    log(args.verbose);
    match kubediff::watch::run(&args).await {
        Ok(()) => Exit::Success.into(),
        Err(error) => {
            exit::say(&error);
            error.exit().into()
        }
    }
}

fn log(verbose: u8) {
    let level = match verbose {
        0 => "off",
        1 => "informer=debug",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
