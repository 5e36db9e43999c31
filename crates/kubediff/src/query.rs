//! Questions to a history: `log`, `show`, `diff`, `blame`, `get`, `clusters`, `history`. Each reads a file and ends, or asks a daemon in a
//! cluster to do so. `replay` reads a recording.

mod archive;
mod args;
mod blame;
mod clusters;
mod compare;
mod diff;
mod error;
mod fleet;
mod get;
mod log;
mod maintain;
mod output;
mod pager;
pub(crate) mod remote;
mod replay;
mod scrub;
mod show;
mod source;

use std::io;

use jiff::Zoned;

use crate::exit::Exit;

pub use crate::ask::{AskError, InvalidTime, UnknownName};
use args::Maintain;
pub use args::{DaemonName, Query, ReplayArgs, SourceArgs};
pub use error::QueryError;
pub use remote::DaemonError;

/// Answers a question; how the program ends then.
///
/// # Errors
///
/// When the history cannot be read, or has no answer; when the daemon cannot be asked.
pub async fn run(query: &Query) -> Result<Exit, QueryError> {
    let source = query.source();
    let now = source.and_then(|source| source.now.clone()).unwrap_or_else(Zoned::now);
    let answered = match source.and_then(|source| Some((source, source.daemon.as_ref()?))) {
        Some((source, name)) => remote::ask(name, source, query, &now).await.map_err(QueryError::from),
        None => answer(query, &now).map(|()| Exit::Success),
    };
    unless_closed(answered, Exit::Success)
}

/// Shows a recording.
///
/// # Errors
///
/// When the recording cannot be read.
pub fn replay(args: &ReplayArgs) -> Result<(), QueryError> {
    unless_closed(replay::run(args), ())
}

/// The reader of our output may close it, as `head` and pagers do.
fn unless_closed<T>(answered: Result<T, QueryError>, closed: T) -> Result<T, QueryError> {
    match answered {
        Err(QueryError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(closed),
        other => other,
    }
}

/// Answers from a file.
fn answer(query: &Query, now: &Zoned) -> Result<(), QueryError> {
    match query {
        Query::Log(args) => log::run(args, now),
        Query::Show(args) => show::run(args, now),
        Query::Diff(args) => match &args.to_cluster {
            Some(other) => compare::run(args, other, now),
            None => diff::run(args, now),
        },
        Query::Blame(args) => blame::run(args, now),
        Query::Get(args) => get::run(args, now),
        Query::Clusters(args) => clusters::run(args, now),
        Query::History(Maintain::Archive(args)) => archive::run(args, now),
        Query::History(Maintain::Scrub(args)) => scrub::run(args, now),
        Query::History(args) => maintain::run(args, now),
    }
}
