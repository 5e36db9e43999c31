//! A story that may go on: which records it takes, and what it learns from them.

use jiff::Timestamp;
use kubediff_history::{Error, Gap, Number, ObjectId, StoredStory};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::body::{self, Progress};
use super::super::seen::{Part, Root, Seen, is_workload};
use super::super::{Kind, Look, MilestoneKind, Pod, Story, Verdict};
use super::{REST, SOON};

/// The most pods of a story that are told apart, and the most objects that make them.
const PODS: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Open {
    #[serde(flatten)]
    pub(super) story: Story,
    pub(super) memory: Memory,
}

/// The knowledge that a story needs until it ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    /// The workloads whose pods may belong to it, by uid.
    pub(super) workloads: Vec<String>,
    /// The controllers of its workload, by uid.
    pub(super) above: Vec<String>,
    /// The objects that make pods for its workload, by uid.
    pub(super) parts: Vec<String>,
    /// The template of its new pods.
    hash: Option<String>,
    is_done: bool,
    is_paused: bool,
    is_stuck: bool,
    /// Whether it is stored also while it has one record.
    pub(super) is_kept: bool,
    /// Whether another change of its workload has ended it: only the pods that were going then still belong to it.
    pub(super) is_over: bool,
    /// Whether its Job ended well.
    ended_well: Option<bool>,
    /// Whether its node takes pods.
    is_in_service: bool,
}

impl Open {
    /// A story of one record.
    pub(super) fn begin(
        seen: &Seen,
        kind: Kind,
        object: ObjectId,
        look: &mut dyn Look,
    ) -> Result<Self, Error> {
        let workload = seen.workload().uid.clone();
        let story = Story {
            id: seen.number,
            kind,
            object,
            verdict: Verdict::Ongoing,
            opened_at: seen.at,
            gone_at: None,
            done_at: None,
            last_at: seen.at,
            last: seen.number,
            changes: 1,
            events: 0,
            ready: None,
            pods: Default::default(),
            milestones: Vec::new(),
            ended: None,
            next: None,
            revision: None,
            unseen: None,
        };
        let above = seen.beyond().map(|it| it.uid.clone()).collect();
        let mut open =
            Self { story, memory: Memory { workloads: vec![workload], above, ..Memory::default() } };
        open.learn(seen, look)?;
        open.judge(seen.at);
        if kind == Kind::Trouble {
            open.story.reaches(MilestoneKind::Trouble, seen.number);
        }
        if kind == Kind::Rollout {
            let before = look.object_before(seen.number)?;
            open.story.revision = before.as_ref().and_then(body::revision);
        }
        Ok(open)
    }

    pub(super) fn read(content: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(content)
    }

    pub(super) fn stored(&self, is_open: bool) -> StoredStory {
        let content = match is_open {
            true => serde_json::to_value(self),
            false => serde_json::to_value(&self.story),
        };
        let Story { id, last, .. } = self.story;
        // Maps of a story have texts as keys.
        StoredStory { id, last, is_open, content: content.unwrap_or_default() }
    }

    /// Whether nothing has followed yet.
    pub(super) fn is_single(&self) -> bool {
        self.story.changes + self.story.events == 1
    }

    /// Whether controllers may take long to begin with what follows.
    pub(super) fn waits(&self) -> bool {
        matches!(self.story.kind, Kind::Rollout | Kind::Scale)
    }

    /// Whether it is stored. A fold that is resumed finds the others again.
    pub(super) fn is_kept(&self) -> bool {
        !self.is_single() || self.waits() || self.memory.is_kept
    }

    /// Whether later records of the object belong to it, too. It remembers what makes pods.
    pub(super) fn has(&mut self, seen: &Seen) -> bool {
        let (uid, Memory { parts, .. }) = (&seen.object.uid, &mut self.memory);
        let makes_pods = seen.part == Part::Revision || is_workload(&seen.object);
        if makes_pods && parts.len() < PODS && !parts.contains(uid) {
            parts.push(uid.clone());
        }
        self.story.pods.contains_key(uid) || self.memory.parts.contains(uid)
    }

