//! Strings of JSON as Go's encoder writes them: it also escapes what could be taken for HTML or for a line of
//! JavaScript.

/// Bytes that cannot stand in a string unescaped. The line and paragraph separators begin with the last of them.
pub(super) static IS_SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    let mut others = br#""\<>&"#.as_slice();
    while let [other, rest @ ..] = others {
        table[*other as usize] = true;
        others = rest;
    }
    table[0xe2] = true;
    table
};

/// Appends a string with its quotes. Each byte that is no text becomes a replacement character.
#[inline]
pub(super) fn write(text: &[u8], json: &mut Vec<u8>) {
    json.push(b'"');
    if is_plain(text) {
        json.extend_from_slice(text);
    } else {
        for chunk in text.utf8_chunks() {
            escape_all(chunk.valid().as_bytes(), json);
            chunk.invalid().iter().for_each(|_| json.extend_from_slice(b"\\ufffd"));
        }
    }
    json.push(b'"');
}

/// Whether the text is ASCII without anything to escape, as nearly all strings are. The loops have no branches, so that
/// the compiler handles many bytes per step.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    let is_plain = |byte: &u8| {
        matches!(byte, 0x20..0x80)
            & (*byte != b'"')
            & (*byte != b'\\')
            & (*byte != b'<')
            & (*byte != b'>')
            & (*byte != b'&')
    };
    let (chunks, rest) = text.as_chunks::<16>();
    chunks.iter().all(|chunk| chunk.iter().fold(true, |plain, byte| plain & is_plain(byte)))
        && rest.iter().fold(true, |plain, byte| plain & is_plain(byte))
}

fn escape_all(mut text: &[u8], json: &mut Vec<u8>) {
    while let Some(at) = text.iter().position(|&byte| IS_SPECIAL[usize::from(byte)]) {
        let (plain, special) = text.split_at(at);
        json.extend_from_slice(plain);
        text = escape(special, json);
    }
    json.extend_from_slice(text);
}

/// Writes the first character, and returns the rest.
pub(super) fn escape<'a>(text: &'a [u8], json: &mut Vec<u8>) -> &'a [u8] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let (&first, rest) = text.split_first().unwrap_or((&0, &[]));
    let short = match first {
        b'"' | b'\\' => first,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        0xe2 => {
            let (escaped, length) = match rest {
                [0x80, 0xa8, ..] => (&b"\\u2028"[..], 3),
                [0x80, 0xa9, ..] => (&b"\\u2029"[..], 3),
                _ => (&[0xe2][..], 1),
            };
            json.extend_from_slice(escaped);
            return text.get(length..).unwrap_or_default();
        }
        _ => {
            json.extend_from_slice(b"\\u00");
            json.push(DIGITS[usize::from(first >> 4)]);
            json.push(DIGITS[usize::from(first & 0xf)]);
            return rest;
        }
    };
    json.extend_from_slice(&[b'\\', short]);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut json = Vec::new();
        write(text.as_bytes(), &mut json);
        String::from_utf8(json).unwrap()
    }

    #[test]
    fn each_character_comes_back() {
        for code in (0..0x3000).chain(0x1f600..0x1f610) {
            let text = format!("a{}b", char::from_u32(code).unwrap());
            assert_eq!(serde_json::from_str::<String>(&written(&text)).unwrap(), text);
        }
    }

    #[test]
    fn strings_are_escaped_as_go_does() {
        assert_eq!(
            written("<a href=\"x\">&\u{2028}\n\u{1}\u{8}€"),
            r#""\u003ca href=\"x\"\u003e\u0026\u2028\n\u0001\b€""#
        );
    }

    #[test]
    fn each_byte_that_is_no_text_becomes_a_replacement_character() {
        // As Go's encoder does: a character that is cut short counts its bytes.
        let mut json = Vec::new();
        write(b"caf\xc3 \xff\xe2\x82<\xed\xa0\x80", &mut json);
        assert_eq!(
            String::from_utf8(json).unwrap(),
            r#""caf\ufffd \ufffd\ufffd\ufffd\u003c\ufffd\ufffd\ufffd""#
        );
    }
}
