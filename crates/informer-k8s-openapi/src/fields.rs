//! The walk over a message's fields.

use informer_protobuf::weight;
use informer_protobuf::wire::{Field, Fields, Value};

/// The message is not as servers write it: serde decodes it, or says what is wrong.
#[derive(Debug)]
pub(crate) struct Unfit;

/// What the decoding of one object keeps.
pub(crate) struct Context {
    /// The bytes of the heap that the value refers to, so far.
    pub(crate) heap: usize,
    skips_managed_fields: bool,
    /// How many messages are around the current field.
    pub(crate) depth: u8,
}

impl Context {
    pub(crate) fn new(skips_managed_fields: bool) -> Self {
        Self { heap: 0, skips_managed_fields, depth: 0 }
    }

    /// Whether this `ObjectMeta` is that of the object, and its managed fields are not wanted. Those of a template are.
    pub(crate) fn skips_managed_fields(&self) -> bool {
        self.skips_managed_fields && self.depth == 2
    }

    #[inline]
    pub(crate) fn add_text(&mut self, length: usize) {
        if length > 0 {
            self.heap += weight::allocated(length);
        }
    }

    /// The `nth` entry of a map, which has `size` bytes.
    #[inline]
    pub(crate) fn add_entry(&mut self, nth: usize, size: usize) {
        self.heap += weight::of_map(nth, size) - weight::of_map(nth - 1, size);
    }
}

/// The number and the value of the first field, and the fields after it.
#[inline]
pub(crate) fn field(fields: &[u8]) -> Result<(u32, Value<'_>, &[u8]), Unfit> {
    const VARINT: u8 = 0;
    const BYTES: u8 = 2;
    // Nearly all numbers of fields are below 32, and nearly all lengths below 16,384.
    let (tag, rest) = match *fields {
        [tag @ 8..0x80, ref rest @ ..] => (u16::from(tag), rest),
        [low, high @ 1..0x80, ref rest @ ..] => (u16::from(low & 0x7f) | u16::from(high) << 7, rest),
        _ => return long_field(fields),
    };
    let (value, after) = match *rest {
        [value @ ..0x80, ref after @ ..] => (u16::from(value), after),
        [low, high @ 1..0x80, ref after @ ..] => (u16::from(low & 0x7f) | u16::from(high) << 7, after),
        _ => return long_field(fields),
    };
    let number = u32::from(tag >> 3);
    match (tag & 7) as u8 {
        VARINT => Ok((number, Value::Varint(value.into()), after)),
        BYTES => match after.split_at_checked(value.into()) {
            Some((bytes, after)) => Ok((number, Value::Bytes(bytes), after)),
            None => Err(Unfit),
        },
        _ => long_field(fields),
    }
}

#[cold]
fn long_field(fields: &[u8]) -> Result<(u32, Value<'_>, &[u8]), Unfit> {
    let mut walk = Fields::new(fields);
    let Some(Ok(Field { number, value })) = walk.next() else { return Err(Unfit) };
    Ok((number, value, fields.get(walk.offset()..).ok_or(Unfit)?))
}

/// A field of a message.
pub(crate) struct At<'a> {
    pub(crate) number: u32,
    pub(crate) value: Value<'a>,
    /// Whether the field before it has the same number.
    pub(crate) is_repeated: bool,
    rest: &'a [u8],
    /// The numbers of the fields until now, as bits.
    seen: u64,
}

/// The generator refuses messages with larger numbers.
const NUMBERS: u32 = 64;

impl<'a> At<'a> {
    pub(crate) fn before(raw: &'a [u8]) -> Self {
        Self { number: 0, value: Value::Varint(0), is_repeated: false, rest: raw, seen: 0 }
    }

    /// Goes to the next field. Servers write each field once, and the elements of a list one after the other.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<bool, Unfit> {
        if self.rest.is_empty() {
            return Ok(false);
        }
        let (number, value, rest) = field(self.rest)?;
        self.is_repeated = number == self.number;
        if number < NUMBERS {
            let bit = 1 << number;
            if self.seen & bit != 0 && !self.is_repeated {
                return Err(Unfit);
            }
            self.seen |= bit;
        }
        (self.number, self.value, self.rest) = (number, value, rest);
        Ok(true)
    }

    /// How many fields of this number follow one another from here on.
    pub(crate) fn run(&self) -> usize {
        let (mut count, mut rest) = (1, self.rest);
        while let Ok((number, _, after)) = field(rest)
            && number == self.number
        {
            (count, rest) = (count + 1, after);
        }
        count
    }

    /// The bytes of a field that is not repeated.
    #[inline]
    pub(crate) fn bytes(&self) -> Result<&'a [u8], Unfit> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(Unfit),
        }
    }

    /// Reads a message whose fields are members of the message around it.
    #[inline]
    pub(crate) fn inline(
        &self,
        context: &mut Context,
        mut field: impl FnMut(&mut At<'_>, &mut Context) -> Result<(), Unfit>,
    ) -> Result<(), Unfit> {
        if self.is_repeated {
            return Err(Unfit);
        }
        let mut at = At::before(self.bytes()?);
        while at.next()? {
            field(&mut at, context)?;
        }
        Ok(())
    }
}
