//! The values that are looked for, without the values.
//!
//! Of each value only hashes are kept, under a key of this process: of the first bytes of each of its forms, by which a
//! text is searched in one pass, and of the form itself. So neither an automaton of all values nor a copy of any of them
//! lies in memory, and a value costs the same whether it has 8 bytes or a megabyte.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::ops::Range;

use super::forms::{Encoding, PREFIX, forms};
use super::readings::readings;

/// A shorter value is in half of all texts by chance.
pub(super) const MIN_BYTES: usize = 8;

/// Number of former Secret values that are still searched for: objects mention them longer than Secrets have them.
const FORMER: usize = 10_000;

/// Bits of the filter for each form.
const FILTER_BITS: usize = 16;

/// The hash that stands for a value, and its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) hash: u32,
    pub(super) bytes: usize,
}

/// Where a text holds a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) place: Range<usize>,
    /// Which value in which form, unless several overlap.
    pub(super) value: Option<(Mark, Encoding)>,
}

/// The values that are looked for.
pub(super) struct Known {
    hasher: RandomState,
    /// Of the hash of first bytes, which is made at every byte of every text and so has to be cheap.
    salt: u64,
    /// One bit for the hash of the first bytes of each form, and for many others by chance.
    filter: Vec<u64>,
    /// By the hash of a form's first bytes: the lengths of the beginnings to compare.
    starts: HashMap<u64, Vec<usize>>,
    /// By the hash of a form's beginning.
    patterns: HashMap<u64, Pattern>,
    /// By the hash of the value.
    values: HashMap<u64, Value>,
    /// The values of each Secret.
    secrets: HashMap<String, HashSet<u64>>,
    /// Values that no Secret had at some time; the oldest first. One may have come back since.
    former: VecDeque<u64>,
}

struct Pattern {
    start: u64,
    prefix: usize,
    length: usize,
    margins: (usize, usize),
    encoding: Encoding,
    mark: Mark,
    /// How many values have a form that begins so.
    values: usize,
}

struct Value {
    /// How many Secrets have it.
    secrets: usize,
    patterns: Vec<u64>,
}

impl Default for Known {
    fn default() -> Self {
        let hasher = RandomState::new();
        Self {
            salt: hasher.hash_one("salt"),
            hasher,
            filter: Vec::new(),
            starts: HashMap::new(),
            patterns: HashMap::new(),
            values: HashMap::new(),
            secrets: HashMap::new(),
            former: VecDeque::new(),
        }
    }
}

impl Known {
    /// Takes `values` for those that this Secret has from now on. Its former values become former ones.
    pub(super) fn learn(&mut self, secret: &str, values: &[Vec<u8>], mark: impl Fn(&[u8]) -> Mark) {
        let hashes: HashSet<u64> = values.iter().map(|value| self.value(value, &mark)).collect();
        if self.secrets.get(secret).is_some_and(|before| *before == hashes) {
            return;
        }
        for hash in &hashes {
            if let Some(value) = self.values.get_mut(hash) {
                value.secrets += 1;
            }
        }
        let before = if hashes.is_empty() {
            self.secrets.remove(secret)
        } else {
            self.secrets.insert(secret.to_owned(), hashes)
        };
        for hash in before.unwrap_or_default() {
            if let Some(value) = self.values.get_mut(&hash) {
                value.secrets = value.secrets.saturating_sub(1);
                if value.secrets == 0 {
                    self.former.push_back(hash);
                }
            }
        }
        self.forget_oldest();
    }

    /// Looks for a value that no Secret has.
    pub(super) fn learn_former(&mut self, value: &[u8], mark: impl Fn(&[u8]) -> Mark) {
        let is_new = !self.values.contains_key(&self.hasher.hash_one(value));
        let hash = self.value(value, &mark);
        if is_new {
            self.former.push_back(hash);
            self.forget_oldest();
        }
    }

    fn value(&mut self, value: &[u8], mark: &impl Fn(&[u8]) -> Mark) -> u64 {
        let hash = self.hasher.hash_one(value);
        if self.values.contains_key(&hash) {
            return hash;
        }
        let mark = mark(value);
        let mut patterns = Vec::new();
        for form in forms(value) {
            let Some(start) = first_bytes(&form.prefix) else { continue };
            let start = self.mix(start);
            let prefix = form.prefix.len();
            let key = self.hasher.hash_one(&form.prefix);
            let pattern = self.patterns.entry(key).or_insert(Pattern {
                start,
                prefix,
                length: form.length,
                margins: form.margins,
                encoding: form.encoding,
                mark,
                values: 0,
            });
            pattern.values += 1;
            // Of two values that begin alike, more is hidden rather than less.
            pattern.length = pattern.length.max(form.length);
            patterns.push(key);
            self.begins(start, prefix);
        }
        self.values.insert(hash, Value { secrets: 0, patterns });
        hash
    }

