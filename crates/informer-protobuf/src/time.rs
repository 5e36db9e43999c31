//! Times as Kubernetes writes them in JSON: RFC 3339 in UTC, with whole seconds or six digits more.

use std::fmt;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    year: i64,
    month: i64,
    day: i64,
    /// The second of the day.
    second: i64,
    micros: Option<i32>,
}

const DAY: i64 = 24 * 60 * 60;
/// 0001-01-01, Go's zero time, which JSON writes as `null`; and the last second that RFC 3339 can express.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

impl Stamp {
    /// A time from seconds since 1970; `None` is Go's zero time.
    pub(crate) fn at(seconds: i64, micros: Option<i32>) -> Result<Option<Self>, &'static str> {
        if !SECONDS.contains(&seconds) || micros.is_some_and(|micros| !(0..1_000_000).contains(&micros)) {
            return Err("a time is outside the years 1 to 9999");
        }
        if seconds == *SECONDS.start() && micros.unwrap_or(0) == 0 {
            return Ok(None);
        }
        // Days of a calendar whose years begin in March, so that leap days come last. Counted from the year 0.
        let days = seconds.div_euclid(DAY) + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        Ok(Some(Self { year, month, day, second: seconds.rem_euclid(DAY), micros }))
    }

    /// Passes the text to `use_it`, in a buffer on the stack.
    pub(crate) fn text<R>(self, use_it: impl FnOnce(&str) -> R) -> R {
        let mut buffer = *b"0000-00-00T00:00:00.000000Z";
        let mut digits = |at: usize, count: usize, mut number: i64| {
            for place in buffer.iter_mut().skip(at).take(count).rev() {
                *place = b'0' + u8::try_from(number % 10).unwrap_or(0);
                number /= 10;
            }
        };
        digits(0, 4, self.year);
        digits(5, 2, self.month);
        digits(8, 2, self.day);
        digits(11, 2, self.second / 3600);
        digits(14, 2, self.second / 60 % 60);
        digits(17, 2, self.second % 60);
        let length = match self.micros {
            Some(micros) => {
                digits(20, 6, micros.into());
                27
            }
            None => {
                buffer[19] = b'Z';
                20
            }
        };
        use_it(buffer.get(..length).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default())
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text(|text| f.write_str(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        for (seconds, micros, text) in [
            (0, None, "1970-01-01T00:00:00Z"),
            (0, Some(0), "1970-01-01T00:00:00.000000Z"),
            (951_782_399, Some(42), "2000-02-28T23:59:59.000042Z"),
            (951_782_400, None, "2000-02-29T00:00:00Z"),
            (951_868_800, None, "2000-03-01T00:00:00Z"),
            (1_709_164_800, None, "2024-02-29T00:00:00Z"),
            (4_107_542_399, None, "2100-02-28T23:59:59Z"),
            (4_107_542_400, None, "2100-03-01T00:00:00Z"),
            (-1, None, "1969-12-31T23:59:59Z"),
            (-62_135_596_799, None, "0001-01-01T00:00:01Z"),
            (253_402_300_799, Some(999_999), "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(Stamp::at(seconds, micros).unwrap().unwrap().to_string(), text);
        }
    }

    #[test]
    fn days_follow_each_other() {
        let lengths = |year: i64| {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        };
        let mut days = 0;
        for year in 1970..2410 {
            for (month, length) in (1..).zip(lengths(year)) {
                for day in 1..=length {
                    let stamp = Stamp::at(days * DAY, None).unwrap().unwrap();
                    assert_eq!((stamp.year, stamp.month, stamp.day), (year, month, day));
                    days += 1;
                }
            }
        }
    }

    #[test]
    fn the_zero_time_is_none_and_others_are_refused() {
        assert_eq!(Stamp::at(*SECONDS.start(), None), Ok(None));
        for (seconds, micros) in [(i64::MIN, None), (i64::MAX, None), (0, Some(-1)), (0, Some(1_000_000))] {
            assert!(Stamp::at(seconds, micros).is_err());
        }
        assert!(Stamp::at(SECONDS.start() - 1, None).is_err());
    }
}
