//! Texts that may have a manifest of a Secret in them: whole documents, parts of them, comments.

use std::borrow::Cow;

/// Signs with which a line of a comment begins, in the languages that configurations are written in.
const LINES: &[&str] = &["#", "//", ";", "--", "!", "%", "*", "'"];
/// Words with which it begins.
const WORDS: &[&str] = &["rem ", "REM "];
/// Signs with which a comment begins behind something else.
const TAILS: &[&str] = &[" #", "\t#", " //", " ;", " --", "/*", "<!--"];

/// Whether a manifest of a Secret may be in this text.
pub(super) fn may_be_in(text: &str) -> bool {
    text.len() >= "stringData".len() && (has_words(text) || has_escapes(text) && has_words(&unescaped(text)))
}

/// Most texts have no such letter.
fn has_words(text: &str) -> bool {
    memchr::memchr2(b'S', b'D', text.as_bytes()).is_some()
        && (text.contains("Secret") && text.contains("kind") || text.contains("stringData"))
}

/// The comments in which a manifest may be, without the signs that make them so: all together, and each line.
pub(super) fn comments(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter_map(comment).collect();
    let mut comments: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    comments.push(lines.join("\n"));
    comments.retain(|comment| may_be_in(comment));
    comments
}

/// The text of the comment in this line.
fn comment(line: &str) -> Option<&str> {
    let trimmed = line.trim_start();
    let sign = LINES.iter().find(|sign| trimmed.starts_with(*sign)).and_then(|sign| sign.chars().next());
    let word = || WORDS.iter().find_map(|word| trimmed.strip_prefix(word));
    let whole = sign.map(|sign| trimmed.trim_start_matches(sign)).or_else(word);
    let tail = || {
        TAILS
            .iter()
            .filter_map(|sign| line.split_once(sign))
            .map(|(_, tail)| tail)
            .max_by_key(|tail| tail.len())
    };
    let said = whole.or_else(tail)?;
    Some(said.strip_prefix(' ').unwrap_or(said))
}

/// Whether `kind: Secret`, or a map `stringData`, is in a text that is no document: a template, a part of one, one with an error. Quotes
/// and the backslashes before them do not matter.
pub(super) fn seems_to_be_in(text: &str) -> bool {
    let text = unescaped(text);
    let is_filling = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    let has_data = text.match_indices("stringData").any(|(at, name)| {
        let rest = text.get(at + name.len()..).unwrap_or_default().trim_start_matches(is_filling);
        rest.strip_prefix([':', '='])
            .is_some_and(|value| value.trim_start_matches(is_filling).starts_with('{'))
    });
    has_data
        || text.match_indices("kind").any(|(at, kind)| {
            let rest = text.get(at + kind.len()..).unwrap_or_default().trim_start_matches(is_filling);
            let Some(value) = rest.strip_prefix([':', '=']) else { return false };
            let value = value.trim_start_matches(is_filling);
            let Some(after) = value.strip_prefix("Secret") else { return false };
            let after = after.strip_prefix("List").unwrap_or(after);
            !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        })
}

fn has_escapes(text: &str) -> bool {
    memchr::memchr(b'\\', text.as_bytes()).is_some()
        && ["\\u00", "\\x", "\\U00", "\\\n"].iter().any(|escape| text.contains(escape))
}

/// The text with the letters that JSON and YAML may write as numbers, and without the line ends that YAML leaves out.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !has_escapes(text) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        if let Some(next) = after.strip_prefix('\n') {
            rest = next.trim_start();
            continue;
        }
        let digits = match after.as_bytes().first() {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => 0,
        };
        let number = after.get(1..=digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match number.and_then(char::from_u32).filter(char::is_ascii_alphanumeric) {
            Some(letter) => {
                plain.push(letter);
                rest = after.get(1 + digits..).unwrap_or_default();
            }
            None => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain.into()
}
