//! Decisions taken from bytes: a fuzzer's, or those that a seed stands for.

use std::ops::Range;

use arbitrary::Unstructured;

/// Decisions, one after the other. Once the bytes are spent, each is the first that was offered.
#[derive(Debug)]
pub struct Choices<'a>(Unstructured<'a>);

impl<'a> Choices<'a> {
    /// The decisions that these bytes stand for.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// Whether nothing is left to decide by.
    pub fn are_spent(&self) -> bool {
        self.0.is_empty()
    }

    /// A number of the range, which must not be empty.
    pub fn number(&mut self, range: Range<u64>) -> u64 {
        self.0.int_in_range(range.start..=range.end - 1).unwrap_or(range.start)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.int_in_range(0..=bound - 1).unwrap_or(0)
    }

    /// Yes, in half of the cases.
    pub fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    /// One of these; none only of nothing.
    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        if of.is_empty() { None } else { of.get(self.below(of.len())) }
    }

    /// A byte for each of the array's places.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        self.0.arbitrary().unwrap_or([0; N])
    }

    /// All bytes that are left, as they are.
    pub fn rest(self) -> &'a [u8] {
        self.0.take_rest()
    }
}
