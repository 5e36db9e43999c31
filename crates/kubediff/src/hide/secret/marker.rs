//! The text that stands in a value's place.

use std::ops::Range;

use serde_json::Value;

use super::key::{HashKey, ValueId};

/// A mark begins with this after its `<`.
pub(super) const MARK: &str = "hmac:";

/// Makes marks for one namespace: those of another one differ, so that its readers cannot test guesses for values.
#[derive(Clone, Copy)]
pub(super) struct Marker<'a> {
    pub(super) key: &'a HashKey,
    pub(super) namespace: &'a str,
}

impl Marker<'_> {
    /// `<hmac:1f3a9c2055d1e0b7 18 bytes>`: the same for the same text. A mark stays as it is: a stored state has some.
    pub(super) fn hidden(&self, text: &str) -> String {
        if length(text).is_some() { text.to_owned() } else { self.bytes(text.as_bytes()) }
    }

    /// The mark of bytes that stand for themselves.
    pub(super) fn bytes(&self, bytes: &[u8]) -> String {
        self.mark(self.key.value_id(bytes), bytes.len(), "")
    }

    /// The mark of a value that was found as `written`. Another way to write it is another text, and gets another mark:
    /// `<hmac:1f3a9c2055d1e0b7 18 bytes, base64 5bd20c11e7a84f06>`.
    pub(super) fn value(&self, value: ValueId, bytes: usize, written: &[u8], form: &str) -> String {
        let as_written = self.key.value_id(written);
        if as_written == value {
            return self.mark(value, bytes, "");
        }
        self.mark(value, bytes, &format!(", {form} {:016x}", self.key.mark(self.namespace, as_written)))
    }

    /// Whether a mark, without its brackets, stands for this text: by its hash, or by that of how the text writes a value.
    pub(super) fn is_of(&self, mark: &str, text: &str) -> bool {
        let hash = format!("{:016x}", self.key.mark(self.namespace, self.key.value_id(text.as_bytes())));
        mark.rsplit_once(", ").map_or(mark, |(_, form)| form).split(' ').any(|word| word == hash)
    }

    fn mark(&self, value: ValueId, bytes: usize, form: &str) -> String {
        let hash = self.key.mark(self.namespace, value);
        format!("<{MARK}{hash:016x} {bytes} bytes{form}>")
    }
}

/// How long the value was that `text` stands for, if it does.
pub(crate) fn length(text: &str) -> Option<usize> {
    let hidden = text.strip_prefix('<')?.strip_prefix(MARK)?.strip_suffix(" bytes>")?;
    hidden.split_once(' ')?.1.parse().ok()
}

/// Writes marks in a state of the cluster as what they are there, texts like any others: `<text hmac:1f3a9c2055d1e0b7 18 bytes>`. Otherwise
/// a value could be replaced by its mark, and nobody would see a change.
pub(crate) fn write_out(state: &mut Value) {
    match state {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if let Some(written) = written_out(text) {
                *text = written;
            }
        }
        Value::Array(list) => list.iter_mut().for_each(write_out),
        Value::Object(map) => {
            map.values_mut().for_each(write_out);
            let renamed: Vec<_> =
                map.keys().filter_map(|name| Some((name.clone(), written_out(name)?))).collect();
            for (name, written) in renamed {
                if let Some(value) = map.remove(&name) {
                    map.insert(written, value);
                }
            }
        }
    }
}

/// A text that has `text ` there already gets one more: no two texts become the same.
fn written_out(text: &str) -> Option<String> {
    const TEXT: &str = "text ";
    let (mut written, mut rest) = (String::new(), 0);
    for (at, _) in text.match_indices(MARK) {
        let before = text.get(..at).unwrap_or_default();
        if before.trim_end_matches(TEXT).ends_with('<') {
            written.push_str(text.get(rest..at).unwrap_or_default());
            written.push_str(TEXT);
            rest = at;
        }
    }
    (rest > 0).then(|| written + text.get(rest..).unwrap_or_default())
}

/// A value as states of the cluster show it, if a part of it looks like a mark.
pub(super) fn written_out_bytes(value: &[u8]) -> Option<Vec<u8>> {
    written_out(str::from_utf8(value).ok()?).map(String::into_bytes)
}

/// Where in a text marks are. A value of a Secret may look like a part of one.
pub(super) fn places(text: &str) -> Vec<Range<usize>> {
    let mark = |(at, _): (usize, &str)| {
        let inside = text.get(at..)?.split_once('>')?.0;
        let rest = inside.strip_prefix('<')?.strip_prefix(MARK)?;
        let (value, form) = rest.split_once(", ").map_or((rest, None), |(value, form)| (value, Some(form)));
        // Where hashes cannot be compared, there is a question mark.
        let is_hash =
            |hash: &str| hash == "?" || hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (hash, bytes) = value.strip_suffix(" bytes")?.split_once(' ')?;
        let is_mark = is_hash(hash)
            && bytes.parse::<u64>().is_ok()
            && form.is_none_or(|form| form.rsplit_once(' ').is_some_and(|(_, hash)| is_hash(hash)));
        is_mark.then(|| at..at + inside.len() + 1)
    };
    text.match_indices('<').filter_map(mark).collect()
}

/// Whether a text, or the JSON of a state, may have a mark.
pub(crate) fn may_be_in(text: &[u8]) -> bool {
    memchr::memmem::find(text, MARK.as_bytes()).is_some()
}
