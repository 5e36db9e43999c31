//! Questions to a history: `log`, `show`, `diff`, `blame`, `get`, `history`; and `replay`. Each reads a file and ends.

mod args;
mod blame;
mod diff;
mod error;
mod fields;
mod get;
mod instant;
mod log;
mod maintain;
mod names;
mod output;
mod pager;
mod period;
mod replay;
mod show;
mod stored;

use std::io;

use jiff::Zoned;
use kubediff_history::Reader;

pub use args::Query;
pub use error::QueryError;

/// Answers a question.
///
/// # Errors
///
/// When the history cannot be read, or has no answer.
pub fn run(query: &Query) -> Result<(), QueryError> {
    let now = Zoned::now();
    let answered = match query {
        Query::Log(args) => log::run(args, &now),
        Query::Show(args) => show::run(args, &now),
        Query::Diff(args) => diff::run(args, &now),
        Query::Blame(args) => blame::run(args),
        Query::Get(args) => get::run(args, &now),
        Query::Replay(args) => replay::run(args),
        Query::History(args) => maintain::run(args),
    };
    match answered {
        // The reader of our output has closed it, as `head` and pagers do.
        Err(QueryError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn open(file: &args::FileArgs) -> Result<Reader, QueryError> {
    Ok(Reader::open(&file.history)?)
}
