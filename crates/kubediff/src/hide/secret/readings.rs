//! The decoded forms of a text.

use std::ops::Range;

/// A decoded text, and what of the original each of its bytes stands for.
pub(super) struct Reading {
    pub(super) bytes: Vec<u8>,
    /// Of each byte.
    places: Vec<(u32, u32)>,
}

/// How often a backslash may be escaped itself: JSON in a JSON string in a JSON string.
const ESCAPES: usize = 3;

/// White space around a line break that belongs to it. Bounded, because it is looked for at every byte.
const MAX_BLANK: usize = 128;

/// The longest name of an HTML character between `&` and `;`.
const MAX_ENTITY: usize = 8;

/// Gives the decoded forms of `text`: as a URL or form, as HTML, as a string of JSON, YAML or a programming language, and with its
/// lines joined. None for a text that is the same in all of them.
pub(super) fn each<E>(text: &[u8], mut visit: impl FnMut(&Reading) -> Result<(), E>) -> Result<(), E> {
    let (mut percent, mut plus, mut entity, mut backslash, mut line) = (false, false, false, false, false);
    for byte in text {
        percent |= *byte == b'%';
        plus |= *byte == b'+';
        entity |= *byte == b'&';
        backslash |= *byte == b'\\';
        line |= *byte == b'\n';
    }
    if percent {
        deeper(Reading::of(text, percent_unit), 2, b'%', percent_unit, &mut visit)?;
    }
    if plus {
        visit(&Reading::of(text, |rest| match rest {
            [b'+', ..] => Some((Unit::byte(b' '), 1)),
            _ => percent_unit(rest),
        }))?;
    }
    if entity {
        deeper(Reading::of(text, html_decoded), 2, b'&', html_decoded, &mut visit)?;
    }
    if backslash {
        deeper(Reading::of(text, unescaped), ESCAPES, b'\\', unescaped, &mut |reading| {
            visit(reading)?;
            // An escaped line break is one now.
            if reading.bytes.contains(&b'\n') {
                visit(&reading.again(unfolded))?;
                visit(&reading.again(folded))?;
            }
            Ok(())
        })?;
    }
    if line {
        visit(&Reading::of(text, unfolded))?;
        visit(&Reading::of(text, folded))?;
    }
    Ok(())
}

/// A reading, and its reading, as long as there is something to decode.
fn deeper<E>(
    first: Reading,
    times: usize,
    sign: u8,
    decode: fn(&[u8]) -> Option<(Unit, usize)>,
    visit: &mut impl FnMut(&Reading) -> Result<(), E>,
) -> Result<(), E> {
    let mut reading = first;
    for _ in 1..times {
        visit(&reading)?;
        if !reading.bytes.contains(&sign) {
            return Ok(());
        }
        reading = reading.again(decode);
    }
    visit(&reading)
}

/// The bytes of one decoded character.
struct Unit([u8; 4], usize);

impl Unit {
    fn byte(byte: u8) -> Self {
        Self([byte, 0, 0, 0], 1)
    }

    fn char(c: char) -> Self {
        let mut bytes = [0; 4];
        let length = c.encode_utf8(&mut bytes).len();
        Self(bytes, length)
    }

    /// Nothing: the input is left out.
    const NOTHING: Self = Self([0; 4], 0);
}

impl Reading {
    /// `decode` says what the text begins with and how many bytes of it that is, unless it is the byte itself.
    fn of(text: &[u8], decode: impl Fn(&[u8]) -> Option<(Unit, usize)>) -> Self {
        let mut reading =
            Self { bytes: Vec::with_capacity(text.len()), places: Vec::with_capacity(text.len()) };
        let mut at = 0;
        while let Some(rest @ [first, ..]) = text.get(at..) {
            let (Unit(bytes, length), taken) = decode(rest).unwrap_or((Unit::byte(*first), 1));
            let after = at + taken.max(1);
            // A text of over 4 GiB is none that a server sends.
            let place = (u32::try_from(at).unwrap_or(u32::MAX), u32::try_from(after).unwrap_or(u32::MAX));
            reading.bytes.extend(bytes.iter().take(length));
            reading.places.extend(std::iter::repeat_n(place, length));
            at = after;
        }
        reading
    }

