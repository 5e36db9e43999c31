//! The naive decoder of a complete message.

use informer_protobuf::wire::varint;

/// The numbers and bytes of its fields, or nothing where one is no field or is cut short. A number has no bytes.
pub(super) fn fields(mut message: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = number(&mut message)?;
        let length = match tag & 7 {
            0 => number(&mut message).map(|_| 0)?,
            1 => 8,
            2 => number(&mut message)?,
            5 => 4,
            _ => return None,
        };
        let (bytes, rest) = message.split_at_checked(usize::try_from(length).ok()?)?;
        message = rest;
        fields.push((tag >> 3, bytes));
    }
    fields.iter().all(|(number, _)| *number > 0).then_some(fields)
}

fn number(message: &mut &[u8]) -> Option<u64> {
    let (number, length) = varint(message).ok()??;
    *message = &message[length..];
    Some(number)
}
