//! The trait that the generated code implements for messages, and the reading of a message with it.

use crate::fields::Context;

/// A struct that a message is decoded into.
pub(crate) trait Message: Sized {
    /// The struct with the members that JSON has even if the message lacks them.
    fn begin() -> Self;

    /// Reads all fields. Skips unknown ones.
    fn read_fields(&mut self, raw: &[u8], context: &mut Context);

    /// Whether all members are there without which serde refuses the struct.
    fn is_whole(&self) -> bool {
        true
    }
}

/// Reads a message into the struct.
pub(crate) fn fill<M: Message>(message: &mut M, raw: &[u8], context: &mut Context) {
    context.depth += 1;
    message.read_fields(raw, context);
    context.depth -= 1;
    context.is_unfit |= !message.is_whole();
}
