//! A recording: changes and gaps as JSON lines, in the order in which they were shown. `kubediff record` writes it, and so
//! does `kubediff watch -o json --objects`. Written again from what was read, it is the same bytes.

use std::collections::BTreeMap;
use std::io::BufRead;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::changes::change::{Change, Origin, Verb};
use crate::hide::noise::Dropped;
use crate::hide::secret::Redacted;
use crate::model::diff::Difference;
use crate::model::gap::Gap;
use crate::model::gvk::Gvk;
use crate::model::managers::Manager;
use kubediff_history::Number;

/// A line of a recording.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A change.
    Change(Box<Change>),
    /// A gap.
    Gap(Gap),
}

/// A line that is no entry, or cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRecording {
    /// The line is something else.
    #[error(
        "line {line} is neither a change nor a gap as `kubediff record` writes them: {source}; another version of kubediff may have \
         written it"
    )]
    Line {
        /// The first line is 1.
        line: u64,
        /// Why.
        source: serde_json::Error,
    },
    /// The last line has no end.
    #[error(
        "line {line}, the last one, is cut off: the recording was ended by force, and has everything before that line"
    )]
    Cut {
        /// The first line is 1.
        line: u64,
    },
    /// The file cannot be read.
    #[error("line {line} cannot be read")]
    Read {
        /// The first line is 1.
        line: u64,
        /// Why.
        source: std::io::Error,
    },
}

/// The entries of a recording, in order. Ends after the first error.
#[derive(Debug)]
pub struct Recording<R> {
    lines: R,
    number: u64,
    is_over: bool,
}

impl<R: BufRead> Recording<R> {
    /// A recording to read from its beginning.
    pub fn new(lines: R) -> Self {
        Self { lines, number: 0, is_over: false }
    }

    fn entry(&mut self) -> Result<Option<Entry>, InvalidRecording> {
        let line = self.number + 1;
        let mut text = Vec::new();
        let read = self.lines.read_until(b'\n', &mut text);
        if read.map_err(|source| InvalidRecording::Read { line, source })? == 0 {
            return Ok(None);
        }
        self.number = line;
        if text.last() != Some(&b'\n') {
            return Err(InvalidRecording::Cut { line });
        }
        entry(&text).map(Some).map_err(|source| InvalidRecording::Line { line, source })
    }
}

impl<R: BufRead> Iterator for Recording<R> {
    type Item = Result<Entry, InvalidRecording>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let entry = self.entry().transpose();
        self.is_over = !matches!(entry, Some(Ok(_)));
        entry
    }
}

/// A change as its JSON has it. `paths` follow from the differences.
#[derive(Deserialize)]
struct Line {
    number: Option<Number>,
    cluster: Option<String>,
    gvk: Gvk,
    resource: String,
    namespace: Option<String>,
    name: String,
    uid: String,
    change: Verb,
    rv_before: Option<String>,
    rv: Option<String>,
    observed_at: Timestamp,
    source: Origin,
    managers: Vec<Manager>,
    #[serde(default)]
    owners: Vec<Manager>,
    diff: Vec<Difference>,
    summary: String,
    dropped: BTreeMap<String, u32>,
    key: Option<String>,
    merged: Option<u32>,
    old: Option<Value>,
    new: Option<Value>,
}

fn entry(line: &[u8]) -> Result<Entry, serde_json::Error> {
    let value: Value = serde_json::from_slice(line)?;
    if value.get("change").is_some_and(|change| change == "gap") {
        return Ok(Entry::Gap(serde_json::from_value(value)?));
    }
    let line: Line = serde_json::from_value(value)?;
    let key = line.key.map(|key| key.parse()).transpose().map_err(serde::de::Error::custom)?;
    Ok(Entry::Change(Box::new(Change {
        number: line.number,
        cluster: line.cluster,
        gvk: line.gvk,
        resource: line.resource,
        namespace: line.namespace,
        name: line.name,
        uid: line.uid,
        verb: line.change,
        rv_before: line.rv_before,
        rv: line.rv,
        observed_at: line.observed_at,
        origin: line.source,
        // Printed changes had no secret in them.
        managers: Redacted::vouched(line.managers),
        owners: Redacted::vouched(line.owners),
        diff: Redacted::vouched(line.diff),
        dropped: Dropped(line.dropped),
        merged: line.merged.unwrap_or(1),
        key,
        old: line.old.map(Redacted::vouched),
        new: line.new.map(Redacted::vouched),
        recorded: Some(line.summary),
    })))
}
