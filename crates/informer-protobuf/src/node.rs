//! What a value is in JSON: the one place that interprets messages, the special ones included. The deserializer and the
//! writer of JSON only pass on its results.

use crate::envelope::{self, MAGIC};
use crate::error::{Cause, Error};
use crate::kind::Kind;
use crate::members::{Members, WIRE_TYPE, field_at};
use crate::part::Part;
use crate::schema::{Form, Message, Of};
use crate::time::Stamp;
use crate::walk::Walk;
use crate::wire::{Span, Value, varint};

/// A value of JSON, decoded one level deep.
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    /// A string. UTF-8 is checked when it is handed out.
    Text(Part<'a>),
    /// Written as base64.
    Bytes(&'a [u8]),
    Time(Stamp),
    /// JSON that the object carries; the number of levels that may lie in it.
    Json(Part<'a>, u8),
    Object(Object<'a>),
    List(List<'a>),
    Map(Map<'a>),
}

impl<'a> Node<'a> {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// A whole object of that kind, with its members in the order of JSON or in that of the message.
    pub(crate) fn whole(kind: Kind, raw: &'a [u8], in_order: bool) -> Result<Self, Error> {
        object(kind, Part::whole(raw)?, DEPTH_MAX, in_order)
    }
}

/// The maximum depth of objects and lists, the same as serde_json's.
pub(crate) const DEPTH_MAX: u8 = 127;

fn object(kind: Kind, part: Part<'_>, room: u8, in_order: bool) -> Result<Node<'_>, Error> {
    let message = kind.message().ok_or_else(|| Error::new(Cause::UnknownKind, part.base))?;
    let kind = Some(kind).filter(|kind| kind.is_said());
    Ok(Node::Object(Object { message, part, kind, room: below(room, part)?, in_order }))
}

fn below(room: u8, part: Part<'_>) -> Result<u8, Error> {
    room.checked_sub(1).ok_or_else(|| Error::new(Cause::TooDeep, part.base))
}

/// A message that is an object.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    message: &'static Message,
    part: Part<'a>,
    /// Set for whole objects only: they have `apiVersion` and `kind`.
    pub(crate) kind: Option<Kind>,
    room: u8,
    pub(crate) in_order: bool,
}

impl<'a> Object<'a> {
    /// The members in the order of JSON; they must be noted first.
    #[inline]
    pub(crate) fn members(&self) -> Members<'a> {
        Members::new(self.message, self.part, self.room)
    }

    /// The members in the order of the message.
    #[inline]
    pub(crate) fn walk(&self) -> Walk<'a> {
        Walk::new(self.message, self.part, self.room)
    }
}

/// How to decode a value: what it is, how many levels may lie in it, and whether members come in the order of JSON.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    pub(crate) of: Of,
    pub(crate) room: u8,
    pub(crate) in_order: bool,
}

impl Source {
    /// Decodes a value from the wire; `part` is its place, and its bytes if it has some.
    #[inline]
    pub(crate) fn read<'a>(self, value: Value<'a>, part: Part<'a>) -> Result<Node<'a>, Error> {
        match (self.of, value) {
            (Of::String, Value::Bytes(_)) => Ok(Node::Text(part)),
            (Of::Message(number), Value::Bytes(_)) => self.message(number, part),
            (Of::Bool, Value::Varint(number)) => Ok(Node::Bool(number != 0)),
            (Of::Int32, Value::Varint(number)) => Ok(Node::Integer(i64::from(int32(number)))),
            (Of::Int64, Value::Varint(number)) => Ok(Node::Integer(number.cast_signed())),
            (Of::Bytes, Value::Bytes(bytes)) => Ok(Node::Bytes(bytes)),
            (Of::Double, Value::Fixed64(bits)) => match f64::from_bits(bits) {
                number if number.is_finite() => Ok(Node::Float(number)),
                _ => Err(part.malformed("a number is not finite, which JSON cannot express")),
            },
            _ => Err(part.malformed(WIRE_TYPE)),
        }
    }

    /// The value that JSON has for a field that the message lacks; `part` is its place.
    pub(crate) fn zero(self, part: Part<'_>) -> Result<Node<'_>, Error> {
        let empty = part.inner(&[], 0);
        match self.of {
            Of::String => Ok(Node::Text(empty)),
            Of::Bytes => Ok(Node::Null),
            Of::Bool => Ok(Node::Bool(false)),
            Of::Int32 | Of::Int64 => Ok(Node::Integer(0)),
            Of::Double => Ok(Node::Float(0.0)),
            Of::Message(number) => match Message::numbered(number) {
                Some(message) if message.form == Form::List => Ok(Node::Null),
                _ => self.message(number, empty),
            },
        }
    }

    pub(crate) fn list(self, fields: Run<'_>) -> Result<Node<'_>, Error> {
        let room = below(self.room, fields.part)?;
        Ok(Node::List(List { source: Self { room, ..self }, fields, packed: (0, 0) }))
    }

    pub(crate) fn map(self, fields: Run<'_>) -> Result<Node<'_>, Error> {
        let room = below(self.room, fields.part)?;
        Ok(Node::Map(Map { source: Self { room, ..self }, fields }))
    }

    #[inline]
    fn message(self, number: u16, part: Part<'_>) -> Result<Node<'_>, Error> {
        let Some(message) = Message::numbered(number) else { return Err(part.malformed("no such message")) };
        match message.form {
            Form::Object => {
                let room = below(self.room, part)?;
                Ok(Node::Object(Object { message, part, kind: None, room, in_order: self.in_order }))
            }
            form => self.special(form, message, part),
        }
    }

    fn special<'a>(self, form: Form, message: &'static Message, part: Part<'a>) -> Result<Node<'a>, Error> {
        if matches!(form, Form::List | Form::OrArray | Form::OrBool) {
            return self.one_of(form, message, part);
        }
        let Scalars { numbers, bytes } = Scalars::read(part)?;
        match form {
            // No server writes an empty one.
            Form::Quantity => Ok(Node::Text(bytes[0].unwrap_or(part.inner(b"0", 0)))),
            Form::Time | Form::MicroTime if part.bytes.is_empty() => Ok(Node::Null),
            Form::Time | Form::MicroTime => {
                let micros = (form == Form::MicroTime).then(|| int32(numbers[1]) / 1000);
                let stamp =
                    Stamp::at(numbers[0].cast_signed(), micros).map_err(|what| part.malformed(what))?;
                Ok(stamp.map_or(Node::Null, Node::Time))
            }
            Form::IntOrString => match numbers[0] {
                0 => Ok(Node::Integer(i64::from(int32(numbers[1])))),
                1 => Ok(Node::Text(bytes[2].unwrap_or(part.inner(&[], 0)))),
                _ => Err(part.malformed("neither an integer nor a string")),
            },
            _ => match bytes[0] {
                Some(object) if form == Form::Extension && object.bytes.starts_with(MAGIC) => {
                    self.enveloped(object)
                }
                Some(json) if !json.bytes.is_empty() => Ok(Node::Json(json, self.room)),
                _ => Ok(Node::Null),
            },
        }
    }

    fn enveloped(self, part: Part<'_>) -> Result<Node<'_>, Error> {
        let opened = envelope::open_part(part)?;
        let kind = Kind::of(opened.api_version, opened.kind);
        object(
            kind.ok_or_else(|| Error::new(Cause::UnknownKind, part.base))?,
            opened.raw,
            self.room,
            self.in_order,
        )
    }

    /// Messages that stand for one of their fields.
    fn one_of<'a>(self, form: Form, message: &'static Message, part: Part<'a>) -> Result<Node<'a>, Error> {
        let mut nodes = [None, None];
        let mut members = Members::new(message, part, self.room);
        members.note()?;
        for node in &mut nodes {
            let Some(place) = members.next()? else { break };
            *node = Some(members.node(&place)?).filter(|node| !node.is_null());
        }
        let [first, second] = nodes;
        Ok(match form {
            Form::List => match first {
                Some(list) => list,
                None => self.empty_list(message, part)?,
            },
            Form::OrArray => second.or(first).unwrap_or(Node::Null),
            _ => second.or(first).unwrap_or(Node::Bool(false)),
        })
    }

    /// A list that was written without elements is not `null`.
    fn empty_list<'a>(self, message: &'static Message, part: Part<'a>) -> Result<Node<'a>, Error> {
        match message.members().first() {
            Some(member) => Self { of: member.of, ..self }.list(Run::new(part.inner(&[], 0), 0, false)),
            None => Ok(Node::Null),
        }
    }
}

/// The 32 bits of 64 that count.
#[expect(clippy::cast_possible_truncation, reason = "protobuf writes negative ones in 64 bits")]
fn int32(number: u64) -> i32 {
    number.cast_signed() as i32
}

/// The first three fields of a small message; of a repeated field the last.
#[derive(Default)]
struct Scalars<'a> {
    numbers: [u64; 3],
    bytes: [Option<Part<'a>>; 3],
}

impl<'a> Scalars<'a> {
    fn read(part: Part<'a>) -> Result<Self, Error> {
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
fn in_32_bits(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The fields with one number.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    part: Part<'a>,
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
    fn next(&mut self) -> Result<Option<(Value<'a>, Part<'a>)>, Error> {
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

/// A list's elements.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    source: Source,
    fields: Run<'a>,
    /// Numbers may be packed into one field: the offset of the rest of it, and of its end.
    packed: (u32, u32),
}

impl<'a> List<'a> {
    /// How many elements are left, if known: numbers may be packed into one field.
    pub(crate) fn len(&self) -> Option<usize> {
        let is_counted =
            self.fields.count > 0 && matches!(self.source.of, Of::String | Of::Bytes | Of::Message(_));
        is_counted.then_some(self.fields.count as usize)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Node<'a>>, Error> {
        loop {
            if self.packed.0 < self.packed.1 {
                return self.unpack().map(Some);
            }
            let Some((value, part)) = self.fields.next()? else { return Ok(None) };
            let is_number = matches!(self.source.of, Of::Bool | Of::Int32 | Of::Int64);
            if is_number && matches!(value, Value::Bytes(_)) {
                let start = part.base - self.fields.part.base;
                self.packed = (in_32_bits(start), in_32_bits(start + part.bytes.len()));
            } else {
                return self.source.read(value, part).map(Some);
            }
        }
    }

    fn unpack(&mut self) -> Result<Node<'a>, Error> {
        let (start, end) = (self.packed.0 as usize, self.packed.1 as usize);
        let packed = self.fields.part;
        let packed = packed.inner(packed.bytes.get(start..end).unwrap_or_default(), start);
        let number = varint(packed.bytes).map_err(|error| packed.wire(error))?;
        let (number, length) = number.ok_or_else(|| packed.malformed("a list of numbers ends early"))?;
        self.packed.0 += in_32_bits(length);
        self.source.read(Value::Varint(number), packed)
    }
}

/// A map's entries.
#[derive(Clone, Copy)]
pub(crate) struct Map<'a> {
    source: Source,
    fields: Run<'a>,
}

impl<'a> Map<'a> {
    pub(crate) fn next(&mut self) -> Result<Option<(Part<'a>, Node<'a>)>, Error> {
        let Some((value, entry)) = self.fields.next()? else { return Ok(None) };
        let Value::Bytes(_) = value else { return Err(entry.malformed(WIRE_TYPE)) };
        let (mut key, mut value) = (entry.inner(&[], 0), None);
        let mut at = 0;
        while at < entry.bytes.len() {
            let span = Span::at(entry.bytes, at).map_err(|error| entry.wire(error))?;
            match (span.number, span.value(entry.bytes)) {
                (1, Value::Bytes(bytes)) => key = entry.inner(bytes, span.start),
                (1, _) => return Err(entry.malformed(WIRE_TYPE)),
                (2, _) => value = Some(at),
                _ => {}
            }
            at = span.end;
        }
        let node = match value {
            Some(at) => {
                let (value, part) = field_at(entry, at)?;
                self.source.entry(value, part)?
            }
            None => self.source.zero_entry(entry)?,
        };
        Ok(Some((key, node)))
    }
}

impl Source {
    /// An entry of a map, where Go makes no difference between an empty list and none.
    fn entry<'a>(self, value: Value<'a>, part: Part<'a>) -> Result<Node<'a>, Error> {
        match value {
            Value::Bytes([]) => self.zero_entry(part),
            _ => self.read(value, part),
        }
    }

    /// The zero value of an entry, where bytes are never missing.
    fn zero_entry(self, part: Part<'_>) -> Result<Node<'_>, Error> {
        match self.of {
            Of::Bytes => Ok(Node::Bytes(&[])),
            _ => self.zero(part),
        }
    }
}
