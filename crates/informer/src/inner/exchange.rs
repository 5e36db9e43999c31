//! One request and its response, chunk by chunk.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::Stream;
use informer_core::wire::ApiStatus;

use crate::error_chain;
use crate::transport::{Response, TransportError};

type Body = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// A request that was sent, with its response so far.
pub(crate) enum Exchange {
    Sent(BoxFuture<'static, Result<Response, TransportError>>),
    /// The status is an error; the body tells the reason.
    Refused {
        code: u16,
        retry_after: Option<Duration>,
        reason: Vec<u8>,
        body: Body,
    },
    Receiving(Body),
    Ended,
}

/// The result of waiting for an exchange.
pub(crate) enum ExchangeEvent {
    Accepted { protobuf: bool },
    Refused(ApiStatus),
    Unreachable(String),
    Bytes(Bytes),
    End,
    Broken(String),
}

/// The limit for an error body: a Status is short.
const REASON_LIMIT: usize = 64 * 1024;

impl Exchange {
    /// Waits for the next step of the exchange.
    ///
    /// # Cancel safety
    ///
    /// Safe: bytes that have arrived are kept in the exchange.
    pub(crate) async fn progress(&mut self) -> ExchangeEvent {
        loop {
            match self {
                Self::Ended => return ExchangeEvent::End,
                Self::Sent(response) => match response.await {
                    Err(error) => return self.end(ExchangeEvent::Unreachable(error_chain(&error))),
                    Ok(response) if response.head.status.is_success() => {
                        let protobuf = response.is_protobuf();
                        *self = Self::Receiving(response.into_content());
                        return ExchangeEvent::Accepted { protobuf };
                    }
                    Ok(response) => *self = refused(response),
                },
                Self::Refused { code, retry_after, reason, body } => match body.next().await {
                    Some(Ok(chunk)) if reason.len() + chunk.len() <= REASON_LIMIT => {
                        reason.extend_from_slice(&chunk)
                    }
                    _ => {
                        let mut status = ApiStatus::from_body(*code, reason);
                        status.retry_after = status.retry_after.max(*retry_after);
                        return self.end(ExchangeEvent::Refused(status));
                    }
                },
                Self::Receiving(body) => match body.next().await {
                    Some(Ok(chunk)) => return ExchangeEvent::Bytes(chunk),
                    Some(Err(error)) => {
                        let reason = error_chain(&error);
                        return self.end(ExchangeEvent::Broken(reason));
                    }
                    None => return self.end(ExchangeEvent::End),
                },
            }
        }
    }

    fn end(&mut self, with: ExchangeEvent) -> ExchangeEvent {
        *self = Self::Ended;
        with
    }
}

fn refused(response: Response) -> Exchange {
    let retry_after = response
        .head
        .headers
        .get(http::header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let code = response.head.status.as_u16();
    Exchange::Refused { code, retry_after, reason: Vec::new(), body: response.into_content() }
}
