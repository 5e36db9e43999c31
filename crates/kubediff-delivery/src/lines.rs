//! JSON lines on standard output.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::answer::Answer;
use crate::drive::Sink;
use crate::json::lines;
use crate::record::Parcel;

/// JSON lines for the reader of standard output, in the form of [`File`](crate::File).
///
/// A batch is accepted when all of it was written: a reader that is slow slows the delivery down, and nothing is lost. After a
/// failure in the middle of a line, the next batch begins on a line of its own.
#[derive(Debug)]
pub struct Lines<W> {
    state: Arc<Mutex<State<W>>>,
}

#[derive(Debug)]
struct State<W> {
    writer: W,
    is_in_line: bool,
}

impl Lines<io::Stdout> {
    /// On standard output.
    #[must_use]
    pub fn stdout() -> Self {
        Self::to(io::stdout())
    }
}

impl<W: Write + Send + 'static> Lines<W> {
    /// To this writer.
    pub fn to(writer: W) -> Self {
        Self { state: Arc::new(Mutex::new(State { writer, is_in_line: false })) }
    }
}

impl<W: Write + Send + 'static> Sink for Lines<W> {
    async fn send(&mut self, parcel: Parcel<'_>) -> Answer {
        let (lines, state) = (lines(&parcel), self.state.clone());
        let written = tokio::task::spawn_blocking(move || {
            state.lock().unwrap_or_else(PoisonError::into_inner).write(&lines)
        });
        match written.await {
            Ok(Ok(())) => Answer::Accepted,
            Ok(Err(error)) => Answer::Unavailable { reason: error.kind().to_string().into() },
            Err(_) => Answer::Unavailable { reason: "nothing was written".into() },
        }
    }
}

impl<W: Write> State<W> {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_in_line {
            self.writer.write_all(b"\n")?;
        }
        self.is_in_line = true;
        self.writer.write_all(lines)?;
        self.writer.flush()?;
        self.is_in_line = false;
        Ok(())
    }
}
