//! Whether a run is good.

use std::fmt;
use std::time::Duration;

use crate::end_state::{Difference, EndState};
use crate::history::{Entry, History, What};
use crate::run::{Case, Run};

/// The fault of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The program did something that the bench does not support.
    Unsupported(String),
    Rule {
        name: String,
        entry: Option<usize>,
        why: String,
    },
    /// The program goes on although nobody else acts.
    Busy(String),
    /// Something goes on changing.
    NoRest,
    /// The end is not that of the undisturbed runs.
    End(Vec<Difference>),
    /// Two runs of the same plan differ.
    Differs(String),
}

impl Trouble {
    /// Whether two troubles are of the same kind: a smaller case has to show the same one.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rule { name, .. }, Self::Rule { name: other, .. }) => name == other,
            (Self::End(one), Self::End(other)) => {
                let place =
                    |all: &[Difference]| all.first().map(|first| (first.object.clone(), first.path.clone()));
                place(one) == place(other)
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// `undisturbed` are the ends of runs of the same steps without disturbances.
pub(crate) fn judge(case: &Case, run: &Run, undisturbed: &[EndState]) -> Option<Trouble> {
    if let Some(problem) = &run.problem {
        return Some(Trouble::Unsupported(problem.clone()));
    }
    for rule in &case.rules {
        // A run that was stopped breaks rules about its end.
        if let Err(broken) = rule.check(&run.history)
            && (broken.entry.is_some() || run.busy.is_none())
        {
            let name = rule.name().to_owned();
            return Some(Trouble::Rule { name, entry: broken.entry, why: broken.why });
        }
    }
    if let Some(busy) = &run.busy {
        return Some(Trouble::Busy(busy.clone()));
    }
    if !run.rested {
        return Some(Trouble::NoRest);
    }
    let differences = run.end.differences(undisturbed);
    (!differences.is_empty()).then_some(Trouble::End(differences))
}

/// Compares two runs of the same plan up to a time.
pub(crate) fn compare(one: &History, other: &History, until: Duration) -> Option<Trouble> {
    let [one, other] = [one, other].map(|history| {
        let end = history.entries.partition_point(|entry| entry.at < until);
        history.entries.get(..end).unwrap_or_default()
    });
    if one == other {
        return None;
    }
    let common = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let words = |entries: &[Entry]| {
        entries.get(common).map_or_else(
            || "nothing".to_owned(),
            |entry| {
                let what = match &entry.what {
                    What::Answered(request) => format!("{} -> {:?}", request.line, request.status),
                    What::Changed(change) => format!("{} {} changes", change.kind(), change.key()),
                    what => format!("{what:?}"),
                };
                format!("{what}, at {:.3} s, by {}", entry.at.as_secs_f64(), entry.by)
            },
        )
    };
    Some(Trouble::Differs(format!("once: {}; and once: {}", words(one), words(other))))
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(problem) => write!(f, "the bench cannot rehearse this: {problem}"),
            Self::Rule { name, why, .. } => write!(f, "the rule \"{name}\" is broken: {why}"),
            Self::Busy(why) => write!(f, "the program does not calm down: {why}"),
            Self::NoRest => f.write_str("the objects do not come to rest"),
            Self::End(differences) => {
                f.write_str("the end is not that of the undisturbed runs:")?;
                for difference in differences.iter().take(8) {
                    write!(f, "\n  - {difference}")?;
                }
                match differences.len() {
                    0..=8 => Ok(()),
                    more => write!(f, "\n  - and {} more differences", more - 8),
                }
            }
            Self::Differs(first) => write!(
                f,
                "two runs of the same seed differ. {first}. Something in the program is random or reads a clock: the order \
                 of a HashMap, `select!` without `biased`, the system's time, a static"
            ),
        }
    }
}
