//! One request and its answer, turned into the reflector's inputs as the bytes arrive.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::Stream;
use informer_core::reader::{Answer, To};
use informer_core::wire::{ApiStatus, Limits};

use crate::error_chain;
use crate::transport::{Response, TransportError};

type Content = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// An exchange with the server under way.
pub(crate) enum Exchange {
    /// Nothing was asked.
    Idle,
    Sent {
        response: BoxFuture<'static, Result<Response, TransportError>>,
        to: To,
        limits: Limits,
    },
    /// The status says no; the body says why.
    Refused {
        code: u16,
        retry_after: Option<Duration>,
        reason: Vec<u8>,
        content: Content,
    },
    Receiving {
        content: Content,
        answer: Answer,
    },
}

/// What came of waiting for an exchange.
pub(crate) enum Progress {
    Accepted,
    Refused(ApiStatus),
    Unreachable(String),
    /// There is more of the answer to read.
    Bytes,
    End,
    Broken(String),
}

/// A Status is short; whatever is longer is not one.
const REASON_LIMIT: usize = 64 * 1024;

impl Exchange {
    pub(crate) fn send(
        response: BoxFuture<'static, Result<Response, TransportError>>,
        to: To,
        limits: Limits,
    ) -> Self {
        Self::Sent { response, to, limits }
    }

    /// What is being received.
    pub(crate) fn answer(&mut self) -> Option<&mut Answer> {
        match self {
            Self::Receiving { answer, .. } => Some(answer),
            _ => None,
        }
    }

    /// Waits for whatever comes next.
    ///
    /// # Cancel safety
    ///
    /// Safe: what has arrived is kept in the exchange.
    pub(crate) async fn progress(&mut self) -> Progress {
        loop {
            match self {
                Self::Idle => return std::future::pending().await,
                Self::Sent { response, .. } => {
                    let response = response.await;
                    let Self::Sent { to, limits, .. } = std::mem::replace(self, Self::Idle) else {
                        return Progress::End;
                    };
                    match response {
                        Err(error) => return Progress::Unreachable(error_chain(&error)),
                        Ok(response) if response.head.status.is_success() => {
                            let answer = Answer::new(to, response.is_protobuf(), limits);
                            *self = Self::Receiving { content: response.into_content(), answer };
                            return Progress::Accepted;
                        }
                        Ok(response) => *self = refused(response),
                    }
                }
                Self::Refused { reason, content, .. } => match content.next().await {
                    Some(Ok(chunk)) if reason.len() + chunk.len() <= REASON_LIMIT => {
                        reason.extend_from_slice(&chunk)
                    }
                    _ => {
                        let Self::Refused { code, retry_after, reason, .. } =
                            std::mem::replace(self, Self::Idle)
                        else {
                            return Progress::End;
                        };
                        let mut status = ApiStatus::from_body(code, &reason);
                        status.retry_after = status.retry_after.max(retry_after);
                        return Progress::Refused(status);
                    }
                },
                Self::Receiving { content, answer } => match content.next().await {
                    Some(Ok(chunk)) => {
                        answer.push(&chunk);
                        return Progress::Bytes;
                    }
                    Some(Err(error)) => {
                        *self = Self::Idle;
                        return Progress::Broken(error_chain(&error));
                    }
                    // The answer may still hold a last event: the caller finishes it.
                    None => return Progress::End,
                },
            }
        }
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
    Exchange::Refused { code, retry_after, reason: Vec::new(), content: response.into_content() }
}
