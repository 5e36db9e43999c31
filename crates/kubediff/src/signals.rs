//! The signals that end the program: Ctrl-C, and what a supervisor or a closed terminal sends.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};

/// Its number on Linux (except MIPS, where the same number is a harmless one), macOS and the BSDs.
#[cfg(unix)]
const SIGXFSZ: i32 = 25;

/// Listens from its creation on. Signals do not end the process by themselves then.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    /// `None` where the parent process wants hangups to be ignored, as `nohup` does.
    #[cfg(unix)]
    hangup: Option<Signal>,
    #[cfg(windows)]
    interrupt: CtrlC,
    #[cfg(windows)]
    terminate: CtrlBreak,
    #[cfg(windows)]
    hangup: Option<CtrlClose>,
}

/// A request of a signal to a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    End,
    Reload,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if hangups_are_ignored() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    #[cfg(windows)]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: ctrl_c()?, terminate: ctrl_break()?, hangup: Some(ctrl_close()?) })
    }

    /// Ctrl-C, a request to end, or the terminal is gone. Cancel safe.
    pub(crate) async fn end(&mut self) {
        self.of_daemon().await;
    }

    /// A request to end that is no Ctrl-C, which the terminal sends to all its programs. Cancel safe.
    pub(crate) async fn terminated(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }

    /// The next request to a daemon: to end, or, by a hangup, to read its configuration again. On Windows, where no signal asks
    /// for that, a closed console is a request to end. Cancel safe.
    pub(crate) async fn of_daemon(&mut self) -> Request {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Request::End,
            _ = self.terminate.recv() => Request::End,
            // Windows ends the process soon after it has closed its console, so there is nothing to read again for.
            _ = hangup => if cfg!(windows) { Request::End } else { Request::Reload },
        }
    }
}

/// A write beyond `ulimit -f` is an error of that write from now on. Without a listener it ends the process without a word. The listener
/// of the process stays after its last receiver.
pub(crate) fn fail_writes_beyond_the_limit() -> io::Result<()> {
    #[cfg(unix)]
    drop(signal(SignalKind::from_raw(SIGXFSZ))?);
    Ok(())
}

/// Whether this process was started with hangups ignored. Linux says so; elsewhere nobody does without `unsafe` code.
#[cfg(unix)]
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is that of signal 1, SIGHUP.
    mask.is_some_and(|mask| mask & 1 == 1)
}
