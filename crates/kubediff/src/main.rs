//! `kubediff`: the changes of a cluster.

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use kubediff::args::{Cli, Command};
use kubediff::exit::{self, Exit};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let ended: Result<(), (Exit, Box<dyn Error>)> = match Cli::parse().command {
        Command::Watch(args) => {
            log(args.show.verbose);
            kubediff::watch::run(&args).await.map_err(|error| (error.exit(), Box::from(error)))
        }
        #[cfg(feature = "demo")]
        Command::Demo(args) => {
            log(args.show.verbose);
            kubediff::demo::run(args).await.map_err(|error| (error.exit(), Box::from(error)))
        }
    };
    match ended {
        Ok(()) => Exit::Success.into(),
        Err((exit, error)) => {
            exit::say(&*error);
            exit.into()
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
