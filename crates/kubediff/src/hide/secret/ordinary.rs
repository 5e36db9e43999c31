//! The values that are no secret although a Secret holds them: `postgres`, `localhost:5432`, `RollingUpdate`, `--log-level=debug`.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::known::MIN_BYTES;

/// Words of configurations, one after the other.
static WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("words.txt").split_whitespace().collect());

/// A number of more digits is no port, year or size.
const DIGITS: usize = 5;

/// A piece of so many letters explains something; random text has shorter words by chance.
const PIECE: usize = 3;

/// A longer part is no compound of words.
const COMPOUND: usize = 64;

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

/// `2026-03-01T14:03:22Z`, `1h30m0s`, `128974848Ki`, `10.0.0.1:8080`: a time, or numbers with their units.
pub(super) fn is_measure(text: &str) -> bool {
    let mut parts = text.split(['.', ':', '-', '/', '+', ',']);
    is_time(text)
        || text.parse::<jiff::SignedDuration>().is_ok()
        || parts.all(|part| quantity(part).is_some_and(|digits| digits > 0))
}

/// `2026-03-01T14:03:22Z`
pub(super) fn is_time(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok() || text.parse::<jiff::civil::DateTime>().is_ok()
}

/// `db.r6g.large`, `c6gd.16xlarge`: a type of machine in a cloud.
fn is_machine(text: &str) -> bool {
    let mut parts = text.rsplit('.');
    let size = parts.next().map(|size| size.trim_start_matches(|c: char| c.is_ascii_digit()));
    let is_size = matches!(size, Some("nano" | "micro" | "small" | "medium" | "large" | "xlarge" | "metal"));
    let is_family = |family: &str| {
        family.len() <= 8
            && family.starts_with(|c: char| c.is_ascii_lowercase())
            && family.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    is_size
        && parts.next().is_some_and(is_family)
        && parts.all(|service| matches!(service, "db" | "cache" | "search" | "ml"))
}

/// How many digits `30s`, `512Mi` or `8080` has: a number, perhaps with a unit of time or size.
fn quantity(part: &str) -> Option<usize> {
    const UNITS: &[&str] = &[
        "", "B", "G", "GB", "Gi", "GiB", "K", "KB", "Ki", "KiB", "M", "MB", "Mi", "MiB", "T", "Ti", "d", "g",
        "h", "k", "m", "ms", "ns", "s", "us",
    ];
    let unit = part.trim_start_matches(|c: char| c.is_ascii_digit());
    UNITS.contains(&unit).then_some(part.len() - unit.len())
}

/// Whether words, numbers and the signs of paths, hosts, flags and lists explain it.
fn is_of_words(value: &[u8], is_word: impl Fn(&str) -> bool) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    let is_sign = |c: char| c.is_ascii_whitespace() || "-_./:@,=*+;?&()<>[]{}|\"'".contains(c);
    let ends_like_a_password = |(_, end): (&str, &str)| end.bytes().all(|byte| byte.is_ascii_digit());
    if is_time(text) || is_machine(text) {
        return true;
    }
    // `Admin@1234`
    if text.rsplit_once('@').is_some_and(ends_like_a_password) {
        return false;
    }
    let parts = text.split(is_sign).filter(|part| !part.is_empty());
    // `admin123` is a password of some people, `postgres15-primary` is a host.
    let is_alone = !text.starts_with('-') && parts.clone().count() == 1;
    let explained: Option<Vec<Explained>> = parts.map(|part| explain(part, is_alone, &is_word)).collect();
    explained.is_some_and(|parts| {
        let sum = |of: fn(&Explained) -> usize| parts.iter().map(of).sum::<usize>();
        2 * sum(|part| part.rest) <= sum(|part| part.words)
    })
}

/// How many characters of a part are words, and how many explain nothing: `x-request-id`, `t3.medium`, `IfNotPresent`.
#[derive(Clone, Copy, Default)]
struct Explained {
    words: usize,
    rest: usize,
}

/// `None` if too much is unexplained at once.
fn explain(part: &str, is_alone: bool, is_word: &impl Fn(&str) -> bool) -> Option<Explained> {
    if quantity(part).is_some_and(|digits| (1..=DIGITS).contains(&digits)) {
        return Some(Explained::default());
    }
    let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let most_digits = if is_alone { 0 } else { 2 };
    if part.len() - letters.len() <= most_digits
        && let Some(explained) = compound(letters, is_word)
    {
        return Some(explained);
    }
    let (word, rest) = part.split_at(part.find(|c: char| c.is_ascii_digit()).unwrap_or(part.len()));
    let is_one = |word: &str| is_word(&word.to_ascii_lowercase());
    // `utf8mb4`
    if !rest.is_empty() && is_one(part) {
        return Some(Explained { words: part.len(), rest: 0 });
    }
    if is_alone {
        return None;
    }
    // `-Xmx512m`
    let has_unit = rest.ends_with(|c: char| c.is_ascii_alphabetic());
    if word.len() >= PIECE
        && is_one(word)
        && has_unit
        && quantity(rest).is_some_and(|digits| digits <= DIGITS)
    {
        return Some(Explained { words: word.len(), rest: 0 });
    }
    (part.len() <= PIECE).then_some(Explained { words: 0, rest: part.len() })
}

/// The same for `RollingUpdate`, `clusterIPs`, `UTF`: words of which each but the first begins with a capital.
fn compound(letters: &str, is_word: &impl Fn(&str) -> bool) -> Option<Explained> {
    if letters.len() > COMPOUND {
        return None;
    }
    let is_of_one_case = |piece: &str| {
        // `IPs`
        let mut rest = piece.strip_suffix('s').unwrap_or(piece).bytes().skip(1);
        rest.clone().all(|byte| !byte.is_ascii_lowercase()) || rest.all(|byte| !byte.is_ascii_uppercase())
    };
    let capitals = letters.match_indices(|c: char| c.is_ascii_uppercase()).map(|(at, _)| at);
    // Where words end, and how much is unexplained until there.
    let mut reached = vec![(0, 0)];
    for end in capitals.filter(|at| *at > 0).chain([letters.len()]) {
        let pieces = reached.iter().filter_map(|(start, rest)| {
            let piece = letters.get(*start..end)?;
            // A single letter is a word by itself alone.
            let is_long = piece.len() > 1 || letters.len() == 1;
            let is_piece = is_long && is_of_one_case(piece) && is_word(&piece.to_ascii_lowercase());
            is_piece.then(|| rest + if piece.len() < PIECE { piece.len() } else { 0 })
        });
        let least = pieces.min();
        reached.extend(least.map(|rest| (end, rest)));
    }
    let (_, rest) = reached.into_iter().find(|(end, _)| *end == letters.len())?;
    // `en_US`: a word by itself, although a short one.
    if rest == letters.len() && rest == 2 {
        return Some(Explained::default());
    }
    // Short words are there by chance: `podIP` has fewer of their letters than of others.
    let words = letters.len() - rest;
    (rest == 1 || rest <= words).then_some(Explained { words, rest })
}
