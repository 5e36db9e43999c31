//! The values that are no secret although a Secret holds them: `postgres`, `localhost:5432`, `--log-level=debug`.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::known::MIN_BYTES;

/// Words of configurations, one after the other.
static WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("words.txt").split_whitespace().collect());

/// A number of more digits is no port, year or size.
const DIGITS: usize = 5;

/// Whether a value may be a secret by its looks: it has at least 8 bytes of two classes (lower case, upper case, digits, others),
/// and is more than words of configurations.
pub(super) fn looks_secret(value: &[u8], is_word: impl Fn(&str) -> bool) -> bool {
    value.len() >= MIN_BYTES && has_two_classes(value) && !is_of_words(value, is_word)
}

/// Whether it is one of the words that configurations have everywhere.
pub(super) fn is_word(word: &str) -> bool {
    WORDS.contains(word)
}

pub(super) fn has_two_classes(value: &[u8]) -> bool {
    let class = |byte: &u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let mut classes = value.iter().map(class);
    let first = classes.next();
    classes.any(|class| Some(class) != first)
}

/// `30s`, `512Mi`: a number with a unit of time or size.
fn is_quantity(part: &str) -> bool {
    const UNITS: &[&str] = &[
        "B", "G", "GB", "Gi", "GiB", "K", "KB", "Ki", "KiB", "M", "MB", "Mi", "MiB", "T", "Ti", "d", "h",
        "k", "m", "ms", "ns", "s", "us",
    ];
    let unit = part.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = part.len() - unit.len();
    (1..=DIGITS).contains(&digits) && UNITS.contains(&unit)
}

/// Whether it consists of words, numbers and the signs of paths, hosts, flags and lists.
fn is_of_words(value: &[u8], is_word: impl Fn(&str) -> bool) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    let is_sign = |c: char| matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | ',' | '=' | ' ' | '*');
    let parts = text.split(is_sign).filter(|part| !part.is_empty());
    // `admin123` is a password of some people, `postgres15-primary` is a host.
    let most_digits = if parts.clone().count() > 1 { 2 } else { 0 };
    parts.into_iter().all(|part| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = part.len() - letters.len();
        match letters {
            "" => digits <= DIGITS,
            _ if is_quantity(part) => true,
            _ if digits > most_digits => false,
            // `UTF`, `Berlin`.
            _ if letters.bytes().skip(1).all(|byte| byte.is_ascii_uppercase())
                || letters.bytes().skip(1).all(|byte| byte.is_ascii_lowercase()) =>
            {
                is_word(&letters.to_ascii_lowercase())
            }
            _ => is_word(letters),
        }
    })
}
