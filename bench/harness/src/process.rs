//! Runs the tools that build the programs under measurement.

use std::path::Path;
use std::process::Command;

use crate::error::Error;

/// The `cargo` that started this program.
pub(crate) fn cargo(directory: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(directory);
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

/// Runs a command with this program's stdin, stdout and stderr.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let describe = describe(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::Command { command: describe, status: status.to_string() }),
        Err(error) => Err(Error::missing(format!("`{describe}`"), format!("it could not be run: {error}"))),
    }
}

/// The command as a person would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}
