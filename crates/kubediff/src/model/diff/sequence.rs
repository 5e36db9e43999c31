//! The steps from one sequence to another one, in a bounded time.
//!
//! A longest common subsequence of long sequences that repeat few elements costs seconds, and anybody may write such texts.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use similar::{Algorithm, DiffOp};

/// The number of elements of an object, of old and new together, that are compared one by one: at most 20 ms.
pub(crate) const MOST: usize = 20_000;
/// About how many parts a long sequence has. The end of a part follows from its last element, so that equal parts stay equal wherever
/// they are.
const PARTS: usize = 2_500;

/// The steps from `old` to `new`: few of them, though in long sequences not the fewest. Between the common beginning and end, a
/// long sequence is compared by its parts, and the parts that differ by their elements, as far as `left` reaches.
pub(super) fn steps<T: Eq + Hash>(old: &[T], new: &[T], left: &mut usize) -> Vec<DiffOp> {
    let begin = common(old.iter().zip(new));
    let (old_rest, new_rest) = (old.get(begin..).unwrap_or_default(), new.get(begin..).unwrap_or_default());
    let end = common(old_rest.iter().rev().zip(new_rest.iter().rev()));
    let middle = old.len() + new.len() - 2 * (begin + end);
    if middle <= *left {
        *left -= middle;
        return similar::capture_diff_slices(Algorithm::Myers, old, new);
    }
    let mean = middle / (2 * PARTS);
    let (old_parts, new_parts) = (parts(old_rest, end, mean), parts(new_rest, end, mean));
    let (old_starts, new_starts) = (starts(begin, &old_parts), starts(begin, &new_parts));
    let len = old_parts.len() + new_parts.len();
    let coarse = if len > *left {
        vec![replace(0..old_parts.len(), 0..new_parts.len())]
    } else {
        *left -= len;
        similar::capture_diff_slices(Algorithm::Myers, &old_parts, &new_parts)
    };

    let mut steps = vec![equal(0, 0, begin)];
    for step in coarse {
        let old_range = within(&old_starts, step.old_range());
        let new_range = within(&new_starts, step.new_range());
        let len = old_range.len() + new_range.len();
        match step {
            DiffOp::Equal { .. } => steps.push(equal(old_range.start, new_range.start, old_range.len())),
            _ if len > *left => steps.push(replace(old_range, new_range)),
            _ => {
                *left -= len;
                steps.extend(similar::capture_diff(Algorithm::Myers, old, old_range, new, new_range));
            }
        }
    }
    steps.push(equal(old.len() - end, new.len() - end, end));
    steps.retain(|step| !step.old_range().is_empty() || !step.new_range().is_empty());
    steps
}

/// The number of pairs at the beginning whose elements are equal.
fn common<'a, T: Eq + 'a>(mut pairs: impl Iterator<Item = (&'a T, &'a T)>) -> usize {
    let mut len = 0;
    while pairs.next().is_some_and(|(old, new)| old == new) {
        len += 1;
    }
    len
}

/// The parts of all elements but the last ones, with a mean length.
fn parts<T: Hash>(all: &[T], without: usize, mean: usize) -> Vec<&[T]> {
    let all = all.get(..all.len().saturating_sub(without)).unwrap_or_default();
    all.split_inclusive(|element| {
        let mut hasher = DefaultHasher::new();
        element.hash(&mut hasher);
        hasher.finish().is_multiple_of(mean.max(1) as u64)
    })
    .collect()
}

/// The place of each part's first element, and the end of the last part.
fn starts<T>(first: usize, parts: &[&[T]]) -> Vec<usize> {
    let mut at = first;
    let ends = parts.iter().map(|part| {
        at += part.len();
        at
    });
    std::iter::once(first).chain(ends).collect()
}

/// The elements of these parts.
fn within(starts: &[usize], parts: Range<usize>) -> Range<usize> {
    let start = |part: usize| starts.get(part).copied().unwrap_or_default();
    start(parts.start)..start(parts.end)
}

fn equal(old_index: usize, new_index: usize, len: usize) -> DiffOp {
    DiffOp::Equal { old_index, new_index, len }
}

fn replace(old: Range<usize>, new: Range<usize>) -> DiffOp {
    DiffOp::Replace { old_index: old.start, old_len: old.len(), new_index: new.start, new_len: new.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the steps make the new sequence of the old one, and go over each element once.
    fn leads<T: Eq + Hash + Clone>(old: &[T], new: &[T], steps: &[DiffOp]) -> bool {
        let (mut old_at, mut made) = (0, Vec::new());
        for step in steps {
            assert_eq!((step.old_range().start, step.new_range().start), (old_at, made.len()));
            old_at = step.old_range().end;
            made.extend_from_slice(match step {
                DiffOp::Equal { .. } => &old[step.old_range()],
                _ => &new[step.new_range()],
            });
        }
        old_at == old.len() && made == new
    }

    fn changed(steps: &[DiffOp]) -> usize {
        let changed = steps.iter().filter(|step| !matches!(step, DiffOp::Equal { .. }));
        changed.map(|step| step.old_range().len() + step.new_range().len()).sum()
    }

    #[test]
    fn steps_lead_from_one_sequence_to_the_other() {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..60 {
            let (len, letters) = ([0, 5, MOST / 2, MOST, 60_000][round % 5], [2, 30, 1 << 30][round % 3]);
            let old: Vec<u32> = (0..len).map(|_| random.u32(0..letters)).collect();
            let mut new = old.clone();
            for _ in 0..random.usize(0..20) {
                let at = random.usize(0..=new.len());
                match random.bool() && at < new.len() {
                    true => drop(new.remove(at)),
                    false => new.insert(at, random.u32(0..letters)),
                }
            }
            let steps = steps(&old, &new, &mut MOST.clone());
            assert!(leads(&old, &new, &steps), "round {round}");
        }
    }

    #[test]
    fn few_changes_of_a_long_sequence_are_few_steps() {
        let old: Vec<u32> = (0..300_000).map(|at| if at % 3 == 0 { 0 } else { at }).collect();
        let mut new = old.clone();
        for at in [3, 150_000, 299_000] {
            new.insert(at, 777_777);
        }
        let steps = steps(&old, &new, &mut MOST.clone());
        assert!(leads(&old, &new, &steps));
        assert_eq!(changed(&steps), 3);
    }

    #[test]
    fn k5_sequences_of_few_elements_are_not_compared_one_by_one() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut letters = || (0..450_000).map(|_| random.u8(b'a'..=b'j')).collect::<Vec<_>>();
        let (old, new) = (letters(), letters());
        let steps = steps(&old, &new, &mut MOST.clone());
        assert!(leads(&old, &new, &steps));
        assert!(steps.len() <= MOST, "{} steps", steps.len());
    }
}
