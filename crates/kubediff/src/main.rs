//! `kubediff`: the changes of a cluster.

use std::process::ExitCode;

fn main() -> ExitCode {
    kubediff::program::run()
}
