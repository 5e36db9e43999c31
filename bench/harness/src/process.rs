//! Calling the tools that build what takes part.

use std::path::Path;
use std::process::Command;

use crate::error::Error;

/// `cargo` of the toolchain that runs us.
pub(crate) fn cargo(directory: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(directory);
    // `cargo run` describes this package to us. Build scripts that watch these variables would run again, and what
    // depends on them be compiled again, each time that somebody calls cargo without us.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs with our stdin, stdout and stderr.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let describe = describe(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::Command { command: describe, status: status.to_string() }),
        Err(error) => Err(Error::missing(format!("`{describe}`"), format!("it could not be run: {error}"))),
    }
}

/// What a person would type.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}
