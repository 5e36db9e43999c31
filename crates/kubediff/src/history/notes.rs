//! The notes that a recorder makes in a history, for the next start and for questions.

/// The note of the id of the hashes' key.
pub(crate) const KEY: &str = "key";
/// The reason of the gap at which hashes of another key begin.
pub(crate) const OTHER_KEY: &str =
    "the key of the hashes was lost: those of before and after cannot be compared";
/// The reason of the gap of a resource that was listed later than others for the first time.
pub(crate) const NEVER_BEFORE: &str = "it was not watched before";
/// The note of the time until which everything was watched.
pub(crate) const WATCHED_UNTIL: &str = "watched-until";
/// The note of the watches of which more is recorded than their positions say, a line each.
pub(crate) const AHEAD: &str = "ahead";
/// The note of what was followed and is not listed yet, a line each.
pub(crate) const UNLISTED: &str = "unlisted";
/// The note of what was followed, a line each.
pub(crate) const NAMES: &str = "resources";
/// The note of where the last run looked, as JSON.
pub(crate) const WITHIN: &str = "within";
/// The note of where a former run looked, and this one does not: `<since> <where, as JSON>`, or empty.
pub(crate) const LEFT_OUT: &str = "left-out";
/// The note of the selectors with which all runs looked, or [`MIXED`].
pub(crate) const SELECTORS: &str = "selectors";
/// Runs had different selectors.
pub(crate) const MIXED: &str = "*";
/// The note of the time since when records may have values that became known later: a scrub that is to come, or has not come to its end.
pub(crate) const UNSCRUBBED: &str = "unscrubbed";
/// The note of the clock at the last run of retention in which age counted.
pub(crate) const RETAINED: &str = "retained";

/// Prefix of the notes about resources that are not followed any more. The value is the time since when.
pub(crate) const LEFT: &str = "left/";

/// Prefix of the notes about open gaps. The value is `<since> <cause>`, or empty once the gap is recorded.
pub(crate) const OPEN: &str = "open/";

/// The name of the note of a resource that is not followed any more.
pub(crate) fn left(resource: &str) -> String {
    format!("{LEFT}{resource}")
}

/// The name of the note of a gap that has begun.
pub(crate) fn open(target: &str) -> String {
    format!("{OPEN}{target}")
}
