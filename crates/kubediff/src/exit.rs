//! How the program ends.

use std::error::Error;
use std::process::ExitCode;

/// The exit codes. 2, an invalid command line, comes from clap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: kubediff ran until it was interrupted.
    Success,
    /// 1: an unexpected failure.
    Failure,
    /// 2: a resource, selector or rule does not exist or is malformed, or something is wrong in a configuration.
    Usage,
    /// 3: the cluster is unreachable, or its discovery failed.
    Cluster,
    /// The exit code of the program that answered in our place.
    As(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => Self::SUCCESS,
            Exit::Failure => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Cluster => Self::from(3),
            Exit::As(code) => Self::from(code),
        }
    }
}

/// Tells the user of an error, on standard error.
pub fn say(error: &dyn Error) {
    crate::text::terminal::say(&informer::error_chain(error));
}
