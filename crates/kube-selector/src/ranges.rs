//! A set of hashes, as ranges.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::range::{ALL, HashRange, InvalidRange};

/// A set of hashes: ranges that are sorted, disjoint, and not adjacent. Equal sets have equal ranges. A clone is a
/// reference count.
///
/// Its text has the ranges, joined by `,`; the text of the empty set is empty.
///
/// ```
/// use kube_selector::{HashRange, Ranges};
///
/// let lower = Ranges::from(HashRange::new(0, 1 << 63)?);
/// let upper = Ranges::all().minus(&lower);
/// assert_eq!(upper.to_string(), "0x8000000000000000-0x10000000000000000");
/// assert_eq!(upper.fraction(), 0.5);
/// assert!(!upper.intersects(&lower) && upper.union(&lower).is_all());
/// # Ok::<(), kube_selector::InvalidRange>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Ranges(Arc<[HashRange]>);

impl Ranges {
    /// No hash.
    pub fn none() -> Self {
        Self::default()
    }

    /// Every hash.
    pub fn all() -> Self {
        HashRange::ALL.into()
    }

    /// Whether there is no hash.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is every hash.
    pub fn is_all(&self) -> bool {
        *self.0 == [HashRange::ALL]
    }

    /// The ranges, sorted.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = HashRange> + '_ {
        self.0.iter().copied()
    }

    /// Whether a hash is in the set. O(log n) of the ranges.
    pub fn contains(&self, hash: u64) -> bool {
        let behind = self.0.partition_point(|range| range.start() <= hash);
        behind.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|range| range.contains(hash))
    }

    /// How many hashes there are, from 0 to 2^64.
    pub fn size(&self) -> u128 {
        self.iter().map(HashRange::size).sum()
    }

    /// The part of all hashes, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        self.size() as f64 / ALL as f64
    }

    /// The hashes that are in both sets. O(n + m), as the other operations on two sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let [mut ours, mut theirs] = [self, other].map(|ranges| ranges.0.iter().copied().peekable());
        let mut both = Vec::new();
        while let (Some(our), Some(their)) = (ours.peek(), theirs.peek()) {
            let start = u128::from(our.start().max(their.start()));
            let end = our.end().min(their.end());
            if start < end {
                both.push(HashRange::between(start, end));
            }
            let ends_first = if our.end() <= their.end() { &mut ours } else { &mut theirs };
            ends_first.next();
        }
        Self(both.into())
    }

    /// The hashes that are in one of the sets, or in both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }

    /// The hashes that are in this set, but not in the other.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }

    /// Whether some hash is in both sets.
    pub fn intersects(&self, other: &Self) -> bool {
        !self.intersection(other).is_empty()
    }

    /// Whether each hash of the other set is in this one.
    pub fn covers(&self, other: &Self) -> bool {
        other.minus(self).is_empty()
    }

    fn complement(&self) -> Self {
        let mut gaps = Vec::new();
        let mut reached = 0;
        for range in self.iter() {
            if reached < u128::from(range.start()) {
                gaps.push(HashRange::between(reached, u128::from(range.start())));
            }
            reached = range.end();
        }
        if reached < ALL {
            gaps.push(HashRange::between(reached, ALL));
        }
        Self(gaps.into())
    }
}

impl From<HashRange> for Ranges {
    fn from(range: HashRange) -> Self {
        Self([range].into())
    }
}

/// Ranges in any order, which may overlap.
impl FromIterator<HashRange> for Ranges {
    fn from_iter<I: IntoIterator<Item = HashRange>>(ranges: I) -> Self {
        let mut ranges: Vec<HashRange> = ranges.into_iter().collect();
        ranges.sort_unstable();
        let mut merged: Vec<HashRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if u128::from(range.start()) <= last.end() => {
                    *last = HashRange::between(u128::from(last.start()), last.end().max(range.end()));
                }
                _ => merged.push(range),
            }
        }
        Self(merged.into())
    }
}

impl FromStr for Ranges {
    type Err = InvalidRange;

    /// Ranges in any order, which may overlap: [`Ranges::size`] shows whether they did.
    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        if text.is_empty() {
            return Ok(Self::none());
        }
        text.split(',').map(str::parse).collect()
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{range}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ranges({self})")
    }
}

#[cfg(test)]
mod tests;