    /// The knowledge by which a story selects records: its numbers of pods and of pod-making objects, and whether the template is known.
    pub(super) fn knows(&self) -> (usize, usize, bool) {
        (self.story.pods.len(), self.memory.parts.len(), self.memory.hash.is_some())
    }

    /// The objects whose records may belong to it, by uid.
    pub(super) fn objects(&self) -> impl Iterator<Item = &String> {
        let Memory { workloads, parts, .. } = &self.memory;
        std::iter::once(&self.story.object.uid).chain(workloads).chain(parts).chain(self.story.pods.keys())
    }

    /// Whether the goal has been reached for so long that every watch must have reported it.
    pub(super) fn is_settled(&self, at: Timestamp) -> bool {
        let Story { kind, done_at, .. } = &self.story;
        // An object that controllers do not count has no end that it would show.
        let shows_end = match kind {
            Kind::Created => self.is_counted(),
            // The rest of a Job is removed after it.
            Kind::Job => false,
            _ => true,
        };
        shows_end && done_at.is_some_and(|done| at.duration_since(done) > SOON)
    }

    /// Whether its object counts its pods.
    fn is_counted(&self) -> bool {
        let ObjectId { gvk, .. } = &self.story.object;
        is_workload(&self.story.object) || (gvk.kind == "ReplicaSet" && gvk.group == "apps")
    }

    fn is_about(&self, uid: &str) -> bool {
        self.story.object.uid == uid || self.memory.workloads.iter().any(|it| it == uid)
    }

    /// Whether a pod still belongs to it when it is over.
    pub(super) fn is_left_to(&self, uid: &str) -> bool {
        self.story.pods.get(uid).is_some_and(|pod| pod.is_going && !pod.is_gone)
    }

    /// Whether a record that concerns one of its objects belongs to it.
    pub(super) fn takes(&self, seen: &Seen) -> bool {
        let Story { id, kind, pods, object, .. } = &self.story;
        let is_before = seen.number < *id;
        let is_own = seen.object.uid == object.uid;
        // A writer in another namespace may name any uid.
        if object.namespace.is_some() && object.namespace != seen.object.namespace {
            return false;
        }
        if self.memory.is_over {
            return self.is_left_to(&seen.object.uid) && matches!(seen.part, Part::Pod | Part::Event);
        }
        let is_known = pods.contains_key(&seen.object.uid);
        if self.is_settled(seen.at) && seen.root.is_none() {
            // A change that begins later has another cause.
            return pods.get(&seen.object.uid).is_some_and(|pod| pod.is_going);
        }
        if let Some(root) = seen.root {
            let is_namespace = seen.part == Part::Namespace;
            let is_soon = seen.at.duration_since(self.story.opened_at) <= REST;
            return match (kind, root) {
                (Kind::Node, Root::Service) => is_own,
                // An object that comes and soon goes is one story.
                (Kind::Created, Root::Deleted) => is_own && !is_namespace && !self.is_settled(seen.at),
                // The objects that an object makes come and go with it. A Job of a CronJob is a story of its own.
                (Kind::Created, Root::Created) => !is_own && is_soon && seen.object.gvk.kind != "Job",
                (Kind::Deleted, Root::Deleted) => !is_before || !is_own,
                (Kind::Job, Root::Deleted) => is_own && self.story.done_at.is_some(),
                // Its pods are those of the change before, until that is done.
                (Kind::Rollout | Kind::Created, Root::Replicas) => is_own && self.story.done_at.is_none(),
                _ => false,
            };
        }
        match &seen.part {
            Part::Pod => self.takes_pod(seen, is_before),
            Part::Slice(of) if of.is_empty() => match kind {
                Kind::Created => seen.is_new,
                Kind::Deleted => seen.is_going,
                _ => false,
            },
            Part::Slice(of) => of.iter().all(|uid| pods.contains_key(uid)),
            Part::Autoscaler(..) => *kind == Kind::Scale,
            Part::Event => is_own || !seen.is_of_pod() || is_known,
            Part::Revision if is_before => seen.is_new || seen.is_going || seen.has_other_revision,
            Part::Revision => seen.is_new || seen.is_going || seen.is_reaction,
            _ if self.is_about(&seen.object.uid) || self.memory.above.contains(&seen.object.uid) => {
                !is_before && seen.is_reaction
            }
            _ => match kind {
                Kind::Created => !is_before && (seen.is_new || seen.is_reaction),
                Kind::Deleted => seen.is_going,
                _ => false,
            },
        }
    }

