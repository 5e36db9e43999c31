//! The members that a message has in JSON, in the order of JSON.
//!
//! [`Starts`] has noted for each member where it begins. So members come in the order of JSON whatever the order of the
//! fields, and no member is searched twice.

use crate::error::Error;
use crate::field::is_empty;
use crate::node::{Decoder, Node, Object};
use crate::schema::{Many, Member, Presence};
use crate::starts::Starts;

/// A walk over a message's members.
pub(crate) struct Members<'a> {
    members: &'static [Member],
    starts: Starts<'a>,
    room: u8,
    /// The members that JSON has even if the message lacks them.
    always: u64,
    /// The members that are left.
    left: u64,
}

/// A member, and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) member: &'static Member,
    rank: usize,
    /// The offset in the whole object.
    pub(crate) at: usize,
}

impl<'a> Members<'a> {
    /// The members of this object; call `note` next.
    #[inline]
    pub(crate) fn new(object: &Object<'a>) -> Self {
        let Object { message, part, room, .. } = *object;
        let starts = Starts::new(message, part);
        Self { members: message.members(), starts, room, always: message.always, left: 0 }
    }

    /// Notes where the members begin.
    pub(crate) fn note(&mut self) -> Result<(), Error> {
        self.starts.note()?;
        self.left = self.starts.present | self.always;
        Ok(())
    }

    /// The next member that JSON has.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Place>, Error> {
        while self.left != 0 {
            let rank = self.left.trailing_zeros() as usize;
            self.left &= self.left - 1;
            let Some(member) = self.members.get(rank) else { continue };
            let place = Place { member, rank, at: self.starts.part.base + self.starts.at(rank) };
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
                self.starts.value(place.rank).map(|(value, _)| is_empty(value))
            }
            // Only times have this; one without bytes is the zero time.
            (Presence::NotZero, Many::One) => self.node(place).map(|node| node.is_null()),
            _ => Ok(false),
        }
    }

    /// A member's value, or the value that JSON has if the message lacks it.
    #[inline]
    pub(crate) fn node(&self, place: &Place) -> Result<Node<'a>, Error> {
        let decoder = Decoder { of: place.member.of, room: self.room, in_order: true };
        decoder.member(place.member, &self.starts, place.rank)
    }
}
