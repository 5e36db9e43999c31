//! The command line of `kubediff config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const EXIT_CODES: &str = "Exit codes: 0 the file is valid, 1 the file cannot be read, 2 something is wrong in it, or, with \
--strict, unwise.";

/// Options of `kubediff config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// The command.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// A command on a configuration.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Prints the mistakes in a configuration, and unwise settings. No cluster and no secret is needed
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),

    /// Writes a configuration of arriqaaq/kubediff as one of this kubediff to standard output
    #[command(after_help = EXIT_CODES)]
    Convert(ConvertArgs),

    /// Writes the JSON schema of the configuration, for editors, to standard output
    Schema,
}

/// Options of `kubediff config check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// The configuration, or a folder with a config.yaml
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Fail if something is unwise, too
    #[arg(long)]
    pub strict: bool,
}

/// Options of `kubediff config convert`.
#[derive(Debug, Clone, Args)]
pub struct ConvertArgs {
    /// The configuration, or a folder with a config.yaml
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
