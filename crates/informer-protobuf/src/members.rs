//! The members that a message has in JSON, in the order of JSON.
//!
//! One pass over a message's fields notes for each member where it begins; values are passed by their lengths. So members
//! come in their order whatever that of the fields is, and none is looked for twice.
//!
//! Messages that no server writes are read as protobuf has it: of a value given twice the last one counts, and lists may be
//! interrupted by other fields. Two things are refused instead: a message given twice (protobuf would merge it), and
//! an interrupted list among inlined fields.

use crate::error::Error;
use crate::node::{Node, Source};
use crate::part::Part;
use crate::schema::{MEMBERS_MAX, Many, Member, Message, Of, Presence, Slot};
use crate::wire::{Field, Fields, Value};

/// A walk over a message's members.
pub(crate) struct Members<'a> {
    of: &'static Message,
    part: Part<'a>,
    room: u8,
    /// Where each member's field begins, the first of a list's, and how many fields it has.
    fields: [(u32, u32); MEMBERS_MAX],
    present: u64,
    /// What is still to come.
    left: u64,
}

impl<'a> Members<'a> {
    /// `room` levels of JSON may lie below the members.
    pub(crate) fn of(of: &'static Message, part: Part<'a>, room: u8) -> Result<Self, Error> {
        let fields = [(0, 0); MEMBERS_MAX];
        let mut members = Self { of, part, room, fields, present: 0, left: 0 };
        members.note(of, part, 0)?;
        members.left = members.present | of.always;
        Ok(members)
    }

    /// Notes the fields of a message whose members begin with that rank.
    fn note(&mut self, of: &'static Message, part: Part<'a>, base: u8) -> Result<(), Error> {
        let mut fields = Fields::new(part.bytes);
        let mut last = 0;
        loop {
            let at = fields.offset();
            let Some(field) = fields.next() else { return Ok(()) };
            let Field { number, value } = field.map_err(|error| part.wire(error))?;
            match of.slot(number) {
                Some(Slot::Member(rank)) => {
                    let rank = usize::from(base + rank);
                    let is_interrupted = last != number && base > 0;
                    self.note_member(rank, part.inner(&[], at), is_interrupted)?;
                }
                Some(Slot::Inline(of, rank)) => {
                    let Value::Bytes(bytes) = value else {
                        return Err(part.inner(&[], at).malformed(WIRE_TYPE));
                    };
                    self.inline(of, part.inner(bytes, fields.offset() - bytes.len()), base + rank)?;
                }
                None => {}
            }
            last = number;
        }
    }

    #[inline]
    fn note_member(&mut self, rank: usize, at: Part<'a>, is_interrupted: bool) -> Result<(), Error> {
        let Some(entry) = self.fields.get_mut(rank) else { return Ok(()) };
        // Positions fit: `Part::whole` has seen to it.
        let start = u32::try_from(at.base - self.part.base).unwrap_or(u32::MAX);
        if self.present & (1 << rank) == 0 {
            self.present |= 1 << rank;
            *entry = (start, 1);
            return Ok(());
        }
        match self.of.members().get(rank) {
            Some(Member { many: Many::One, of: Of::Message(_), .. }) => return Err(at.malformed(TWICE)),
            Some(Member { many: Many::One, .. }) => entry.0 = start,
            _ if is_interrupted => return Err(at.malformed("an inlined list is interrupted")),
            _ => entry.1 += 1,
        }
        Ok(())
    }

    #[cold]
    fn inline(&mut self, of: &'static Message, part: Part<'a>, base: u8) -> Result<(), Error> {
        let count = of.members().len();
        let bits = u64::MAX.checked_shr(64 - u32::try_from(count).unwrap_or(64)).unwrap_or(0);
        if self.present & (bits << base) != 0 {
            return Err(part.malformed(TWICE));
        }
        self.note(of, part, base)
    }

    /// The next member, and where it stands.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(&'static Member, Node<'a>, usize)>, Error> {
        while self.left != 0 {
            let rank = self.left.trailing_zeros() as usize;
            self.left &= self.left - 1;
            let is_present = self.present & (1 << rank) != 0;
            let (Some(member), Some(&(start, count))) = (self.of.members().get(rank), self.fields.get(rank))
            else {
                continue;
            };
            let node =
                if is_present { self.given(member, start, count)? } else { Some(self.absent(member)?) };
            if let Some(node) = node {
                return Ok(Some((member, node, self.part.base + start as usize)));
            }
        }
        Ok(None)
    }

    /// A member that the message has; none if JSON leaves it out.
    #[inline]
    fn given(&self, member: &'static Member, start: u32, count: u32) -> Result<Option<Node<'a>>, Error> {
        let at = start as usize;
        let source = Source { of: member.of, room: self.room };
        match member.many {
            Many::One => {
                let (value, part) = field_at(self.part, at)?;
                let is_left_out = match member.presence {
                    Presence::NotEmpty => is_empty(value),
                    // Times alone are so, and the zero time has no bytes.
                    Presence::NotZero => is_empty(value) || source.read(value, part)?.is_null(),
                    Presence::Always | Presence::Nullable | Presence::Given => false,
                };
                if is_left_out { Ok(None) } else { source.read(value, part).map(Some) }
            }
            Many::List => source.list(self.part, at, count).map(Some),
            Many::Map => source.map(self.part, at, count).map(Some),
        }
    }

    fn absent(&self, member: &'static Member) -> Result<Node<'a>, Error> {
        match (member.presence, member.many) {
            (Presence::Always, Many::One) => Source { of: member.of, room: self.room }.zero(self.part),
            _ => Ok(Node::Null),
        }
    }
}

const TWICE: &str = "a message is given twice";
pub(crate) const WIRE_TYPE: &str = "a field has another wire type than its kind of value";

/// The value of the field that begins there, and its bytes.
#[inline]
pub(crate) fn field_at(part: Part<'_>, at: usize) -> Result<(Value<'_>, Part<'_>), Error> {
    let mut fields = Fields::from(part.bytes, at);
    match fields.next() {
        Some(Ok(Field { value: Value::Bytes(bytes), .. })) => {
            Ok((Value::Bytes(bytes), part.inner(bytes, fields.offset() - bytes.len())))
        }
        Some(Ok(Field { value, .. })) => Ok((value, part.inner(&[], at))),
        Some(Err(error)) => Err(part.wire(error)),
        None => Err(part.inner(&[], at).malformed("the message ends early")),
    }
}

/// Zero counts as empty.
fn is_empty(value: Value<'_>) -> bool {
    match value {
        Value::Varint(number) => number == 0,
        // Minus zero is a number that Go leaves out as well.
        Value::Fixed64(bits) => f64::from_bits(bits) == 0.0,
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Fixed32(_) => false,
    }
}
