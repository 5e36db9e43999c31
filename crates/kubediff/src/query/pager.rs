//! The pager, for answers on a terminal.

use std::env;
use std::io::{self, IsTerminal};
use std::process::{Child, Command, Stdio};

/// Starts the pager that the environment names. `None` where none is wanted: standard output is no terminal, the user says
/// so, or there is no pager.
pub(super) fn start() -> Option<Child> {
    if !io::stdout().is_terminal() || env::var_os("NO_PAGER").is_some_and(|it| !it.is_empty()) {
        return None;
    }
    let named = ["KUBEDIFF_PAGER", "PAGER"].into_iter().find_map(env::var_os);
    let mut command = match named {
        Some(pager) if pager.is_empty() || pager == "cat" => return None,
        Some(pager) if cfg!(unix) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(pager);
            shell
        }
        Some(pager) => Command::new(pager),
        None => {
            let mut less = Command::new("less");
            less.arg("-FRX");
            less
        }
    };
    let pager = command.stdin(Stdio::piped()).spawn().ok()?;
    // From now on Ctrl-C is for the pager, which shares our terminal. The handler stays when the stream is dropped.
    #[cfg(unix)]
    drop(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()));
    Some(pager)
}

/// Waits until the user leaves the pager, whose input has ended.
pub(super) fn leave(pager: Option<Child>) -> io::Result<()> {
    let Some(mut pager) = pager else { return Ok(()) };
    // The exit code of a shell for a command that it cannot run.
    const NOT_FOUND: i32 = 127;
    if pager.wait()?.code() == Some(NOT_FOUND) {
        return Err(io::Error::other("the pager cannot be run; --no-pager shows the answer without one"));
    }
    Ok(())
}
