//! Why a command failed.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Each variant has an exit code; see the top of `main.rs`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A check has found something; the findings are printed already.
    #[error("{0}")]
    Found(String),

    /// A tool has failed; its own output is printed already.
    #[error("`{command}` failed: {status}")]
    Command { command: String, status: String },

    /// A tool or a file is missing.
    #[error("{what} is missing; {remedy}")]
    Missing { what: String, remedy: String },

    #[error("failed to access {path}")]
    Io { path: PathBuf, source: io::Error },

    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),

    #[error("failed to understand {what}: {reason}")]
    Format { what: String, reason: String },
}

impl Error {
    pub(crate) fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), remedy: remedy.into() }
    }

    pub(crate) fn format(what: impl Into<String>, reason: impl ToString) -> Self {
        Self::Format { what: what.into(), reason: reason.to_string() }
    }

    /// For `map_err` of operations on `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// The message and those of its causes.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::ControlPlane(control_plane::Error::GoMissing) => ExitCode::from(3),
            Self::Found(_) | Self::Command { .. } | Self::ControlPlane(_) => ExitCode::from(1),
            Self::Missing { .. } | Self::Io { .. } | Self::Format { .. } => ExitCode::from(3),
        }
    }
}
