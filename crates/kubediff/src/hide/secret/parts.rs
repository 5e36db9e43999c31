//! The values inside of a value: a Secret often holds a whole configuration, and objects mention the password in it.

use std::collections::HashSet;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::known::MIN_BYTES;
use super::ordinary;
use super::readings::{percent_decoded, without_entities, without_escapes};
use crate::model::document;

/// In a longer value no parts are looked for.
const LONGEST: usize = 64 << 10;

/// How deep: `Authorization: Basic ...`, whose base64 holds `user:password`.
const DEPTH: usize = 4;

/// Base64 as files and URLs have it, with or without padding.
const BASE64: [GeneralPurpose; 2] =
    [GeneralPurpose::new(&STANDARD, LENIENT), GeneralPurpose::new(&URL_SAFE, LENIENT)];
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// The most characters between two quotes.
const LONGEST_QUOTED: usize = 4 << 10;

/// The most quotes that nothing ends before a text is taken for another one.
const MOST_UNCLOSED: usize = 64;

/// The schemes of credentials in HTTP headers (RFC 6750, RFC 7617; `token` is GitHub's).
const SCHEMES: [&str; 3] = ["Bearer", "Basic", "token"];

/// The parts of `value`: leaves of JSON and YAML, values of properties and connection strings, user and password of a URL, credentials of
/// HTTP headers, and what one layer of base64 holds. They may be words of no worth.
///
/// Of a value with very many parts, the first ones: the work is bounded by the value's length.
pub(super) fn parts(value: &[u8]) -> Vec<Vec<u8>> {
    let left = WORK * value.len() + LEAST_WORK;
    let mut parts = Parts { found: Vec::new(), seen: HashSet::new(), left };
    add_parts(value, DEPTH, &mut parts);
    parts.found
}

/// The bytes of parts that are read for each byte of a value, and beside them.
const WORK: usize = 6;
const LEAST_WORK: usize = 4 << 10;
/// A part costs this much beside its bytes.
const PART: usize = 64;

struct Parts {
    found: Vec<Vec<u8>>,
    seen: HashSet<Vec<u8>>,
    left: usize,
}

impl Parts {
    /// Whether this is a part that may hold a value, and none that was found before.
    fn takes(&mut self, part: &[u8]) -> bool {
        if part.len() < MIN_BYTES || self.left == 0 || self.seen.contains(part) {
            return false;
        }
        self.left = self.left.saturating_sub(PART + part.len());
        self.seen.insert(part.to_vec());
        self.found.push(part.to_vec());
        true
    }
}

