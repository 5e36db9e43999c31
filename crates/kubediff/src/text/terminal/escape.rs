//! Text from the cluster, made safe and fit for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Replaces characters that a terminal would act on, or would show misleadingly: control characters, those that change
/// the direction of writing, and invisible ones. Otherwise a user who may write to the cluster could write to the
/// screen of kubediff's user.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if is_printable(text) || !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            '\u{1b}' => safe.push_str("\\e"),
            _ if is_unsafe(c) => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
            }
            _ => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// How many columns `text` takes.
pub(crate) fn width(text: &str) -> usize {
    if is_printable(text) { text.len() } else { UnicodeWidthStr::width(text) }
}

/// Whether all of it is printable ASCII, as most names and words of a cluster are: those need no tables.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// `text` in at most `columns`, with its whole length said when it does not fit.
pub(crate) fn shorten(text: &str, columns: usize) -> String {
    shorten_part(text, columns, text.len())
}

/// The same for a part of a text of `bytes` in all.
pub(crate) fn shorten_part(text: &str, columns: usize, bytes: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let note = format!("… ({} bytes)", thousands(bytes));
    format!("{}{note}", start(text, columns.saturating_sub(width(&note))))
}

/// `text` in at most `columns`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        text.to_owned()
    } else {
        format!("{}…", start(text, columns.saturating_sub(1)))
    }
}

/// `text` in lines of at most `columns`, broken after separators only: a part that is longer has a line of its own.
pub(crate) fn wrap(text: &str, separator: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive(separator) {
        match lines.last_mut() {
            Some(line) if width(line) + width(part.trim_end()) <= columns => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

fn start(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return text.get(..at).unwrap_or(text);
        }
    }
    text
}

/// Two long texts that begin alike, without most of that beginning.
pub(crate) fn without_common_start(old: &str, new: &str) -> (String, String) {
    const KEPT: usize = 12;
    let common = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
    let Some(skipped) = common.checked_sub(KEPT).filter(|skipped| *skipped > KEPT) else {
        return (old.to_owned(), new.to_owned());
    };
    let rest = |text: &str| std::iter::once('…').chain(text.chars().skip(skipped)).collect();
    (rest(old), rest(new))
}

/// `12,345`.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use unicode_width::UnicodeWidthStr;

    use super::{escape, width, wrap};

    #[test]
    fn ascii_is_as_wide_and_as_safe_as_the_tables_say() {
        for byte in 0..=0x7f_u8 {
            let text = char::from(byte).to_string();
            assert_eq!(width(&text), UnicodeWidthStr::width(text.as_str()), "{byte}");
            let is_safe = (0x20..0x7f).contains(&byte);
            assert_eq!(matches!(escape(&text), Cow::Borrowed(_)), is_safe, "{byte}");
        }
    }

    #[test]
    fn lines_break_after_separators() {
        assert_eq!(wrap("a 1 -> 2, b 2 -> 3, c", ", ", 19), ["a 1 -> 2, b 2 -> 3,", "c"]);
        assert_eq!(wrap("a 1 -> 2, b 2 -> 3, c", ", ", 18), ["a 1 -> 2,", "b 2 -> 3, c"]);
        assert_eq!(wrap("much too long, b", ", ", 5), ["much too long,", "b"]);
        assert_eq!(wrap("a b c", " ", 3), ["a b", "c"]);
        assert!(wrap("", " ", 3).is_empty());
    }
}
