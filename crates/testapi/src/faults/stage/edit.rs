//! Changes what an answer says, as bytes: the rest stays as the server wrote it.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::faults::flow::{Stage, Step};
use crate::faults::rule::Hit;

/// Kind, version and metadata of a list or an object are in here.
const HEAD: usize = 4 << 10;

/// What is done to one event, or to the head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    Garble,
    Truncate,
    WrongKind,
    Duplicate,
    RevisionBack(u64),
}

/// Changes one event of a watch.
pub(super) struct Editor {
    left: u64,
    /// Taken when it is done.
    edit: Option<Edit>,
    hit: Hit,
}

impl Editor {
    pub(super) fn new(after: u64, edit: Edit, hit: Hit) -> Self {
        Self { left: after, edit: Some(edit), hit }
    }
}

impl Stage for Editor {
    fn take(&mut self, step: Step, out: &mut VecDeque<Step>) {
        let (Step::Bytes(line), Some(edit)) = (&step, self.edit) else {
            out.push_back(step);
            return;
        };
        // A bookmark tells too little to be changed; it counts.
        if self.left > 0 || is_bookmark(line) {
            self.left = self.left.saturating_sub(1);
            out.push_back(step);
            return;
        }
        self.edit = None;
        self.hit.fire();
        out.push_back(Step::Bytes(edited(line, edit)));
        if edit == Edit::Duplicate {
            out.push_back(step);
        }
    }
}

/// Changes the head of an answer that is one document.
pub(super) struct HeadEditor {
    head: BytesMut,
    edit: Option<Edit>,
    hit: Hit,
}

impl HeadEditor {
    pub(super) fn new(edit: Edit, hit: Hit) -> Self {
        Self { head: BytesMut::new(), edit: Some(edit), hit }
    }

    fn release(&mut self, out: &mut VecDeque<Step>) {
        if let Some(edit) = self.edit.take() {
            self.hit.fire();
            out.push_back(Step::Bytes(edited(&self.head.split().freeze(), edit)));
        }
    }
}

impl Stage for HeadEditor {
    fn take(&mut self, step: Step, out: &mut VecDeque<Step>) {
        match step {
            Step::Bytes(bytes) if self.edit.is_some() => {
                self.head.extend_from_slice(&bytes);
                if self.head.len() >= HEAD {
                    self.release(out);
                }
            }
            Step::Finish(_) => {
                self.release(out);
                out.push_back(step);
            }
            other => out.push_back(other),
        }
    }
}

fn edited(text: &Bytes, edit: Edit) -> Bytes {
    match edit {
        Edit::Duplicate => text.clone(),
        Edit::Truncate => {
            let mut half = text[..text.len() / 2].to_vec();
            half.push(b'\n');
            half.into()
        }
        Edit::Garble => garbled(text),
        Edit::WrongKind => with_value(text, b"\"kind\":\"", |_| b"Impostor".to_vec()),
        Edit::RevisionBack(by) => with_value(text, b"\"resourceVersion\":\"", |digits| {
            let revision: u64 =
                std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
            revision.saturating_sub(by).max(1).to_string().into_bytes()
        }),
    }
}

/// No reader of JSON takes a bare `#` outside of a string, and a control character inside of one.
fn garbled(text: &Bytes) -> Bytes {
    let mut garbled = text.to_vec();
    // In the head, and before the end of the line, which stays.
    let middle = (text.len().min(HEAD) / 2).min(text.len().saturating_sub(1));
    let end = (middle + 4).min(text.len().saturating_sub(1));
    garbled[middle..end].copy_from_slice(&b"\x01#\x02#"[..end - middle]);
    garbled.into()
}

/// With another value where a key first stands; `key` has everything up to the value's first character.
fn with_value(text: &Bytes, key: &[u8], change: impl FnOnce(&[u8]) -> Vec<u8>) -> Bytes {
    let Some(start) = find(text, key).map(|at| at + key.len()) else { return text.clone() };
    let Some(end) = text[start..].iter().position(|byte| *byte == b'"').map(|length| start + length) else {
        return text.clone();
    };
    let mut changed = text[..start].to_vec();
    changed.extend(change(&text[start..end]));
    changed.extend_from_slice(&text[end..]);
    changed.into()
}

pub(super) fn is_bookmark(line: &[u8]) -> bool {
    line.starts_with(b"{\"type\":\"BOOKMARK\"")
}

pub(super) fn is_end_bookmark(line: &[u8]) -> bool {
    is_bookmark(line) && find(line, b"k8s.io/initial-events-end").is_some()
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const EVENT: &str = "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"annotations\":\
        {\"last\":\"{\\\"resourceVersion\\\":\\\"1\\\"}\"},\"resourceVersion\":\"120\"}}}\n";

    fn edit(edit: Edit) -> String {
        String::from_utf8(edited(&Bytes::from_static(EVENT.as_bytes()), edit).to_vec()).unwrap()
    }

    #[test]
    fn only_what_is_meant_is_changed() {
        assert_eq!(edit(Edit::WrongKind), EVENT.replace("Pod", "Impostor"));
        assert_eq!(edit(Edit::RevisionBack(50)), EVENT.replace("120", "70"));
        assert_eq!(edit(Edit::RevisionBack(500)), EVENT.replace("120", "1"));
        assert_eq!(edit(Edit::Duplicate), EVENT);
    }

    #[test]
    fn garbled_and_truncated_events_are_no_json_and_one_line() {
        for text in [edit(Edit::Garble), edit(Edit::Truncate)] {
            assert!(serde_json::from_str::<Value>(&text).is_err(), "{text}");
            assert_eq!(text.find('\n'), Some(text.len() - 1));
        }
    }

    #[test]
    fn the_shortest_answers_can_be_garbled() {
        for text in ["", "{", "{}", "{}\n"] {
            let _ = garbled(&Bytes::from_static(text.as_bytes()));
        }
    }

    #[test]
    fn the_end_bookmark_is_told_from_others() {
        let bookmark = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}"#;
        let end = br#"{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        assert!(is_bookmark(bookmark) && !is_end_bookmark(bookmark));
        assert!(is_bookmark(end) && is_end_bookmark(end));
        assert!(!is_bookmark(EVENT.as_bytes()));
    }
}
