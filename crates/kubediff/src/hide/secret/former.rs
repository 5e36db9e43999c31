//! Values that were hidden before a restart, found again.
//!
//! A process forgets former values of Secrets when it ends. But where an object has mentioned one, the history has a
//! mark in its place, so the object itself still shows what the mark stands for.

use serde_json::Value;

use super::key::HashKey;
use super::known::MIN_BYTES;

/// The first bytes of every mark.
pub(crate) const BEGIN: &str = "<hmac:";

/// A mark in a stored text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    hash: u32,
    bytes: usize,
    /// Whether the text has the value as it is, and not encoded.
    is_plain: bool,
}

/// The values of the marks in `stored`, as far as `now`, a later state of the same object, still has them.
pub(super) fn values(key: &HashKey, stored: &Value, now: &Value) -> Vec<Vec<u8>> {
    let mut search = Search { key, found: Vec::new(), lost: Vec::new() };
    search.pair(stored, Some(now));
    if !search.lost.is_empty() {
        search.lost.sort_unstable_by_key(|mark| (mark.hash, mark.bytes));
        search.lost.dedup();
        search.anywhere(now);
    }
    search.found
}

struct Search<'a> {
    key: &'a HashKey,
    found: Vec<Vec<u8>>,
    /// Marks whose text is another one now.
    lost: Vec<Mark>,
}

impl Search<'_> {
    fn pair(&mut self, stored: &Value, now: Option<&Value>) {
        match stored {
            Value::String(text) if text.contains(BEGIN) => self.text(text, now.and_then(Value::as_str)),
            Value::Array(list) => {
                for (at, inside) in list.iter().enumerate() {
                    self.pair(inside, now.and_then(|now| now.get(at)));
                }
            }
            Value::Object(map) => {
                for (name, inside) in map {
                    self.pair(inside, now.and_then(|now| now.get(name)));
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, stored: &str, now: Option<&str>) {
        let (literals, marks) = parts(stored);
        match now.and_then(|now| self.aligned(&literals, &marks, now)) {
            Some(values) => self.found.extend(values),
            None => self.lost.extend(marks.iter().filter(|mark| mark.is_plain)),
        }
    }

    /// The texts of `now` in the places of the marks, if the rest of it is the same.
    fn aligned(&self, literals: &[&str], marks: &[Mark], now: &str) -> Option<Vec<Vec<u8>>> {
        let mut rest = now.strip_prefix(*literals.first()?)?;
        let mut values = Vec::new();
        for (at, mark) in marks.iter().enumerate() {
            let after = literals.get(at + 1)?;
            let end = match (mark.is_plain, at + 1 == marks.len()) {
                (true, _) => mark.bytes,
                (false, true) => rest.len().checked_sub(after.len())?,
                (false, false) => rest.find(after)?,
            };
            let value = rest.get(..end)?;
            if mark.is_plain && self.key.hash(value.as_bytes()) != mark.hash {
                return None;
            }
            values.push(value.as_bytes().to_vec());
            rest = rest.get(end..)?.strip_prefix(after)?;
        }
        rest.is_empty().then_some(values)
    }

    /// Looks for lost marks in every text. It takes a hash for each place, so it is the last resort.
    fn anywhere(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                for mark in self.lost.clone() {
                    let windows = text.as_bytes().windows(mark.bytes.max(MIN_BYTES));
                    let found = windows.into_iter().find(|window| self.key.hash(window) == mark.hash);
                    self.found.extend(found.map(<[u8]>::to_vec));
                }
            }
            Value::Array(list) => list.iter().for_each(|inside| self.anywhere(inside)),
            Value::Object(map) => map.values().for_each(|inside| self.anywhere(inside)),
            _ => {}
        }
    }
}

/// The text around marks, and the marks between: one literal more than marks.
fn parts(text: &str) -> (Vec<&str>, Vec<Mark>) {
    let (mut literals, mut marks) = (Vec::new(), Vec::new());
    let (mut rest, mut literal) = (text, 0);
    while let Some(at) = rest.get(literal..).and_then(|tail| tail.find(BEGIN)).map(|at| at + literal) {
        let after = rest.get(at + BEGIN.len()..).unwrap_or_default();
        match mark(after) {
            Some((mark, length)) => {
                literals.push(rest.get(..at).unwrap_or_default());
                marks.push(mark);
                rest = after.get(length..).unwrap_or_default();
                literal = 0;
            }
            // Somebody has written it so.
            None => literal = at + BEGIN.len(),
        }
    }
    literals.push(rest);
    (literals, marks)
}

/// The mark whose beginning stands before `text`, and how much of `text` it is: `1f3a9c20 18 bytes, base64>`.
fn mark(text: &str) -> Option<(Mark, usize)> {
    let (inside, _) = text.split_once('>')?;
    let (hash, rest) = inside.split_once(' ')?;
    let (bytes, form) = rest.split_once(" bytes")?;
    let hash = (hash.len() == 8).then(|| u32::from_str_radix(hash, 16).ok()).flatten()?;
    let mark = Mark { hash, bytes: bytes.parse().ok()?, is_plain: form.is_empty() };
    Some((mark, inside.len() + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{HashKey, values};
    use crate::hide::secret::marker::{hidden, mark, text};

    #[test]
    fn what_a_mark_stands_for_is_found_again() {
        let key = HashKey::from_bytes([7; 32]);
        let password = b"correct horse";
        let hidden = hidden(&key, password);
        let encoded = text(mark(&key, password), ", base64");
        let found = |stored: Value, now: Value| -> Vec<String> {
            let found = values(&key, &stored, &now);
            found.into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
        };
        for (stored, now) in [
            (hidden.clone(), "correct horse"),
            (format!("it was {hidden}."), "it was correct horse."),
            (format!("{hidden}{hidden}"), "correct horsecorrect horse"),
            // The rest of the text has changed.
            (format!("it was {hidden}"), "once it was correct horse, now it is not"),
            (format!("<hmac:x> {hidden}"), "<hmac:x> correct horse"),
        ] {
            let all = found(json!({"a": [stored]}), json!({"a": [now]}));
            assert!(!all.is_empty() && all.iter().all(|value| value == "correct horse"), "{now}: {all:?}");
        }
        // It has moved.
        assert_eq!(found(json!({"a": hidden}), json!({"b": ["x correct horse"]})), ["correct horse"]);
        // Where it was encoded, what stands there is what is hidden.
        let stored = format!("b64: {encoded}!");
        assert_eq!(found(json!(stored), json!("b64: Y29ycmVjdCBob3JzZQ==!")), ["Y29ycmVjdCBob3JzZQ=="]);
        // Other values are none of ours.
        assert_eq!(found(json!(hidden), json!("another horse")), Vec::<String>::new());
        assert_eq!(found(json!("<hmac:0"), json!("<hmac:0")), Vec::<String>::new());
    }
}
