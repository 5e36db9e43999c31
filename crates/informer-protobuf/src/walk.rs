//! The members of a message in the order of its fields: one pass, for decoders that accept any order.
//!
//! Servers write each field once, and the elements of a list one after the other. [`Members`](crate::members::Members)
//! handles all other messages: it scans all of a message before it returns anything ([`ErrorKind::Unordered`]).

use crate::error::{Error, ErrorKind};
use crate::field::{Run, WIRE_TYPE, is_empty};
use crate::node::{Decoder, Node, Object};
use crate::part::Part;
use crate::schema::{Many, Member, Message, Presence, Slot, Slots};
use crate::wire::{Span, Value};

/// A walk over a message's fields.
pub(crate) struct Walk<'a> {
    members: &'static [Member],
    part: Part<'a>,
    room: u8,
    /// The message whose fields come next, and the messages around it.
    frame: Frame,
    around: [Option<Frame>; INLINED_MAX],
    at: usize,
    /// The last member found, and its field; `None` if the message lacks it.
    found: Option<(&'static Member, Option<Span>)>,
    found_at: usize,
    /// The members whose fields were found.
    seen: u64,
    /// The inlined messages that were found, by their first rank and by their depth.
    entered: [u64; INLINED_MAX],
    /// The members that JSON has even if the message lacks them.
    always: u64,
}

/// A message, or an inlined one: its fields are members of the message around it.
#[derive(Clone, Copy)]
struct Frame {
    slots: Slots,
    base: u8,
    end: usize,
}

/// The depth of inlined messages: an admission rule, with its operations, with its names.
const INLINED_MAX: usize = 2;

impl<'a> Walk<'a> {
    #[inline]
    pub(crate) fn new(object: &Object<'a>) -> Self {
        let Object { message, part, room, .. } = *object;
        Self {
            members: message.members(),
            part,
            room,
            frame: Frame { slots: message.slots(), base: 0, end: part.bytes.len() },
            around: [None; INLINED_MAX],
            at: 0,
            found: None,
            found_at: 0,
            seen: 0,
            entered: [0; INLINED_MAX],
            always: message.always,
        }
    }

    /// The next member that JSON has. Call `node` for its value before the next call.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<&'static Member>, Error> {
        loop {
            let Frame { slots, base, end } = self.frame;
            let fields = self.part.bytes.get(..end).unwrap_or_default();
            while self.at < end {
                let span = Span::at(fields, self.at).map_err(|error| self.part.wire(error))?;
                match slots.get(span.number) {
                    Some(Slot::Member(rank)) => {
                        if let Some(member) = self.member(base + rank, span, fields)? {
                            return Ok(Some(member));
                        }
                    }
                    Some(Slot::Inline(of, rank)) => {
                        self.enter(of, base + rank, span, fields)?;
                        break;
                    }
                    None => self.at = span.end,
                }
            }
            if self.at >= self.frame.end && !self.leave() {
                return Ok(self.next_lacking());
            }
        }
    }

    /// The last member found, and its offset in the whole object.
    #[inline]
    pub(crate) fn found(&self) -> (&'static str, usize) {
        (self.found.map_or("", |(member, _)| member.name()), self.found_at())
    }

    #[inline]
    fn found_at(&self) -> usize {
        self.part.base + self.found_at
    }

    /// The value of the last member found.
    #[inline]
    pub(crate) fn node(&mut self) -> Result<Node<'a>, Error> {
        let Some((member, span)) = self.found.take() else { return Ok(Node::Null) };
        let decoder = self.decoder(member);
        let Some(span) = span else { return decoder.lacking(member, self.part) };
        match member.many {
            Many::One => self.value(decoder, span),
            Many::List => self.run(span).and_then(|run| decoder.list(run)),
            Many::Map => self.run(span).and_then(|run| decoder.map(run)),
        }
    }

    #[inline]
    fn decoder(&self, member: &Member) -> Decoder {
        Decoder { of: member.of, room: self.room, in_order: false }
    }

    #[inline]
    fn value(&self, decoder: Decoder, span: Span) -> Result<Node<'a>, Error> {
        let value = span.value(self.part.bytes);
        let bytes = if let Value::Bytes(bytes) = value { bytes } else { &[] };
        decoder.read(value, self.part.inner(bytes, span.start))
    }

    /// The member of a field, unless JSON omits it.
    #[inline]
    fn member(&mut self, rank: u8, span: Span, fields: &'a [u8]) -> Result<Option<&'static Member>, Error> {
        self.found_at = self.at;
        let bit = bit(rank);
        if self.seen & bit != 0 {
            return Err(Error::new(ErrorKind::Unordered, self.found_at()));
        }
        self.seen |= bit;
        self.at = span.end;
        let Some(member) = self.members.get(usize::from(rank)) else { return Ok(None) };
        if member.many == Many::One {
            let is_left_out = match member.presence {
                Presence::NotEmpty => is_empty(span.value(fields)),
                // Only times have this.
                Presence::NotZero => {
                    let node = self.value(self.decoder(member), span);
                    node.map_err(|error| error.within(member.name(), self.found_at()))?.is_null()
                }
                _ => false,
            };
            if is_left_out {
                return Ok(None);
            }
        }
        self.found = Some((member, Some(span)));
        Ok(Some(member))
    }

    /// The fields of one number that stand together.
    fn run(&mut self, first: Span) -> Result<Run<'a>, Error> {
        let fields = self.part.bytes.get(..self.frame.end).unwrap_or_default();
        let mut count = 1;
        while self.at < fields.len() {
            let span = Span::at(fields, self.at).map_err(|error| self.part.wire(error))?;
            if span.number != first.number {
                break;
            }
            count += 1;
            self.at = span.end;
        }
        let bytes = fields.get(..self.at).unwrap_or_default();
        Ok(Run::counted(self.part.inner(bytes, 0), self.found_at, count))
    }

    fn enter(&mut self, of: &'static Message, base: u8, span: Span, fields: &[u8]) -> Result<(), Error> {
        let Value::Bytes(_) = span.value(fields) else {
            return Err(self.part.inner(&[], span.start).malformed(WIRE_TYPE));
        };
        let depth = self.around.iter().flatten().count();
        let (Some(entered), Some(around)) = (self.entered.get_mut(depth), self.around.get_mut(depth)) else {
            return Err(self.part.inner(&[], span.start).malformed("too many messages are inlined"));
        };
        if *entered & bit(base) != 0 {
            return Err(Error::new(ErrorKind::Unordered, self.part.base + self.at));
        }
        *entered |= bit(base);
        *around = Some(self.frame);
        self.frame = Frame { slots: of.slots(), base, end: span.end };
        self.at = span.start;
        Ok(())
    }

    /// Continues with the message around this one, if any.
    fn leave(&mut self) -> bool {
        let around = self.around.iter_mut().rev().find_map(Option::take);
        self.frame = around.unwrap_or(self.frame);
        around.is_some()
    }

    /// The members that JSON always has come last.
    fn next_lacking(&mut self) -> Option<&'static Member> {
        let lacking = self.always & !self.seen;
        let member = self.members.get(lacking.trailing_zeros() as usize)?;
        self.seen |= lacking & lacking.wrapping_neg();
        self.found = Some((member, None));
        self.found_at = 0;
        Some(member)
    }
}

fn bit(rank: u8) -> u64 {
    1_u64.checked_shl(rank.into()).unwrap_or(0)
}
