//! Stories: records that belong together, as a fold of the log has found them.

use serde_json::Value;

use crate::record::Number;

/// A story as it is stored. The fold alone knows what its content means.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredStory {
    /// The record that it began with, which is its id.
    pub id: Number,
    /// Its last record.
    pub last: Number,
    /// Whether it may go on.
    pub is_open: bool,
    /// The fold's knowledge of it. No value of an object belongs here: a scrub does not read it.
    pub content: Value,
}

/// The result of a fold of the log up to a record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Folded {
    /// The version of the fold. Stories of another version are replaced by those of this one.
    pub version: u32,
    /// The last record that was folded.
    pub through: Number,
    /// Stories that are new, or not what they were.
    pub stories: Vec<StoredStory>,
    /// Records that now belong to a story, and which.
    pub members: Vec<(Number, Number)>,
}
