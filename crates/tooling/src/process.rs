//! Runs other programs.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::cpu;
use crate::error::Error;

/// The `cargo` that started this program.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    // `cargo run` sets variables that describe this package. Some build scripts watch them: with these variables set,
    // such a script and everything that depends on it would be built again each time.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Whether `program` is installed.
pub fn is_installed(program: &str, argument: &str) -> bool {
    let probe = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_ok_and(|status| status.success())
}

/// Runs a command with this program's stdin, stdout and stderr.
pub fn run(command: &mut Command) -> Result<(), Error> {
    let status = command.status().map_err(|source| cannot_start(command, &source))?;
    if status.success() { Ok(()) } else { Err(failed(command, status)) }
}

/// Runs a command and returns its stdout; its stderr is this program's.
pub fn output(command: &mut Command) -> Result<String, Error> {
    let Output { status, stdout, .. } =
        command.stderr(Stdio::inherit()).output().map_err(|source| cannot_start(command, &source))?;
    if !status.success() {
        return Err(failed(command, status));
    }
    String::from_utf8(stdout).map_err(|error| Error::format(describe(command), error))
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Whether it reported success.
    pub success: bool,
    /// Its stdout and stderr, in the order in which they were written.
    pub output: String,
    /// The CPU time, where the system says it.
    pub cpu: Option<Duration>,
}

/// Runs a command and waits for its end and for that of everything which has its output open, but at most for `limit`: then the
/// command is killed and has failed.
pub fn capture(command: &mut Command, limit: Duration) -> Result<Ended, Error> {
    // One pipe for both: with two, names of tests (stdout) and what they print (stderr) could arrive in any order.
    let (mut reader, writer) = std::io::pipe().map_err(|source| cannot_start(command, &source))?;
    let both = writer.try_clone().map_err(|source| cannot_start(command, &source))?;
    let mut child =
        command.stdout(both).stderr(writer).spawn().map_err(|source| cannot_start(command, &source))?;
    // `Command` keeps its ends of the pipe until they are replaced; with them open, the pipe never ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let (sender, pieces) = mpsc::channel();
    thread::spawn(move || {
        let mut piece = [0; 8192];
        while let Ok(length @ 1..) = reader.read(&mut piece)
            && sender.send(piece[..length].to_vec()).is_ok()
        {}
    });
    let mut output = Vec::new();
    let end = Instant::now() + limit;
    let in_time = loop {
        match pieces.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(piece) => output.extend(piece),
            Err(RecvTimeoutError::Disconnected) => break true,
            Err(RecvTimeoutError::Timeout) => break false,
        }
    };
    if !in_time {
        output.extend(format!("\nkilled: not at its end after {} s\n", limit.as_secs()).bytes());
        child.kill().map_err(|source| cannot_start(command, &source))?;
    }
    let cpu = cpu::of_child(&child);
    let status = child.wait().map_err(|source| cannot_start(command, &source))?;
    let output = String::from_utf8_lossy(&output).into_owned();
    Ok(Ended { success: in_time && status.success(), output, cpu })
}

fn failed(command: &Command, status: std::process::ExitStatus) -> Error {
    Error::Command { command: describe(command), status: status.to_string() }
}

fn cannot_start(command: &Command, source: &std::io::Error) -> Error {
    Error::missing(format!("`{}`", describe(command)), format!("it could not be run: {source}"))
}

/// The command as a person would type it.
pub fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_are_captured_in_order() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three; exit 4"]);
        let ended = capture(&mut command, Duration::from_secs(60)).unwrap();
        assert_eq!((ended.success, &*ended.output), (false, "one\ntwo\nthree\n"));
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_and_its_output_is_kept() {
        // The second one has ended, but left a program behind.
        for script in ["echo one; exec sleep 300", "echo one; sleep 9 & exit 0"] {
            let mut command = Command::new("sh");
            let ended = capture(command.args(["-c", script]), Duration::from_secs(2)).unwrap();
            assert!(!ended.success, "{script}");
            assert_eq!(ended.output, "one\n\nkilled: not at its end after 2 s\n", "{script}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_missing() {
        assert!(!is_installed("no-such-program-anywhere", "--version"));
        let error = run(&mut Command::new("no-such-program-anywhere")).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{error}");
    }
}
