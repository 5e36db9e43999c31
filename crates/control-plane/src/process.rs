//! The running control plane: a child process with a line protocol on its standard streams.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// How long the control plane may take to exit; it needs a tenth of a second.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// A running control plane. Dropping it stops it and removes all its files; so does any end of the process that holds
/// it.
#[derive(Debug)]
pub struct ControlPlane {
    started: Started,
    /// A command and its answer belong together, so one lock covers both.
    process: Mutex<Process>,
}

/// How an API server came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It answered the requests it had, ended the open watches and exited.
    Graceful,
    /// It took too long and was killed, so connections broke.
    Killed,
}

/// The line that the control plane prints when it is ready.
#[derive(Debug, Deserialize)]
struct Started {
    server: String,
    token: String,
    ca_file: PathBuf,
    kubeconfig: PathBuf,
    pid: u32,
}

/// The control plane's answer to a command.
#[derive(Debug, Deserialize)]
struct Answer {
    ok: bool,
    #[serde(default)]
    error: String,
    #[serde(default)]
    revision: u64,
    #[serde(default)]
    graceful: bool,
}

impl ControlPlane {
    pub(crate) fn spawn(command: Command, verbose: bool) -> Result<Self, Error> {
        let mut process = Process::spawn(command, verbose)?;
        let started = process.hear()?;
        Ok(Self { started, process: Mutex::new(process) })
    }

    /// The URL of the API server. It stays the same over restarts.
    pub fn server(&self) -> &str {
        &self.started.server
    }

    /// A bearer token for an administrator (group `system:masters`).
    pub fn token(&self) -> &str {
        &self.started.token
    }

    /// The file with the certificate, in PEM, by which to trust the API server.
    pub fn ca_file(&self) -> &Path {
        &self.started.ca_file
    }

    /// A kubeconfig file with all of the above.
    pub fn kubeconfig(&self) -> &Path {
        &self.started.kubeconfig
    }

    /// The supervisor: all other processes of the control plane are its children.
    pub fn pid(&self) -> u32 {
        self.started.pid
    }

    /// Stops the API server gracefully and starts it again, with the same data, port and certificates.
    /// Returns when it is ready.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if it was stopped or does not start again, [`Error::Ended`] if the control plane has exited.
    pub fn restart(&self) -> Result<Ending, Error> {
        self.command("restart").map(|answer| answer.ending())
    }

    /// As [`restart`](Self::restart), but with SIGKILL: connections break in the middle of whatever they carry.
    ///
    /// # Errors
    ///
    /// As for [`restart`](Self::restart).
    pub fn kill_restart(&self) -> Result<(), Error> {
        self.command("kill-restart").map(drop)
    }

    /// Stops the API server gracefully. Until [`start_apiserver`](Self::start_apiserver) connections are
    /// refused.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if it is stopped already, [`Error::Ended`] if the control plane has exited.
    pub fn stop_apiserver(&self) -> Result<Ending, Error> {
        self.command("stop-apiserver").map(|answer| answer.ending())
    }

    /// Starts the API server after [`stop_apiserver`](Self::stop_apiserver) and returns when it is ready.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if it is running or does not start, [`Error::Ended`] if the control plane has exited.
    pub fn start_apiserver(&self) -> Result<(), Error> {
        self.command("start-apiserver").map(drop)
    }

    /// Makes etcd discard all history before its current revision, which this returns. The API server's watch cache is
    /// not affected; [`kill_restart`](Self::kill_restart) empties that too.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if etcd refuses, [`Error::Ended`] if the control plane has exited.
    pub fn compact(&self) -> Result<u64, Error> {
        self.command("compact").map(|answer| answer.revision)
    }

    /// etcd's current revision, which is the newest resourceVersion.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`] if the control plane has exited.
    pub fn revision(&self) -> Result<u64, Error> {
        self.command("revision").map(|answer| answer.revision)
    }

    fn command(&self, command: &'static str) -> Result<Answer, Error> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.say(command)?;
        let answer: Answer = process.hear()?;
        if answer.ok { Ok(answer) } else { Err(Error::Command { command, reason: answer.error }) }
    }
}

impl Answer {
    fn ending(&self) -> Ending {
        if self.graceful { Ending::Graceful } else { Ending::Killed }
    }
}

/// The supervisor's process and its three standard streams.
#[derive(Debug)]
struct Process {
    child: Child,
    /// `None` only during the drop: the process exits when its stdin closes.
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    /// Collects stderr. `None` if stderr is inherited, or after the end.
    stderr: Option<JoinHandle<String>>,
}

impl Process {
    fn spawn(mut command: Command, verbose: bool) -> Result<Self, Error> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // On failure its stderr belongs into the error, unless it goes to a terminal already.
        command.stderr(if verbose { Stdio::inherit() } else { Stdio::piped() });
        let mut child =
            command.spawn().map_err(|source| Error::Run { program: command.get_program().into(), source })?;
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take().map(BufReader::new),
            stderr: child.stderr.take().map(|stderr| thread::spawn(|| collect(stderr))),
            child,
        })
    }

    fn say(&mut self, command: &str) -> Result<(), Error> {
        let said = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{command}"));
        if matches!(said, Some(Ok(()))) { Ok(()) } else { Err(self.ended()) }
    }

    fn hear<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        let mut line = String::new();
        match self.stdout.as_mut().map(|stdout| stdout.read_line(&mut line)) {
            None | Some(Ok(0) | Err(_)) => Err(self.ended()),
            Some(Ok(_)) => serde_json::from_str(&line).map_err(|source| Error::Protocol { line, source }),
        }
    }

    /// The other side closed a stream, which it does only when it exits. Collects its last output.
    fn ended(&mut self) -> Error {
        let output = self.stderr.take().and_then(|reader| reader.join().ok());
        Error::Ended { output: output.unwrap_or_else(|| String::from("see what it wrote to stderr")) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stdin = None;
        let deadline = Instant::now() + END_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                // Its children die with it. The next control plane removes the files.
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn collect(mut stream: impl Read) -> String {
    let mut output = Vec::new();
    // A part of the output is better than none.
    let _ = stream.read_to_end(&mut output);
    String::from_utf8_lossy(&output).trim().to_owned()
}
