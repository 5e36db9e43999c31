//! Values that were hidden before a restart, found again.
//!
//! A process forgets former values of Secrets when it ends. But where an object has mentioned one, the history has a
//! mark in its place, so the object itself still shows what the mark stands for.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::known::MIN_BYTES;
use super::marker::Marker;

/// The first bytes of every mark.
pub(crate) const BEGIN: &str = "<hmac:";

/// How many texts of an object are tried for its lost marks: two hashes each.
const TRIES: u32 = 20_000;

/// A mark in a stored text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark<'a> {
    text: &'a str,
    bytes: usize,
    /// Whether the text has the value as it is, and not encoded.
    is_plain: bool,
}

/// Puts the texts of `now`, a later state of the same object, in place of the marks in `stored` that stand for them, and gives the
/// values of those and of other marks that `now` still has.
pub(super) fn restore(marker: Marker<'_>, stored: &mut Value, now: &Value) -> Vec<Vec<u8>> {
    let mut search = Search { marker, found: Vec::new(), lost: HashMap::new(), tries: TRIES };
    search.pair(stored, Some(now));
    if !search.lost.is_empty() {
        search.anywhere(now);
    }
    search.found
}

struct Search<'a> {
    marker: Marker<'a>,
    found: Vec<Vec<u8>>,
    /// Marks whose text is another one now, by the length of the value.
    lost: HashMap<usize, HashSet<String>>,
    /// How many more hashes may be made to find them.
    tries: u32,
}

impl Search<'_> {
    fn pair(&mut self, stored: &mut Value, now: Option<&Value>) {
        match stored {
            Value::String(text) if text.contains(BEGIN) => {
                let now = now.and_then(Value::as_str);
                if self.text(text, now)
                    && let Some(now) = now
                {
                    now.clone_into(text);
                }
            }
            Value::Array(list) => {
                for (at, inside) in list.iter_mut().enumerate() {
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

    /// Whether the text was `now` before its values were hidden, beyond doubt.
    fn text(&mut self, stored: &str, now: Option<&str>) -> bool {
        let (literals, marks) = parts(stored);
        match now.and_then(|now| self.aligned(&literals, &marks, now)) {
            Some(values) => {
                self.found.extend(values);
                marks.iter().all(|mark| mark.is_plain)
            }
            None => {
                for mark in marks.iter().filter(|mark| mark.is_plain) {
                    self.lost.entry(mark.bytes).or_default().insert(mark.text.to_owned());
                }
                false
            }
        }
    }

    /// The texts of `now` in the places of the marks, if the rest of it is the same.
    fn aligned(&self, literals: &[&str], marks: &[Mark<'_>], now: &str) -> Option<Vec<Vec<u8>>> {
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
            if mark.is_plain && self.marker.hidden(value.as_bytes()) != mark.text {
                return None;
            }
            values.push(value.as_bytes().to_vec());
            rest = rest.get(end..)?.strip_prefix(after)?;
        }
        rest.is_empty().then_some(values)
    }

    /// Looks for lost marks in every text: each at the beginnings of words, as far as the tries suffice.
    fn anywhere(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                let is_border = |c: char| !c.is_alphanumeric();
                let after_borders = text.match_indices(is_border).map(|(at, border)| at + border.len());
                for at in std::iter::once(0).chain(after_borders) {
                    let rest = text.get(at..).unwrap_or_default();
                    for bytes in self.lost.keys() {
                        let Some(word) = rest.get(..*bytes).filter(|word| word.len() >= MIN_BYTES) else {
                            continue;
                        };
                        let ends =
                            rest.get(*bytes..).is_some_and(|rest| rest.chars().next().is_none_or(is_border));
                        if !ends {
                            continue;
                        }
                        let Some(tries) = self.tries.checked_sub(1) else { return };
                        self.tries = tries;
                        let mark = self.marker.hidden(word.as_bytes());
                        if self.lost.get(bytes).is_some_and(|marks| marks.contains(&mark)) {
                            self.found.push(word.as_bytes().to_vec());
                        }
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|inside| self.anywhere(inside)),
            Value::Object(map) => map.values().for_each(|inside| self.anywhere(inside)),
            _ => {}
        }
    }
}

/// The text around marks, and the marks between: one literal more than marks.
fn parts(text: &str) -> (Vec<&str>, Vec<Mark<'_>>) {
    let (mut literals, mut marks) = (Vec::new(), Vec::new());
    let (mut rest, mut literal) = (text, 0);
    while let Some(at) = rest.get(literal..).and_then(|tail| tail.find(BEGIN)).map(|at| at + literal) {
        match mark(rest.get(at..).unwrap_or_default()) {
            Some(mark) => {
                literals.push(rest.get(..at).unwrap_or_default());
                marks.push(mark);
                rest = rest.get(at + mark.text.len()..).unwrap_or_default();
                literal = 0;
            }
            // Somebody has written it so.
            None => literal = at + BEGIN.len(),
        }
    }
    literals.push(rest);
    (literals, marks)
}

/// The mark that `text` begins with: `<hmac:1f3a9c20 18 bytes, base64>`.
fn mark(text: &str) -> Option<Mark<'_>> {
    let end = text.find('>')?;
    let (text, inside) = (text.get(..=end)?, text.get(BEGIN.len()..end)?);
    let (hash, rest) = inside.split_once(' ')?;
    let (bytes, form) = rest.split_once(" bytes")?;
    let is_hash = hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(())?;
    Some(Mark { text, bytes: bytes.parse().ok()?, is_plain: form.is_empty() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Marker, restore};
    use crate::hide::secret::key::HashKey;

    #[test]
    fn what_a_mark_stands_for_is_found_again() {
        let key = HashKey::from_bytes([7; 32]);
        let password = b"correct horse";
        let marker = Marker { key: &key, namespace: "shop" };
        let hidden = marker.hidden(password);
        let encoded = marker.text(key.value_id(password), password.len(), ", base64");
        let found = |mut stored: Value, now: Value| -> Vec<String> {
            let found = restore(marker, &mut stored, &now);
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
