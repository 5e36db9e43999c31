//! Protobuf's wire format, the part that writing messages needs
//! ([encoding](https://protobuf.dev/programming-guides/encoding/)).

/// Appends a varint: seven bits per byte, in as few bytes as possible.
pub fn varint(value: u64, out: &mut Vec<u8>) {
    let mut bytes = [0; 10];
    let size = encode(value, &mut bytes);
    out.extend_from_slice(&bytes[..size]);
}

/// Appends a string field.
pub fn text(number: u64, text: &str, out: &mut Vec<u8>) {
    varint(number << 3 | 2, out);
    varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a field that is a message, or bytes; `content` writes it.
///
/// ```
/// let mut out = Vec::new();
/// serve::wire::message(1, &mut out, |out| serve::wire::text(2, "x", out));
/// assert_eq!(out, b"\x0a\x03\x12\x01x");
/// ```
pub fn message(number: u64, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    varint(number << 3 | 2, out);
    let begin = out.len();
    content(out);
    close(begin, out);
}

/// Inserts the length of everything written since `begin` before it.
pub fn close(begin: usize, out: &mut Vec<u8>) {
    let length = out.len().saturating_sub(begin);
    let mut head = [0; 10];
    let size = encode(length as u64, &mut head);
    out.extend_from_slice(&head[..size]);
    out.copy_within(begin..begin + length, begin + size);
    out[begin..begin + size].copy_from_slice(&head[..size]);
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn encode(mut value: u64, bytes: &mut [u8; 10]) -> usize {
    let mut size = 0;
    while value >= 0x80 {
        bytes[size] = value as u8 | 0x80;
        value >>= 7;
        size += 1;
    }
    bytes[size] = value as u8;
    size + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_seven_bits_in_a_byte() {
        for (value, expected) in [
            (0, &b"\0"[..]),
            (127, b"\x7f"),
            (300, b"\xac\x02"),
            (u64::MAX, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ] {
            let mut out = Vec::new();
            varint(value, &mut out);
            assert_eq!(out, expected, "{value}");
        }
    }

    #[test]
    fn the_length_of_a_message_stands_before_it() {
        for length in [0, 1, 127, 128, 20_000] {
            let content = vec![7; length];
            let mut out = b"x".to_vec();
            message(3, &mut out, |out| out.extend_from_slice(&content));
            let mut expected = b"x\x1a".to_vec();
            varint(length as u64, &mut expected);
            expected.extend_from_slice(&content);
            assert_eq!(out, expected, "{length}");
        }
    }
}
