//! The disturbances of a program in one run, chosen by a seed.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use serve::Reason;

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
    /// Reads of one resource fail for a while: with 500, 503, 504 or 429, or without an answer. A 404 is never wrong.
    ReadFailure,
    /// A second instance of the program runs for a while.
    SecondInstance,
}

impl Disturbance {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Crash,
        Self::Lag,
        Self::Stale,
        Self::Unobserved,
        Self::Conflict,
        Self::Failure,
        Self::LostAnswer,
        Self::ReadFailure,
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
    /// The program's read of this number, counted from 1, of a resource. Watches do not count.
    Read(String, u64),
    /// The change of this number, counted from 1: of a resource, or of all.
    Change(Option<String>, u64),
}

/// The answer of a read that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    Status(Reason),
    NoAnswer,
}

impl Unreadable {
    /// It depends on the plan, so that a run can be repeated.
    pub(crate) fn of(planned: &Planned) -> Self {
        match planned.lasting.as_micros() % 5 {
            0 => Self::Status(Reason::ServiceUnavailable),
            1 => Self::Status(Reason::Timeout),
            2 => Self::Status(Reason::TooManyRequests),
            3 => Self::NoAnswer,
            _ => Self::Status(Reason::InternalError),
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(reason) => write!(f, "{}", reason.code().as_u16()),
            Self::NoAnswer => f.write_str("no answer"),
        }
    }
}

/// The date of runs without disturbances, in seconds since 1970: 2026-01-01.
pub(crate) const DATE: i64 = 1_767_225_600;
/// After 28 years, days of the week and leap days come again (until 2099).
const CALENDAR: i64 = 883_612_800;

/// All that is chosen for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// The date of the run: see [`DATE`].
    pub(crate) date: i64,
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
    /// The resources that it reads, with how many reads they have.
    pub(crate) read: Vec<(String, u64)>,
    pub(crate) changes: u64,
    /// Changes before the program and the script began.
    pub(crate) first: u64,
    pub(crate) steps: usize,
}

impl Plan {
    /// A run without disturbances.
    pub(crate) fn undisturbed(seed: u64) -> Self {
        Self { seed, date: DATE, disturbances: Vec::new(), left_out: Vec::new() }
    }

    pub(crate) fn draw(seed: u64, kinds: &[Disturbance], shape: &Shape) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x005e_ed0f_d157);
        let count = random.usize(1..=4);
        let disturbances = (0..count).filter_map(|_| planned(&mut random, kinds, shape)).collect();
        // 1998, 2026, 2054 or 2082: for the clock of the machine, objects have an age of many years, or are of the future.
        let date = DATE + random.i64(-1..=2) * CALENDAR;
        Self { seed, date, disturbances, left_out: Vec::new() }
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
        Disturbance::ReadFailure => {
            let (resource, reads) = shape.read.get(random.usize(0..shape.read.len().max(1)))?;
            When::Read(resource.clone(), random.u64(1..=reads + reads / 4 + 1))
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
        Disturbance::ReadFailure => 4,
        Disturbance::Conflict | Disturbance::Failure => 1,
    };
    let mut lasting = Duration::from_millis(random.u64(50..=longest * 1000));
    if kind == Disturbance::ReadFailure {
        lasting += Duration::from_micros(random.u64(0..5));
    }
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
            Disturbance::ReadFailure => "reads fail",
            Disturbance::SecondInstance => "a second instance starts",
        };
        write!(f, "{what} at ")?;
        match &self.when {
            When::Write(number) => write!(f, "write {number} of the program")?,
            When::Read(resource, number) => write!(f, "read {number} of {resource}")?,
            When::Change(Some(resource), number) => write!(f, "change {number} of {resource}")?,
            When::Change(None, number) => write!(f, "change {number}")?,
        }
        match self.kind {
            Disturbance::Conflict | Disturbance::Failure => Ok(()),
            _ => write!(f, ", {} s", self.lasting.as_secs_f64()),
        }
    }
}