    fn begins(&mut self, start: u64, prefix: usize) {
        let lengths = self.starts.entry(start).or_default();
        if !lengths.contains(&prefix) {
            lengths.push(prefix);
            // The longest is the one meant.
            lengths.sort_unstable_by(|a, b| b.cmp(a));
        }
        if self.filter.len() * 64 < self.starts.len() * FILTER_BITS {
            let bits = (self.starts.len() * FILTER_BITS * 4).next_power_of_two();
            self.filter = vec![0; bits / 64];
            let starts: Vec<u64> = self.starts.keys().copied().collect();
            starts.into_iter().for_each(|start| self.set(start));
        }
        self.set(start);
    }

    fn set(&mut self, start: u64) {
        let (word, bit) = self.place(start);
        if let Some(word) = self.filter.get_mut(word) {
            *word |= bit;
        }
    }

    fn mix(&self, start: u64) -> u64 {
        (start ^ self.salt).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn place(&self, start: u64) -> (usize, u64) {
        // The upper half is the well-mixed one.
        let bit = usize::try_from(start >> 32).unwrap_or(0);
        ((bit / 64) & self.filter.len().wrapping_sub(1), 1 << (bit % 64))
    }

    fn forget_oldest(&mut self) {
        let mut forgotten = false;
        while self.former.len() > FORMER {
            let Some(hash) = self.former.pop_front() else { break };
            if self.values.get(&hash).is_none_or(|value| value.secrets > 0) {
                continue;
            }
            for key in self.values.remove(&hash).map(|value| value.patterns).unwrap_or_default() {
                let Some(pattern) = self.patterns.get_mut(&key) else { continue };
                pattern.values -= 1;
                if pattern.values == 0 {
                    self.patterns.remove(&key);
                    forgotten = true;
                }
            }
        }
        if forgotten && self.starts.len() > 2 * self.patterns.len() {
            self.starts.clear();
            self.filter.clear();
            let patterns = mem::take(&mut self.patterns);
            patterns.values().for_each(|pattern| self.begins(pattern.start, pattern.prefix));
            self.patterns = patterns;
        }
    }

    /// Where in `text` values are, in order and without overlaps.
    pub(super) fn search(&self, text: &str) -> Vec<Found> {
        let mut found = Vec::new();
        if self.patterns.is_empty() || text.len() < MIN_BYTES {
            return found;
        }
        self.search_bytes(text.as_bytes(), &mut found);
        for reading in readings(text) {
            let before = found.len();
            self.search_bytes(&reading.bytes, &mut found);
            for Found { place, .. } in found.iter_mut().skip(before) {
                *place = reading.original(place.clone());
            }
        }
        united(found, text)
    }

    fn search_bytes(&self, text: &[u8], found: &mut Vec<Found>) {
        for (at, window) in text.windows(MIN_BYTES).enumerate() {
            let Some(start) = window.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)) else { continue };
            let start = self.mix(start);
            if !self.may_begin(start) {
                continue;
            }
            let lengths = self.starts.get(&start).into_iter().flatten();
            let mut patterns = lengths.filter_map(|length| {
                let pattern = self.patterns.get(&self.hasher.hash_one(text.get(at..at + length)?))?;
                (pattern.prefix == *length).then_some(pattern)
            });
            if let Some(pattern) = patterns.next() {
                found.push(pattern.found(text, at));
            }
        }
    }

    fn may_begin(&self, start: u64) -> bool {
        let (word, bit) = self.place(start);
        self.filter.get(word).is_some_and(|word| word & bit != 0)
    }
}

impl Pattern {
    fn found(&self, text: &[u8], at: usize) -> Found {
        let is_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
        let end = (at + self.length).min(text.len());
        let before = text.get(..at).unwrap_or_default().iter().rev().take(self.margins.0);
        let rest = text.get(end..).unwrap_or_default();
        let after = rest.iter().take(self.margins.1).take_while(is_base64).count();
        let padding = match self.encoding {
            Encoding::Plain => 0,
            _ => rest.iter().skip(after).take_while(|byte| **byte == b'=').take(2).count(),
        };
        let place = at - before.take_while(is_base64).count()..end + after + padding;
        Found { place, value: Some((self.mark, self.encoding)) }
    }
}

fn first_bytes(prefix: &[u8]) -> Option<u64> {
    prefix.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
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
                *last = Found { place: last.place.start..next.place.end, value: None };
            }
            _ => united.push(next),
        }
    }
    united
}

/// The part of a value that is looked for: it is often stored with a line break at its end, and copied without.
pub(super) fn essence(value: &[u8]) -> Option<&[u8]> {
    let trimmed = value.trim_ascii();
    let essence = if trimmed.len() < MIN_BYTES { value } else { trimmed };
    (essence.len() >= MIN_BYTES).then_some(essence)
}

const _: () = assert!(PREFIX > MIN_BYTES);
