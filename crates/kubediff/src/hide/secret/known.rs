//! The values that are looked for, without the values.
//!
//! Of each value only hashes are kept, under the key of the installation: of its first bytes, by which a text is searched in one
//! pass, and of its beginning. So neither an automaton of all values nor a copy of any of them lies in memory, and a value costs
//! the same whether it has 8 bytes or a megabyte. A history keeps the same hashes, so that a restart knows former values.

use std::collections::{HashMap, HashSet, VecDeque};
use std::mem;
use std::ops::Range;

use siphasher::sip::SipHasher13;

use super::key::{HashKey, ValueId};
use super::print::Print;

/// A shorter value is in half of all texts by chance.
pub(super) const MIN_BYTES: usize = 8;

/// This much of a value is recognised; of a longer one, what follows is taken for the rest.
const PREFIX: usize = 256;

/// The most values of one Secret that are searched for.
const OF_SECRET: usize = 256;

/// The most values of the Secrets of one namespace that are searched for.
const OF_NAMESPACE: usize = 10_000;

/// The most values of one namespace that no Secret has any more, and that are still searched for: objects mention them longer than
/// Secrets have them.
const FORMER: usize = 2_000;

/// The most values of all namespaces together. Beyond it, a namespace has its share.
const ALL: usize = 100_000;

/// Bits of the filter for each value.
const FILTER_BITS: usize = 16;

/// Where a text holds a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) place: Range<usize>,
    pub(super) value: ValueId,
    /// The length of the value in bytes.
    pub(super) bytes: usize,
    /// Whether a person has named it as a secret: it is one, whatever it looks like.
    pub(super) named: bool,
}

/// The work that a search may take. It ends a search that values and texts were made for to take for ever.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    /// For a text or an object. A comparison takes about 10 ns for each 8 bytes.
    pub(super) fn new() -> Self {
        Self(1_000_000)
    }

    /// `None` when it is used up.
    fn spend(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.checked_sub(1 + bytes / 8)?;
        Some(())
    }
}

/// A search that took too long. The text may hold any value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMuch;

/// The values that are looked for.
pub(super) struct Known {
    hasher: SipHasher13,
    /// Of the hash of first bytes, which is made at every byte of every text and so has to be cheap.
    salt: u64,
    /// One bit for the hash of the first bytes of each value, and for many others by chance.
    filter: Vec<u64>,
    /// By the hash of a value's first bytes: the lengths of the beginnings to compare, the longest first.
    starts: HashMap<u32, Vec<u16>>,
    /// By the hash of a value's beginning.
    patterns: HashMap<u64, Pattern>,
    values: HashMap<ValueId, Value>,
    namespaces: HashMap<String, Namespace>,
    /// The difference from what a history has; `None` where there is no history.
    news: Option<News>,
    /// How often a value came that was not searched for before.
    edition: u64,
}

/// Prints in order: a learnt one with its namespace, a forgotten one without.
pub(super) type News = Vec<(Option<String>, Print)>;

#[derive(Clone, Copy)]
struct Pattern {
    start: u32,
    prefix: u16,
    value: ValueId,
    bytes: usize,
    named: bool,
    /// How many values begin so.
    values: u32,
}

struct Value {
    /// How many Secrets have it.
    secrets: u32,
    /// How many namespaces have it as a former value.
    former: u32,
    /// As it is, and with its lines joined.
    patterns: [Option<u64>; 2],
}

/// The values of the Secrets of one namespace.
#[derive(Default)]
struct Namespace {
    secrets: HashMap<String, HashSet<ValueId>>,
    /// How many values the Secrets have.
    count: usize,
    /// Values that no Secret had at some time; the oldest first. One may have come back since.
    former: VecDeque<ValueId>,
    /// How many values are not searched for, because there are too many: by Secret.
    over: HashMap<String, usize>,
}

