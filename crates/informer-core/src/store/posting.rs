//! A set of slots: the objects filed under one value of an index.
//!
//! One slot is stored inline, a few are a sorted array, and many are blocks of 4,096 slots, each a sorted array or a bitmap.
//! A clone is one reference count. A write beside a clone copies one block, at most 512 bytes, and the list of blocks.

mod block;

use std::sync::Arc;

use block::{Block, block_of};

use crate::memory::{COUNTS, allocated};

/// A larger set is stored in blocks, ...
const FEW: usize = 32;
/// ... and becomes an array again at this length. The gap keeps a set at the limit from being rebuilt at each event.
const VERY_FEW: usize = 16;

/// A set of slots.
// Most values of most indexes have one object (an owner, a node's lease) or a few. Those take no allocation, or one.
#[derive(Clone, Default)]
pub(super) enum Posting {
    #[default]
    Empty,
    One(u32),
    /// Sorted.
    Few(Arc<Vec<u32>>),
    Many(Arc<Blocks>),
}

/// Sorted by [`Block::number`]; none is empty.
#[derive(Clone, Default)]
pub(super) struct Blocks {
    /// The length is stored, because adding up the blocks would be O(blocks), and intersections ask for it first.
    len: usize,
    blocks: Vec<Block>,
}

impl Posting {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Few(slots) => slots.len(),
            Self::Many(blocks) => blocks.len,
        }
    }

    /// The bytes of memory that it takes beside itself.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Empty | Self::One(_) => 0,
            Self::Few(slots) => {
                allocated(COUNTS + size_of::<Vec<u32>>()) + allocated(slots.capacity() * size_of::<u32>())
            }
            Self::Many(blocks) => {
                let list = allocated(blocks.blocks.capacity() * size_of::<Block>());
                let blocks = blocks.blocks.iter().map(Block::held_bytes).sum::<usize>();
                allocated(COUNTS + size_of::<Blocks>()) + list + blocks
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn contains(&self, slot: u32) -> bool {
        match self {
            Self::Empty => false,
            Self::One(one) => *one == slot,
            Self::Few(slots) => slots.binary_search(&slot).is_ok(),
            Self::Many(blocks) => blocks
                .place(block_of(slot))
                .is_ok_and(|at| blocks.blocks.get(at).is_some_and(|block| block.contains(slot))),
        }
    }

    /// Returns whether the slot was missing before.
    pub(super) fn insert(&mut self, slot: u32) -> bool {
        match self {
            Self::Empty => *self = Self::One(slot),
            Self::One(one) if *one == slot => return false,
            Self::One(one) => *self = Self::Few(Arc::new(vec![slot.min(*one), slot.max(*one)])),
            Self::Few(slots) => {
                let Err(at) = slots.binary_search(&slot) else { return false };
                if slots.len() < FEW {
                    Arc::make_mut(slots).insert(at, slot);
                } else {
                    let mut blocks = Blocks::default();
                    slots.iter().for_each(|&slot| _ = blocks.insert(slot));
                    blocks.insert(slot);
                    *self = Self::Many(Arc::new(blocks));
                }
            }
            Self::Many(blocks) => return Arc::make_mut(blocks).insert(slot),
        }
        true
    }

    /// Returns whether the slot was in the set.
    pub(super) fn remove(&mut self, slot: u32) -> bool {
        // This check comes first, because `make_mut` would copy memory that a snapshot shares, only to find nothing to
        // remove.
        if !self.contains(slot) {
            return false;
        }
        match self {
            Self::Empty | Self::One(_) => *self = Self::Empty,
            Self::Few(slots) => match ***slots {
                [a, b] => *self = Self::One(if a == slot { b } else { a }),
                _ => Arc::make_mut(slots).retain(|&other| other != slot),
            },
            Self::Many(blocks) => {
                Arc::make_mut(blocks).remove(slot);
                // `FEW` and `VERY_FEW` lie apart: a set at the limit would be rebuilt at each event otherwise.
                if blocks.len <= VERY_FEW {
                    *self = self.iter().collect();
                }
            }
        }
        true
    }

    /// The intersection.
    pub(super) fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Many(a), Self::Many(b)) => a.combine(b, |a, b| a & b, false, false),
            // O(the smaller set): the intersection of a rare label and a common one costs as much as the rare one.
            (Self::Many(_), few) => few.iter().filter(|&slot| self.contains(slot)).collect(),
            (few, _) => few.iter().filter(|&slot| other.contains(slot)).collect(),
        }
    }

    /// The difference.
    pub(super) fn and_not(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Many(a), Self::Many(b)) => a.combine(b, |a, b| a & !b, true, false),
            // The clone shares all blocks except those that lose a slot.
            (Self::Many(_), few) => few.iter().fold(self.clone(), |mut rest, slot| {
                rest.remove(slot);
                rest
            }),
            (few, _) => few.iter().filter(|&slot| !other.contains(slot)).collect(),
        }
    }

    /// The union.
    pub(super) fn or(&self, other: &Self) -> Self {
        // The larger set is shared as it is, and the smaller one is added to it.
        let (small, large) = if self.len() < other.len() { (self, other) } else { (other, self) };
        match (small, large) {
            (Self::Many(a), Self::Many(b)) => a.combine(b, |a, b| a | b, true, true),
            _ => small.iter().fold(large.clone(), |mut all, slot| {
                all.insert(slot);
                all
            }),
        }
    }

    /// The slots in ascending order. The iterator holds a clone of the set.
    pub(super) fn iter(&self) -> PostingIter {
        PostingIter { posting: self.clone(), block: 0, next: 0 }
    }
}

