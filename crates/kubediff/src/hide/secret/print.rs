//! The hashes by which a value is found, as a history keeps them.

use super::key::{HashKey, ValueId};

/// A print: its name, which is a hash of the rest, and then the rest, made unreadable. Without the key, neither can be computed from a
/// value, so that a reader of the file cannot test guesses; no two values have anything in common there.
const BYTES: usize = 26;
const NAME: usize = 8;

/// The hashes and lengths by which one form of a value is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    /// A hash of its first 8 bytes.
    pub(super) start: u32,
    /// How many bytes its beginning has,
    pub(super) prefix: u16,
    /// and a hash of these.
    pub(super) beginning: u64,
    pub(super) value: ValueId,
    /// How long the value is.
    pub(super) bytes: u32,
    /// Whether a person has named it as a secret.
    pub(super) named: bool,
}

/// The bit in the stored prefix length that means `named`. No prefix is that long.
const NAMED: u16 = 1 << 15;

impl Print {
    pub(super) fn sealed(&self, key: &HashKey) -> Vec<u8> {
        let mut plain = Vec::with_capacity(BYTES);
        plain.extend(self.start.to_be_bytes());
        plain.extend((self.prefix | if self.named { NAMED } else { 0 }).to_be_bytes());
        plain.extend(self.beginning.to_be_bytes());
        plain.extend(self.value.0.to_be_bytes());
        plain.extend(self.bytes.to_be_bytes());
        let name = key.name_of_print(&plain);
        [name.as_slice(), &key.cover(&name, &plain)].concat()
    }

    /// `None` for one that was sealed with another key.
    pub(super) fn open(key: &HashKey, sealed: &[u8]) -> Option<Self> {
        let (name, covered) = sealed.split_first_chunk::<NAME>()?;
        let plain = key.cover(name, covered);
        if key.name_of_print(&plain) != *name {
            return None;
        }
        let (start, rest) = plain.split_first_chunk()?;
        let (prefix, rest) = rest.split_first_chunk()?;
        let prefix = u16::from_be_bytes(*prefix);
        let (beginning, rest) = rest.split_first_chunk()?;
        let (value, rest) = rest.split_first_chunk()?;
        Some(Self {
            start: u32::from_be_bytes(*start),
            prefix: prefix & !NAMED,
            beginning: u64::from_be_bytes(*beginning),
            value: ValueId(u64::from_be_bytes(*value)),
            bytes: u32::from_be_bytes(rest.try_into().ok()?),
            named: prefix & NAMED != 0,
        })
    }
}