impl Known {
    pub(super) fn new(key: &HashKey) -> Self {
        let (salt, hasher) = key.of_search();
        Self {
            hasher: SipHasher13::new_with_key(&hasher),
            salt,
            filter: Vec::new(),
            starts: HashMap::new(),
            patterns: HashMap::new(),
            values: HashMap::new(),
            namespaces: HashMap::new(),
            news: None,
            edition: 0,
        }
    }

    /// A text that was searched at this number may have more values at a higher one.
    pub(super) fn edition(&self) -> u64 {
        self.edition
    }

    /// Looks for a value that a history knows by its hashes. The values that Secrets have are learnt again from the Secrets.
    pub(super) fn restore(&mut self, namespace: &str, print: &Print) {
        let key = print.beginning;
        if print.named
            && let Some(pattern) = self.patterns.get_mut(&key).filter(|pattern| !pattern.named)
        {
            pattern.named = true;
            self.edition += 1;
        }
        let is_new = !self.values.contains_key(&print.value);
        let value =
            self.values.entry(print.value).or_insert(Value { secrets: 0, former: 0, patterns: [None; 2] });
        let Some(free) = value.patterns.iter_mut().find(|it| it.is_none()) else { return };
        let Print { start, prefix, value: id, bytes, named, .. } = *print;
        if self.patterns.contains_key(&key) {
            return;
        }
        *free = Some(key);
        self.patterns
            .insert(key, Pattern { start, prefix, value: id, bytes: bytes as usize, named, values: 1 });
        self.begins(start, prefix);
        if is_new {
            value_is_former(&mut self.values, &mut self.namespaces, namespace, id);
        }
    }

    /// Starts to collect learnt and forgotten prints for the history, and returns those collected since the last call.
    pub(super) fn news(&mut self) -> News {
        self.news.replace(News::new()).unwrap_or_default()
    }

    /// Takes `values` for those that this Secret has from now on, besides `unread` ones. Its former values become former ones.
    pub(super) fn learn(
        &mut self,
        namespace: &str,
        secret: &str,
        values: &[Vec<u8>],
        unread: usize,
        id: impl Fn(&[u8]) -> ValueId,
    ) {
        let namespaces = self.namespaces.len().max(1);
        let is_full = self.values.len() >= ALL;
        let of = self.namespaces.entry(namespace.to_owned()).or_default();
        let before = of.secrets.remove(secret).unwrap_or_default();
        of.count -= before.len();
        let share = if is_full { ALL / namespaces } else { OF_NAMESPACE };
        let room = share.saturating_sub(of.count).min(OF_SECRET);
        let mut now = HashSet::new();
        let mut over = unread;
        for value in values {
            let id = id(value);
            if now.contains(&id) {
                continue;
            }
            // Values that it had before stay, as far as possible.
            if now.len() >= room && !before.contains(&id) {
                over += 1;
                continue;
            }
            now.insert(id);
            if !before.contains(&id) {
                self.value(namespace, id, value, false).secrets += 1;
            }
        }
        let of = self.namespaces.entry(namespace.to_owned()).or_default();
        of.count += now.len();
        match over {
            0 => of.over.remove(secret),
            over => of.over.insert(secret.to_owned(), over),
        };
        let gone: Vec<ValueId> = before.difference(&now).copied().collect();
        if !now.is_empty() {
            of.secrets.insert(secret.to_owned(), now);
        }
        for id in gone {
            if let Some(value) = self.values.get_mut(&id) {
                value.secrets = value.secrets.saturating_sub(1);
            }
            self.former(namespace, id);
        }
    }

    /// Looks for a value that no Secret has, and which a person may have named.
    pub(super) fn learn_former(&mut self, namespace: &str, value: &[u8], named: bool, id: ValueId) {
        if !self.values.contains_key(&id) {
            self.value(namespace, id, value, named);
            self.former(namespace, id);
        }
    }

    /// How many values of Secrets are not searched for, because there are too many.
    pub(super) fn over(&self) -> usize {
        self.namespaces.values().flat_map(|of| of.over.values()).sum()
    }

