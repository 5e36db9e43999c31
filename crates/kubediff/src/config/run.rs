//! `kubediff config`: check, convert, schema.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use super::value::Secret;
use super::{CheckArgs, Config, ConfigArgs, ConfigCommand, ConfigError, ConvertArgs, Loaded, Sink};
use crate::exit::Exit;
use crate::text::terminal::escape;

/// The JSON schema of the configuration; a test compares it with the types.
pub const SCHEMA: &str = include_str!("kubediff.schema.json");

/// A command on a configuration that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The file cannot be used. Its mistakes were printed already.
    #[error(transparent)]
    Config(ConfigError),
    /// The same, and it was told where.
    #[error("{0} in the configuration")]
    Invalid(String),
    /// The result cannot be written.
    #[error("standard output cannot be written")]
    Output(#[from] io::Error),
    /// It is no file to convert.
    #[error("{0} is a configuration of this kubediff already")]
    Ours(String),
    /// The result cannot be put into words.
    #[error("the configuration cannot be written as YAML")]
    Yaml(#[source] Box<serde_saphyr::SerializeError>),
}

impl RunError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Output(_) | Self::Yaml(_) => Exit::Failure,
            Self::Invalid(_) | Self::Ours(_) => Exit::Usage,
        }
    }
}

pub(crate) fn run(args: &ConfigArgs) -> Result<(), RunError> {
    match &args.command {
        ConfigCommand::Check(args) => check(args),
        ConfigCommand::Convert(args) => convert(args),
        ConfigCommand::Schema => write(SCHEMA),
    }
}

fn check(CheckArgs { file, strict }: &CheckArgs) -> Result<(), RunError> {
    let loaded = read(file)?;
    let warnings = loaded.warnings.len();
    if *strict && warnings > 0 {
        return Err(RunError::Invalid(counted(warnings, "warning")));
    }
    let kind = if loaded.is_arriqaaq { "a valid configuration of arriqaaq/kubediff" } else { "valid" };
    let but = if warnings > 0 { format!(", with {}", counted(warnings, "warning")) } else { String::new() };
    write(&format!("{} is {kind}{but}\n", escape(&loaded.file.display().to_string())))
}

fn convert(ConvertArgs { file }: &ConvertArgs) -> Result<(), RunError> {
    let loaded = read(file)?;
    if !loaded.is_arriqaaq {
        return Err(RunError::Ours(loaded.file.display().to_string()));
    }
    write(&loaded.converted()?)
}

/// Reads a configuration, and tells on standard error what is wrong or unwise.
fn read(file: &std::path::Path) -> Result<Loaded, RunError> {
    match Config::read(file) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                tell(&format!("warning: {warning}"));
            }
            Ok(loaded)
        }
        Err(error @ ConfigError::Unreadable { .. }) => Err(RunError::Config(error)),
        Err(ConfigError::Invalid(problems)) => {
            for problem in &problems {
                tell(&problem.to_string());
            }
            Err(RunError::Invalid(counted(problems.len(), "mistake")))
        }
    }
}

impl Loaded {
    /// The configuration as a file. Secrets that stand in it are not written: each becomes the name of an environment
    /// variable, and a comment says so.
    fn converted(&self) -> Result<String, RunError> {
        let mut config = self.config.clone();
        let mut text = format!(
            "# Converted from {} by kubediff {}.\n",
            escape(&self.file.display().to_string()),
            env!("CARGO_PKG_VERSION")
        );
        for (name, sink) in &mut config.sinks {
            for (what, secret) in sink.secrets_mut() {
                if secret.is_literal() {
                    let variable = format!("{name}_{what}").to_uppercase().replace('-', "_");
                    // Writing to a string does not fail.
                    let _ = writeln!(
                        text,
                        "# Put the {what} of the sink `{name}` into the environment variable {variable}."
                    );
                    *secret = Secret::Env(variable);
                }
            }
        }
        let yaml = serde_saphyr::to_string(&config).map_err(|error| RunError::Yaml(Box::new(error)))?;
        Ok(text + yaml.trim_end() + "\n")
    }
}

impl Sink {
    /// Secrets, and what they are.
    fn secrets_mut(&mut self) -> Vec<(&'static str, &mut Secret)> {
        match self {
            Self::Slack(slack) => {
                let token = slack.token.iter_mut().map(|token| ("token", token));
                token.chain(slack.webhook.iter_mut().map(|url| ("webhook", url))).collect()
            }
            Self::Webhook(webhook) => vec![("url", &mut webhook.url)],
            // What is converted has none of these.
            Self::JetStream(_) | Self::File(_) | Self::Stdout(_) => Vec::new(),
        }
    }
}

/// `1 mistake`, `2 mistakes`.
fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn write(text: &str) -> Result<(), RunError> {
    let mut output = io::stdout().lock();
    Ok(output.write_all(text.as_bytes()).and_then(|()| output.flush())?)
}

fn tell(line: &str) {
    // Standard error may be closed; there is no other place to report to.
    let _ = writeln!(io::stderr(), "{}", escape(line));
}
