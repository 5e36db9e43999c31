//! `0640`.

use std::fmt;
use std::str::FromStr;

/// The permissions of a file, as `chmod` takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode(pub u32);

/// A text that is no permissions with which the daemon itself can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected permissions as chmod takes them, in quotes, with which the owner can read and write: \"0640\""
)]
pub struct InvalidMode;

impl FromStr for Mode {
    type Err = InvalidMode;

    fn from_str(text: &str) -> Result<Self, InvalidMode> {
        let mode = u32::from_str_radix(text, 8).map_err(|_| InvalidMode)?;
        (mode <= 0o777 && mode & 0o600 == 0o600).then_some(Self(mode)).ok_or(InvalidMode)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}