    fn takes_pod(&self, seen: &Seen, is_before: bool) -> bool {
        let Story { kind, pods, object, .. } = &self.story;
        if !seen.is_new && !seen.is_going && !seen.is_reaction {
            return false;
        }
        if pods.contains_key(&seen.object.uid) || object.uid == seen.object.uid {
            return !is_before || pods.contains_key(&seen.object.uid);
        }
        match kind {
            // Before the change of the template, only the template says that a pod is new.
            Kind::Rollout => {
                (seen.is_new && (!is_before || self.memory.hash.is_some())) || (seen.is_going && !is_before)
            }
            Kind::Scale => seen.is_new || seen.is_going,
            Kind::Deleted => seen.is_going || seen.is_evicted || (seen.is_new && !is_before),
            Kind::Created | Kind::Job | Kind::Trouble | Kind::Node => {
                !is_before && (seen.is_new || seen.is_going || seen.may_fail)
            }
        }
    }

    /// Learns from the record. Returns `false` for a pod that has another template than the new ones.
    pub(super) fn learn(&mut self, seen: &Seen, look: &mut dyn Look) -> Result<bool, Error> {
        let uid = &seen.object.uid;
        let is_own = *uid == self.story.object.uid;
        if is_own && seen.is_gone {
            self.story.gone_at = Some(seen.at);
        }
        let mut state = || Ok::<_, Error>(look.object(seen.number)?.unwrap_or_default());
        match &seen.part {
            Part::Pod => return Ok(self.pod(seen, &body::pod(&state()?))),
            Part::Revision
                if seen.object.gvk.kind == "ReplicaSet" && (seen.is_new || seen.has_other_revision) =>
            {
                if let Some(hash) = body::hash(&state()?) {
                    self.memory.hash = Some(hash.to_owned());
                }
            }
            Part::Node if is_own => self.memory.is_in_service = body::is_in_service(&state()?),
            Part::Other | Part::Revision if is_own && !seen.is_gone => {
                if seen.object.gvk.kind == "Job" {
                    self.memory.ended_well = body::job(&state()?);
                } else if is_workload(&seen.object) || seen.object.gvk.kind == "ReplicaSet" {
                    self.progress(body::progress(&seen.object.gvk.kind, &state()?));
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn progress(&mut self, progress: Progress) {
        let Progress { is_done, is_paused, is_stuck, wanted, ready, updated } = progress;
        (self.memory.is_done, self.memory.is_paused, self.memory.is_stuck) = (is_done, is_paused, is_stuck);
        let ready = if self.story.kind == Kind::Rollout { updated.min(ready) } else { ready };
        self.story.ready = Some((ready, wanted));
    }

    fn pod(&mut self, seen: &Seen, state: &body::PodState) -> bool {
        let is_known = self.story.pods.contains_key(&seen.object.uid);
        if self.story.kind == Kind::Rollout && seen.is_new && !is_known {
            match (&self.memory.hash, &state.hash) {
                (Some(new), Some(of)) if new != of => return false,
                (None, Some(of)) => self.memory.hash = Some(of.clone()),
                _ => {}
            }
        }
        if !is_known && self.story.pods.len() >= PODS {
            return true;
        }
        let pod = self.story.pods.entry(seen.object.uid.clone()).or_insert_with(|| Pod {
            name: seen.object.name.clone(),
            is_new: seen.is_new,
            base: match (seen.is_new, seen.may_fail) {
                (true, _) => 0,
                (_, true) => state.restarts.saturating_sub(1),
                _ => state.restarts,
            },
            ..Pod::default()
        });
        pod.restarts = pod.restarts.max(state.restarts.saturating_sub(pod.base));
        pod.is_gone |= seen.is_gone;
        pod.is_going |= seen.is_going || state.is_terminating;
        pod.trouble = if pod.is_gone { None } else { state.trouble };
        // The story does not count the former troubles of an old pod.
        if pod.is_new || (seen.may_fail && self.story.kind != Kind::Rollout) {
            pod.troubles.extend(&state.troubles);
        }
        pod.ready_at = match (state.is_ready && pod.trouble.is_none(), pod.ready_at) {
            (true, None) => Some(seen.at),
            (false, _) if !pod.is_going => None,
            (_, ready_at) => ready_at,
        };
        true
    }

    /// Counts a record, and says what has come of the story by then.
    pub(super) fn count(&mut self, seen: &Seen) {
        match seen.part {
            Part::Event => self.story.events += 1,
            _ => self.story.changes += 1,
        }
        self.story.last = self.story.last.max(seen.number);
        self.story.last_at = self.story.last_at.max(seen.at);
        self.judge(seen.at);
        // Sinks get no Events.
        if !matches!(seen.part, Part::Event) {
            self.mark(seen.number);
        }
    }

    /// Notes the milestone that a record has made.
    fn mark(&mut self, number: Number) {
        if self.story.milestones.is_empty() {
            self.story.reaches(MilestoneKind::Opened, number);
        }
        if matches!(self.story.verdict, Verdict::Failing | Verdict::Stuck) {
            self.story.reaches(MilestoneKind::Trouble, number);
        }
        if self.story.done_at.is_some() {
            self.story.reaches(MilestoneKind::Closed, number);
        }
    }

    fn judge(&mut self, at: Timestamp) {
        let Story { kind, pods, .. } = &self.story;
        if self.memory.is_over {
            return;
        }
        let counts = |pod: &&Pod| *kind != Kind::Rollout || pod.is_new;
        let fails = pods.values().filter(counts).any(|pod| pod.trouble.is_some() && !pod.is_going);
        let is_well = || pods.values().all(Pod::is_well);
        let is_rid = || pods.values().all(|pod| pod.is_gone || !pod.is_going);
        let memory = &self.memory;
        let open = || if fails { Verdict::Failing } else { Verdict::Ongoing };
        let done = |is_done: bool| if is_done && !fails { Verdict::Complete } else { open() };
        let counted = self.is_counted();
        let is_gone = self.story.gone_at.is_some();
        let verdict = match kind {
            Kind::Created if is_gone => done(is_rid()),
            Kind::Rollout | Kind::Scale | Kind::Created if counted => match memory {
                Memory { is_stuck: true, .. } => Verdict::Stuck,
                Memory { is_paused: true, .. } => Verdict::Paused,
                Memory { is_done, .. } => done(*is_done),
            },
            Kind::Rollout | Kind::Scale | Kind::Created => done(is_well()),
            Kind::Deleted => done(is_gone && is_rid() && is_well()),
            Kind::Job => match memory.ended_well {
                Some(true) => Verdict::Complete,
                Some(false) => Verdict::Failing,
                None => open(),
            },
            Kind::Trouble => done(is_well()),
            Kind::Node => done(memory.is_in_service),
        };
        let is_over = verdict == Verdict::Complete || memory.ended_well == Some(false);
        self.story.verdict = verdict;
        self.story.done_at = is_over.then(|| self.story.done_at.unwrap_or(at));
    }

    /// Notes a gap after its beginning, if that may hide some of it. Returns whether it may.
    pub(super) fn misses(&mut self, gap: &Gap) -> bool {
        let story = &mut self.story;
        let concerns = match gap.resource.as_deref().map(|it| it.split('/').next().unwrap_or(it)) {
            None | Some("pods" | "replicasets.apps") => true,
            Some(resource) => resource == story.object.qualified_resource(),
        };
        if !concerns || gap.number < story.id || gap.to < story.opened_at {
            return false;
        }
        let from = gap.from.max(story.opened_at);
        let (first, last) = story.unseen.unwrap_or((from, gap.to));
        story.unseen = Some((first.min(from), last.max(gap.to)));
        true
    }

    /// A change of the workload ends the story.
    pub(super) fn superseded(&mut self, by: Number, is_back: bool) {
        self.memory.is_over = true;
        if self.story.done_at.is_none() {
            self.story.verdict = if is_back { Verdict::RolledBack } else { Verdict::Superseded };
            self.story.next = Some(by);
            self.story.done_at = None;
            self.story.reaches(MilestoneKind::Closed, by);
        }
    }
}
