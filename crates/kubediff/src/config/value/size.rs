//! `10GiB`.

use std::fmt;
use std::str::FromStr;

/// How many bytes, as Kubernetes writes it: `10Gi`, `500M`; `10GiB` and `500MB` mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A text that says not how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a size with its unit, as in 10GiB, 512MiB or 10Gi")]
pub struct InvalidSize;

/// The longer ones first.
const UNITS: &[(&str, u64)] = &[
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("K", 1_000),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

impl FromStr for Size {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let text = text.trim();
        let text = text.strip_suffix('B').unwrap_or(text);
        let (number, unit) = UNITS
            .iter()
            .find_map(|(name, bytes)| Some((text.strip_suffix(name)?, *bytes)))
            .ok_or(InvalidSize)?;
        let number: u64 = number.trim().parse().map_err(|_| InvalidSize)?;
        number.checked_mul(unit).map(Self).ok_or(InvalidSize)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().filter(|(_, bytes)| self.0 > 0 && self.0.is_multiple_of(*bytes));
        match whole.max_by_key(|(_, bytes)| bytes) {
            Some((unit, bytes)) => write!(f, "{}{unit}B", self.0 / bytes),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn what_is_read_is_printed() {
        for (text, bytes, printed) in [
            ("10GiB", 10 << 30, "10GiB"),
            ("10Gi", 10 << 30, "10GiB"),
            ("1024 MiB", 1 << 30, "1GiB"),
            ("500M", 500_000_000, "500MB"),
            ("500kB", 500_000, "500kB"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, printed));
        }
        for text in ["", "10", "10B", "GiB", "1.5GiB", "-1GiB", "99999999999TiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
