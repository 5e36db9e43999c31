//! A recording: changes and gaps as JSON lines, in the order in which they were shown. `kubediff record` writes it, and so
//! does `kubediff watch -o json --objects`. Written again from what was read, it is the same bytes.

use std::io::BufRead;

use kubediff_history::ChangeRecord;
use serde::Deserialize;
use serde_json::Value;

use crate::changes::change::Change;
use crate::hide::secret::Redacted;
use crate::model::diff::Difference;
use crate::model::gap::Gap;

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

#[derive(Deserialize)]
struct Line {
    #[serde(flatten)]
    record: ChangeRecord<Vec<Difference>>,
    old: Option<Value>,
    new: Option<Value>,
}

fn entry(line: &[u8]) -> Result<Entry, serde_json::Error> {
    let value: Value = serde_json::from_slice(line)?;
    if value.get("change").is_some_and(|change| change == "gap") {
        return Ok(Entry::Gap(serde_json::from_value(value)?));
    }
    let Line { record, old, new } = serde_json::from_value(value)?;
    // Printed changes had no secret in them.
    let [old, new] = [old, new].map(|state| state.map(Redacted::vouched));
    Ok(Entry::Change(Box::new(Change::recorded(record, [old, new]))))
}
