//! Appends records to a stream: many are under way at a time, and each names the one before.

use std::collections::VecDeque;

use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::{self, Context, ErrorCode};

use super::message::Messages;
use super::tail::Tail;
use crate::record::Parcel;

/// The most messages without an acknowledgement.
pub(super) const IN_FLIGHT: usize = 256;

/// How far the stream has come.
pub(super) struct Appended {
    /// The place of the last message that it has acknowledged.
    pub(super) at: Tail,
    /// How many records of the parcel it has.
    pub(super) accepted: usize,
}

/// Why the stream has no more of them.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The stream does not take a message of this size.
    #[error("{0}")]
    Refused(Box<str>),
    #[error("the connection is broken")]
    Broken,
    #[error("the server did not answer in time")]
    Silent,
    #[error("somebody else has written to the stream, or it has lost its end")]
    Moved,
    #[error("the server knows the record, and the stream does not have it")]
    Duplicate,
    #[error("no stream has the subjects of kubediff any more, or JetStream is not ready")]
    NoStream,
    #[error("{0}")]
    Other(String),
}

/// Appends the records after the first ones, which the stream has. Cancel safe: what is acknowledged is in `appended`.
pub(super) async fn append(
    context: &Context,
    messages: &mut Messages,
    parcel: &Parcel<'_>,
    appended: &mut Appended,
) -> Result<(), Failure> {
    let mut under_way = VecDeque::new();
    let mut last = appended.at;
    let mut failed = None;
    for record in parcel.records.iter().skip(appended.accepted) {
        if under_way.len() >= IN_FLIGHT {
            settle(&mut under_way, messages, parcel.is_late, appended).await?;
        }
        let message = messages.message(record, parcel, last);
        match context.send_publish(messages.subject(record), message).await {
            Ok(acknowledged) => {
                let number = if parcel.is_late { last.number } else { record.entry.number };
                last = Tail { sequence: last.sequence + 1, number };
                under_way.push_back((last, acknowledged));
            }
            Err(error) => {
                failed = Some(Failure::of(&error));
                break;
            }
        }
    }
    while !under_way.is_empty() {
        settle(&mut under_way, messages, parcel.is_late, appended).await?;
    }
    failed.map_or(Ok(()), Err)
}

/// Waits for the acknowledgement of the first message that is under way.
async fn settle(
    under_way: &mut VecDeque<(Tail, PublishAckFuture)>,
    messages: &mut Messages,
    is_late: bool,
    appended: &mut Appended,
) -> Result<(), Failure> {
    let Some((at, acknowledged)) = under_way.pop_front() else { return Ok(()) };
    let acknowledged = acknowledged.await.map_err(|error| Failure::of(&error))?;
    match (acknowledged.duplicate, is_late) {
        // The place of a dead letter that is sent again does not matter, and it is the only message that is under way.
        (true, true) => {}
        (true, false) => {
            // Within the stream's window for duplicates, the server knows even the messages that it has deleted.
            messages.unnamed = messages.unnamed.max(at.number);
            return Err(Failure::Duplicate);
        }
        (false, _) => appended.at = Tail { sequence: acknowledged.sequence, ..at },
    }
    appended.accepted += 1;
    Ok(())
}

impl Failure {
    fn of(error: &PublishError) -> Self {
        let source = std::error::Error::source(error);
        let told = source.and_then(|source| source.downcast_ref::<jetstream::Error>());
        match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => {
                Self::Refused("the record is larger than the server's `max_payload`".into())
            }
            PublishErrorKind::WrongLastSequence => Self::Moved,
            PublishErrorKind::TimedOut => Self::Silent,
            PublishErrorKind::BrokenPipe => Self::Broken,
            PublishErrorKind::StreamNotFound => Self::NoStream,
            _ => match told {
                Some(told) if told.error_code() == ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM => {
                    Self::Refused("the record is larger than the stream's `max_msg_size`".into())
                }
                Some(told) => Self::Other(format!("the server says: {told}")),
                None => Self::Other(error.to_string()),
            },
        }
    }
}
