//! The connection to a server. One that breaks is left, and another one is made when it is needed.

use std::error::Error;
use std::iter::successors;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::{ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError};
use tokio::sync::watch;

use super::Login;
use super::append::IN_FLIGHT;
use crate::client::{SinkError, tls};

/// How to reach a server.
pub(super) struct Access {
    servers: Vec<ServerAddr>,
    options: ConnectOptions,
    timeout: Duration,
}

/// A connection, with what is heard on it besides answers.
pub(super) struct Connected {
    pub(super) context: Context,
    events: watch::Receiver<Events>,
}

#[derive(Debug, Clone, Default)]
struct Events {
    is_broken: bool,
    /// The last error that the server has told.
    error: Option<String>,
}

impl Access {
    pub(super) fn new(
        servers: &[String],
        login: Login,
        ca: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<Self, SinkError> {
        let parsed = servers.iter().map(|server| server.parse().ok().filter(is_plain)).collect();
        let servers: Option<Vec<ServerAddr>> = parsed;
        let servers = servers.filter(|servers| !servers.is_empty()).ok_or(SinkError::Server)?;
        let options = ConnectOptions::new()
            .name("kubediff")
            .connection_timeout(timeout)
            .request_timeout(Some(timeout))
            // A new connection begins with the end of the stream, and not with what the former one has left.
            .max_reconnects(1)
            .require_tls(ca.is_some())
            .tls_client_config(tls::config(ca)?);
        let options = match login {
            Login::Open => options,
            Login::Token(token) => options.token(token.into()),
            Login::Password { user, password } => options.user_and_password(user.into(), password.into()),
            Login::Credentials(text) => options.credentials(&text).map_err(|_| SinkError::Credentials)?,
        };
        Ok(Self { servers, options, timeout })
    }

    /// Returns why there is no connection, for people.
    pub(super) async fn connect(&self) -> Result<Connected, Box<str>> {
        let (sender, events) = watch::channel(Events::default());
        let options = self.options.clone().event_callback(move |event| {
            sender.send_if_modified(|events| events.take(event));
            std::future::ready(())
        });
        let connecting = options.connect(&self.servers[..]);
        let connected = tokio::time::timeout(self.timeout.saturating_mul(2), connecting).await;
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(in_words(&error)),
            Err(_) => return Err("the server did not answer in time".into()),
        };
        let context =
            ContextBuilder::new().timeout(self.timeout).max_ack_inflight(2 * IN_FLIGHT).build(client);
        Ok(Connected { context, events })
    }
}

/// Whether it is no WebSocket, for which the client is not built.
fn is_plain(server: &ServerAddr) -> bool {
    matches!(server.scheme(), "nats" | "tls") && !server.host().is_empty()
}

impl Events {
    /// Returns whether the event means something.
    fn take(&mut self, event: Event) -> bool {
        match event {
            Event::Disconnected | Event::Closed => self.is_broken = true,
            Event::ServerError(ServerError::Other(error)) => self.error = Some(error),
            Event::ServerError(error) => self.error = Some(error.to_string()),
            _ => return false,
        }
        true
    }
}

impl Connected {
    pub(super) fn is_broken(&self) -> bool {
        self.events.borrow().is_broken
    }

    /// Waits until the connection is broken. Cancel safe.
    pub(super) async fn broken(&self) {
        // An error means that the client is gone.
        let _ = self.events.clone().wait_for(|events| events.is_broken).await;
    }

    /// The reason, with what the server has said besides: that a permission is missing.
    pub(super) fn heard(&self, reason: Box<str>) -> Box<str> {
        match &self.events.borrow().error {
            Some(error) => format!("{reason}; the server says: {error}").into(),
            None => reason,
        }
    }
}

fn in_words(error: &async_nats::ConnectError) -> Box<str> {
    let first: &dyn Error = error;
    let last = successors(Some(first), |&error| error.source()).last().map(ToString::to_string);
    let last = last.unwrap_or_default();
    let words = match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            "the server refuses the credentials: see `credentials`, `token`, or `user` and `password` of the sink"
                .to_owned()
        }
        ConnectErrorKind::Dns => "the server's name cannot be resolved".to_owned(),
        ConnectErrorKind::TimedOut => "the server did not answer in time".to_owned(),
        kind if kind == ConnectErrorKind::Tls || last.contains("certificate") => format!("no encrypted connection to the server: {last}; see `caFile` of the sink"),
        _ => format!("no connection to the server: {last}"),
    };
    words.into()
}
