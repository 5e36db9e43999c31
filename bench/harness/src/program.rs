//! A program of the benchmarks: it reads commands from stdin and answers with lines of JSON on stdout.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use tooling::Error;
use tooling::process::describe;

/// The limit for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1_200);
const END_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Program {
    name: String,
    child: Child,
    /// `None` only during the drop: the program ends when its stdin is closed.
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Program {
    /// Starts the program and waits for its first line.
    pub(crate) fn start(command: &mut Command) -> Result<(Self, Value), Error> {
        let name = describe(command).split_whitespace().next().unwrap_or_default().to_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| Error::missing(format!("`{name}`"), format!("it could not be run: {error}")))?;
        let stdin = child.stdin.take();
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let mut program = Self { name, child, stdin, lines };
        let started = program.hear("its start")?;
        Ok((program, started))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command and waits for the answer.
    pub(crate) fn ask(&mut self, line: &str) -> Result<Value, Error> {
        let said = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{line}"));
        if !matches!(said, Some(Ok(()))) {
            return Err(self.failed(line, "it has ended"));
        }
        self.hear(line)
    }

    /// Leaves the program alone for a time.
    pub(crate) fn leave_alone(&mut self, time: Duration) -> Result<(), Error> {
        match self.lines.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => Err(self.failed("nothing", "it has ended")),
            Ok(_) => Err(self.failed("nothing", "it said something")),
        }
    }

    fn hear(&mut self, what: &str) -> Result<Value, Error> {
        let line = match self.lines.recv_timeout(ANSWER_TIMEOUT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Err(self.failed(what, "there is no answer")),
            Err(RecvTimeoutError::Disconnected) => return Err(self.failed(what, "it has ended")),
        };
        let answer: Value =
            serde_json::from_str(&line).map_err(|_| self.failed(what, "the answer is no JSON"))?;
        if answer["event"] == "failed" {
            return Err(self.failed(what, answer["reason"].as_str().unwrap_or("it failed")));
        }
        Ok(answer)
    }

    fn failed(&self, what: &str, why: &str) -> Error {
        Error::Found(format!("{}, asked for {what}: {why}", self.name))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stdin = None;
        let deadline = Instant::now() + END_TIMEOUT;
        // Nobody reads on: the channel ends when its thread does, at the end of stdout.
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                break;
            }
            let _ = self.lines.recv_timeout(Duration::from_millis(10));
            std::thread::yield_now();
        }
        let _ = self.child.wait();
    }
}
