//! `kubectl changes`: kubediff as a plugin of kubectl, which finds a plugin by the name of its file.

use std::process::ExitCode;

fn main() -> ExitCode {
    kubediff::program::run()
}