    /// The reading of this reading.
    fn again(&self, decode: impl Fn(&[u8]) -> Option<(Unit, usize)>) -> Self {
        let mut reading = Self::of(&self.bytes, decode);
        for place in &mut reading.places {
            let first = self.places.get(place.0 as usize).map_or(0, |place| place.0);
            let last = self.places.get((place.1 as usize).saturating_sub(1));
            *place = (first, last.map_or(first, |place| place.1));
        }
        reading
    }

    /// The part of the original that these bytes stand for.
    pub(super) fn original(&self, bytes: Range<usize>) -> Range<usize> {
        let start = self.places.get(bytes.start).map_or(0, |place| place.0 as usize);
        let last = bytes.end.checked_sub(1).and_then(|last| self.places.get(last));
        start..last.map_or(start, |place| place.1 as usize)
    }

    /// Whether these bytes are the same in the original.
    pub(super) fn is_as_in_original(&self, bytes: Range<usize>) -> bool {
        self.original(bytes.clone()).len() == bytes.len()
    }
}

/// A part of a URL, decoded.
pub(super) fn percent_decoded(text: &[u8]) -> Vec<u8> {
    Reading::of(text, percent_unit).bytes
}

/// A text of XML, decoded.
pub(super) fn without_entities(text: &[u8]) -> Vec<u8> {
    Reading::of(text, html_decoded).bytes
}

/// A text of a shell or of properties, decoded.
pub(super) fn without_escapes(text: &[u8]) -> Vec<u8> {
    Reading::of(text, unescaped).bytes
}

/// A named or numbered character: `&amp;`, `&#39;`, `&#x27;`.
fn html_decoded(text: &[u8]) -> Option<(Unit, usize)> {
    let inside = text.strip_prefix(b"&")?;
    let end = inside.iter().take(MAX_ENTITY + 1).position(|byte| *byte == b';')?;
    let name = str::from_utf8(inside.get(..end)?).ok()?;
    let c = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(number) => u32::from_str_radix(number, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((Unit::char(c), end + 2))
}

fn percent_unit(text: &[u8]) -> Option<(Unit, usize)> {
    let [b'%', high, low, ..] = *text else { return None };
    let byte = 16 * digit(high)? + digit(low)?;
    Some((Unit::byte(u8::try_from(byte).ok()?), 3))
}

fn unescaped(text: &[u8]) -> Option<(Unit, usize)> {
    let [b'\\', kind, ref rest @ ..] = *text else { return None };
    let byte = match kind {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'u' => return code_unit(rest),
        other => other,
    };
    Some((Unit::byte(byte), 2))
}

/// The code unit after `\u`, a surrogate with its partner.
fn code_unit(text: &[u8]) -> Option<(Unit, usize)> {
    let first = four_digits(text)?;
    if let Some(c) = char::from_u32(first) {
        return Some((Unit::char(c), 6));
    }
    let second = four_digits(text.get(4..)?.strip_prefix(b"\\u")?)?;
    let c = char::decode_utf16([u16::try_from(first).ok()?, u16::try_from(second).ok()?]).next()?.ok()?;
    Some((Unit::char(c), 12))
}

fn four_digits(text: &[u8]) -> Option<u32> {
    text.get(..4)?.iter().try_fold(0, |number, byte| Some(16 * number + digit(*byte)?))
}

fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

/// A line break with the white space around it is nothing, as in a PEM file or in base64.
fn unfolded(text: &[u8]) -> Option<(Unit, usize)> {
    Some((Unit::NOTHING, line_break(text)?))
}

/// A line break with the white space around it is a space, as in YAML.
fn folded(text: &[u8]) -> Option<(Unit, usize)> {
    Some((Unit::byte(b' '), line_break(text)?))
}

/// How many bytes of white space with a line break the text begins with.
fn line_break(text: &[u8]) -> Option<usize> {
    let blank = text.iter().take(MAX_BLANK).take_while(|byte| byte.is_ascii_whitespace()).count();
    let has_break = text.get(..blank).is_some_and(|blank| blank.contains(&b'\n'));
    has_break.then_some(blank)
}
