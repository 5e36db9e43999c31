//! `kubediff ui`: the page of a history, on a port of this machine.

use std::net::Ipv4Addr;
use std::sync::Arc;

use http::Request;
use jiff::Zoned;
use serve::http::{ConnectionInfo, Server, ServerOptions};

use super::args::UiArgs;
use super::door::Door;
use super::routes::Routes;
use super::store::Store;
use crate::exit::Exit;
use crate::query::QueryError;
use crate::signals::Signals;
use crate::text::terminal::say;

/// The page could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// The history cannot be read.
    #[error(transparent)]
    History(#[from] QueryError),
    /// The port is taken.
    #[error(
        "the page cannot be served on port {port} of this machine; leave --port out, or choose another one"
    )]
    Port {
        /// The port.
        port: u16,
        /// Why.
        source: std::io::Error,
    },
    /// The program cannot listen for signals.
    #[error("signals cannot be handled")]
    Signals(#[source] std::io::Error),
    /// There are no random numbers.
    #[error("the system has no random numbers for the link of the page")]
    Random(#[from] getrandom::Error),
    /// This door is not there yet.
    #[error(
        "the page of a daemon is not served; copy its history with `kubediff history backup`, and open the copy with --history"
    )]
    Daemon,
}

impl UiError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::History(error) => error.exit(),
            Self::Daemon => Exit::Usage,
            Self::Port { .. } | Self::Signals(_) | Self::Random(_) => Exit::Failure,
        }
    }
}

/// Serves the page until it is asked to end.
///
/// # Errors
///
/// When the history cannot be read, or the port is taken.
pub async fn run(args: &UiArgs) -> Result<(), UiError> {
    if args.source.daemon.is_some() {
        return Err(UiError::Daemon);
    }
    let mut signals = Signals::listen().map_err(UiError::Signals)?;
    let file = args.source.file()?;
    let now = args.source.now.clone();
    let zone = now.clone().unwrap_or_else(Zoned::now).time_zone().clone();
    let store = Store::open(file, zone, now.map(|now| now.timestamp())).map_err(QueryError::from)?;
    let options = ServerOptions {
        address: (Ipv4Addr::LOCALHOST, args.port).into(),
        max_request_body: 64 << 10,
        ..ServerOptions::default()
    };
    let server = Server::bind(options).await.map_err(|source| UiError::Port { port: args.port, source })?;
    let door = Door::new(server.address().port());
    let link = door.link()?;
    let store = Arc::new(store);
    let routes = Arc::new(Routes::new(store.clone(), door));
    // The first page need not wait for the stories.
    let folding = store.clone();
    let warm = tokio::spawn(async move {
        let _ = folding.ask(|asked| asked.store.stories(asked.reader, asked.now.timestamp()).map(drop)).await;
    });
    let serving = server.serve(move |request: Request<bytes::Bytes>, _: ConnectionInfo| {
        let routes = routes.clone();
        async move { routes.answer(request).await }
    });
    say(&format!("the page of {} is at {link}", store.cluster));
    say("the link works once; Ctrl-C ends the page");
    signals.end().await;
    warm.abort();
    serving.stop().await;
    Ok(())
}
