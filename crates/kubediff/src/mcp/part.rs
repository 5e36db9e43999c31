//! The part of an answer of `/v1` that an assistant gets at once.

use http::StatusCode;
use serde_json::Value;

use super::cut::{fit, keep, size};
use super::refusal::Refusal;
use super::tool::{Call, List};

/// A part of an answer.
pub(super) struct Part {
    pub(super) answer: Value,
    /// The cursor of the next part.
    pub(super) next: Option<String>,
    /// The entries of this part.
    pub(super) count: usize,
    /// Whether it has fewer entries than were asked for, and than there are.
    pub(super) is_shorter: bool,
    /// Whether long texts or lists are cut.
    pub(super) is_cut: bool,
}

impl Part {
    /// The part of an answer that has room.
    pub(super) fn of(call: &Call, mut answer: Value, room: usize) -> Result<Self, Refusal> {
        let mut take = |name: &str| answer.as_object_mut().and_then(|answer| answer.remove(name));
        // The frame has them.
        let (_, _, next) = (take("doubts"), take("coverage"), take("next").filter(|next| !next.is_null()));
        let (List::Cursor(name) | List::Start(name) | List::Whole(name)) = call.list else {
            let is_cut = fit(&mut answer, room);
            return Ok(Self { answer, next: None, count: 0, is_shorter: false, is_cut });
        };
        let Some(Value::Array(mut entries)) = take(name) else {
            return Err(Refusal::of(StatusCode::BAD_GATEWAY, b""));
        };
        if call.is_short() {
            let objects = entries.iter_mut().filter_map(Value::as_object_mut);
            objects
                .for_each(|entry| entry.retain(|name, _| !["old", "new", "patch"].contains(&name.as_str())));
        }
        let is_whole = matches!(call.list, List::Whole(_));
        if is_whole {
            if call.start > 0 && call.start >= entries.len() {
                let detail = "There is nothing behind it.";
                return Err(Refusal::wrong("cursor", detail, "Ask without it, from the beginning."));
            }
            entries.drain(..call.start);
        }
        let beyond = answer.get("left").and_then(Value::as_u64).is_some_and(|left| left > 0);
        let is_more = next.is_some() || (is_whole && (beyond || entries.len() > call.limit));
        entries.truncate(call.limit);
        let asked = entries.len();
        let is_frame_cut = fit(&mut answer, room / 2);
        let is_entry_cut = keep(&mut entries, room - size(&answer));
        let (count, is_shorter) = (entries.len(), entries.len() < asked);
        let next = match call.list {
            List::Cursor(_) => next.and_then(|next| next.as_str().map(str::to_owned)),
            _ => (is_more || is_shorter).then(|| (call.start + count).to_string()),
        };
        if let Some(answer) = answer.as_object_mut() {
            if let Some(left) = answer.get("left").and_then(Value::as_u64) {
                answer.insert("left".to_owned(), (left + (asked - count) as u64).into());
            }
            answer.insert(name.to_owned(), entries.into());
        }
        Ok(Self { answer, next, count, is_shorter, is_cut: is_frame_cut || is_entry_cut })
    }
}
