//! How the program ends.

use std::error::Error;
use std::process::ExitCode;

/// What an exit code means. 2, a command line that cannot be understood, is clap's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: it did what it was asked for, until it was interrupted.
    Success,
    /// 1: something failed that nobody expected.
    Failure,
    /// 2: a resource, selector or rule does not exist or cannot be read.
    Usage,
    /// 3: the cluster cannot be reached, or does not say what it has.
    Cluster,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => Self::SUCCESS,
            Exit::Failure => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Cluster => Self::from(3),
        }
    }
}

/// Tells the user of an error, on standard error.
pub fn say(error: &dyn Error) {
    use std::io::Write;
    // Nobody may be reading; there is nowhere else to say so.
    let _ = writeln!(std::io::stderr(), "kubediff: {}", crate::render::escape(&informer::error_chain(error)));
}
