//! Changes of one object, in order, and writes to it: which write made which change.
//!
//! Writes at the same time may have been carried out in any order. So they come in groups: later groups make later changes, and within a
//! group any write may have made any change that it fits.

/// The writes that may have made a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Possible {
    pub(super) writes: Vec<usize>,
    /// Whether the change has one of them, and no other change could have it instead.
    pub(super) is_sure: bool,
}

/// For each change, its writes in all pairings in which as many changes as possible have a write. A write makes one change or none.
pub(super) fn possible(
    changes: usize,
    groups: &[Vec<usize>],
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<Possible> {
    let pairing = Pairing { changes, groups, fits };
    let before = pairing.before(None);
    let after = pairing.after();
    let most = before.last().and_then(|row| row.last()).copied().unwrap_or_default();
    let mut all = vec![Possible::default(); changes];
    for (change, possible) in all.iter_mut().enumerate() {
        for (group, writes) in groups.iter().enumerate() {
            let (Some(before), Some(after)) = (before.get(group), after.get(group + 1)) else { continue };
            let makes = |write: &&usize| {
                (pairing.fits)(change, **write)
                    && pairing.with(change, **write, writes, before, after) == most
            };
            possible.writes.extend(writes.iter().filter(makes));
        }
        // Where each change has a write, none can be without.
        possible.is_sure = most == changes || {
            let without = pairing.before(Some(change));
            without.last().and_then(|row| row.last()).is_some_and(|it| *it < most)
        };
    }
    all
}

struct Pairing<'a, F> {
    changes: usize,
    groups: &'a [Vec<usize>],
    fits: F,
}

impl<F: Fn(usize, usize) -> bool> Pairing<'_, F> {
    /// For the groups before one and the changes before one, the most pairs. One change may be left out.
    fn before(&self, left_out: Option<usize>) -> Vec<Vec<usize>> {
        let mut rows = vec![vec![0; self.changes + 1]];
        for group in self.groups {
            let last = rows.last().cloned().unwrap_or_default();
            let mut row = last.clone();
            for (from, before) in last.iter().enumerate() {
                let mut pairs = Pairs::new(group);
                for to in from..self.changes {
                    if left_out != Some(to) {
                        pairs.add(to, &self.fits);
                    }
                    if let Some(most) = row.get_mut(to + 1) {
                        *most = (*most).max(before + pairs.count());
                    }
                }
            }
            rows.push(row);
        }
        rows
    }

    /// For the groups from one on and the changes from one on, the most pairs.
    fn after(&self) -> Vec<Vec<usize>> {
        let mut rows = vec![vec![0; self.changes + 1]];
        for group in self.groups.iter().rev() {
            let last = rows.last().cloned().unwrap_or_default();
            let mut row = last.clone();
            for (to, after) in last.iter().enumerate() {
                let mut pairs = Pairs::new(group);
                for from in (0..to).rev() {
                    pairs.add(from, &self.fits);
                    if let Some(most) = row.get_mut(from) {
                        *most = (*most).max(after + pairs.count());
                    }
                }
            }
            rows.push(row);
        }
        rows.reverse();
        rows
    }

    /// The most pairs of all, with this one among them.
    fn with(&self, change: usize, write: usize, group: &[usize], before: &[usize], after: &[usize]) -> usize {
        let others: Vec<usize> = group.iter().copied().filter(|it| *it != write).collect();
        let mut most = 0;
        for (from, before) in before.iter().enumerate().take(change + 1) {
            let mut pairs = Pairs::new(&others);
            for (to, after) in after.iter().enumerate().skip(from + 1) {
                if to - 1 != change {
                    pairs.add(to - 1, &self.fits);
                }
                if to > change {
                    most = most.max(before + 1 + pairs.count() + after);
                }
            }
        }
        most
    }
}

/// The most pairs of some changes with the writes of a group, in any order: augmenting paths.
struct Pairs<'a> {
    writes: &'a [usize],
    /// The change of each write.
    of: Vec<Option<usize>>,
}

impl<'a> Pairs<'a> {
    fn new(writes: &'a [usize]) -> Self {
        Self { writes, of: vec![None; writes.len()] }
    }

    fn count(&self) -> usize {
        self.of.iter().flatten().count()
    }

