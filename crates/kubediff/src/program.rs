//! The program. It is installed by two names: `kubediff`, and `kubectl-changes`, which kubectl runs as `kubectl changes`.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use jiff::tz::TimeZone;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{Cli, Command};
use crate::exit::{self, Exit};
use crate::signals;
use crate::text::terminal;

/// Runs the program with the arguments of the process. Ends the process if they are wrong or ask for help.
pub fn run() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            exit::say(&error);
            return Exit::Failure.into();
        }
    };
    // Boxed: tokio would compile the whole program once for each of its kinds of runtime.
    let exit = runtime.block_on(Box::pin(command()));
    // A thread that is blocked, as by a reader of standard output that does not read, ends with the process.
    runtime.shutdown_background();
    exit
}

async fn command() -> ExitCode {
    if cfg!(panic = "abort") {
        end_at_panics();
    }
    if let Err(error) = signals::fail_writes_beyond_the_limit() {
        exit::say(&error);
        return Exit::Failure.into();
    }
    if let Some(zone) = std::env::var_os("TZ").filter(|_| TimeZone::try_system().is_err()) {
        terminal::say(&format!("TZ is {zone:?}, which is no time zone: times are in UTC"));
    }
    let ended: Result<Exit, (Exit, Box<dyn Error>)> = match parse(std::env::args_os()).command {
        Command::Watch(args) => {
            log(args.session.verbose);
            crate::capture::watch::run(&args)
                .await
                .map(success)
                .map_err(|error| (error.exit(), Box::from(error)))
        }
        Command::Record(args) => {
            log(args.session.verbose);
            crate::capture::record::run(&args)
                .await
                .map(success)
                .map_err(|error| (error.exit(), Box::from(error)))
        }
        Command::Replay(args) => {
            crate::query::replay(&args).map(success).map_err(|error| (error.exit(), Box::from(error)))
        }
        Command::Serve(args) => {
            log(args.verbose);
            crate::daemon::run(&args).await.map(success).map_err(|error| (error.exit(), Box::from(error)))
        }
        Command::Status(args) => {
            crate::status::run(&args).await.map(success).map_err(|error| (error.exit(), Box::from(error)))
        }
        Command::Config(args) => {
            crate::config::run::run(&args).map(success).map_err(|error| (error.exit(), error.into()))
        }
        Command::Query(query) => {
            crate::query::run(&query).await.map_err(|error| (error.exit(), Box::from(error)))
        }
        Command::Ui(args) => {
            crate::web::run(&args).await.map(success).map_err(|error| (error.exit(), Box::from(error)))
        }
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => {
            crate::mcp::run(&args).await.map(success).map_err(|error| (error.exit(), Box::from(error)))
        }
        Command::At(args) => {
            crate::web::run_at(&args).await.map_err(|error| (error.exit(), Box::from(error)))
        }
        #[cfg(feature = "demo")]
        Command::Demo(args) => {
            log(args.session.verbose);
            crate::demo::run(args).await.map(success).map_err(|error| (error.exit(), Box::from(error)))
        }
    };
    match ended {
        Ok(exit) => exit.into(),
        Err((exit, error)) => {
            exit::say(&*error);
            exit.into()
        }
    }
}

/// Makes a panic end the process with exit code 1 and without a core dump. A core dump would have the values of Secrets.
fn end_at_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::exit(1);
    }));
}

fn success(_: ()) -> Exit {
    Exit::Success
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Cli {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let called = arguments.first().map_or(OsStr::new(""), OsString::as_os_str);
    let matches = Cli::command().bin_name(typed_as(called)).get_matches_from(arguments);
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The command by which this program was started; help and error messages show it.
fn typed_as(called: &OsStr) -> &'static str {
    match Path::new(called).file_stem().and_then(OsStr::to_str) {
        Some("kubectl-changes") => "kubectl changes",
        _ => "kubediff",
    }
}

/// Logs as `RUST_LOG` says, or else as the command line does.
fn log(verbose: u8) {
    let asked = std::env::var("RUST_LOG").ok().and_then(|targets| targets.parse().ok());
    let targets = asked.unwrap_or_else(|| match verbose {
        0 => Targets::new(),
        1 => Targets::new().with_target("informer", LevelFilter::DEBUG),
        _ => Targets::new().with_default(LevelFilter::DEBUG),
    });
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(targets).with(lines).init();
}