fn add_parts(value: &[u8], depth: usize, parts: &mut Parts) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let Ok(text) = str::from_utf8(value) else { return };
    if text.len() > LONGEST || ordinary::is_time(text) {
        return;
    }
    let mut add = |part: &[u8]| {
        if part.len() < value.len() && parts.takes(part) {
            add_parts(part, depth, parts);
        }
    };
    if let Some(documents) = document::all(text) {
        documents.iter().for_each(|document| leaves(document, &mut add));
        return;
    }
    // Words of letters can be decoded, too: `organization` is not the base64 of any text.
    let folded: String = text.split_whitespace().collect();
    if let Some(decoded) = BASE64.iter().find_map(|engine| engine.decode(&folded).ok())
        && str::from_utf8(&decoded)
            .is_ok_and(|text| text.chars().all(|c| !c.is_control() || c.is_whitespace()))
    {
        add(&decoded);
    }
    // A property that goes on in the next line.
    if text.contains("\\\n") || text.contains("\\\r\n") {
        let lines: Vec<&str> = text.split("\\\n").flat_map(|line| line.split("\\\r\n")).collect();
        let next = lines.iter().skip(1).map(|line| line.trim_start());
        add(lines.iter().take(1).copied().chain(next).collect::<String>().as_bytes());
    }
    // The user and the password of a URL, as they are and decoded.
    for (at, _) in text.match_indices("://") {
        let rest = text.get(at + 3..).unwrap_or_default();
        let authority = rest.split(['/', ' ', '\n', '"', '\'']).next().unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else { continue };
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        for part in [user, password] {
            add(part.as_bytes());
            add(&percent_decoded(part.as_bytes()));
        }
    }
    // Properties, one a line, and the fields of a connection string: `host=db;password=...`.
    let fields = text.lines().chain(text.split([' ', ';', '&', '?', '\n', '\t', ',']));
    for field in fields {
        let Some((_, part)) = field.split_once('=').or_else(|| field.split_once(": ")) else { continue };
        add_written(unquoted(part.trim()), &mut add);
    }
    // Values in quotes, of shells, connection strings and attributes: `PWD={a;b}`, `password = 'it\'s'`.
    let (mut rest, mut unclosed) = (text, 0);
    while let Some((_, after)) = rest.split_once('=').filter(|_| unclosed < MOST_UNCLOSED) {
        rest = after.trim_start();
        if !rest.starts_with(['{', '"', '\'']) {
            // `Password = X ;`
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '=' | ';' | '&' | ','));
            add(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().as_bytes());
            continue;
        }
        match quoted(rest) {
            Some(part) => {
                add_written(part, &mut add);
                rest = rest.get(part.len() + 2..).unwrap_or_default();
            }
            None => unclosed += 1,
        }
    }
    for line in text.lines().filter(|_| text.contains('\n')) {
        // `password:...`, and the last field of PostgreSQL's password file.
        for part in [line.split_once(':'), line.rsplit_once(':')].into_iter().flatten() {
            add(part.1.trim().as_bytes());
        }
        // `password ...`, also as in `.netrc`.
        let mut words = line.split_whitespace();
        if let (Some(_), Some(word), None) = (words.next(), words.next(), words.next()) {
            add(word.as_bytes());
            add(bare(word).as_bytes());
        }
    }
    for (at, word) in text.match_indices("password").chain(text.match_indices("PASSWORD")) {
        let rest = text.get(at + word.len()..).filter(|rest| rest.starts_with(char::is_whitespace));
        let word = rest.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
        add(word.as_bytes());
        add(bare(word).as_bytes());
    }
    // `curl -H 'Authorization: Bearer ...'`
    for scheme in SCHEMES {
        for (at, _) in text.match_indices(scheme) {
            let rest = text.get(at + scheme.len()..).filter(|rest| rest.starts_with(' '));
            add(bare(rest.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default()).as_bytes());
        }
    }
    // The texts of XML.
    for part in text.split('<').filter_map(|part| part.split_once('>')) {
        add_written(part.1, &mut add);
    }
    for part in text.split("<![CDATA[").skip(1).filter_map(|part| part.split_once("]]>")) {
        add(part.0.as_bytes());
    }
    // `user:password`, as in docker's configuration, and `user:password@tcp(host:port)/name` as in Go's connection strings.
    if let Some((user, password)) = text.split_once(':')
        && !text.contains(char::is_whitespace)
        && !password.starts_with("//")
    {
        let before_host = password.rsplit_once('@').map_or("", |(password, _)| password);
        [user, password, before_host].into_iter().for_each(|part| add(part.as_bytes()));
    }
    // `Bearer ...` and `Basic ...`, as in the header Authorization.
    if let Some((scheme, credentials)) = text.trim().split_once(' ')
        && SCHEMES.iter().any(|name| name.eq_ignore_ascii_case(scheme))
    {
        add(credentials.trim().as_bytes());
    }
}

/// A word without the signs around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c| matches!(c, '"' | '\'' | ';' | ',' | '(' | ')'))
}

/// A part as it is written, and what is meant by it.
fn add_written(part: &str, add: &mut impl FnMut(&[u8])) {
    add(part.as_bytes());
    if part.contains('&') {
        add(&without_entities(part.as_bytes()));
    }
    if part.contains('\\') {
        add(&without_escapes(part.as_bytes()));
    }
}

/// The text up to the end of the quotes with which `text` begins.
fn quoted(text: &str) -> Option<&str> {
    let end = match text.chars().next()? {
        '{' => '}',
        quote @ ('"' | '\'') => quote,
        _ => return None,
    };
    let mut is_escaped = false;
    let inside = text.get(1..)?;
    let (at, _) = inside.char_indices().take(LONGEST_QUOTED).find(|(_, c)| {
        let ends = *c == end && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    })?;
    inside.get(..at)
}

/// The text between the quotes: `"..."/>` ends the last attribute of an XML tag.
fn unquoted(text: &str) -> &str {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
    quote.and_then(|quote| text.split(quote).nth(1)).unwrap_or(text)
}

fn leaves(value: &Value, add: &mut impl FnMut(&[u8])) {
    match value {
        Value::String(text) => add(text.as_bytes()),
        Value::Number(number) => add(number.to_string().as_bytes()),
        Value::Array(list) => list.iter().for_each(|value| leaves(value, add)),
        Value::Object(map) => map.values().for_each(|value| leaves(value, add)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Secret of such values cost 5 s for each write.
    #[test]
    fn k5_the_parts_of_a_value_are_bounded_by_its_length() {
        for line in ["p=a\\\n", "p={", "= = =", "k-N={\"v-N\n", "key-N=value-N=value-N=value-N=value-N\n"] {
            let value: String = (0..1_000).map(|n| line.replace('N', &n.to_string())).collect();
            assert!(value.len() < LONGEST);
            let parts = parts(value.as_bytes());
            let cost: usize = parts.iter().map(|part| part.len() + 64).sum();
            assert!(
                cost <= 7 * value.len() + 8_192,
                "{line}: {} parts, {cost} of {}",
                parts.len(),
                value.len()
            );
        }
    }
}
