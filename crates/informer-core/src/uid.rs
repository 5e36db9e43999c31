//! The identity of one incarnation of an object.

use std::fmt;

use crate::memory::allocated;

/// Distinguishes an object from another one that had, or will have, the same key.
///
/// Servers use UUIDs, which are stored in 16 bytes; any other text is stored unchanged.
///
/// ```
/// # use informer_core as informer;
/// use informer::Uid;
///
/// let uid = Uid::new("2c3b9c1e-7d5a-4f0e-9b62-0d7c1f6a8e11");
/// assert_eq!(uid.to_string(), "2c3b9c1e-7d5a-4f0e-9b62-0d7c1f6a8e11");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Uid(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Uuid([u8; 16]),
    Text(Box<str>),
}

const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl Uid {
    /// Parses a uid as a server wrote it.
    pub fn new(text: &str) -> Self {
        Self(parse(text.as_bytes()).map_or_else(|| Repr::Text(text.into()), Repr::Uuid))
    }

    /// The bytes of memory that it takes beside itself.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.0 {
            Repr::Uuid(_) => 0,
            Repr::Text(text) => allocated(text.len()),
        }
    }

    /// Whether the server gave no uid.
    pub fn is_unset(&self) -> bool {
        matches!(&self.0, Repr::Text(text) if text.is_empty())
    }
}

/// Accepts only the canonical lower-case form, so that the uid prints as the same text.
fn parse(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 || HYPHENS.iter().any(|&at| text.get(at) != Some(&b'-')) {
        return None;
    }
    let mut digits =
        text.iter().enumerate().filter(|(at, _)| !HYPHENS.contains(at)).map(|(_, byte)| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        });
    let mut uuid = [0; 16];
    for byte in &mut uuid {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    Some(uuid)
}

/// As servers write it.
fn written(uuid: &[u8; 16]) -> [u8; 36] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; 36];
    let mut places = text.iter_mut().enumerate().filter(|(at, _)| !HYPHENS.contains(at));
    for half in uuid.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
        if let (Some((_, place)), Some(digit)) = (places.next(), DIGITS.get(usize::from(half))) {
            *place = *digit;
        }
    }
    text
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Text(text) => f.pad(text),
            // One byte at a time would cost thousands of instructions.
            Repr::Uuid(uuid) => f.pad(str::from_utf8(&written(uuid)).unwrap_or_default()),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_as_it_came() {
        for text in [
            "",
            "pod-1",
            "2c3b9c1e-7d5a-4f0e-9b62-0d7c1f6a8e11",
            "2C3B9C1E-7D5A-4F0E-9B62-0D7C1F6A8E11",
            "2c3b9c1e-7d5a-4f0e-9b62-0d7c1f6a8e1g",
            "2c3b9c1e07d5a-4f0e-9b62-0d7c1f6a8e11",
        ] {
            assert_eq!(Uid::new(text).to_string(), text);
        }
        assert!(matches!(Uid::new("2c3b9c1e-7d5a-4f0e-9b62-0d7c1f6a8e11").0, Repr::Uuid(_)));
    }
}
