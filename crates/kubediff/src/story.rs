//! Stories: a change of an object, and the records that followed from it.
//!
//! [`Fold`] finds them in the log. It reads each record once, in order, and asks for nothing that a later look would answer
//! otherwise: so the same log leads to the same stories, however it is cut into batches and whenever the process restarts. When in doubt, a
//! record stays alone.

mod body;
mod fold;
mod follow;
mod look;
mod seen;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kubediff_history::{Number, ObjectId};
use serde::{Deserialize, Serialize};

pub use body::{PodStage, stage};
pub use fold::{Fold, VERSION};
pub use look::Look;

/// A change, and what followed from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Story {
    /// The record that it began with.
    pub id: Number,
    /// The kind of its beginning.
    pub kind: Kind,
    /// The object that it is about.
    pub object: ObjectId,
    /// The outcome so far.
    pub verdict: Verdict,
    /// When it began.
    pub opened_at: Timestamp,
    /// When its object was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<Timestamp>,
    /// When it came to its end, as far as the objects show that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Timestamp>,
    /// The time of its last record.
    pub last_at: Timestamp,
    /// Its last record.
    pub last: Number,
    /// How many changes it has.
    pub changes: u32,
    /// How many Events it has.
    pub events: u32,
    /// The number of pods that are ready (in a rollout, of those with the new template), and that its workload is to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<(u64, u64)>,
    /// Its pods by their uids. Of more than 2,000, some are missing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pods: BTreeMap<String, Pod>,
    /// The milestones of it that are told, the earliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub milestones: Vec<Milestone>,
    /// The story that its beginning ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Number>,
    /// The record that superseded it or rolled it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Number>,
    /// The revision of the workload before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Within it, changes may have been missed from this time to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<(Timestamp, Timestamp)>,
}

/// A milestone of a story that is told on its own, with the record that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Milestone {
    /// The record. That of a story's end may be the first of the next one.
    pub number: Number,
    /// The kind of milestone.
    pub tells: MilestoneKind,
}

/// A kind of milestone. After `closed`, `trouble` and another `closed` may follow, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MilestoneKind {
    /// Something has followed from its beginning.
    Opened,
    /// It fails, or is stuck.
    Trouble,
    /// It has come to its end.
    Closed,
}

/// The kind of a beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The pod template of a workload changed.
    Rollout,
    /// A workload got another number of pods.
    Scale,
    /// An object was created.
    Created,
    /// An object was deleted.
    Deleted,
    /// A Job runs.
    Job,
    /// Pods fail, and no change of their workload led to it.
    Trouble,
    /// A node was taken out of service, or does not answer.
    Node,
}

/// The outcome of a story so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It goes on.
    Ongoing,
    /// Everything is as it is to be.
    Complete,
    /// Pods of it fail at present; a Job has failed.
    Failing,
    /// The deadline of the Deployment for progress has passed.
    Stuck,
    /// The Deployment is paused.
    Paused,
    /// The next change of the workload came before its end.
    Superseded,
    /// The next change of the workload went back to the state before it.
    #[serde(rename = "rolledBack")]
    RolledBack,
}

/// A pod of a story.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Whether it was created in the story.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
    /// When it was ready first, in the story.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    /// Whether it is being deleted, or is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_going: bool,
    /// Whether it is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_gone: bool,
    /// How often its containers have restarted in the story.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u64,
    /// Why it fails at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// All that it has failed of.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub troubles: BTreeSet<Trouble>,
    /// The restarts before the story.
    #[serde(default, skip_serializing_if = "is_zero")]
    base: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Why a pod fails: a closed list, so that no text of an object is in a story.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trouble {
    /// Its containers end again and again, or with an error.
    Crash,
    /// The kernel ended a container that had used up its memory.
    OutOfMemory,
    /// An image cannot be pulled.
    Image,
    /// A container cannot be created or started.
    Container,
    /// No node has room for it.
    Unschedulable,
    /// The node or a person evicted it.
    Evicted,
    /// It has failed as a whole.
    Failed,
}

impl Story {
    /// The milestone that a record made.
    pub fn milestone(&self, number: Number) -> Option<MilestoneKind> {
        self.milestones.iter().find(|milestone| milestone.number == number).map(|milestone| milestone.tells)
    }

    /// Tells a milestone once. A record has one milestone, and the later one says more.
    fn reaches(&mut self, tells: MilestoneKind, number: Number) {
        let is_told = match tells {
            MilestoneKind::Closed => {
                self.milestones.last().is_some_and(|last| last.tells == MilestoneKind::Closed)
            }
            _ => self.milestones.iter().any(|milestone| milestone.tells == tells),
        };
        if !is_told {
            self.milestones.retain(|milestone| milestone.number != number);
            self.milestones.push(Milestone { number, tells });
        }
    }
}

impl Pod {
    /// Whether it is new, ready and in no trouble.
    fn is_well(&self) -> bool {
        self.is_gone || (self.trouble.is_none() && (self.ready_at.is_some() || self.is_going))
    }
}
