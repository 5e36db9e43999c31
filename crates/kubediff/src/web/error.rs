//! The errors of the page.

use crate::exit::Exit;
use crate::query::{DaemonError, QueryError};

/// The page could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// The history cannot be read.
    #[error(transparent)]
    History(#[from] QueryError),
    /// The port is taken.
    #[error(
        "the page cannot be served on port {port} of this machine; leave --port out, or choose another one"
    )]
    Port {
        /// The port.
        port: u16,
        /// Why.
        source: std::io::Error,
    },
    /// The program cannot listen for signals.
    #[error("signals cannot be handled")]
    Signals(#[source] std::io::Error),
    /// There are no random numbers.
    #[error("the system has no random numbers for the link of the page")]
    Random(#[from] getrandom::Error),
    /// The daemon cannot be asked.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// A thread has ended although it should not.
    #[error(
        "the thread that opens the history has ended unexpectedly, which is a mistake in kubediff; report the message above"
    )]
    Ended(#[source] tokio::task::JoinError),
    /// The connection on standard input and output ended with an error.
    #[error("the page on standard input and output ended")]
    Stdio(#[source] hyper::Error),
}

impl UiError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::History(error) => error.exit(),
            Self::Daemon(error) => error.exit(),
            Self::Port { .. } | Self::Signals(_) | Self::Random(_) | Self::Ended(_) | Self::Stdio(_) => {
                Exit::Failure
            }
        }
    }
}
