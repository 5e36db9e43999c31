//! The walk over a message's fields.

use informer_protobuf::weight;
use informer_protobuf::wire::{Value, varint};

/// The state of the decoding of one object.
pub(crate) struct Context {
    /// The bytes of the heap that the value refers to, so far.
    pub(crate) heap: usize,
    /// The message is not as servers write it: serde decodes it, or has the error. It is read to its end in any case, which
    /// saves a branch for each field.
    pub(crate) is_unfit: bool,
    skips_managed_fields: bool,
    /// How many messages are around the current field.
    pub(crate) depth: u8,
}

impl Context {
    pub(crate) fn new(skips_managed_fields: bool) -> Self {
        Self { heap: 0, is_unfit: false, skips_managed_fields, depth: 0 }
    }

    /// Whether this `ObjectMeta` is that of the object, and its managed fields are not wanted. The managed fields of a template are.
    pub(crate) fn skips_managed_fields(&self) -> bool {
        self.skips_managed_fields && self.depth == 2
    }

    #[inline]
    pub(crate) fn add_text(&mut self, length: usize) {
        self.heap += weight::allocated(length);
    }

    /// The `nth` entry of a map, which has `size` bytes.
    #[inline]
    pub(crate) fn add_entry(&mut self, nth: usize, size: usize) {
        self.heap += weight::of_map(nth, size) - weight::of_map(nth - 1, size);
    }
}

const VARINT: u32 = 0;
const BYTES: u32 = 2;

/// A number of at most two bytes, as nearly all tags and lengths are, and the bytes after it.
#[inline]
fn short(bytes: &[u8]) -> Option<(u32, &[u8])> {
    match *bytes {
        [byte @ ..0x80, ref after @ ..] => Some((byte.into(), after)),
        [low, high @ 1..0x80, ref after @ ..] => Some((u32::from(low & 0x7f) | u32::from(high) << 7, after)),
        _ => None,
    }
}

/// A field of a message.
pub(crate) struct At<'a> {
    pub(crate) number: u32,
    /// Whether the field before it has the same number.
    pub(crate) is_repeated: bool,
    pub(crate) value: Value<'a>,
    rest: &'a [u8],
}

impl<'a> At<'a> {
    pub(crate) fn before(raw: &'a [u8]) -> Self {
        Self { number: 0, is_repeated: false, value: Value::Varint(0), rest: raw }
    }

    /// Goes to the next field. Servers write fields in the order of their numbers, which shows each field that is not repeated.
    // Most fields have a number below sixteen, and are short strings or messages: these cost no call.
    #[inline(always)]
    pub(crate) fn next(&mut self, context: &mut Context) -> bool {
        if let &[tag @ 8..0x80, length @ ..0x80, ref rest @ ..] = self.rest
            && u32::from(tag & 7) == BYTES
            && u32::from(tag >> 3) >= self.number
            && let Some((bytes, rest)) = rest.split_at_checked(length.into())
        {
            let number = u32::from(tag >> 3);
            let is_repeated = number == self.number;
            *self = Self { number, is_repeated, value: Value::Bytes(bytes), rest };
            return true;
        }
        !self.rest.is_empty() && self.next_of_any(context)
    }

    #[inline(never)]
    fn next_of_any(&mut self, context: &mut Context) -> bool {
        let Some((tag, rest)) = short(self.rest) else { return self.end(context) };
        let number = tag >> 3;
        self.is_repeated = number <= self.number;
        if self.is_repeated && (number < self.number || number == 0) {
            return self.end(context);
        }
        self.number = number;
        match (tag & 7, rest) {
            (BYTES, rest) => {
                let Some((length, rest)) = short(rest) else { return self.long_bytes(rest, context) };
                let Some((bytes, after)) = rest.split_at_checked(length as usize) else {
                    return self.end(context);
                };
                (self.value, self.rest) = (Value::Bytes(bytes), after);
            }
            (VARINT, &[value @ ..0x80, ref after @ ..]) => {
                (self.value, self.rest) = (Value::Varint(value.into()), after);
            }
            (VARINT, rest) => return self.long_number(rest, context),
            // Groups, and fixed widths, which no field of these messages has.
            _ => return self.end(context),
        }
        true
    }

    #[cold]
    fn end(&mut self, context: &mut Context) -> bool {
        context.is_unfit = true;
        self.rest = &[];
        false
    }

    // These return as `next` does, which then needs no place on the stack.
    #[cold]
    fn long_bytes(&mut self, rest: &'a [u8], context: &mut Context) -> bool {
        let bytes =
            long(rest).and_then(|(length, rest)| rest.split_at_checked(usize::try_from(length).ok()?));
        let Some((bytes, after)) = bytes else { return self.end(context) };
        (self.value, self.rest) = (Value::Bytes(bytes), after);
        true
    }

    #[cold]
    fn long_number(&mut self, rest: &'a [u8], context: &mut Context) -> bool {
        let Some((number, after)) = long(rest) else { return self.end(context) };
        (self.value, self.rest) = (Value::Varint(number), after);
        true
    }

    /// How many fields of this number follow one another from here on, as far as these are short.
    pub(crate) fn run(&self) -> usize {
        let (mut count, mut rest) = (1, self.rest);
        while let Some((tag, after)) = short(rest)
            && tag == self.number << 3 | BYTES
            && let Some((length, after)) = short(after)
            && let Some(after) = after.get(length as usize..)
        {
            (count, rest) = (count + 1, after);
        }
        count
    }

    /// The message of a field that is not repeated.
    #[inline]
    pub(crate) fn message(&self, context: &mut Context) -> &'a [u8] {
        match self.value {
            Value::Bytes(bytes) if !self.is_repeated => bytes,
            _ => {
                context.is_unfit = true;
                &[]
            }
        }
    }
}

/// A number of any length, and the bytes after it.
#[inline]
pub(crate) fn long(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, length) = varint(bytes).ok()??;
    Some((number, bytes.get(length..)?))
}
