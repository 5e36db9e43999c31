//! Times as people write them.

use jiff::civil::{DateTime, Time};
use jiff::{Span, Timestamp, Zoned};

/// A text that is no time of the past.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no time; write 2026-11-23T14:05:00Z, 2026-11-23 14:05, 2026-11-23, 14:05, yesterday 14:05, -2h, 1d12h ago, \
     or now"
)]
pub struct InvalidTime(String);

/// The time that `text` means at `now`, in the time zone of `now` unless it names one. A date is its midnight; a time of
/// day is the last one.
pub(crate) fn instant(text: &str, now: &Zoned) -> Result<Timestamp, InvalidTime> {
    let text = text.trim();
    parse(text, now).ok_or_else(|| InvalidTime(text.to_owned()))
}

fn parse(text: &str, now: &Zoned) -> Option<Timestamp> {
    if text == "now" {
        return Some(now.timestamp());
    }
    let ago = text.strip_suffix("ago").map(str::trim_end);
    if let Some(ago) = text.strip_prefix('-').or(ago) {
        // `--2h` is not two hours from now.
        let ago: Span = ago.parse().ok().filter(|_| ago.starts_with(|c: char| c.is_ascii_digit()))?;
        return now.checked_sub(ago).ok().map(|then| then.timestamp());
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(timestamp);
    }
    let (day, time) = text.split_once(' ').unwrap_or((text, "00:00"));
    let date = match day {
        "today" => Some(now.date()),
        "yesterday" => Some(now.date().yesterday().ok()?),
        _ => None,
    };
    if let Some(date) = date {
        return at(date.to_datetime(time.trim().parse().ok()?), now);
    }
    // A date with a time is a time of day, too, to `Time`.
    if let Ok(date) = text.parse::<DateTime>() {
        return at(date, now);
    }
    if let Ok(time) = text.parse::<Time>() {
        let today = at(now.date().to_datetime(time), now)?;
        return match today <= now.timestamp() {
            true => Some(today),
            false => at(now.date().yesterday().ok()?.to_datetime(time), now),
        };
    }
    None
}

fn at(civil: DateTime, now: &Zoned) -> Option<Timestamp> {
    civil.to_zoned(now.time_zone().clone()).ok().map(|then| then.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_times_in_many_ways() {
        let now: Zoned = "2026-11-23T16:30:00+01:00[Europe/Berlin]".parse().unwrap();
        for (text, expected) in [
            ("2026-11-23T14:05:00Z", "2026-11-23T14:05:00Z"),
            ("2026-11-23T14:05:00+02:00", "2026-11-23T12:05:00Z"),
            ("2026-11-23T14:05:00", "2026-11-23T13:05:00Z"),
            ("-2h", "2026-11-23T13:30:00Z"),
            ("-1d12h", "2026-11-22T03:30:00Z"),
            ("-90m", "2026-11-23T14:00:00Z"),
            ("2h ago", "2026-11-23T13:30:00Z"),
            ("1h 30m ago", "2026-11-23T14:00:00Z"),
            ("2 days ago", "2026-11-21T15:30:00Z"),
            ("yesterday 14:00", "2026-11-22T13:00:00Z"),
            ("yesterday", "2026-11-21T23:00:00Z"),
            ("today 08:30", "2026-11-23T07:30:00Z"),
            ("14:05", "2026-11-23T13:05:00Z"),
            ("14:05:30", "2026-11-23T13:05:30Z"),
            // Not in two minutes: the last one.
            ("16:32", "2026-11-22T15:32:00Z"),
            ("2026-11-20 14:05", "2026-11-20T13:05:00Z"),
            ("2026-11-20", "2026-11-19T23:00:00Z"),
            // The clock went back in that night: the first of both.
            ("2026-10-25 02:30", "2026-10-25T00:30:00Z"),
            (" now ", "2026-11-23T15:30:00Z"),
        ] {
            assert_eq!(instant(text, &now).map(|it| it.to_string()), Ok(expected.to_owned()), "{text}");
        }
        for text in
            ["", "soon", "-", "--2h", "2h", "ago", "yesterday noonish", "25:00", "2026-13-01", "-1e9d", "-P"]
        {
            assert_eq!(instant(text, &now), Err(InvalidTime(text.to_owned())), "{text}");
        }
    }
}
