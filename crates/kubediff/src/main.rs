//! `kubediff`: the changes of a cluster.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kubediff::program::run().await
}
