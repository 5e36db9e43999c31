//! JSON lines on standard output.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock};

use tokio::sync::Mutex;

use crate::answer::Answer;
use crate::drive::Sink;
use crate::json::lines;
use crate::record::Parcel;

/// JSON lines for the reader of standard output, in the form of [`File`](crate::File).
///
/// A batch is accepted when all of it was written: a reader that is slow slows the delivery down, and nothing is lost. After a
/// failure in the middle of a line, the next batch begins on a line of its own. A write that nobody waits for any more goes on, and the
/// next one begins after it: at most one thread is blocked.
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
    /// On standard output, which the process has once.
    #[must_use]
    pub fn stdout() -> Self {
        static STDOUT: LazyLock<Arc<Mutex<State<io::Stdout>>>> = LazyLock::new(|| State::of(io::stdout()));
        Self { state: STDOUT.clone() }
    }
}

impl<W: Write + Send + 'static> Lines<W> {
    /// To this writer.
    pub fn to(writer: W) -> Self {
        Self { state: State::of(writer) }
    }
}

impl<W: Write + Send + 'static> Sink for Lines<W> {
    async fn send(&mut self, parcel: Parcel<'_>) -> Answer {
        let lines = lines(&parcel);
        let mut state = self.state.clone().lock_owned().await;
        let written = tokio::task::spawn_blocking(move || state.write(&lines));
        match written.await {
            Ok(Ok(())) => Answer::Accepted,
            Ok(Err(error)) => Answer::Unavailable { reason: error.kind().to_string().into() },
            Err(_) => Answer::Unavailable { reason: "nothing was written".into() },
        }
    }
}

impl<W: Write> State<W> {
    fn of(writer: W) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { writer, is_in_line: false }))
    }

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
