//! Times in the format of the API.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECONDS_OF_DAY: u64 = 86_400;

/// `2026-11-21T11:54:29Z`: RFC 3339 in whole seconds.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (year, month, day) = civil(seconds / SECONDS_OF_DAY);
    let of_day = seconds % SECONDS_OF_DAY;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A time plus seconds. As in Go, durations are 64-bit nanoseconds, which wrap.
pub(crate) fn later(time: SystemTime, seconds: i64) -> SystemTime {
    let nanos = seconds.wrapping_mul(1_000_000_000);
    let span = Duration::from_nanos(nanos.unsigned_abs());
    let moved = if nanos < 0 { time.checked_sub(span) } else { time.checked_add(span) };
    moved.unwrap_or(time)
}

/// Year, month and day from the days since 1970, by walking the years in spans of 400.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let mut year = 1970 + days / DAYS_OF_400_YEARS * 400;
    let mut left = days % DAYS_OF_400_YEARS;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for days in months {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_api_writes_them() {
        let at = |seconds: u64| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_795_262_069), "2026-11-21T11:54:29Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
