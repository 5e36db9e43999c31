//! Ranges against a naive model: a bool per cell between the bounds.

use super::*;

/// A set of hashes as one bool per cell; a set of ranges whose bounds are those of cells is one of these.
#[derive(Debug, Clone, PartialEq)]
struct Model<'a> {
    bounds: &'a [u128],
    cells: Vec<bool>,
}

impl<'a> Model<'a> {
    fn random(bounds: &'a [u128], random: &mut fastrand::Rng) -> Self {
        let often = random.f64();
        Self { bounds, cells: (1..bounds.len()).map(|_| random.f64() < often).collect() }
    }

    fn zip(&self, other: &Self, cell: impl Fn(bool, bool) -> bool) -> Self {
        let cells = self.cells.iter().zip(&other.cells).map(|(ours, theirs)| cell(*ours, *theirs)).collect();
        Self { bounds: self.bounds, cells }
    }

    /// Each cell alone, in any order, and some of them twice.
    fn ranges(&self, random: &mut fastrand::Rng) -> Ranges {
        let cells = self.bounds.windows(2).zip(&self.cells).filter(|(_, is_in)| **is_in);
        let mut cells: Vec<_> = cells.map(|(bounds, _)| HashRange::between(bounds[0], bounds[1])).collect();
        cells.extend(random.choice(cells.clone()));
        random.shuffle(&mut cells);
        cells.into_iter().collect()
    }

    fn size(&self) -> u128 {
        let cells = self.bounds.windows(2).zip(&self.cells);
        cells.filter(|(_, is_in)| **is_in).map(|(bounds, _)| bounds[1] - bounds[0]).sum()
    }

    fn contains(&self, hash: u64) -> bool {
        let mut cells = self.bounds.windows(2).zip(&self.cells);
        let is_in = |bounds: &[u128]| (bounds[0]..bounds[1]).contains(&u128::from(hash));
        cells.any(|(bounds, cell)| *cell && is_in(bounds))
    }
}

/// Bounds of cells that include 0 and 2^64, and often neighbours.
fn bounds(random: &mut fastrand::Rng) -> Vec<u128> {
    let mut bounds = vec![0, ALL];
    for _ in 0..random.usize(0..12) {
        let bound = u128::from(random.u64(..)) >> random.u32(0..64);
        bounds.extend([bound, bound + 1]);
    }
    bounds.sort_unstable();
    bounds.dedup();
    bounds
}

fn assert_is(ranges: &Ranges, model: &Model<'_>, random: &mut fastrand::Rng, what: &str) {
    let apart = ranges.0.windows(2).all(|pair| pair[0].end() < u128::from(pair[1].start()));
    assert!(apart, "{what}: {ranges}");
    assert_eq!(ranges.size(), model.size(), "{what}: {ranges}");
    let near = model.bounds.iter().flat_map(|bound| [bound.saturating_sub(1), *bound]);
    for hash in near.filter_map(|hash| u64::try_from(hash).ok()).chain([random.u64(..)]) {
        assert_eq!(ranges.contains(hash), model.contains(hash), "{what}: {hash:#x} in {ranges}");
    }
}

#[test]
fn ranges_are_sets_of_hashes() {
    for seed in 0..2000 {
        let random = &mut fastrand::Rng::with_seed(seed);
        let bounds = bounds(random);
        let [a, b] = [(); 2].map(|()| Model::random(&bounds, random));
        let [ours, theirs] = [&a, &b].map(|model| model.ranges(random));
        assert_is(&ours, &a, random, &format!("seed {seed}, a"));
        let both = a.zip(&b, |a, b| a && b);
        let rest = a.zip(&b, |a, b| a && !b);
        assert_is(&ours.intersection(&theirs), &both, random, &format!("seed {seed}, both"));
        assert_is(&ours.union(&theirs), &a.zip(&b, |a, b| a || b), random, &format!("seed {seed}, either"));
        assert_is(&ours.minus(&theirs), &rest, random, &format!("seed {seed}, a without b"));
        assert_eq!(ours.intersects(&theirs), both.size() > 0, "seed {seed}");
        assert_eq!(theirs.covers(&ours), rest.size() == 0, "seed {seed}");
        assert_eq!((ours.is_empty(), ours.is_all()), (a.size() == 0, a.size() == ALL), "seed {seed}");
        assert_eq!(ours == theirs, a == b, "seed {seed}: equal sets have equal ranges");
        assert_eq!(ours.to_string().parse::<Ranges>().unwrap(), ours, "seed {seed}");
    }
}

#[test]
fn text_with_a_fault_is_refused_as_a_whole() {
    let half = "0x0000000000000000-0x8000000000000000";
    for text in [format!("{half},"), format!(",{half}"), format!("{half}, {half}"), format!("{half};")] {
        assert!(text.parse::<Ranges>().is_err(), "{text}");
    }
}