    /// Whether nothing is searched for.
    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    fn former(&mut self, namespace: &str, id: ValueId) {
        value_is_former(&mut self.values, &mut self.namespaces, namespace, id);
        // A restart may have found more: values that Secrets have, of which it knows only then that they do.
        while let Some(of) = self.namespaces.get_mut(namespace)
            && of.former.len() > FORMER
            && let Some(oldest) = of.former.pop_front()
        {
            let Some(value) = self.values.get_mut(&oldest) else { continue };
            value.former = value.former.saturating_sub(1);
            if value.former == 0 && value.secrets == 0 {
                self.forget(oldest);
            }
        }
    }

    fn value(&mut self, namespace: &str, id: ValueId, value: &[u8], named: bool) -> &mut Value {
        if !self.values.contains_key(&id) {
            let joined = unfolded(value);
            let patterns = [
                self.pattern(namespace, id, value, named),
                joined.and_then(|joined| self.pattern(namespace, id, &joined, named)),
            ];
            self.values.insert(id, Value { secrets: 0, former: 0, patterns });
        }
        self.values.entry(id).or_insert(Value { secrets: 0, former: 0, patterns: [None; 2] })
    }

    fn pattern(&mut self, namespace: &str, id: ValueId, value: &[u8], named: bool) -> Option<u64> {
        let start = self.mix(u64::from_be_bytes(*value.first_chunk()?));
        let beginning = value.get(..PREFIX).unwrap_or(value);
        let prefix = u16::try_from(beginning.len()).ok()?;
        let key = self.hasher.hash(beginning);
        let pattern = self.patterns.entry(key).or_insert(Pattern {
            start,
            prefix,
            value: id,
            bytes: value.len(),
            named,
            values: 0,
        });
        pattern.values += 1;
        // Of two values that begin alike, more is hidden rather than less.
        let before = pattern.bytes;
        pattern.bytes = before.max(value.len());
        if pattern.values == 1 || before != pattern.bytes {
            self.edition += 1;
        }
        if let Some(news) = &mut self.news {
            let print = pattern.print(key);
            if before != pattern.bytes {
                news.push((None, Print { bytes: print_bytes(before), ..print }));
            }
            if pattern.values == 1 || before != pattern.bytes {
                news.push((Some(namespace.to_owned()), print));
            }
        }
        self.begins(start, prefix);
        Some(key)
    }

    fn begins(&mut self, start: u32, prefix: u16) {
        let lengths = self.starts.entry(start).or_default();
        if !lengths.contains(&prefix) {
            lengths.push(prefix);
            // The longest is the one meant.
            lengths.sort_unstable_by(|a, b| b.cmp(a));
        }
        if self.filter.len() * 64 < self.starts.len() * FILTER_BITS {
            let bits = (self.starts.len() * FILTER_BITS * 4).next_power_of_two();
            self.filter = vec![0; bits / 64];
            let starts: Vec<u32> = self.starts.keys().copied().collect();
            starts.into_iter().for_each(|start| self.set(start));
        }
        self.set(start);
    }

    fn set(&mut self, start: u32) {
        let (word, bit) = self.place(start);
        if let Some(word) = self.filter.get_mut(word) {
            *word |= bit;
        }
    }

