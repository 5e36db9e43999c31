//! Protobuf's wire format: fields, without knowledge of what they mean.
//!
//! Nothing here allocates, and nothing trusts a length: a field that claims more bytes than there are is malformed.
//! Groups, which protobuf deprecates and Kubernetes never used, are malformed too. The format:
//! <https://protobuf.dev/programming-guides/encoding/>.

/// Bytes that are no protobuf message, with the offset. Never holds any of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} (byte {at})")]
pub struct Malformed {
    what: &'static str,
    at: usize,
}

impl Malformed {
    pub(crate) const fn new(what: &'static str, at: usize) -> Self {
        Self { what, at }
    }

    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    /// The offset of the error in the input.
    pub fn offset(&self) -> usize {
        self.at
    }
}

const ENDS_EARLY: &str = "the message ends early";
const LONG_VARINT: &str = "a number has more than 64 bits";
const NO_NUMBER: &str = "a field has no valid number";
const NO_TYPE: &str = "a field has no valid wire type";

/// Longer ones do not fit into 64 bits.
const VARINT_BYTES: usize = 10;

/// Decodes the number at the start of `bytes`, and returns how many bytes it takes; `None` if more are needed.
///
/// ```
/// use informer_protobuf::wire::varint;
///
/// assert_eq!(varint(&[0x96, 0x01, 0xff]), Ok(Some((150, 2))));
/// assert_eq!(varint(&[0x96]), Ok(None));
/// assert!(varint(&[0xff; 11]).is_err());
/// ```
///
/// # Errors
///
/// The number has more than 64 bits.
#[inline]
pub fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    match *bytes {
        [byte @ ..0x80, ..] => Ok(Some((byte.into(), 1))),
        [low, high @ ..0x80, ..] => Ok(Some((u64::from(low & 0x7f) | u64::from(high) << 7, 2))),
        _ => long_varint(bytes),
    }
}

fn long_varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    let mut number = 0_u64;
    for (at, &byte) in bytes.iter().take(VARINT_BYTES).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if at == VARINT_BYTES - 1 && bits > 1 {
            return Err(Malformed::new(LONG_VARINT, 0));
        }
        number |= bits << (7 * at);
        if byte < 0x80 {
            return Ok(Some((number, at + 1)));
        }
    }
    if bytes.len() < VARINT_BYTES { Ok(None) } else { Err(Malformed::new(LONG_VARINT, 0)) }
}

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field<'a> {
    /// The number that the schema gives it; at least 1.
    pub number: u32,
    /// Its value.
    pub value: Value<'a>,
}

/// A field's value, as the wire format distinguishes them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Integers and booleans; negative ones in 64 bits of two's complement.
    Varint(u64),
    /// A `double` or a fixed integer of eight bytes.
    Fixed64(u64),
    /// Strings, bytes, messages and entries of maps.
    Bytes(&'a [u8]),
    /// A `float` or a fixed integer of four bytes.
    Fixed32(u32),
}

/// Shows the wire type only: values may be secret.
impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Varint(_) => f.write_str("Varint"),
            Self::Fixed64(_) => f.write_str("Fixed64"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Fixed32(_) => f.write_str("Fixed32"),
        }
    }
}

/// The fields of a whole message, in the order in which they were written. After an error there are no more.
///
/// ```
/// use informer_protobuf::wire::{Fields, Value};
///
/// let mut fields = Fields::new(&[0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i']);
/// assert_eq!(fields.next().unwrap()?.value, Value::Varint(150));
/// let text = fields.next().unwrap()?;
/// assert_eq!((text.number, text.value), (2, Value::Bytes(b"hi")));
/// assert!(fields.next().is_none());
/// # Ok::<(), informer_protobuf::wire::Malformed>(())
/// ```
#[derive(Clone)]
pub struct Fields<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// The fields of this message.
    pub fn new(message: &'a [u8]) -> Self {
        Self::from(message, 0)
    }

    /// The fields of this message from this offset on.
    pub(crate) fn from(message: &'a [u8], at: usize) -> Self {
        Self { message, at }
    }

    /// The offset of the next field in the message.
    pub fn offset(&self) -> usize {
        self.at
    }

    #[inline]
    fn field(&mut self) -> Result<Field<'a>, Malformed> {
        let span = Span::at(self.message, self.at)?;
        self.at = span.end;
        Ok(Field { number: span.number, value: span.value(self.message) })
    }
}

/// Shows the offset, not the message.
impl std::fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fields").field("at", &self.at).field("of", &self.message.len()).finish()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.message.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.message.len();
        }
        Some(field)
    }
}

impl std::iter::FusedIterator for Fields<'_> {}

/// A number of at most 14 bits, as tags and lengths are: faster than the loop, which handles all others.
#[inline]
fn short_varint(message: &[u8], at: usize) -> Option<(u64, usize)> {
    match *message.get(at..)? {
        [first @ ..0x80, ..] => Some((first.into(), 1)),
        [first, second @ ..0x80, ..] => Some((u64::from(first & 0x7f) | u64::from(second) << 7, 2)),
        _ => None,
    }
}

