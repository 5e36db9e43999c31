//! Why `kubediff mcp` ends.

use crate::exit::Exit;
use crate::web::UiError;

/// The answers for an assistant could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The history cannot be read, or the daemon not be asked.
    #[error(transparent)]
    Source(#[from] UiError),
    /// The program cannot listen for signals.
    #[error("signals cannot be handled")]
    Signals(#[source] std::io::Error),
    /// Whoever is on the other side does not speak the protocol.
    #[error(
        "standard input has something else than the Model Context Protocol; let its client start `kubediff mcp` (docs/kubediff.md has the settings)"
    )]
    Protocol,
    /// Standard output cannot be written.
    #[error("standard output cannot be written")]
    Output,
    /// A task has ended although it should not.
    #[error("the answers have ended unexpectedly, which is a mistake in kubediff; report the message above")]
    Ended(#[source] tokio::task::JoinError),
}

impl McpError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Source(error) => error.exit(),
            Self::Signals(_) | Self::Protocol | Self::Output | Self::Ended(_) => Exit::Failure,
        }
    }
}
