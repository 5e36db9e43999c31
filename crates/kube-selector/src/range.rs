//! One range of hashes, and its text.

use std::fmt;
use std::str::FromStr;

/// The number of hashes that there are: 2^64.
pub(super) const ALL: u128 = 1 << 64;

/// The hashes from a start up to, but not including, an end; the end may be 2^64. A range is never empty.
///
/// Its text has both bounds as a `shardSelector` has them: `0x` and 16 hexadecimal digits in lower case, or
/// `0x10000000000000000` as the end.
///
/// ```
/// use kube_selector::HashRange;
///
/// let upper: HashRange = "0x8000000000000000-0x10000000000000000".parse()?;
/// assert_eq!((upper.start(), upper.end()), (1 << 63, 1 << 64));
/// assert!(upper.contains(u64::MAX));
/// # Ok::<(), kube_selector::InvalidRange>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HashRange {
    start: u64,
    /// The last hash, so that the end needs no wider number.
    last: u64,
}

/// A string, or a pair of bounds, that is no range of hashes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no range of hashes: {reason}")]
pub struct InvalidRange {
    text: String,
    reason: &'static str,
}

impl HashRange {
    /// Every hash.
    pub const ALL: Self = Self { start: 0, last: u64::MAX };

    /// The hashes from `start` up to, but not including, `end`.
    ///
    /// # Errors
    ///
    /// When `end` is not greater than `start`, or is greater than 2^64.
    pub fn new(start: u64, end: u128) -> Result<Self, InvalidRange> {
        let invalid = |reason| InvalidRange { text: format!("{start:#018x}-{end:#018x}"), reason };
        if end > ALL {
            return Err(invalid("the end is greater than 2^64"));
        }
        if end <= u128::from(start) {
            return Err(invalid("the start must be less than the end"));
        }
        Ok(Self::between(u128::from(start), end))
    }

    /// The range with these bounds, written as a server takes them.
    pub(super) fn of_bounds(start: &str, end: &str) -> Result<Self, InvalidRange> {
        let bound_of = |text: &str| {
            let reason = "a bound is `0x` and 16 hexadecimal digits in lower case";
            bound(text).ok_or_else(|| InvalidRange { text: text.to_owned(), reason })
        };
        let end = match end {
            "0x10000000000000000" => ALL,
            end => u128::from(bound_of(end)?),
        };
        Self::new(bound_of(start)?, end)
    }

    /// The hashes between two bounds, of which the first one is less, and none is greater than 2^64.
    pub(super) fn between(start: u128, end: u128) -> Self {
        debug_assert!(start < end && end <= ALL);
        let fits = |hash| u64::try_from(hash).unwrap_or(u64::MAX);
        Self { start: fits(start), last: fits(end - 1) }
    }

    /// The first hash.
    pub fn start(self) -> u64 {
        self.start
    }

    /// The hash after the last one; 2^64 after the last of all.
    pub fn end(self) -> u128 {
        u128::from(self.last) + 1
    }

    /// How many hashes it has, from 1 to 2^64.
    pub fn size(self) -> u128 {
        self.end() - u128::from(self.start)
    }

    /// Whether a hash is in the range.
    pub fn contains(self, hash: u64) -> bool {
        (self.start..=self.last).contains(&hash)
    }
}

impl fmt::Display for HashRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}-{:#018x}", self.start, self.end())
    }
}

impl fmt::Debug for HashRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for HashRange {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let invalid = |reason| InvalidRange { text: text.to_owned(), reason };
        let (start, end) =
            text.split_once('-').ok_or_else(|| invalid("expected two bounds joined by `-`"))?;
        Self::of_bounds(start, end).map_err(|error| InvalidRange { text: text.to_owned(), ..error })
    }
}

/// Exactly the digits that a server accepts, so that each number has one text.
fn bound(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 16)?;
    let is_digit = |digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    digits.bytes().all(is_digit).then(|| u64::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_range_are_the_same() {
        for text in [
            "0x0000000000000000-0x10000000000000000",
            "0x0000000000000000-0x0000000000000001",
            "0x8000000000000000-0xffffffffffffffff",
            "0xffffffffffffffff-0x10000000000000000",
        ] {
            assert_eq!(text.parse::<HashRange>().unwrap().to_string(), text);
        }
        assert_eq!(HashRange::ALL.to_string(), "0x0000000000000000-0x10000000000000000");
    }

    #[test]
    fn what_a_server_refuses_is_no_range() {
        for text in [
            "",
            "-",
            "0x0000000000000000",
            "0x0-0x8",
            "0x0000000000000000-0x0000000000000000",
            "0x8000000000000000-0x0000000000000000",
            "0x000000000000000A-0x10000000000000000",
            "0x10000000000000000-0x10000000000000000",
            "0x0000000000000000-0x10000000000000001",
            "0x+000000000000000-0x10000000000000000",
            " 0x0000000000000000-0x10000000000000000",
        ] {
            assert!(text.parse::<HashRange>().is_err(), "{text}");
        }
        assert!(HashRange::new(0, ALL + 1).is_err());
    }
}
