//! `kubediff`: the changes of a cluster.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    // Boxed: tokio would compile the whole program once for each of its kinds of runtime.
    Box::pin(kubediff::program::run()).await
}
