//! Up to 4,096 neighbouring slots of a set, as a sorted array or as a bitmap.

use std::sync::Arc;

use crate::memory::{COUNTS, allocated};

const BITS: u32 = 12;
const WORDS: usize = 1 << (BITS - 6);

/// A sorted array longer than this takes more than half of a bitmap's memory, so it becomes one, ...
const SPARSE: usize = 128;
/// ... and a bitmap with fewer slots than this becomes an array again.
const VERY_SPARSE: usize = 64;

/// The part of a set that lies in one range of slots.
#[derive(Clone)]
pub(super) struct Block {
    number: u32,
    len: u32,
    places: Places,
}

#[derive(Clone)]
enum Places {
    /// Sorted.
    Sparse(Arc<Vec<u16>>),
    Dense(Arc<[u64; WORDS]>),
}

/// The number of the block that a slot belongs to.
pub(super) fn block_of(slot: u32) -> u32 {
    slot >> BITS
}

fn place_of(slot: u32) -> u16 {
    (slot & ((1 << BITS) - 1)) as u16
}

fn word_and_bit(place: u16) -> (usize, u64) {
    // The remainder changes nothing, but saves the bounds checks of the callers.
    (usize::from(place >> 6) % WORDS, 1 << (place & 63))
}

impl Block {
    pub(super) fn empty(number: u32) -> Self {
        Self { number, len: 0, places: Places::Sparse(Arc::default()) }
    }

    /// Makes a block from a bitmap; `number` is the block's number.
    fn from_words(number: u32, words: [u64; WORDS]) -> Self {
        let len = words.iter().map(|word| word.count_ones()).sum();
        let mut block = Self { number, len, places: Places::Dense(Arc::new(words)) };
        if block.len() < VERY_SPARSE {
            block.become_sparse();
        }
        block
    }

    /// The bytes of memory that it takes beside itself.
    pub(super) fn held_bytes(&self) -> usize {
        match &self.places {
            Places::Sparse(places) => {
                allocated(COUNTS + size_of::<Vec<u16>>()) + allocated(places.capacity() * size_of::<u16>())
            }
            Places::Dense(words) => allocated(COUNTS + size_of_val(&**words)),
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn contains(&self, slot: u32) -> bool {
        let place = place_of(slot);
        match &self.places {
            Places::Sparse(places) => places.binary_search(&place).is_ok(),
            Places::Dense(words) => {
                let (word, bit) = word_and_bit(place);
                words[word] & bit != 0
            }
        }
    }

    pub(super) fn insert(&mut self, slot: u32) -> bool {
        let place = place_of(slot);
        match &mut self.places {
            Places::Sparse(places) => {
                let Err(at) = places.binary_search(&place) else { return false };
                // `make_mut` copies the places only if a snapshot shares them.
                Arc::make_mut(places).insert(at, place);
                if places.len() > SPARSE {
                    self.places = Places::Dense(Arc::new(self.words()));
                }
            }
            Places::Dense(words) => {
                let (word, bit) = word_and_bit(place);
                if words[word] & bit != 0 {
                    return false;
                }
                Arc::make_mut(words)[word] |= bit;
            }
        }
        self.len += 1;
        true
    }

    pub(super) fn remove(&mut self, slot: u32) -> bool {
        if !self.contains(slot) {
            return false;
        }
        self.len -= 1;
        let place = place_of(slot);
        match &mut self.places {
            Places::Sparse(places) => Arc::make_mut(places).retain(|&other| other != place),
            Places::Dense(words) => {
                let (word, bit) = word_and_bit(place);
                Arc::make_mut(words)[word] &= !bit;
                if self.len() < VERY_SPARSE {
                    self.become_sparse();
                }
            }
        }
        true
    }

    pub(super) fn combine(&self, other: &Self, join: fn(u64, u64) -> u64) -> Self {
        // Both sides become bitmaps on the stack, so that one loop over words serves every pair of forms.
        let (ours, theirs) = (self.words(), other.words());
        Self::from_words(self.number, std::array::from_fn(|at| join(ours[at], theirs[at])))
    }

    /// The first slot at or after `next`, which then moves past it. Only the block interprets `next`; a caller starts with 0.
    pub(super) fn advance(&self, next: &mut usize) -> Option<u32> {
        let place = match &self.places {
            Places::Sparse(places) => {
                let place = u32::from(*places.get(*next)?);
                *next += 1;
                place
            }
            Places::Dense(words) => loop {
                let word = words.get(*next >> 6)?;
                let rest = word >> (*next & 63);
                if rest != 0 {
                    *next += rest.trailing_zeros() as usize + 1;
                    break u32::try_from(*next - 1).unwrap_or_default();
                }
                // This word has no further slot: continue with the next word.
                *next = (*next | 63) + 1;
            },
        };
        Some(self.number << BITS | place)
    }

    fn words(&self) -> [u64; WORDS] {
        match &self.places {
            Places::Dense(words) => **words,
            Places::Sparse(places) => {
                let mut words = [0; WORDS];
                for &place in &**places {
                    let (word, bit) = word_and_bit(place);
                    words[word] |= bit;
                }
                words
            }
        }
    }

    fn become_sparse(&mut self) {
        let mut next = 0;
        let places = std::iter::from_fn(|| self.advance(&mut next)).map(place_of).collect();
        self.places = Places::Sparse(Arc::new(places));
    }

    #[cfg(test)]
    pub(super) fn is_sound(&self) -> bool {
        let counted: u32 = self.words().iter().map(|word| word.count_ones()).sum();
        let right_form = match &self.places {
            Places::Sparse(places) => places.len() <= SPARSE,
            Places::Dense(_) => self.len() >= VERY_SPARSE,
        };
        counted == self.len && self.len > 0 && right_form
    }
}
