//! A story in words.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{Kind, Pod, Story, Trouble, Verdict};

/// Pods that are named; more are counted.
const NAMED: usize = 2;

impl Story {
    /// The outcome in words, unescaped: `rolled out in 2m 11s`, `superseded by #901`.
    pub fn outcome(&self) -> String {
        let took = self.done_at.map(|done| took(done.duration_since(self.opened_at))).unwrap_or_default();
        let next = self.next.map(|next| format!(" by #{next}")).unwrap_or_default();
        let state = if self.kind == Kind::Rollout { "updated" } else { "ready" };
        let ready =
            self.ready.map(|(ready, wanted)| format!(", {ready} of {wanted} {state}")).unwrap_or_default();
        let lived =
            self.gone_at.map(|gone| self::took(gone.duration_since(self.opened_at))).unwrap_or_default();
        let (going, done) = match self.kind {
            Kind::Created if self.gone_at.is_some() => return format!("created, and deleted after {lived}"),
            Kind::Rollout => ("rolling out", "rolled out"),
            Kind::Scale => ("scaling", "scaled"),
            Kind::Created if self.ready.is_some() || !self.pods.is_empty() => {
                ("created, starting", "created, ready")
            }
            Kind::Created => ("created", "created"),
            Kind::Deleted => ("being deleted", "deleted"),
            Kind::Job => ("running", "completed"),
            Kind::Trouble => ("recovering", "recovered"),
            Kind::Node => ("out of service", "back in service"),
        };
        match self.verdict {
            Verdict::Ongoing => format!("{going}{ready}"),
            Verdict::Complete if self.kind == Kind::Trouble => format!("{done} after {took}"),
            Verdict::Complete if took.is_empty() || took == "0s" => done.to_owned(),
            Verdict::Complete if self.kind == Kind::Created && done == "created" => done.to_owned(),
            Verdict::Complete => match self.kind {
                Kind::Node | Kind::Created => format!("{done} after {took}"),
                _ => format!("{done} in {took}"),
            },
            Verdict::Failing if self.kind == Kind::Job && self.done_at.is_some() => {
                format!("failed after {took}")
            }
            Verdict::Failing => format!("failing{ready}"),
            Verdict::Stuck => format!("stuck: its deadline for progress has passed{ready}"),
            Verdict::Paused => format!("paused{ready}"),
            Verdict::Superseded => format!("superseded{next}"),
            Verdict::RolledBack => match self.revision {
                Some(revision) => format!("rolled back to revision {revision}{next}"),
                None => format!("rolled back{next}"),
            },
        }
    }

    /// The fate of its pods: `3 pods replaced`, `cart-7d4-x2x crash-looped (4 restarts)`.
    pub fn of_pods(&self) -> Vec<String> {
        let count = |is: &dyn Fn(&Pod) -> bool| self.pods.values().filter(|pod| is(pod)).count();
        let (new, gone) = (count(&|pod| pod.is_new), count(&|pod| pod.is_gone && !pod.is_new));
        let ready = count(&|pod| pod.is_new && pod.ready_at.is_some());
        // An old pod that is terminating counts as replaced.
        let left = count(&|pod| !pod.is_new && (pod.is_gone || pod.is_going));
        let mut phrases = Vec::new();
        let mut say = |number: usize, what: &str| {
            if number > 0 {
                phrases.push(format!("{number} {}{what}", if number == 1 { "pod" } else { "pods" }));
            }
        };
        match self.kind {
            Kind::Rollout => say(ready.min(left.max(1)), " replaced"),
            Kind::Created | Kind::Job if self.object.gvk.kind == "Pod" => {}
            Kind::Created | Kind::Job => say(new, ""),
            Kind::Node => say(gone, " evicted"),
            Kind::Scale | Kind::Deleted | Kind::Trouble => {
                say(new, " added");
                say(gone, " removed");
            }
        }
        let mut failed: BTreeMap<Trouble, Vec<&Pod>> = BTreeMap::new();
        for pod in self.pods.values() {
            for trouble in &pod.troubles {
                failed.entry(*trouble).or_default().push(pod);
            }
        }
        phrases.extend(
            failed
                .into_iter()
                .map(|(trouble, pods)| format!("{} {}", names(&pods), of_trouble(trouble, &pods))),
        );
        phrases
    }

    /// All of it, behind the summary of the change that it began with, where that says what began.
    pub fn words(&self, summary: Option<&str>) -> String {
        let began =
            summary.filter(|text| !text.is_empty() && !matches!(self.kind, Kind::Trouble | Kind::Deleted));
        let mut phrases = vec![match began {
            Some(began) => format!("{began}; {}", self.outcome()),
            None => self.outcome(),
        }];
        phrases.extend(self.of_pods());
        if self.unseen.is_some() {
            phrases.push("partly unseen".to_owned());
        }
        phrases.join(", ")
    }

    /// `38 changes, 11 events`.
    pub fn size(&self) -> String {
        let of = |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        match self.events {
            0 => of(self.changes, "change"),
            events => format!("{}, {}", of(self.changes, "change"), of(events, "Event")),
        }
    }
}

fn names(pods: &[&Pod]) -> String {
    let mut names: Vec<String> = pods.iter().take(NAMED).map(|pod| pod.name.clone()).collect();
    match pods.len() - names.len() {
        0 => names.join(" and "),
        more => {
            names.push(format!("{more} more"));
            names.join(", ")
        }
    }
}

fn of_trouble(trouble: Trouble, pods: &[&Pod]) -> String {
    let restarts: u64 = pods.iter().map(|pod| pod.restarts).sum();
    let restarts = match restarts {
        0 => String::new(),
        1 => " (1 restart)".to_owned(),
        restarts => format!(" ({restarts} restarts)"),
    };
    match trouble {
        Trouble::Crash if restarts.is_empty() => "failed".to_owned(),
        Trouble::Crash | Trouble::OutOfMemory => format!("{}{restarts}", trouble.words()),
        trouble => trouble.words().to_owned(),
    }
}

impl Trouble {
    /// The words for a pod that has this trouble: `crash-looped`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Crash => "crash-looped",
            Self::OutOfMemory => "ran out of memory",
            Self::Image => "could not pull an image",
            Self::Container => "could not start a container",
            Self::Unschedulable => "found no node",
            Self::Evicted => "evicted",
            Self::Failed => "failed",
        }
    }
}

/// `2m 11s`.
fn took(time: SignedDuration) -> String {
    format!("{:#}", SignedDuration::from_secs(time.as_secs()))
}
