//! Where the members of a message begin: one pass over its fields, which skips values by their lengths.
//!
//! Messages that no server writes are decoded by protobuf's rules: of a repeated value the last one counts, and other
//! fields may interrupt a list. One thing is refused instead: a repeated message, which protobuf would merge.

use crate::error::Error;
use crate::field::{Run, WIRE_TYPE, field_at};
use crate::part::Part;
use crate::schema::{MEMBERS_MAX, Many, Member, Message, Of, Slot};
use crate::wire::{Span, Value};

/// The places of a message's members, by their ranks in JSON.
pub(crate) struct Starts<'a> {
    message: &'static Message,
    pub(crate) part: Part<'a>,
    /// The offset of each member's field; for a list, of its first element.
    at: [u32; MEMBERS_MAX],
    /// The members that the message has.
    pub(crate) present: u64,
    /// Lists with other fields between their elements.
    interrupted: u64,
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

const TWICE: &str = "a message is repeated";

impl<'a> Starts<'a> {
    /// Of this message; call `note` next.
    pub(crate) fn new(message: &'static Message, part: Part<'a>) -> Self {
        let (at, inlined) = ([0; MEMBERS_MAX], [Inlined::default(); INLINED_MAX]);
        Self { message, part, at, present: 0, interrupted: 0, inlined }
    }

    /// Notes where the members begin.
    pub(crate) fn note(&mut self) -> Result<(), Error> {
        self.note_fields(self.message, 0, self.part.bytes.len(), 0)
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
        if let Some(start) = self.at.get_mut(rank) {
            // It fits: `Part::whole` has checked the length.
            *start = u32::try_from(at).unwrap_or(u32::MAX);
        }
    }

    /// Notes a field of a member that was noted before.
    fn note_again(&mut self, rank: usize, at: usize, is_interrupted: bool) -> Result<(), Error> {
        match self.message.members().get(rank) {
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

    /// The offset of a member's field.
    #[inline]
    pub(crate) fn at(&self, rank: usize) -> usize {
        self.at.get(rank).map_or(0, |&at| at as usize)
    }

    /// The value of a member that is no list.
    #[inline]
    pub(crate) fn value(&self, rank: usize) -> Result<(Value<'a>, Part<'a>), Error> {
        field_at(self.part, self.at(rank))
    }

    /// The elements of a list, or the entries of a map.
    #[inline]
    pub(crate) fn run(&self, rank: usize) -> Run<'a> {
        let bit = 1 << rank;
        let end =
            self.inlined.iter().filter(|inlined| inlined.ranks & bit != 0).map(|inlined| inlined.end).min();
        let bytes = self.part.bytes.get(..end.unwrap_or(self.part.bytes.len())).unwrap_or_default();
        Run::new(self.part.inner(bytes, 0), self.at(rank), self.interrupted & bit != 0)
    }
}
