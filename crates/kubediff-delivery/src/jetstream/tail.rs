//! The end of a stream: where it is, and whose.

use async_nats::jetstream::Context;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, State, Stream};

use super::Ids;
use super::setup::Setup;

/// The header with the number up to which the stream has the log, with this message.
pub(super) const NUMBER: &str = "Kubediff-Number";
/// The header with the id of the message's record.
pub(super) const ID: &str = "ce-id";

/// A message that arrives while the end is looked for makes one more look necessary.
const LOOKS: u32 = 10;

/// A place in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    /// The sequence of the last message.
    pub(super) sequence: u64,
    /// The number up to which the stream has the log.
    pub(super) number: u64,
}

impl Tail {
    /// Reads a tail; `None` if it is that of another stream.
    pub(super) fn read(text: &str, stream: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let (sequence, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        (parts.next()? == stream).then_some(Self { sequence, number })
    }

    pub(super) fn write(self, stream: &str) -> Box<str> {
        format!("{} {} {stream}", self.sequence, self.number).into()
    }
}

/// What is at the end of a stream.
pub(super) struct Found {
    pub(super) at: Tail,
    /// Whether the last message is a record that the log has.
    pub(super) is_ours: bool,
    /// Whether messages are gone that it is known to have had, and not because they were too old or somebody wanted it so.
    pub(super) has_lost: bool,
}

/// Looks for the end. Returns why the stream cannot be used, for people.
pub(super) async fn find(
    context: &Context,
    setup: &Setup,
    ids: &Ids,
    known: Option<Tail>,
) -> Result<Found, Box<str>> {
    let name = &setup.name;
    for _ in 0..LOOKS {
        let stream = setup.stream(context).await?;
        let State { last_sequence: sequence, messages, .. } = stream.cached_info().state;
        // A server looks for the last message of all at the end alone, and not before deleted ones.
        let mut last = self::last(&stream, ">", name).await?;
        if last.is_none() && messages > 0 {
            last = self::last(&stream, &setup.subjects, name).await?;
        }
        let number = known.map_or(0, |known| known.number);
        let Some(last) = last else {
            // An empty stream that has counted on is one whose messages were too old, or were purged.
            let has_lost = known.is_some_and(|known| sequence < known.sequence);
            let number = if has_lost { 0 } else { number };
            return Ok(Found { at: Tail { sequence, number }, is_ours: false, has_lost });
        };
        if last.sequence > sequence {
            continue;
        }
        return match whose(&last, ids).ok_or_else(|| foreign(&last, name))? {
            Whose::Ours(reached) => {
                let at = Tail { sequence, number: reached };
                Ok(Found { at, is_ours: true, has_lost: reached < number })
            }
            // The log was restored from a copy: it has these records no more, and others in their place.
            Whose::Former => Ok(Found { at: Tail { sequence, number }, is_ours: false, has_lost: false }),
            Whose::Later => Err(format!(
                "the stream {name} has records of a later writer of this history: another kubediff uses a copy of it; end one of the two"
            )
            .into()),
            Whose::Other(log) => Err(format!(
                "the stream {name} has the records of another history, {log}: name another one in `stream`, or delete it"
            )
            .into()),
        };
    }
    Err(format!("somebody else writes to the stream {name}: kubediff has to be the only one").into())
}

async fn last(stream: &Stream, subject: &str, name: &str) -> Result<Option<StreamMessage>, Box<str>> {
    match stream.get_last_raw_message_by_subject(subject).await {
        Ok(last) => Ok(Some(last)),
        Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(None),
        Err(error) => Err(format!("the last message of the stream {name} cannot be read: {error}").into()),
    }
}

/// Whose a message is.
enum Whose {
    /// A record of the log, and the number up to which the stream has it.
    Ours(u64),
    /// Of a timeline of the log that ended before.
    Former,
    /// Of one that began later.
    Later,
    Other(String),
}

/// `None` if it is not of kubediff.
fn whose(last: &StreamMessage, ids: &Ids) -> Option<Whose> {
    let reached = last.headers.get(NUMBER)?.as_str().parse().ok()?;
    let id = last.headers.get(ID)?.as_str();
    let (log, timeline, number) = parts(id)?;
    let own = ids(number);
    if own == id {
        return Some(Whose::Ours(reached));
    }
    Some(match parts(&own) {
        Some((own_log, own_timeline, _)) if own_log == log && timeline > own_timeline => Whose::Later,
        Some((own_log, ..)) if own_log == log => Whose::Former,
        _ => Whose::Other(log.to_owned()),
    })
}

/// The log, the timeline and the number of `LOG-TIMELINE-NUMBER`.
fn parts(id: &str) -> Option<(&str, u64, u64)> {
    let mut parts = id.rsplitn(3, '-');
    let (number, timeline) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((parts.next()?, timeline, number))
}

fn foreign(last: &StreamMessage, name: &str) -> Box<str> {
    let (sequence, subject) = (last.sequence, &last.subject);
    format!(
        "the last message of the stream {name}, {sequence} on the subject {subject}, is not of kubediff, which has to be the only \
         writer: name another stream in `stream`, or remove it with `nats stream rmm {name} {sequence}`"
    )
    .into()
}
