//! The Go toolchain.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

use crate::Error;

/// The toolchain that builds the module in `directory`, for example `go version go1.26.8 linux/amd64`.
pub(crate) fn version(directory: &Path) -> Result<String, Error> {
    go("go", directory, ["version"])
}

/// Builds the command in `directory` into the file `output`.
pub(crate) fn build(directory: &Path, linker_flags: &str, output: &Path) -> Result<(), Error> {
    let arguments = ["build", "-trimpath", "-buildvcs=false", "-ldflags", linker_flags, "-o"].map(OsStr::new);
    go("go", directory, arguments.into_iter().chain([output.as_os_str(), OsStr::new(".")])).map(drop)
}

/// Builds a command of another module, such as `example.com/tool/cmd/tool@v1.2.3`, into a folder.
pub(crate) fn install(package: &str, folder: &Path) -> Result<(), Error> {
    let mut command = command("go", folder, ["install", "-trimpath", package]);
    command.env("GOBIN", folder);
    run(command, folder).map(drop)
}

/// Completes the `go.mod` in `directory` with indirect dependencies, and writes its `go.sum`.
pub(crate) fn tidy(directory: &Path) -> Result<(), Error> {
    go("go", directory, ["mod", "tidy"]).map(drop)
}

/// The answer of `go` in JSON. An answer that reports a failure is returned, too.
pub(crate) fn answer(directory: &Path, arguments: &[&str]) -> Result<String, Error> {
    let (command, Output { status, stdout, stderr }) = output(command("go", directory, arguments))?;
    if status.success() || stdout.starts_with(b"{") {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    Err(failed(&command, directory, &stderr))
}

fn go<A: AsRef<OsStr>>(
    program: &str,
    directory: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<String, Error> {
    run(command(program, directory, arguments), directory)
}

fn run(command: Command, directory: &Path) -> Result<String, Error> {
    let (command, Output { status, stdout, stderr }) = output(command)?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim().to_owned());
    }
    Err(failed(&command, directory, &stderr))
}

fn command<A: AsRef<OsStr>>(
    program: &str,
    directory: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Command {
    let mut command = Command::new(program);
    // Without cgo the build needs no C compiler, and the binary runs on any libc.
    command.current_dir(directory).env("CGO_ENABLED", "0").args(arguments);
    command
}

fn output(mut command: Command) -> Result<(Command, Output), Error> {
    let output = command.output().map_err(|source| match source.kind() {
        // The directory was read before, so it is the program that is missing.
        io::ErrorKind::NotFound => Error::GoMissing,
        _ => Error::Run { program: command.get_program().into(), source },
    })?;
    Ok((command, output))
}

fn failed(command: &Command, directory: &Path, stderr: &[u8]) -> Error {
    Error::Go {
        command: format!("{command:?}"),
        directory: directory.to_owned(),
        output: String::from_utf8_lossy(stderr).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_toolchain_is_told_apart() {
        let missing = go("no-such-go-toolchain", Path::new("."), ["version"]);
        assert!(matches!(missing, Err(Error::GoMissing)), "{missing:?}");
    }
}
