//! How long each hash has nobody who begins anything for it, when one thing happens at a time: a member joins, leaves,
//! crashes or is frozen.

use super::*;

/// Between two events: longer than any pause, so that each event has its own.
pub(super) const SLOT: u64 = 60_000;
/// How many there are in a run. They come in pairs: a member goes, then it comes again.
pub(super) const SLOTS: u64 = 10;

/// Milliseconds of the longest, by a clock that is as slow as any in the model.
const fn slow(millis: u64) -> u64 {
    millis * 1_000 / 820 + 1
}

const ROUND_TRIP: u64 = 400;
/// The time that a running reconciliation may take to end.
const GRACE: u64 = 3_000;
const LEASE: u64 = slow(15_000);
const RETRY: u64 = slow(2_000);
/// From something at the server to the end of the look that shows it: the one before has just missed it.
const LOOK: u64 = ROUND_TRIP / 2 + RETRY + ROUND_TRIP;
/// A write of the lease waits for the one that is under way.
const WRITE: u64 = 2 * ROUND_TRIP;

/// The reason of a pause.
#[derive(Clone, Copy, PartialEq)]
enum Cause {
    /// A member joins or leaves.
    Planned,
    /// The same, while the lease of a crashed member exists: a joining member cannot know when that was renewed last.
    Leftover,
    /// A crash or a freeze.
    Sudden,
}

/// The last member sees the map, ends what runs, says so; the new owner sees that, and ends its own former controller.
const PLANNED: u64 = LOOK + GRACE + WRITE + LOOK + GRACE;

impl Cause {
    const fn bound(self) -> u64 {
        match self {
            Self::Planned => PLANNED,
            // From the first look of the new owner on; everything else happens meanwhile.
            Self::Leftover => WRITE + LEASE + LOOK + GRACE,
            // The last renewal is seen, the lease expires and that is seen, and somebody writes the next map after a random wait.
            Self::Sudden => LOOK + LEASE + LOOK + RETRY + WRITE + PLANNED,
        }
    }
}

/// The accounts of a run.
#[derive(Default)]
pub(super) struct Pauses {
    /// The ranges that each process serves.
    serves: Vec<Ranges>,
    /// Hashes that nobody serves, and since when.
    open: Vec<(Ranges, u64)>,
    /// When members crashed or froze.
    sudden: Vec<u64>,
    /// When the first lease was left over.
    leftover: Option<u64>,
    /// The longest, by cause.
    longest: [u64; 3],
}

impl Pauses {
    fn of(processes: usize) -> Self {
        Self { serves: vec![Ranges::none(); processes], open: vec![(Ranges::all(), 0)], ..Self::default() }
    }

    /// A process begins what concerns these hashes now, and nothing else.
    fn note(&mut self, now: u64, index: usize, serves: Ranges) {
        if self.serves[index] == serves {
            return;
        }
        self.serves[index] = serves;
        let served = self.serves.iter().fold(Ranges::none(), |all, one| all.union(one));
        let before = std::mem::take(&mut self.open);
        let mut paused = Ranges::none();
        for (ranges, since) in before {
            paused = paused.union(&ranges);
            if ranges.intersects(&served) {
                self.ended(since, now);
            }
            self.open.push((ranges.minus(&served), since));
        }
        self.open.push((Ranges::all().minus(&served).minus(&paused), now));
        self.open.retain(|(ranges, _)| !ranges.is_empty());
    }

    /// Some hashes have an owner again.
    fn ended(&mut self, since: u64, now: u64) {
        // Before the first event they all start.
        if since < SLOT {
            return;
        }
        let cause = match self.leftover {
            _ if self.sudden.contains(&since) => Cause::Sudden,
            Some(leftover) if leftover < since => Cause::Leftover,
            _ => Cause::Planned,
        };
        let (lasted, bound) = (now - since, cause.bound());
        assert!(lasted <= bound, "from {since} ms on nobody served something for {lasted} ms, not {bound}");
        let longest = &mut self.longest[cause as usize];
        *longest = lasted.max(*longest);
    }

    /// At the end of a run.
    fn check_end(&self) {
        assert!(self.open.is_empty(), "nobody serves {:?}", self.open);
    }
}

impl World {
    /// A world in which requests are answered, and one thing happens at a time.
    fn calm(seed: u64) -> Self {
        let mut world = Self::new(seed, false);
        world.events.clear();
        world.pauses = Some(Pauses::of(world.processes.len()));
        for index in 0..world.processes.len() {
            let start = world.random.u64(..5_000);
            world.after(start, Event::Start(index));
        }
        for slot in 1..=SLOTS {
            world.after(slot * SLOT, Event::Disturb(slot));
        }
        world
    }

    /// A member goes in one of three ways, and comes again with the next event.
    pub(super) fn disturb(&mut self, slot: u64) {
        let Some(pauses) = &mut self.pauses else { return };
        if slot.is_multiple_of(2) {
            return;
        }
        let index = self.random.usize(..self.processes.len());
        match self.random.u8(..3) {
            0 => {
                pauses.sudden.push(self.now);
                pauses.leftover.get_or_insert(self.now);
                self.processes[index].crash();
                self.after(SLOT, Event::Start(index));
            }
            1 => {
                pauses.sudden.push(self.now);
                self.processes[index].frozen_until = self.now + SLOT;
            }
            // It starts again when it has left.
            _ => self.leave(index),
        }
    }

    /// Takes down what each process serves now.
    pub(super) fn account(&mut self) {
        let Some(pauses) = &mut self.pauses else { return };
        for (index, one) in self.processes.iter().enumerate() {
            pauses.note(self.now, index, one.serves(self.now));
        }
    }
}

#[test]
fn q9_a_planned_change_costs_a_stated_pause_and_a_crash_or_freeze_the_expiry_of_a_lease_more() {
    let mut longest = [0; 3];
    for seed in 0..100 {
        let mut world = World::calm(seed);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
        assert!(ran.is_ok(), "seed {seed}");
        let pauses = world.pauses.expect("the accounts");
        pauses.check_end();
        longest = std::array::from_fn(|cause| pauses.longest[cause].max(longest[cause]));
    }
    // Else the bounds would say little.
    let bounds = [Cause::Planned, Cause::Leftover, Cause::Sudden].map(Cause::bound);
    let are_close = longest.iter().zip(bounds).all(|(longest, bound)| *longest > bound / 2);
    assert!(are_close, "the longest pauses are {longest:?} ms, the bounds {bounds:?}");
}
