//! `kubediff mcp`: the history for an assistant, by the Model Context Protocol on standard input and output.
//!
//! The answers are those of `/v1`. Here are the tools that ask for them, and what makes them short. Nothing here changes anything.

mod cut;
mod error;
mod part;
mod refusal;
mod server;
mod tool;

use clap::Args;
use rmcp::serve_server;
use rmcp::service::{QuitReason, ServerInitializeError};

pub use error::McpError;
use server::Server;

use crate::query::SourceArgs;
use crate::signals::Signals;
use crate::text::terminal::say;
use crate::web::Behind;

/// Where the answers for an assistant are read.
#[derive(Debug, Clone, Args)]
pub struct McpArgs {
    /// Where the answers are read.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// Answers an assistant on standard input and output, until its client ends that.
///
/// # Errors
///
/// When the history cannot be read, or something else than the protocol comes.
pub async fn run(args: &McpArgs) -> Result<(), McpError> {
    let mut signals = Signals::listen().map_err(McpError::Signals)?;
    tokio::select! {
        ended = serve(&args.source) => ended,
        () = signals.end() => Ok(()),
    }
}

async fn serve(source: &SourceArgs) -> Result<(), McpError> {
    let behind = Behind::open(source).await?;
    behind.fold();
    say(&format!("an assistant can ask the history of {} on standard input and output", behind.name));
    match serve_server(Server::new(behind), (tokio::io::stdin(), tokio::io::stdout())).await {
        Ok(running) => match running.waiting().await {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(McpError::Ended(error)),
            Ok(_) => Ok(()),
        },
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(ServerInitializeError::TransportError { .. }) => Err(McpError::Output),
        Err(_) => Err(McpError::Protocol),
    }
}
