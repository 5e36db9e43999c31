//! Edits the content of a response as bytes: the rest stays as the server wrote it.
//!
//! Events are JSON or protobuf; other responses that are edited are JSON.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::faults::flow::{Stage, Step};
use crate::faults::framing::{Framing, MAGIC};
use crate::faults::rule::Hit;

/// The first bytes of a response, which hold the kind, version and metadata of a list or an object.
const HEAD: usize = 4 << 10;

/// An edit of one event, or of the head of a response.
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
    /// `None` after the edit.
    edit: Option<Edit>,
    framing: Framing,
    hit: Hit,
}

impl Editor {
    pub(super) fn new(after: u64, edit: Edit, framing: Framing, hit: Hit) -> Self {
        Self { left: after, edit: Some(edit), framing, hit }
    }
}

impl Stage for Editor {
    fn take(&mut self, step: Step, out: &mut VecDeque<Step>) {
        let (Step::Bytes(event), Some(edit)) = (&step, self.edit) else {
            out.push_back(step);
            return;
        };
        // Bookmarks count, but have too little content for an edit.
        if self.left > 0 || is_bookmark(event) {
            self.left = self.left.saturating_sub(1);
            out.push_back(step);
            return;
        }
        self.edit = None;
        self.hit.fire();
        out.push_back(Step::Bytes(match self.framing {
            Framing::Lines => edited(event, edit),
            Framing::Messages => edited_message(event, edit),
        }));
        if edit == Edit::Duplicate {
            out.push_back(step);
        }
    }
}

/// Edits the head of a response that is one document.
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
            back(std::str::from_utf8(digits).unwrap_or_default(), by).into_bytes()
        }),
    }
}

/// As `edited`, for an event in protobuf, which stays a message after its length.
fn edited_message(event: &Bytes, edit: Edit) -> Bytes {
    const LENGTH: usize = 4;
    let framing = Framing::Messages;
    match edit {
        Edit::Duplicate => event.clone(),
        Edit::Truncate => framing.framed(&event[LENGTH..event.len() / 2]),
        Edit::Garble => {
            let mut garbled = event.to_vec();
            // This is an invalid tag in every message.
            garbled.iter_mut().skip(LENGTH).take(LENGTH).for_each(|byte| *byte = 0xff);
            garbled.into()
        }
        // The replacement has the same length, so that all lengths around it stay valid.
        Edit::WrongKind => {
            let Some(kind) = kind_of(event) else { return event.clone() };
            let mut changed = event.to_vec();
            changed[kind]
                .iter_mut()
                .zip(b"Impostor".iter().cycle())
                .for_each(|(byte, letter)| *byte = *letter);
            changed.into()
        }
        Edit::RevisionBack(by) => {
            let Some(mut said) = Framing::read(event) else { return event.clone() };
            let revision = &mut said["object"]["metadata"]["resourceVersion"];
            *revision = back(revision.as_str().unwrap_or_default(), by).into();
            framing.event(&said)
        }
    }
}

/// The place of the kind of an event's object: in the envelope after the version, each after one byte of tag and one of
/// length.
fn kind_of(event: &[u8]) -> Option<Range<usize>> {
    let version = find(event, MAGIC)? + MAGIC.len() + 2;
    let tag = version + 2 + usize::from(*event.get(version + 1)?);
    let kind = tag + 2..tag + 2 + usize::from(*event.get(tag + 1)?);
    (kind.end <= event.len()).then_some(kind)
}

fn back(revision: &str, by: u64) -> String {
    revision.parse::<u64>().unwrap_or(1).saturating_sub(by).max(1).to_string()
}

/// JSON allows neither a bare `#` outside of a string, nor a control character inside of one.
fn garbled(text: &Bytes) -> Bytes {
    let mut garbled = text.to_vec();
    // The damage is in the head, and before the end of the line, which stays.
    let middle = (text.len().min(HEAD) / 2).min(text.len().saturating_sub(1));
    let end = (middle + 4).min(text.len().saturating_sub(1));
    garbled[middle..end].copy_from_slice(&b"\x01#\x02#"[..end - middle]);
    garbled.into()
}

/// The text with another value for the first occurrence of a key; `key` includes everything before the value's first
/// character.
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

/// An event is a line, or a message after its length, whose first field is the type.
pub(super) fn is_bookmark(event: &[u8]) -> bool {
    event.starts_with(b"{\"type\":\"BOOKMARK\"")
        || event.get(4..).is_some_and(|message| message.starts_with(b"\x0a\x08BOOKMARK"))
}

pub(super) fn is_end_bookmark(event: &[u8]) -> bool {
    is_bookmark(event) && find(event, b"k8s.io/initial-events-end").is_some()
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