    fn add(&mut self, change: usize, fits: &impl Fn(usize, usize) -> bool) {
        if self.count() < self.writes.len() {
            self.pair(change, fits, &mut vec![false; self.writes.len()]);
        }
    }

    fn pair(&mut self, change: usize, fits: &impl Fn(usize, usize) -> bool, tried: &mut [bool]) -> bool {
        for (at, write) in self.writes.iter().enumerate() {
            let Some(tried_before) = tried.get_mut(at) else { continue };
            if !fits(change, *write) || std::mem::replace(tried_before, true) {
                continue;
            }
            let other = self.of.get(at).copied().flatten();
            if other.is_none_or(|other| self.pair(other, fits, tried)) {
                if let Some(of) = self.of.get_mut(at) {
                    *of = Some(change);
                }
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sure(writes: &[usize]) -> Possible {
        Possible { writes: writes.to_vec(), is_sure: true }
    }

    #[test]
    fn as_many_writes_as_changes_pair_in_one_way() {
        let one = |count: usize| (0..count).map(|it| vec![it]).collect::<Vec<_>>();
        assert_eq!(possible(2, &one(2), |_, _| true), [sure(&[0]), sure(&[1])]);
        assert_eq!(possible(0, &one(2), |_, _| true), []);
        // One of three changed nothing.
        assert_eq!(possible(2, &one(3), |_, _| true), [sure(&[0, 1]), sure(&[1, 2])]);
        let fits = |change, write| (change == 1) == (write == 2);
        assert_eq!(possible(2, &one(3), fits), [sure(&[0, 1]), sure(&[2])]);
        // The event of one of two is missing.
        let either = Possible { writes: vec![0], is_sure: false };
        assert_eq!(possible(2, &one(1), |_, _| true), [either.clone(), either]);
        assert_eq!(possible(2, &one(1), |change, _| change == 1), [Possible::default(), sure(&[0])]);
        // At the same time, they may have come in any order.
        assert_eq!(possible(2, &[vec![0, 1]], |_, _| true), [sure(&[0, 1]), sure(&[0, 1])]);
        assert_eq!(possible(2, &[vec![0, 1]], |change, write| change != write), [sure(&[1]), sure(&[0])]);
    }

    /// All pairings, one after the other.
    fn naive(changes: usize, groups: &[Vec<usize>], fits: &dyn Fn(usize, usize) -> bool) -> Vec<Possible> {
        let mut all: Vec<Vec<Option<(usize, usize)>>> = vec![Vec::new()];
        for change in 0..changes {
            let mut longer = Vec::new();
            for pairing in all {
                let latest = pairing.iter().flatten().map(|(group, _)| *group).max().unwrap_or_default();
                for (group, writes) in groups.iter().enumerate().skip(latest) {
                    for write in writes.iter().filter(|write| fits(change, **write)) {
                        if !pairing.contains(&Some((group, *write))) {
                            longer.push([pairing.clone(), vec![Some((group, *write))]].concat());
                        }
                    }
                }
                longer.push([pairing, vec![None]].concat());
            }
            all = longer;
        }
        let count = |pairing: &Vec<Option<(usize, usize)>>| pairing.iter().flatten().count();
        let most = all.iter().map(count).max().unwrap();
        let best: Vec<_> = all.into_iter().filter(|pairing| count(pairing) == most).collect();
        let of = |change: usize| {
            let mut writes: Vec<usize> =
                best.iter().filter_map(|pairing| pairing[change]).map(|(_, write)| write).collect();
            writes.sort_unstable();
            writes.dedup();
            Possible { writes, is_sure: best.iter().all(|pairing| pairing[change].is_some()) }
        };
        (0..changes).map(of).collect()
    }

    #[test]
    fn random_pairs_are_those_of_a_naive_search() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..1_000 {
            let (changes, writes) = (random.usize(0..6), random.usize(0..6));
            let mut groups: Vec<Vec<usize>> = Vec::new();
            for write in 0..writes {
                match groups.last_mut().filter(|_| random.bool()) {
                    Some(group) => group.push(write),
                    None => groups.push(vec![write]),
                }
            }
            let table: Vec<bool> = (0..36).map(|_| random.u8(..3) > 0).collect();
            let fits = |change: usize, write: usize| table[change * 6 + write];
            let found = possible(changes, &groups, fits);
            assert_eq!(found, naive(changes, &groups, &fits), "seed {seed}: {groups:?}");
        }
    }
}
