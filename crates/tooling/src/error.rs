//! The error of a command.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why a command failed. Each variant has an exit code: 1 if a check has found something, 3 if something is missing on this
/// machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A check has found something; the findings are printed already.
    #[error("{0}")]
    Found(String),

    /// A tool has failed; its own output is printed already.
    #[error("`{command}` failed: {status}")]
    Command {
        /// The command as a person would type it.
        command: String,
        /// Its exit status.
        status: String,
    },

    /// A tool or a file is missing.
    #[error("{what} is missing; {remedy}")]
    Missing {
        /// The tool or file.
        what: String,
        /// How to get it.
        remedy: String,
    },

    /// A file operation failed.
    #[error("failed to access {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },

    /// The control plane did not start, or did not do what it was asked for.
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),

    /// A file or an output has an unexpected format.
    #[error("failed to understand {what}: {reason}")]
    Format {
        /// The file or output.
        what: String,
        /// The reason.
        reason: String,
    },
}

impl Error {
    /// A tool or a file is missing.
    pub fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), remedy: remedy.into() }
    }

    /// A file or an output has an unexpected format.
    pub fn format(what: impl Into<String>, reason: impl ToString) -> Self {
        Self::Format { what: what.into(), reason: reason.to_string() }
    }

    /// For `map_err` of operations on `path`.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// The message and those of its causes.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }

    /// The exit code of a program that fails with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::ControlPlane(control_plane::Error::GoMissing) => ExitCode::from(3),
            Self::Found(_) | Self::Command { .. } | Self::ControlPlane(_) => ExitCode::from(1),
            Self::Missing { .. } | Self::Io { .. } | Self::Format { .. } => ExitCode::from(3),
        }
    }
}
