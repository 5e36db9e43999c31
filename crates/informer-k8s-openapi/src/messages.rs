//! What the generated code says of a message, and what follows from it for a field of its type.

use crate::fields::{At, Context, Unfit};

/// A struct that a message is decoded into.
pub(crate) trait Message: Sized {
    /// The struct with the members that JSON has even if the message lacks them.
    fn begin() -> Self;

    /// Reads the field at `at`. Skips unknown ones.
    fn field(&mut self, at: &mut At<'_>, context: &mut Context) -> Result<(), Unfit>;

    /// Whether all members are there without which serde refuses the struct.
    fn is_whole(&self) -> bool {
        true
    }
}

/// Reads all fields of a message into the struct.
pub(crate) fn fill<M: Message>(message: &mut M, raw: &[u8], context: &mut Context) -> Result<(), Unfit> {
    context.depth += 1;
    let mut at = At::before(raw);
    while at.next()? {
        message.field(&mut at, context)?;
    }
    context.depth -= 1;
    if message.is_whole() { Ok(()) } else { Err(Unfit) }
}
