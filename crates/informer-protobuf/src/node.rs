//! The JSON value of a message: the one place that interprets messages, the special ones included. The deserializer and the
//! writer of JSON only pass on its results.

use crate::envelope::{self, MAGIC};
use crate::error::{Error, ErrorKind};
use crate::field::{Run, Scalars, WIRE_TYPE, field_at, in_32_bits};
use crate::kind::Kind;
use crate::part::Part;
use crate::schema::{Form, Many, Member, Message, Of, Presence};
use crate::starts::Starts;
use crate::time::Stamp;
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
    let message = kind.message().ok_or_else(|| Error::new(ErrorKind::UnknownKind, part.base))?;
    let kind = Some(kind).filter(|kind| kind.is_said());
    Ok(Node::Object(Object { message, part, kind, room: below(room, part)?, in_order }))
}

fn below(room: u8, part: Part<'_>) -> Result<u8, Error> {
    room.checked_sub(1).ok_or_else(|| Error::new(ErrorKind::TooDeep, part.base))
}

/// A message that is an object.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    pub(crate) message: &'static Message,
    pub(crate) part: Part<'a>,
    /// Set for whole objects only: they have `apiVersion` and `kind`.
    pub(crate) kind: Option<Kind>,
    /// How many levels of JSON may lie below it.
    pub(crate) room: u8,
    pub(crate) in_order: bool,
}

/// How to decode a value: what it is, how many levels may lie in it, and whether members come in the order of JSON.
#[derive(Clone, Copy)]
pub(crate) struct Decoder {
    pub(crate) of: Of,
    pub(crate) room: u8,
    pub(crate) in_order: bool,
}

impl Decoder {
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
    fn zero(self, part: Part<'_>) -> Result<Node<'_>, Error> {
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

    /// The value of a member, or the one that JSON has if the message lacks it.
    #[inline]
    pub(crate) fn member<'a>(
        self,
        member: &Member,
        starts: &Starts<'a>,
        rank: usize,
    ) -> Result<Node<'a>, Error> {
        match member.many {
            _ if starts.present & (1 << rank) == 0 => self.lacking(member, starts.part),
            Many::One => starts.value(rank).and_then(|(value, part)| self.read(value, part)),
            Many::List => self.list(starts.run(rank)),
            Many::Map => self.map(starts.run(rank)),
        }
    }

    /// The value that JSON has for a member that the message lacks; `part` is the message.
    #[inline]
    pub(crate) fn lacking<'a>(self, member: &Member, part: Part<'a>) -> Result<Node<'a>, Error> {
        match (member.presence, member.many) {
            (Presence::Always, Many::One) => self.zero(part),
            _ => Ok(Node::Null),
        }
    }

    pub(crate) fn list(self, fields: Run<'_>) -> Result<Node<'_>, Error> {
        let room = below(self.room, fields.part)?;
        Ok(Node::List(List { decoder: Self { room, ..self }, fields, packed: (0, 0) }))
    }

    pub(crate) fn map(self, fields: Run<'_>) -> Result<Node<'_>, Error> {
        let room = below(self.room, fields.part)?;
        Ok(Node::Map(Map { decoder: Self { room, ..self }, fields }))
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
            kind.ok_or_else(|| Error::new(ErrorKind::UnknownKind, part.base))?,
            opened.raw,
            self.room,
            self.in_order,
        )
    }

    /// Messages that stand for one of their fields.
    fn one_of<'a>(self, form: Form, message: &'static Message, part: Part<'a>) -> Result<Node<'a>, Error> {
        let mut starts = Starts::new(message, part);
        starts.note()?;
        let node = |rank: usize| match message.members().get(rank) {
            Some(member) => Self { of: member.of, ..self }.member(member, &starts, rank),
            None => Ok(Node::Null),
        };
        match (form, node(0)?, node(1)?) {
            (Form::List, Node::Null, _) => self.empty_list(message, part),
            (_, first, Node::Null) => Ok(first),
            (_, _, second) => Ok(second),
        }
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

/// A list's elements.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    decoder: Decoder,
    fields: Run<'a>,
    /// Numbers may be packed into one field: the offset of the rest of it, and of its end.
    packed: (u32, u32),
}

impl<'a> List<'a> {
    /// How many elements are left, if known: numbers may be packed into one field.
    pub(crate) fn len(&self) -> Option<usize> {
        let is_counted =
            self.fields.count > 0 && matches!(self.decoder.of, Of::String | Of::Bytes | Of::Message(_));
        is_counted.then_some(self.fields.count as usize)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Node<'a>>, Error> {
        loop {
            if self.packed.0 < self.packed.1 {
                return self.unpack().map(Some);
            }
            let Some((value, part)) = self.fields.next()? else { return Ok(None) };
            let is_number = matches!(self.decoder.of, Of::Bool | Of::Int32 | Of::Int64);
            if is_number && matches!(value, Value::Bytes(_)) {
                let start = part.base - self.fields.part.base;
                self.packed = (in_32_bits(start), in_32_bits(start + part.bytes.len()));
            } else {
                return self.decoder.read(value, part).map(Some);
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
        self.decoder.read(Value::Varint(number), packed)
    }
}

/// A map's entries.
#[derive(Clone, Copy)]
pub(crate) struct Map<'a> {
    decoder: Decoder,
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
                self.decoder.entry(value, part)?
            }
            None => self.decoder.zero_entry(entry)?,
        };
        Ok(Some((key, node)))
    }
}

impl Decoder {
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