/// The place of a field's value.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) number: u32,
    wire: u8,
    /// After its length, if it has one.
    pub(crate) start: usize,
    /// The offset of the next field.
    pub(crate) end: usize,
}

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;
const FIXED32: u8 = 5;

impl Span {
    /// The span of the field at this offset.
    #[inline]
    pub(crate) fn at(message: &[u8], at: usize) -> Result<Self, Malformed> {
        // Most fields have a small number, and are short.
        if let Some(&[tag @ 8..0x80, first @ ..0x80, ..]) = message.get(at..) {
            let (number, start) = (u32::from(tag >> 3), at + 2);
            let end = start + usize::from(first);
            if tag & 7 == BYTES && end <= message.len() {
                return Ok(Self { number, wire: BYTES, start, end });
            }
            if tag & 7 == VARINT {
                return Ok(Self { number, wire: VARINT, start: at + 1, end: start });
            }
        }
        Self::of_any(message, at)
    }

    fn of_any(message: &[u8], at: usize) -> Result<Self, Malformed> {
        let ends_early = Malformed::new(ENDS_EARLY, message.len());
        let varint = |at: usize| match short_varint(message, at)
            .map_or_else(|| varint(message.get(at..).unwrap_or_default()), |found| Ok(Some(found)))
        {
            Ok(Some((number, length))) => Ok((number, at + length)),
            Ok(None) => Err(ends_early),
            Err(error) => Err(Malformed { at, ..error }),
        };
        let (tag, start) = varint(at)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let number = number.ok_or(Malformed::new(NO_NUMBER, at))?;
        let wire = u8::try_from(tag & 7).unwrap_or(u8::MAX);
        let (start, end) = match wire {
            VARINT => (start, Some(varint(start)?.1)),
            FIXED64 => (start, start.checked_add(8)),
            BYTES => {
                let (length, start) = varint(start)?;
                (start, usize::try_from(length).ok().and_then(|length| start.checked_add(length)))
            }
            FIXED32 => (start, start.checked_add(4)),
            _ => return Err(Malformed::new(NO_TYPE, at)),
        };
        let end = end.filter(|&end| end <= message.len()).ok_or(ends_early)?;
        Ok(Self { number, wire, start, end })
    }

    /// The value, in the message that the span is of.
    #[inline]
    pub(crate) fn value<'a>(self, message: &'a [u8]) -> Value<'a> {
        let bytes = message.get(self.start..self.end).unwrap_or_default();
        match self.wire {
            BYTES => Value::Bytes(bytes),
            VARINT => Value::Varint(match *bytes {
                [number] => number.into(),
                _ => varint(bytes).ok().flatten().map_or(0, |(number, _)| number),
            }),
            FIXED64 => Value::Fixed64(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))),
            _ => Value::Fixed32(bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_takes_up_to_ten_bytes() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
            let mut bytes = Vec::new();
            let mut rest = number;
            while rest >= 0x80 {
                bytes.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(u8::try_from(rest).unwrap());
            for length in 0..bytes.len() {
                assert_eq!(varint(&bytes[..length]), Ok(None), "{number}");
            }
            assert_eq!(varint(&bytes), Ok(Some((number, bytes.len()))));
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_malformed() {
        let mut bytes = [0xff; 10];
        assert!(varint(&bytes).is_err());
        bytes[9] = 2;
        assert!(varint(&bytes).is_err());
        bytes[9] = 1;
        assert_eq!(varint(&bytes), Ok(Some((u64::MAX, 10))));
    }

    #[test]
    fn each_wire_type_is_read() {
        let mut message = vec![0x08, 0x07, 0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0x1a, 0x03];
        message.extend(b"abc");
        message.extend([0x25, 2, 0, 0, 0]);
        let fields: Vec<_> = Fields::new(&message).map(|field| field.unwrap()).collect();
        let expected = [Value::Varint(7), Value::Fixed64(1), Value::Bytes(b"abc"), Value::Fixed32(2)];
        assert_eq!(fields.iter().map(|field| field.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(fields.iter().map(|field| field.value).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_ends_early_is_malformed() {
        let message = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 2, 3, 4];
        let whole = [3, 7, 12];
        for length in 0..message.len() {
            let last = Fields::new(&message[..length]).last();
            let is_whole = length == 0 || whole.contains(&length);
            assert_eq!(last.is_none_or(|last| last.is_ok()), is_whole, "{length} bytes");
        }
    }

    #[test]
    fn what_no_field_is_is_malformed_once() {
        for (message, at) in [
            // Number 0, and one of more than 29 bits.
            (&[0x02_u8, 0x00][..], 0),
            (&[0x80, 0x80, 0x80, 0x80, 0x10, 0x00][..], 0),
            // A group's begin and end, and types that protobuf does not have.
            (&[0x08, 0x01, 0x13][..], 2),
            (&[0x14][..], 0),
            (&[0x16][..], 0),
            // A length that is not there.
            (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], 10),
        ] {
            let errors: Vec<_> = Fields::new(message).filter_map(Result::err).collect();
            assert_eq!(errors.iter().map(Malformed::offset).collect::<Vec<_>>(), [at], "{message:x?}");
        }
    }
}
