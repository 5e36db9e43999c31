//! Programs that run beside this one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};

use tooling::{Error, process};

/// A child process that ends with this value.
pub(crate) struct Running(Child);

impl Running {
    /// Starts a program and reads what it writes, to `stream`, up to the first line that `is_it`.
    pub(crate) fn until(
        command: &mut Command,
        stream: Stream,
        mut is_it: impl FnMut(&str) -> bool,
    ) -> Result<(String, Self), Error> {
        let (reader, writer) = std::io::pipe().map_err(|source| cannot_run(command, &source))?;
        match stream {
            Stream::Output => command.stdout(writer),
            Stream::Errors => command.stderr(writer),
        };
        let running = Self(command.spawn().map_err(|source| cannot_run(command, &source))?);
        // `Command` keeps its end of the pipe until it is replaced; with it open, the pipe never ends.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        match BufReader::new(reader).lines().map_while(Result::ok).find(|line| is_it(line)) {
            Some(line) => Ok((line, running)),
            None => Err(Error::Found(format!("`{}` ended too early", process::describe(command)))),
        }
    }

    /// Asks the program to end, as a supervisor does, and waits until it has.
    pub(crate) fn terminate(mut self) -> Result<ExitStatus, Error> {
        let mut kill = Command::new("kill");
        process::run(kill.args(["-TERM", &self.0.id().to_string()]))?;
        self.0.wait().map_err(|source| cannot_run(&kill, &source))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // If it has ended by itself already, there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The stream of a program that is read.
pub(crate) enum Stream {
    Output,
    Errors,
}

fn cannot_run(command: &Command, source: &std::io::Error) -> Error {
    Error::missing(format!("`{}`", process::describe(command)), format!("it could not be run: {source}"))
}
