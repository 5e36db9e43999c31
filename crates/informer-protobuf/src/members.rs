//! The members that a message has in JSON, in the order of JSON.
//!
//! One pass over a message's fields notes for each member where it begins, and skips values by their lengths. So
//! members come in the order of JSON whatever the order of the fields, and no member is searched twice.
//!
//! Messages that no server writes are decoded by protobuf's rules: of a repeated value the last one counts, and other
//! fields may interrupt a list. One thing is refused instead: a repeated message, which protobuf would merge.

use crate::error::Error;
use crate::node::{Node, Run, Source};
use crate::part::Part;
use crate::schema::{MEMBERS_MAX, Many, Member, Message, Of, Presence, Slot};
use crate::wire::{Span, Value};

/// A walk over a message's members.
pub(crate) struct Members<'a> {
    of: &'static Message,
    part: Part<'a>,
    room: u8,
    /// The offset of each member's field; for a list, of its first element.
    starts: [u32; MEMBERS_MAX],
    present: u64,
    /// Lists with other fields between their elements.
    interrupted: u64,
    /// The members that are left.
    left: u64,
    inlined: [Inlined; INLINED_MAX],
}

/// A message whose fields are members of the one around it.
#[derive(Clone, Copy, Default)]
struct Inlined {
    ranks: u64,
    /// Its end, as an offset from the start of the outer message.
    end: usize,
}

/// The depth of inlined messages: a rule, with its operations, with its names.
const INLINED_MAX: usize = 2;

/// A member, and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) member: &'static Member,
    rank: usize,
    /// The offset in the whole object.
    pub(crate) at: usize,
}

impl<'a> Members<'a> {
    /// The members of this message; call `note` next. `room` levels of JSON may lie below them.
    pub(crate) fn new(of: &'static Message, part: Part<'a>, room: u8) -> Self {
        let (starts, inlined) = ([0; MEMBERS_MAX], [Inlined::default(); INLINED_MAX]);
        Self { of, part, room, starts, present: 0, interrupted: 0, left: 0, inlined }
    }

    /// Notes where the members begin.
    pub(crate) fn note(&mut self) -> Result<(), Error> {
        self.note_fields(self.of, 0, self.part.bytes.len(), 0)?;
        self.left = self.present | self.of.always;
        Ok(())
    }

    /// Notes the fields between these offsets: of a message whose members begin at that rank.
    fn note_fields(&mut self, of: &'static Message, start: usize, end: usize, base: u8) -> Result<(), Error> {
        let message = self.part.bytes.get(..end).unwrap_or_default();
        let mut at = start;
        let mut last = 0;
        while at < end {
            let span = Span::at(message, at).map_err(|error| self.part.wire(error))?;
            match of.slot(span.number) {
                Some(Slot::Member(rank)) => {
                    let rank = usize::from(base + rank);
                    if self.present & (1 << rank) == 0 {
                        self.present |= 1 << rank;
                        self.set_start(rank, at);
                    } else {
                        self.note_again(rank, at, last != span.number)?;
                    }
                }
                Some(Slot::Inline(of, rank)) => self.note_inlined(of, base + rank, span, message)?,
                None => {}
            }
            last = span.number;
            at = span.end;
        }
        Ok(())
    }

    #[inline]
    fn set_start(&mut self, rank: usize, at: usize) {
        if let Some(start) = self.starts.get_mut(rank) {
            // It fits: `Part::whole` has checked the length.
            *start = u32::try_from(at).unwrap_or(u32::MAX);
        }
    }

    /// Notes a field of a member that was noted before.
    fn note_again(&mut self, rank: usize, at: usize, is_interrupted: bool) -> Result<(), Error> {
        match self.of.members().get(rank) {
            Some(Member { many: Many::One, of: Of::Message(_), .. }) => {
                return Err(self.part.inner(&[], at).malformed(TWICE));
            }
            Some(Member { many: Many::One, .. }) => self.set_start(rank, at),
            _ if is_interrupted => self.interrupted |= 1 << rank,
            _ => {}
        }
        Ok(())
    }

    fn note_inlined(
        &mut self,
        of: &'static Message,
        base: u8,
        span: Span,
        message: &[u8],
    ) -> Result<(), Error> {
        let at = self.part.inner(&[], span.start);
        let Value::Bytes(_) = span.value(message) else { return Err(at.malformed(WIRE_TYPE)) };
        let count = u32::try_from(of.members().len()).unwrap_or(u32::MAX);
        let ranks = u64::MAX.checked_shr(u64::BITS - count).unwrap_or(0) << base;
        let inlined = Inlined { ranks, end: span.end };
        if self.inlined.iter().any(|known| known.ranks == ranks) {
            return Err(at.malformed(TWICE));
        }
        match self.inlined.iter_mut().find(|known| known.ranks == 0) {
            Some(place) => *place = inlined,
            None => return Err(at.malformed("too many messages are inlined")),
        }
        self.note_fields(of, span.start, span.end, base)
    }

    /// The next member that JSON has.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Place>, Error> {
        while self.left != 0 {
            let rank = self.left.trailing_zeros() as usize;
            self.left &= self.left - 1;
            let (Some(member), Some(&start)) = (self.of.members().get(rank), self.starts.get(rank)) else {
                continue;
            };
            let place = Place { member, rank, at: self.part.base + start as usize };
            if !self.is_left_out(&place).map_err(|error| error.within(member.name(), place.at))? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    #[inline]
    fn is_left_out(&self, place: &Place) -> Result<bool, Error> {
        match (place.member.presence, place.member.many) {
            (Presence::NotEmpty, Many::One) => {
                field_at(self.part, self.start(place.rank)).map(|(value, _)| is_empty(value))
            }
            // Only times have this; one without bytes is the zero time.
            (Presence::NotZero, Many::One) => self.node(place).map(|node| node.is_null()),
            _ => Ok(false),
        }
    }

    /// A member's value, or the value that JSON has if the message lacks it.
    #[inline]
    pub(crate) fn node(&self, place: &Place) -> Result<Node<'a>, Error> {
        let Place { member, rank, .. } = *place;
        let source = Source { of: member.of, room: self.room, in_order: true };
        let bit = 1 << rank;
        if self.present & bit == 0 {
            return match (member.presence, member.many) {
                (Presence::Always, Many::One) => source.zero(self.part),
                _ => Ok(Node::Null),
            };
        }
        if member.many == Many::One {
            let (value, part) = field_at(self.part, self.start(rank))?;
            return source.read(value, part);
        }
        let end =
            self.inlined.iter().filter(|inlined| inlined.ranks & bit != 0).map(|inlined| inlined.end).min();
        let bytes = self.part.bytes.get(..end.unwrap_or(self.part.bytes.len())).unwrap_or_default();
        let run = Run::new(self.part.inner(bytes, 0), self.start(rank), self.interrupted & bit != 0);
        if member.many == Many::List { source.list(run) } else { source.map(run) }
    }

    #[inline]
    fn start(&self, rank: usize) -> usize {
        self.starts.get(rank).map_or(0, |&start| start as usize)
    }
}

const TWICE: &str = "a message is repeated";
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
