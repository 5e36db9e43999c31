//! The values inside of a value: a Secret often holds a whole configuration, and objects mention the password in it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::ordinary;
use super::readings::percent_decoded;
use crate::model::document;

/// In a longer value no parts are looked for.
const LONGEST: usize = 64 << 10;

/// How deep: `Authorization: Basic ...`, whose base64 holds `user:password`.
const DEPTH: usize = 4;

/// The schemes of credentials in HTTP headers (RFC 6750, RFC 7617; `token` is GitHub's).
const SCHEMES: [&str; 3] = ["Bearer", "Basic", "token"];

/// The parts of `value`: leaves of JSON and YAML, values of properties and connection strings, user and password of a URL, credentials of
/// HTTP headers, and what one layer of base64 holds. They may be words of no worth.
pub(super) fn parts(value: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    add_parts(value, DEPTH, &mut found);
    found
}

fn add_parts(value: &[u8], depth: usize, found: &mut Vec<Vec<u8>>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let Ok(text) = str::from_utf8(value) else { return };
    if text.len() > LONGEST || ordinary::is_time(text) {
        return;
    }
    let mut add = |part: &[u8]| {
        if part.len() < value.len() {
            found.push(part.to_vec());
            add_parts(part, depth, found);
        }
    };
    if let Some(documents) = document::all(text) {
        documents.iter().for_each(|document| leaves(document, &mut add));
        return;
    }
    // Words of letters can be decoded, too: `organization` is not the base64 of any text.
    if let Ok(decoded) = BASE64.decode(text.trim())
        && str::from_utf8(&decoded)
            .is_ok_and(|text| text.chars().all(|c| !c.is_control() || c.is_whitespace()))
    {
        add(&decoded);
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
        add(unquoted(part.trim()).as_bytes());
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
        }
    }
    for (at, word) in text.match_indices("password") {
        let rest = text.get(at + word.len()..).filter(|rest| rest.starts_with(char::is_whitespace));
        add(rest.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default().as_bytes());
    }
    // The texts of XML.
    for part in text.split('<').filter_map(|part| part.split_once('>')) {
        add(part.1.as_bytes());
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
