//! The fields of a message, whatever they mean.

use crate::error::Error;
use crate::part::Part;
use crate::wire::{Span, Value};

pub(crate) const WIRE_TYPE: &str = "a field's wire type does not match its type";

/// The value of the field at this offset, and its bytes.
#[inline]
pub(crate) fn field_at(part: Part<'_>, at: usize) -> Result<(Value<'_>, Part<'_>), Error> {
    let span = Span::at(part.bytes, at).map_err(|error| part.wire(error))?;
    let value = span.value(part.bytes);
    let bytes = if let Value::Bytes(bytes) = value { bytes } else { &[] };
    Ok((value, part.inner(bytes, span.start)))
}

/// Zero counts as empty.
#[inline]
pub(crate) fn is_empty(value: Value<'_>) -> bool {
    match value {
        Value::Varint(number) => number == 0,
        // Go omits minus zero as well.
        Value::Fixed64(bits) => f64::from_bits(bits) == 0.0,
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Fixed32(_) => false,
    }
}

/// The first three fields of a small message; of a repeated field the last.
#[derive(Default)]
pub(crate) struct Scalars<'a> {
    pub(crate) numbers: [u64; 3],
    pub(crate) bytes: [Option<Part<'a>>; 3],
}

impl<'a> Scalars<'a> {
    pub(crate) fn read(part: Part<'a>) -> Result<Self, Error> {
        let mut scalars = Self::default();
        let mut at = 0;
        while at < part.bytes.len() {
            let span = Span::at(part.bytes, at).map_err(|error| part.wire(error))?;
            let index = span.number as usize - 1;
            if let (Some(number), Some(bytes)) =
                (scalars.numbers.get_mut(index), scalars.bytes.get_mut(index))
            {
                match span.value(part.bytes) {
                    Value::Varint(value) => *number = value,
                    Value::Bytes(value) => *bytes = Some(part.inner(value, span.start)),
                    Value::Fixed64(_) | Value::Fixed32(_) => {}
                }
            }
            at = span.end;
        }
        Ok(scalars)
    }
}

/// An offset. It fits: `Part::whole` has checked the length.
#[inline]
pub(crate) fn in_32_bits(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The fields with one number.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) part: Part<'a>,
    /// The offset. 32 bits suffice, as for the count of fields: `Part::whole` has checked the length.
    at: u32,
    /// 0 before the first field.
    number: u32,
    is_interrupted: bool,
    /// How many fields are left; 0 if they were not counted.
    pub(crate) count: u32,
}

impl<'a> Run<'a> {
    /// From the field at this offset on.
    pub(crate) fn new(part: Part<'a>, at: usize, is_interrupted: bool) -> Self {
        Self { part, at: in_32_bits(at), number: 0, is_interrupted, count: 0 }
    }

    /// `count` fields from this offset to the end of the part.
    pub(crate) fn counted(part: Part<'a>, at: usize, count: usize) -> Self {
        Self { part, at: in_32_bits(at), number: 0, is_interrupted: false, count: in_32_bits(count) }
    }

    /// The value of the next field.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(Value<'a>, Part<'a>)>, Error> {
        while (self.at as usize) < self.part.bytes.len() {
            let span = Span::at(self.part.bytes, self.at as usize).map_err(|error| self.part.wire(error))?;
            if self.number == 0 {
                self.number = span.number;
            }
            if span.number == self.number {
                self.at = in_32_bits(span.end);
                self.count = self.count.saturating_sub(1);
                let value = span.value(self.part.bytes);
                let bytes = if let Value::Bytes(bytes) = value { bytes } else { &[] };
                return Ok(Some((value, self.part.inner(bytes, span.start))));
            }
            if !self.is_interrupted {
                break;
            }
            self.at = in_32_bits(span.end);
        }
        Ok(None)
    }
}
