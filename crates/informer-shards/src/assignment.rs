//! Divides all hashes among the members: equally, with little movement, in few ranges. A pure function.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use informer::share::{HashRange, Ranges};

/// A member has at most so many ranges on average; otherwise all are dealt anew.
const MOST_RANGES: usize = 4;

/// Each of `members` gets about the same number of hashes, and keeps what it had `before` as far as possible.
///
/// Sizes differ from the mean by an eighth at most. Only what a leaving member had, and what is above the mean, moves; unless
/// the ranges have become too many.
pub(crate) fn assign(
    before: &BTreeMap<String, Ranges>,
    members: &BTreeSet<String>,
) -> BTreeMap<String, Ranges> {
    if members.is_empty() {
        return BTreeMap::new();
    }
    let mean = Ranges::all().size() / members.len() as u128;
    // All slacks together are an eighth of a share.
    let slack = mean / (8 * members.len() as u128);
    let mut shares: BTreeMap<&String, Ranges> = BTreeMap::new();
    let mut free = Ranges::all();
    for member in members {
        let had = before.get(member).cloned().unwrap_or_default();
        let kept = if had.size() > mean + slack { first(&had, mean) } else { had };
        free = free.minus(&kept);
        shares.insert(member, kept);
    }
    while let Some(share) = shares.values_mut().min_by_key(|share| share.size())
        && !free.is_empty()
    {
        let gift = gift(&free, share, mean.saturating_sub(share.size()), slack);
        free = free.minus(&gift);
        *share = share.union(&gift);
    }
    if shares.values().map(|share| share.iter().len()).sum::<usize>() > MOST_RANGES * members.len() {
        return anew(shares, mean);
    }
    shares.into_iter().map(|(member, share)| (member.clone(), share)).collect()
}

/// This many of the hashes: the largest ranges, so that few are left, and a part of one.
fn first(had: &Ranges, size: u128) -> Ranges {
    let mut largest: Vec<HashRange> = had.iter().collect();
    largest.sort_by_key(|range| Reverse(range.size()));
    let mut left = size;
    let mut kept = Vec::new();
    for range in largest {
        let part = range.size().min(left);
        kept.extend(HashRange::new(range.start(), u128::from(range.start()) + part));
        left -= part;
    }
    kept.into_iter().collect()
}

/// A part of one free range for a share that lacks so many hashes: of one beside the share, or else of the largest.
fn gift(free: &Ranges, share: &Ranges, lacks: u128, slack: u128) -> Ranges {
    let follows = |range: &HashRange| share.iter().any(|own| own.end() == u128::from(range.start()));
    let precedes = |range: &HashRange| share.iter().any(|own| u128::from(own.start()) == range.end());
    let Some(range) = free.iter().max_by_key(|range| (follows(range) || precedes(range), range.size()))
    else {
        return Ranges::none();
    };
    if range.size() <= lacks + slack {
        return range.into();
    }
    // A share that lacks nothing takes the rest all the same: nobody lacks more.
    let size = if lacks == 0 { range.size() } else { lacks };
    let start = if precedes(&range) { range.end() - size } else { u128::from(range.start()) };
    let part =
        u64::try_from(start).ok().and_then(|start| HashRange::new(start, u128::from(start) + size).ok());
    part.unwrap_or(range).into()
}

/// One range for each, in about the order of what they have.
fn anew(shares: BTreeMap<&String, Ranges>, mean: u128) -> BTreeMap<String, Ranges> {
    let mut members: Vec<_> = shares.into_iter().collect();
    members.sort_by_key(|(_, share)| share.iter().max_by_key(|range| range.size()).map(HashRange::start));
    let last = members.len() - 1;
    let range = |index: usize| {
        let start = mean * index as u128;
        let end = if index == last { Ranges::all().size() } else { start + mean };
        u64::try_from(start).ok().and_then(|start| HashRange::new(start, end).ok())
    };
    let numbered = members.into_iter().enumerate();
    numbered.map(|(index, (member, _))| (member.clone(), range(index).into_iter().collect())).collect()
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    const ALL: u128 = 1 << 64;

    /// No hash has two owners or none, and sizes differ little.
    fn check(assigned: &BTreeMap<String, Ranges>, members: &BTreeSet<String>, story: &str) {
        assert!(assigned.keys().eq(members), "{story}");
        let sum: u128 = assigned.values().map(Ranges::size).sum();
        let covered = assigned.values().fold(Ranges::none(), |all, own| all.union(own));
        assert!(sum == ALL && covered.is_all(), "{story}");
        let mean = ALL / members.len() as u128;
        for (member, own) in assigned {
            assert!(own.size().abs_diff(mean) <= mean / 8 + members.len() as u128, "{story}: {member} {own}");
        }
        let ranges: usize = assigned.values().map(|own| own.iter().len()).sum();
        assert!(ranges <= MOST_RANGES * members.len(), "{story}: {ranges} ranges");
    }

    fn kept(before: &BTreeMap<String, Ranges>, after: &BTreeMap<String, Ranges>) -> u128 {
        let kept = |(member, own): (&String, &Ranges)| {
            before.get(member).map_or(0, |before| own.intersection(before).size())
        };
        after.iter().map(kept).sum()
    }

    /// The most that can stay: each member keeps what it had, up to the mean.
    fn at_most(before: &BTreeMap<String, Ranges>, members: &BTreeSet<String>) -> u128 {
        let mean = ALL / members.len() as u128;
        members.iter().map(|member| before.get(member).map_or(0, |own| own.size().min(mean))).sum()
    }

    #[test]
    fn q9_every_hash_has_one_owner_and_little_moves() {
        let (mut changes, mut anew) = (0, 0);
        for seed in 0..300 {
            let mut random = Rng::with_seed(seed);
            let mut members = BTreeSet::new();
            let mut assigned = BTreeMap::new();
            for step in 0..60 {
                for _ in 0..random.usize(1..3) {
                    let member = format!("m{}", random.u8(..10));
                    if !members.remove(&member) {
                        members.insert(member);
                    }
                }
                if members.is_empty() {
                    continue;
                }
                let next = assign(&assigned, &members);
                let story = format!("seed {seed}, step {step}");
                check(&next, &members, &story);
                changes += 1;
                let lost = at_most(&assigned, &members).saturating_sub(kept(&assigned, &next));
                if lost > 16 {
                    anew += 1;
                    assert!(next.values().all(|own| own.iter().len() == 1), "{story}: {lost} moved in vain");
                }
                assigned = next;
            }
        }
        assert!(anew * 5 < changes, "{anew} of {changes} were dealt anew");
    }

    #[test]
    fn q9_an_unchanged_set_keeps_everything() {
        let members: BTreeSet<_> = (0..7).map(|index| format!("m{index}")).collect();
        let first = assign(&BTreeMap::new(), &members);
        assert_eq!(assign(&first, &members), first);
        assert!(assign(&first, &BTreeSet::new()).is_empty());
    }

    #[test]
    fn q9_many_members_have_equal_shares() {
        let mut members = BTreeSet::new();
        let mut assigned = BTreeMap::new();
        for index in 0..100 {
            members.insert(format!("m{index}"));
            assigned = assign(&assigned, &members);
            check(&assigned, &members, &format!("{index} members"));
        }
    }

    #[test]
    fn q9_what_a_person_assigned_unequally_is_balanced_at_the_next_change() {
        let all = BTreeMap::from([("a".to_owned(), Ranges::all()), ("b".to_owned(), Ranges::none())]);
        let members = ["a", "b", "c"].map(str::to_owned).into();
        check(&assign(&all, &members), &members, "from one owner");
    }
}
