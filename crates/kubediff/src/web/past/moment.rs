//! The time in an address, and the moment of the history that it means.

use jiff::{SignedDuration, Timestamp, Zoned};
use kubediff_history::{Moment, Number, Reader};
use serve::{Reason, Status};

use super::status::{of_ask, of_error};
use crate::ask::instant::instant;
use crate::ask::period::end;
use crate::text::clock::date_and_time;

/// So long after the last sign of life of a history, its end is not the state of the cluster.
const SOON: SignedDuration = SignedDuration::from_secs(60);

/// The time that an address means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Whatever is the newest record.
    Now,
    /// A time.
    At(Timestamp),
    /// After a record.
    After(Number),
}

impl When {
    /// Reads `2026-11-23T14:05:00Z`, `812` or `now`. Other words would mean another time in each request.
    pub(super) fn read(text: &str, now: &Zoned) -> Result<Self, Status> {
        if text == "now" {
            return Ok(Self::Now);
        }
        if let Ok(number) = text.strip_prefix('#').unwrap_or(text).parse() {
            return Ok(Self::After(Number(number)));
        }
        if let Ok(time) = text.parse() {
            return Ok(Self::At(time));
        }
        let remedy = match instant(text, now) {
            Ok(time) => format!("the address /at/{time} is that time"),
            Err(_) => "write 2026-11-23T14:05:00Z, the number of a record, or now".to_owned(),
        };
        Err(Status::bad_request(format!("`{text}` is no time in an address: {remedy}")))
    }

    /// The moment, if the history has it.
    pub(super) fn moment(self, reader: &mut Reader, now: &Zoned) -> Result<Moment, Status> {
        let zone = now.time_zone();
        let shown = |time: Timestamp| date_and_time(time, zone);
        let expired = |text: String| Status::new(Reason::Expired, text);
        let since = reader.complete_since().map_err(of_error)?;
        let (Some(since), Some((last, last_at))) = (since, reader.last().map_err(of_error)?) else {
            return Err(expired("the history is empty: `kubediff serve` fills it".to_owned()));
        };
        let (moment, time) = match self {
            Self::Now => (Some(Moment { number: last, time: now.timestamp() }), now.timestamp()),
            Self::At(time) if time > now.timestamp() => {
                let text = format!("{} is in the future: nothing is known of it", shown(time));
                return Err(Status::bad_request(text));
            }
            Self::At(time) => (reader.moment(time).map_err(of_error)?, time),
            Self::After(number) => {
                let Some(moment) = reader.moment_after(number).map_err(of_error)? else {
                    return Err(expired(format!(
                        "the history has no record {number}: the last one is {last}, seen at {}",
                        shown(last_at)
                    )));
                };
                (Some(moment), moment.time)
            }
        };
        let moment = moment.filter(|_| time >= since);
        let end = end(reader).map_err(of_ask)?.unwrap_or(last_at);
        let covers = format!("the history covers {} to {}", shown(since), shown(end));
        if self != Self::Now && time.duration_since(end) > SOON {
            return Err(expired(format!(
                "nothing is known of {}: {covers}; ask for a time in between, or for `now`, the last known state",
                shown(time)
            )));
        }
        moment.ok_or_else(|| {
            expired(format!("nothing is known of {}: {covers}; ask for a time in between", shown(time)))
        })
    }
}