    /// The upper half is the well-mixed one, and does not say what the bytes were.
    fn mix(&self, start: u64) -> u32 {
        ((start ^ self.salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }

    fn place(&self, start: u32) -> (usize, u64) {
        let bit = start as usize;
        ((bit / 64) & self.filter.len().wrapping_sub(1), 1 << (bit % 64))
    }

    fn forget(&mut self, id: ValueId) {
        let patterns = self.values.remove(&id).map(|value| value.patterns);
        let mut forgotten = false;
        for key in patterns.into_iter().flatten().flatten() {
            let Some(pattern) = self.patterns.get_mut(&key) else { continue };
            pattern.values -= 1;
            if pattern.values == 0 {
                let print = pattern.print(key);
                self.patterns.remove(&key);
                self.news.iter_mut().for_each(|news| news.push((None, print)));
                forgotten = true;
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

    /// Whether a value may begin with these eight bytes, the first one the highest. It is asked at each byte.
    #[inline]
    pub(super) fn may_begin(&self, first: u64) -> bool {
        let (word, bit) = self.place(self.mix(first));
        self.filter.get(word).is_some_and(|word| word & bit != 0)
    }

    /// The longest value at `at` of these bytes.
    pub(super) fn at(&self, text: &[u8], at: usize, budget: &mut Budget) -> Result<Option<Hit>, TooMuch> {
        let first = text.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u64::from_be_bytes(*bytes));
        let Some(lengths) = first.and_then(|first| self.starts.get(&self.mix(first))) else {
            return Ok(None);
        };
        for length in lengths {
            let Some(beginning) = text.get(at..at + usize::from(*length)) else { continue };
            budget.spend(beginning.len()).ok_or(TooMuch)?;
            let pattern = self.patterns.get(&self.hasher.hash(beginning));
            if let Some(Pattern { value, bytes, named, .. }) =
                pattern.filter(|pattern| pattern.prefix == *length)
            {
                let place = at..(at + bytes).min(text.len());
                return Ok(Some(Hit { place, value: *value, bytes: *bytes, named: *named }));
            }
        }
        Ok(None)
    }

    /// All values in these bytes.
    pub(super) fn all(
        &self,
        text: &[u8],
        budget: &mut Budget,
        mut found: impl FnMut(Hit),
    ) -> Result<(), TooMuch> {
        for (at, window) in text.windows(MIN_BYTES).enumerate() {
            let first = window.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
            if first.is_some_and(|first| self.may_begin(first))
                && let Some(hit) = self.at(text, at, budget)?
            {
                // The caller looks at all of it, in about 20 ns for each byte.
                budget.spend(4 * hit.place.len()).ok_or(TooMuch)?;
                found(hit);
            }
        }
        Ok(())
    }
}

impl Pattern {
    fn print(&self, key: u64) -> Print {
        let Self { start, prefix, value, bytes, named, .. } = *self;
        Print { start, prefix, beginning: key, value, bytes: print_bytes(bytes), named }
    }
}

fn print_bytes(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn value_is_former(
    values: &mut HashMap<ValueId, Value>,
    namespaces: &mut HashMap<String, Namespace>,
    namespace: &str,
    id: ValueId,
) {
    let Some(value) = values.get_mut(&id) else { return };
    value.former += 1;
    namespaces.entry(namespace.to_owned()).or_default().former.push_back(id);
}

/// Without line breaks and the white space around them, if there are any.
fn unfolded(value: &[u8]) -> Option<Vec<u8>> {
    value.contains(&b'\n').then(|| {
        let lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        lines.collect::<Vec<_>>().concat()
    })
}

/// The part of a value that is looked for: it is often stored with a line break at its end, and copied without.
pub(super) fn essence(value: &[u8]) -> Option<&[u8]> {
    let trimmed = value.trim_ascii();
    let essence = if trimmed.len() < MIN_BYTES { value } else { trimmed };
    (essence.len() >= MIN_BYTES).then_some(essence)
}

#[cfg(test)]
mod tests {
    use super::{Budget, Known, TooMuch};
    use crate::HashKey;

    /// Values that begin alike, and a text that begins so at every second byte.
    #[test]
    fn k5_the_hits_of_a_search_are_bounded_too() {
        let key = HashKey::from_bytes([7; 32]);
        let mut known = Known::new(&key);
        let values: Vec<Vec<u8>> =
            (0..250).map(|at| format!("{}{at}", "aB".repeat(10 * at + 4)).into_bytes()).collect();
        known.learn("evil", "x", &values, 0, |value| key.value_id(value));
        let mut bytes = 0;
        let text = "aB".repeat(450_000);
        let searched = known.all(text.as_bytes(), &mut Budget::new(), |hit| bytes += hit.place.len());
        assert_eq!(searched, Err(TooMuch));
        assert!(bytes < 4 << 20, "{bytes} bytes of hits");
    }
}
