//! The disturbances of a program in one run, chosen by a seed.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

/// The kinds of disturbances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Disturbance {
    /// The program crashes right after a write: the server has carried it out, the program has no answer. It starts again
    /// some seconds later (an intermediate state).
    Crash,
    /// The watch of one resource stands still for a while, then goes on.
    Lag,
    /// The program crashes, and its first lists are old: those of a server whose cache is behind, which catches up later.
    /// It concerns lists that accept any version (`resourceVersion=0`). The server poses as a release whose lists are not
    /// consistent by default (before 1.34), so that informers ask for these.
    Stale,
    /// The watch of one resource stands still for a while. Then the server has forgotten the changes, and the client has
    /// to list: states in between are never seen.
    Unobserved,
    /// A write with a precondition is refused with 409, as if another client had written a moment earlier.
    Conflict,
    /// A write is refused with 500, and not carried out.
    Failure,
    /// A write is carried out, and its answer is lost: there is none, or it is the 504 of a proxy.
    LostAnswer,
    /// A second instance of the program runs for a while.
    SecondInstance,
}

impl Disturbance {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Crash,
        Self::Lag,
        Self::Stale,
        Self::Unobserved,
        Self::Conflict,
        Self::Failure,
        Self::LostAnswer,
        Self::SecondInstance,
    ];
}

/// One disturbance of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) kind: Disturbance,
    pub(crate) when: When,
    /// How long: the time until the program starts again, until a watch goes on, or until the program learns that an
    /// answer is lost.
    pub(crate) lasting: Duration,
    /// How many changes an old list lacks.
    pub(crate) behind: u64,
}

/// The trigger of a disturbance. It counts and measures no time, so that a plan keeps its meaning when the run around it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum When {
    /// The program's write of this number, counted from 1.
    Write(u64),
    /// The change of this number, counted from 1: of a resource, or of all.
    Change(Option<String>, u64),
}

/// All that is chosen for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) disturbances: Vec<Planned>,
    /// The steps of the script that are left out.
    pub(crate) left_out: Vec<usize>,
}

/// The facts about a program from runs without disturbances.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    pub(crate) writes: u64,
    /// The watched resources, with how many changes they have.
    pub(crate) watched: Vec<(String, u64)>,
    pub(crate) changes: u64,
    /// Changes before the program and the script began.
    pub(crate) first: u64,
    pub(crate) steps: usize,
}

impl Plan {
    /// A run without disturbances.
    pub(crate) fn undisturbed(seed: u64) -> Self {
        Self { seed, disturbances: Vec::new(), left_out: Vec::new() }
    }

    pub(crate) fn draw(seed: u64, kinds: &[Disturbance], shape: &Shape) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x005e_ed0f_d157);
        let count = random.usize(1..=4);
        let disturbances = (0..count).filter_map(|_| planned(&mut random, kinds, shape)).collect();
        Self { seed, disturbances, left_out: Vec::new() }
    }

    pub(crate) fn of_write(&self, write: u64) -> impl Iterator<Item = &Planned> {
        self.disturbances.iter().filter(move |planned| planned.when == When::Write(write))
    }

    pub(crate) fn has(&self, kind: Disturbance) -> bool {
        self.disturbances.iter().any(|planned| planned.kind == kind)
    }
}

fn planned(random: &mut Rng, kinds: &[Disturbance], shape: &Shape) -> Option<Planned> {
    let kind = *kinds.get(random.usize(0..kinds.len().max(1)))?;
    let when = match kind {
        Disturbance::Crash | Disturbance::Conflict | Disturbance::Failure | Disturbance::LostAnswer => {
            // Disturbed runs have more writes than others.
            When::Write(random.u64(1..=shape.writes + shape.writes / 4 + 1))
        }
        Disturbance::Lag | Disturbance::Unobserved => {
            let (resource, changes) = shape.watched.get(random.usize(0..shape.watched.len().max(1)))?;
            When::Change(Some(resource.clone()), random.u64(1..=changes + 1))
        }
        Disturbance::Stale | Disturbance::SecondInstance => {
            When::Change(None, random.u64(shape.first + 1..=shape.changes.max(shape.first) + 1))
        }
    };
    let longest = match kind {
        Disturbance::Crash | Disturbance::Stale => 10,
        Disturbance::Lag | Disturbance::Unobserved => 60,
        Disturbance::SecondInstance => 40,
        Disturbance::LostAnswer => 20,
        Disturbance::Conflict | Disturbance::Failure => 1,
    };
    let lasting = Duration::from_millis(random.u64(50..=longest * 1000));
    let behind = if kind == Disturbance::Stale { random.u64(1..=8) } else { 0 };
    Some(Planned { kind, when, lasting, behind })
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Disturbance::Crash => "the program crashes",
            Disturbance::Lag => "the watch stands still",
            Disturbance::Stale => "the program crashes, and its next lists are old",
            Disturbance::Unobserved => "the watch stands still and loses the changes",
            Disturbance::Conflict => "the server answers that there is a conflict",
            Disturbance::Failure => "the server fails before it writes",
            Disturbance::LostAnswer => "the answer is lost",
            Disturbance::SecondInstance => "a second instance starts",
        };
        write!(f, "{what} at ")?;
        match &self.when {
            When::Write(number) => write!(f, "write {number} of the program")?,
            When::Change(Some(resource), number) => write!(f, "change {number} of {resource}")?,
            When::Change(None, number) => write!(f, "change {number}")?,
        }
        match self.kind {
            Disturbance::Conflict | Disturbance::Failure => Ok(()),
            _ => write!(f, ", {} s", self.lasting.as_secs_f64()),
        }
    }
}
