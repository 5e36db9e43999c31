//! Text from the cluster, made safe and fit for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::facts::thousands;

/// Replaces whatever a terminal would act on, or would show other than it is: control characters, those that change
/// the direction of writing, and those that have no shape. Whoever may write to the cluster could else write to the
/// screen of whoever watches it.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
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

pub(super) fn is_unsafe(c: char) -> bool {
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
pub(super) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text` in at most `columns`, with its whole length said when it does not fit.
pub(super) fn shorten(text: &str, columns: usize) -> String {
    shorten_part(text, columns, text.len())
}

/// The same for a part of a text of `bytes` in all.
pub(super) fn shorten_part(text: &str, columns: usize, bytes: usize) -> String {
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
pub(super) fn without_common_start(old: &str, new: &str) -> (String, String) {
    const KEPT: usize = 12;
    let common = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
    let Some(skipped) = common.checked_sub(KEPT).filter(|skipped| *skipped > KEPT) else {
        return (old.to_owned(), new.to_owned());
    };
    let rest = |text: &str| std::iter::once('…').chain(text.chars().skip(skipped)).collect();
    (rest(old), rest(new))
}
