//! The difference between two multi-line texts.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use similar::DiffOp;

use super::sequence;

/// Lines shown around those that differ.
const CONTEXT: usize = 2;

/// The lines that differ between two texts, with some around them. Prints as a unified diff without file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// The places that differ.
    pub hunks: Vec<Hunk>,
    /// How many lines are new.
    pub added: usize,
    /// How many lines are gone.
    pub removed: usize,
}

/// One place in two texts that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Lines of the old text before it.
    pub old_start: usize,
    /// Lines of the new text before it.
    pub new_start: usize,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// One line of a [`Hunk`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Which text has it.
    pub side: Side,
    /// Without the line feed.
    pub text: String,
    /// Whether a line feed ends it.
    pub ends: bool,
}

/// Which of two texts has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The old text alone.
    Old,
    /// The new text alone.
    New,
    /// Both.
    Both,
}

impl TextEdit {
    /// Replaces lines for which `text` gives others. A text that goes over lines takes all lines of its place.
    pub(crate) fn retext(&mut self, text: &dyn Fn(&str) -> Option<String>) {
        for hunk in &mut self.hunks {
            for line in &mut hunk.lines {
                if let Some(other) = text(&line.text) {
                    line.text = other;
                }
            }
            for side in [Side::Old, Side::New] {
                let lines = hunk.lines.iter().filter(|line| line.side != side);
                let joined = lines.map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
                if let Some(other) = text(&joined) {
                    let first = other.lines().next().unwrap_or_default();
                    hunk.lines.iter_mut().for_each(|line| first.clone_into(&mut line.text));
                }
            }
        }
    }

    /// Compares by lines, as far as `left` reaches. `None` if so many lines differ that a list of them says less than both texts,
    /// and takes 50 times their memory.
    pub(crate) fn between(old: &str, new: &str, left: &mut usize) -> Option<Self> {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let new: Vec<&str> = new.split_inclusive('\n').collect();
        let ops = sequence::steps(&old, &new, left);
        let differing = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
        let differing: usize = differing.map(|op| op.old_range().len() + op.new_range().len()).sum();
        *left = left.checked_sub(differing)?;
        let mut edit = Self { hunks: Vec::new(), added: 0, removed: 0 };
        for group in similar::group_diff_ops(ops, CONTEXT) {
            let Some(first) = group.first() else { continue };
            let (old_start, new_start) = (first.old_range().start, first.new_range().start);
            let mut hunk = Hunk { old_start, new_start, lines: Vec::new() };
            for op in group {
                let (removed, added) = (lines(&old, op.old_range()), lines(&new, op.new_range()));
                if matches!(op, DiffOp::Equal { .. }) {
                    hunk.lines.extend(removed.iter().map(|text| Line::new(Side::Both, text)));
                    continue;
                }
                edit.removed += removed.len();
                edit.added += added.len();
                hunk.lines.extend(removed.iter().map(|text| Line::new(Side::Old, text)));
                hunk.lines.extend(added.iter().map(|text| Line::new(Side::New, text)));
            }
            edit.hunks.push(hunk);
        }
        Some(edit)
    }
}

fn lines<'a>(text: &'a [&'a str], range: std::ops::Range<usize>) -> &'a [&'a str] {
    text.get(range).unwrap_or_default()
}

impl Line {
    fn new(side: Side, text: &str) -> Self {
        let (text, ends) = text.strip_suffix('\n').map_or((text, false), |text| (text, true));
        Self { side, text: text.to_owned(), ends }
    }
}

impl Hunk {
    /// `@@ -3,5 +3,6 @@`: first line and number of lines, old and new.
    pub fn header(&self) -> String {
        let count =
            |side| self.lines.iter().filter(|line| line.side == side || line.side == Side::Both).count();
        let range = |start: usize, count: usize| match count {
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            _ => format!("{},{count}", start + 1),
        };
        let (old, new) = (range(self.old_start, count(Side::Old)), range(self.new_start, count(Side::New)));
        format!("@@ -{old} +{new} @@")
    }
}

impl fmt::Display for TextEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for hunk in &self.hunks {
            writeln!(f, "{}", hunk.header())?;
            for line in &hunk.lines {
                writeln!(f, "{}{}", line.side.mark(), line.text)?;
                if !line.ends {
                    writeln!(f, "\\ No newline at end of file")?;
                }
            }
        }
        Ok(())
    }
}

impl Side {
    /// As unified diffs mark it.
    pub fn mark(self) -> char {
        match self {
            Self::Old => '-',
            Self::New => '+',
            Self::Both => ' ',
        }
    }
}

/// As it is printed.
impl Serialize for TextEdit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is no [`TextEdit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a unified diff as kubediff prints it")]
pub struct InvalidTextEdit;

/// Reads what `Display` writes.
impl FromStr for TextEdit {
    type Err = InvalidTextEdit;

    fn from_str(text: &str) -> Result<Self, InvalidTextEdit> {
        let mut edit = Self { hunks: Vec::new(), added: 0, removed: 0 };
        for line in text.split_terminator('\n') {
            if let Some(ranges) = line.strip_prefix("@@ -").and_then(|line| line.strip_suffix(" @@")) {
                let (old, new) = ranges.split_once(" +").ok_or(InvalidTextEdit)?;
                let (old_start, new_start) = (start(old)?, start(new)?);
                edit.hunks.push(Hunk { old_start, new_start, lines: Vec::new() });
                continue;
            }
            let hunk = edit.hunks.last_mut().ok_or(InvalidTextEdit)?;
            let mut rest = line.chars();
            let side = match rest.next() {
                Some('-') => Side::Old,
                Some('+') => Side::New,
                Some(' ') => Side::Both,
                Some('\\') => {
                    hunk.lines.last_mut().ok_or(InvalidTextEdit)?.ends = false;
                    continue;
                }
                _ => return Err(InvalidTextEdit),
            };
            edit.added += usize::from(side == Side::New);
            edit.removed += usize::from(side == Side::Old);
            hunk.lines.push(Line { side, text: rest.as_str().to_owned(), ends: true });
        }
        Ok(edit)
    }
}

/// How many lines are before a range: `3,5`, `3`, `2,0`.
fn start(range: &str) -> Result<usize, InvalidTextEdit> {
    let number = |text: &str| text.parse::<usize>().map_err(|_| InvalidTextEdit);
    match range.split_once(',') {
        Some((first, "0")) => number(first),
        Some((first, _)) => number(first)?.checked_sub(1).ok_or(InvalidTextEdit),
        None => number(range)?.checked_sub(1).ok_or(InvalidTextEdit),
    }
}

impl<'de> Deserialize<'de> for TextEdit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
