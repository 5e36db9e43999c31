//! The pod's answer on its way to the terminal, byte by byte as it comes.

use std::io::{self, Stdout, Write};
use std::process::Child;

use anstream::{AutoStream, ColorChoice};

use crate::query::args::ScreenArgs;
use crate::query::pager;
use crate::show::render::{self, Color};

/// How the answer is shown here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) coloured: bool,
    pub(super) columns: Option<usize>,
}

/// Standard output and standard error of the pod's program.
pub(super) struct Relay {
    shown: Option<Shown>,
    /// Whether a pager is wanted.
    paged: bool,
    /// Where the answer goes, from its first byte on: an error does not need a pager.
    stdout: Option<Target>,
    pager: Option<Child>,
    /// The messages that wait until the pager, which shares our terminal, has ended.
    stderr: Vec<u8>,
    /// The first bytes of standard error.
    begins: Vec<u8>,
}

enum Target {
    Stdout(Stdout),
    Pager(std::process::ChildStdin),
}

impl Relay {
    /// A way for an answer; long ones go through a pager.
    pub(super) fn start(screen: Option<ScreenArgs>) -> Self {
        let shown = screen.map(|screen| Shown {
            coloured: match screen.color {
                Color::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
                Color::Always => true,
                Color::Never => false,
            },
            columns: screen.columns.or_else(render::terminal_width),
        });
        let paged = screen.is_some_and(|screen| !screen.no_pager);
        Self { shown, paged, stdout: None, pager: None, stderr: Vec::new(), begins: Vec::new() }
    }

    /// How the answer is to be shown; `None` where it is printed as it is.
    pub(super) fn shown(&self) -> Option<Shown> {
        self.shown
    }

    pub(super) fn stdout(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stdout = match &mut self.stdout {
            Some(stdout) => stdout,
            unopened => {
                self.pager = if self.paged { pager::start() } else { None };
                unopened.insert(match self.pager.as_mut().and_then(|pager| pager.stdin.take()) {
                    Some(stdin) => Target::Pager(stdin),
                    None => Target::Stdout(io::stdout()),
                })
            }
        };
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    pub(super) fn stderr(&mut self, bytes: &[u8]) {
        /// Enough to see which program speaks.
        const ENOUGH: usize = 64;
        let room = ENOUGH.saturating_sub(self.begins.len());
        self.begins.extend(bytes.iter().take(room));
        if self.pager.is_some() {
            self.stderr.extend_from_slice(bytes);
        } else {
            // Standard error may be closed; there is no other place to report to.
            let _ = io::stderr().write_all(bytes);
        }
    }

    /// Waits until the pager is left, and shows the rest. Whether the pod's program did not understand its command line: this
    /// one did, so the other is of another version.
    pub(super) fn finish(self) -> io::Result<bool> {
        let Self { stdout, pager, stderr, begins, .. } = self;
        // The pager reads to the end of its input.
        drop(stdout);
        let left = pager::leave(pager);
        let _ = io::stderr().write_all(&stderr);
        left?;
        /// How the parser of command lines begins, and no error of a question does.
        const PARSER: &[u8] = b"error: ";
        Ok(begins.starts_with(PARSER))
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Pager(stdin) => stdin.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::Pager(stdin) => stdin.flush(),
        }
    }
}
