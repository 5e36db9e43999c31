//! `30d`, `12h`, `1h30m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// How long, as Prometheus writes it: `30d`, `12h`, `1h30m`, `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(pub Duration);

/// A text that says not how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a time with its unit, as in 30d, 12h, 90s, 500ms or 1h30m")]
pub struct InvalidPeriod;

impl FromStr for Period {
    type Err = InvalidPeriod;

    fn from_str(text: &str) -> Result<Self, InvalidPeriod> {
        let span: Span = text.trim().parse().map_err(|_| InvalidPeriod)?;
        // Months and years have no fixed length.
        let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| InvalidPeriod)?;
        Duration::try_from(signed).map(Self).map_err(|_| InvalidPeriod)
    }
}

const UNITS: &[(&str, u128)] = &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_millis();
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, length) in UNITS {
            if rest >= *length {
                write!(f, "{}{unit}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Period;

    #[test]
    fn what_is_read_is_printed() {
        for text in ["30d", "12h", "1h30m", "1d12h", "90s", "500ms", "1s500ms", "0s"] {
            let period: Period = text.parse().unwrap();
            assert_eq!(period.to_string().parse(), Ok(period), "{text}");
        }
        assert_eq!("90s".parse::<Period>().unwrap().to_string(), "1m30s");
        for text in ["", "30", "d", "1mo", "1y", "-1h", "1h 30", "ten minutes"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }
}
