//! The body of a response, and where it is cut.

use fastrand::Rng;
use informer_core::wire::Limits;

use crate::Choices;

/// Bytes of an input before the body: how long an item may be, and the lengths of the chunks, in turn.
const HEAD: usize = 8;

/// The input of a decoder.
pub(crate) struct Body<'a> {
    pub(crate) limits: Limits,
    pub(crate) bytes: &'a [u8],
    lengths: [u8; HEAD - 1],
}

impl<'a> Body<'a> {
    /// Any bytes are one.
    pub(crate) fn read(input: &'a [u8]) -> Self {
        let mut choices = Choices::new(input);
        let [limit, lengths @ ..] = choices.bytes::<HEAD>();
        let item_bytes = if limit.is_multiple_of(4) { 40 + usize::from(limit) } else { 16 << 20 };
        Self { limits: Limits { item_bytes }, bytes: choices.rest(), lengths }
    }

    /// An input that cuts a body at random.
    pub(crate) fn write(random: &mut Rng, body: &[u8]) -> Vec<u8> {
        let head: [u8; HEAD] = std::array::from_fn(|_| random.u8(..) >> random.u8(..8));
        [&head, body].concat()
    }

    /// The body in chunks, some of them empty.
    pub(crate) fn chunks(&self) -> Vec<&'a [u8]> {
        let mut chunks = Vec::new();
        let mut rest = self.bytes;
        let mut lengths = self.lengths.iter().cycle();
        while !rest.is_empty() {
            let length = lengths.next().map_or(1, |&length| usize::from(length));
            // Nothing but empty chunks would never end.
            let length = if self.lengths == [0; HEAD - 1] { 1 } else { length };
            let (chunk, after) = rest.split_at(length.min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        chunks
    }

    /// The memory bound of a decoder that holds one chunk and one incomplete item of at most this many bytes, of which a
    /// vector may have twice the room.
    pub(crate) fn holds_at_most_of(&self, item: usize, chunks: &[&[u8]]) -> usize {
        let longest = chunks.iter().map(|chunk| chunk.len()).max().unwrap_or_default();
        2 * (item.min(self.bytes.len()) + longest + 8)
    }
}
