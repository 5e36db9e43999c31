//! Finds the values that are known in a text, in whatever form it has them.

use std::ops::Range;

use super::key::ValueId;
use super::known::{Budget, Known, MIN_BYTES, TooMuch};
use super::marker;
use super::readings::{self, Reading};
use super::runs;
use super::vocabulary::Vocabulary;

/// Where a text holds a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) place: Range<usize>,
    /// Which value, its length, and in which form it is there, unless several overlap.
    pub(super) value: Option<(ValueId, usize, Encoding)>,
    /// Whether a person has named it as a secret.
    pub(super) named: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Base64,
    Base64Twice,
}

/// A search for all values that are known.
pub(super) struct Finder<'a> {
    pub(super) known: &'a Known,
    pub(super) vocabulary: &'a Vocabulary,
}

impl Finder<'_> {
    /// Where in `text` values are, in order and without overlaps.
    pub(super) fn find(&self, text: &str, budget: &mut Budget) -> Result<Vec<Found>, TooMuch> {
        let mut found = Vec::new();
        if self.known.is_empty() || text.len() < MIN_BYTES {
            return Ok(found);
        }
        self.text(text.as_bytes(), Encoding::Plain, &|place| place, budget, &mut found)?;
        if !found.is_empty() && marker::may_be_in(text.as_bytes()) {
            let marks = marker::places(text);
            let is_in_mark = |place: &Range<usize>| {
                marks.iter().any(|mark| place.start < mark.end && mark.start < place.end)
            };
            found.retain(|found| !is_in_mark(&found.place));
        }
        Ok(if found.is_empty() { found } else { united(found, text) })
    }

    /// Searches a text and its readings. `original` is the place of its bytes in the whole text.
    fn text(
        &self,
        text: &[u8],
        encoding: Encoding,
        original: &dyn Fn(Range<usize>) -> Range<usize>,
        budget: &mut Budget,
        found: &mut Vec<Found>,
    ) -> Result<(), TooMuch> {
        self.bytes(text, encoding, original, budget, found)?;
        self.encoded(text, None, encoding, original, budget, found)?;
        readings::each(text, |reading| {
            let original = |place| original(reading.original(place));
            self.bytes(&reading.bytes, encoding, &original, budget, found)?;
            self.encoded(&reading.bytes, Some(reading), encoding, &original, budget, found)
        })
    }

    fn bytes(
        &self,
        bytes: &[u8],
        encoding: Encoding,
        original: &dyn Fn(Range<usize>) -> Range<usize>,
        budget: &mut Budget,
        found: &mut Vec<Found>,
    ) -> Result<(), TooMuch> {
        self.known.all(bytes, budget, |hit| {
            let excused = || bytes.get(hit.place.clone()).is_some_and(|value| self.vocabulary.excuses(value));
            if hit.named || !excused() {
                found.push(Found {
                    place: original(hit.place),
                    value: Some((hit.value, hit.bytes, encoding)),
                    named: hit.named,
                });
            }
        })
    }

    /// Searches what the base64 in a text stands for. Of a reading, only what differs from the text that it was read from.
    fn encoded(
        &self,
        text: &[u8],
        reading: Option<&Reading>,
        encoding: Encoding,
        original: &dyn Fn(Range<usize>) -> Range<usize>,
        budget: &mut Budget,
        found: &mut Vec<Found>,
    ) -> Result<(), TooMuch> {
        let inside = match encoding {
            Encoding::Plain => Encoding::Base64,
            Encoding::Base64 => Encoding::Base64Twice,
            Encoding::Base64Twice => return Ok(()),
        };
        let mut decoded = Vec::new();
        for run in runs::runs(text) {
            if reading.is_some_and(|reading| reading.is_as_in_original(run.clone())) {
                continue;
            }
            // The run may begin with what is no base64: `key-YWJj`, `/path/YWJj`.
            for skipped in 0..4 {
                runs::decode(text.get(run.clone()).unwrap_or_default(), skipped, &mut decoded);
                let original = |place| original(runs::characters(text, &run, skipped, place));
                if is_text(&decoded) {
                    self.text(&decoded, inside, &original, budget, found)?;
                } else {
                    self.bytes(&decoded, inside, &original, budget, found)?;
                    self.encoded(&decoded, None, inside, &original, budget, found)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether bytes are as those of a text from the beginning: its readings make sense.
fn is_text(bytes: &[u8]) -> bool {
    const LOOKED_AT: usize = 64;
    bytes.iter().take(LOOKED_AT).all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

/// In order, what overlaps united, and at the borders of characters.
fn united(mut found: Vec<Found>, text: &str) -> Vec<Found> {
    found.sort_by_key(|found| (found.place.start, std::cmp::Reverse(found.place.end)));
    let mut united: Vec<Found> = Vec::new();
    for mut next in found {
        while !text.is_char_boundary(next.place.start) {
            next.place.start -= 1;
        }
        while !text.is_char_boundary(next.place.end) {
            next.place.end += 1;
        }
        match united.last_mut() {
            Some(last) if next.place.end <= last.place.end => {}
            Some(last) if next.place.start < last.place.end => {
                let named = last.named || next.named;
                *last = Found { place: last.place.start..next.place.end, value: None, named };
            }
            _ => united.push(next),
        }
    }
    united
}
