//! `kubectl changes`: kubediff as a plugin of kubectl, which finds a plugin by the name of its file.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    // Boxed: tokio would compile the whole program once for each of its kinds of runtime.
    Box::pin(kubediff::program::run()).await
}