impl FromIterator<u32> for Posting {
    fn from_iter<I: IntoIterator<Item = u32>>(slots: I) -> Self {
        let mut posting = Self::Empty;
        slots.into_iter().for_each(|slot| _ = posting.insert(slot));
        posting
    }
}

impl Blocks {
    fn place(&self, number: u32) -> Result<usize, usize> {
        self.blocks.binary_search_by_key(&number, Block::number)
    }

    fn insert(&mut self, slot: u32) -> bool {
        let at = self.place(block_of(slot)).unwrap_or_else(|at| {
            self.blocks.insert(at, Block::empty(block_of(slot)));
            at
        });
        let inserted = self.blocks.get_mut(at).is_some_and(|block| block.insert(slot));
        self.len += usize::from(inserted);
        inserted
    }

    fn remove(&mut self, slot: u32) {
        let Ok(at) = self.place(block_of(slot)) else { return };
        let Some(block) = self.blocks.get_mut(at) else { return };
        self.len -= usize::from(block.remove(slot));
        // No block may be empty: `combine` and the iterator rely on that.
        if block.len() == 0 {
            self.blocks.remove(at);
        }
    }

    /// Combines block by block. `left` and `right` say whether blocks that only one side has stay.
    fn combine(&self, other: &Self, join: fn(u64, u64) -> u64, left: bool, right: bool) -> Posting {
        let (mut ours, mut theirs) = (self.blocks.iter().peekable(), other.blocks.iter().peekable());
        let mut blocks = Vec::new();
        loop {
            let number = |block: Option<&&Block>| block.map_or(u32::MAX, |block| block.number());
            let (a, b) = (number(ours.peek()), number(theirs.peek()));
            let block = match (ours.next_if(|_| a <= b), theirs.next_if(|_| b <= a)) {
                (Some(a), Some(b)) => Some(a.combine(b, join)),
                (Some(a), None) => left.then(|| a.clone()),
                (None, Some(b)) => right.then(|| b.clone()),
                (None, None) => break,
            };
            blocks.extend(block.filter(|block| block.len() > 0));
        }
        let len = blocks.iter().map(Block::len).sum();
        let many = Posting::Many(Arc::new(Self { len, blocks }));
        if len <= FEW { many.iter().collect() } else { many }
    }
}

/// The slots of a set, ascending.
pub(super) struct PostingIter {
    posting: Posting,
    block: usize,
    /// For `Few`: how many slots were returned. For `Many`: the lowest place in the block that was not visited yet.
    next: usize,
}

impl Iterator for PostingIter {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match &self.posting {
            Posting::Empty => None,
            Posting::One(slot) => {
                let slot = *slot;
                self.posting = Posting::Empty;
                Some(slot)
            }
            Posting::Few(slots) => {
                self.next += 1;
                slots.get(self.next - 1).copied()
            }
            Posting::Many(blocks) => loop {
                let block = blocks.blocks.get(self.block)?;
                if let Some(slot) = block.advance(&mut self.next) {
                    return Some(slot);
                }
                self.block += 1;
                self.next = 0;
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn check(posting: &Posting, model: &BTreeSet<u32>) {
        assert_eq!(posting.len(), model.len());
        assert!(posting.iter().eq(model.iter().copied()));
        if let Posting::Many(blocks) = posting {
            assert!(blocks.blocks.iter().all(Block::is_sound) && blocks.len > VERY_FEW);
        }
    }

    #[test]
    fn agrees_with_a_plain_set() {
        for seed in 0..30 {
            let mut random = fastrand::Rng::with_seed(seed);
            let range = *random.choice(&[40, 3_000, 20_000, 2_000_000]).unwrap();
            let mut sets = [const { BTreeSet::new() }; 2];
            let mut postings = [Posting::Empty, Posting::Empty];
            for step in 0..6_000 {
                let which = random.usize(0..2);
                let grows = random.usize(0..10) < if step < 4_000 { 8 } else { 2 };
                let slot = random.u32(0..range);
                let held = postings[which].clone();
                let before = held.len();
                if grows {
                    assert_eq!(postings[which].insert(slot), sets[which].insert(slot), "seed {seed}");
                } else {
                    let slot = sets[which].range(slot..).next().copied().unwrap_or(slot);
                    assert_eq!(postings[which].remove(slot), sets[which].remove(&slot), "seed {seed}");
                }
                assert_eq!(held.len(), before);
                assert_eq!(postings[which].contains(slot), sets[which].contains(&slot));
                if step % 500 == 0 || (sets[0].len() + sets[1].len() < 80 && step % 10 == 0) {
                    let ([a, b], [x, y]) = (&postings, &sets);
                    check(a, x);
                    check(&a.and(b), &(x & y));
                    check(&a.or(b), &(x | y));
                    check(&a.and_not(b), &(x - y));
                    check(&b.and_not(a), &(y - x));
                }
            }
        }
    }
}
