//! The fold: from records in order to stories.

mod open;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use kubediff_history::{ChangeRecord, Error, Folded, Gap, Number, ObjectId, Record, StoredStory};

use super::seen::{Part, Root, Seen, is_workload};
use super::{Kind, Look, Verdict, body};
use open::Open;

/// The version of these rules. Stories of another version are found anew.
pub const VERSION: u32 = 1;

/// Different watches deliver cause and effect in any order within this time.
const SOON: SignedDuration = SignedDuration::from_secs(3);
/// A story that is done ends so long after its last record.
const REST: SignedDuration = SignedDuration::from_secs(30);
/// Any other one ends so long after it.
const LONG: SignedDuration = SignedDuration::from_hours(1);
/// The most stories that may go on. Of more, those with one record go first, then the oldest ones.
const OPEN: usize = 4_096;
/// The most records that a later one may still make a part of its story.
const RECENT: usize = 4_096;

/// Finds the stories of a log, of which it gets each record once, in order.
#[derive(Debug, Default)]
pub struct Fold {
    through: Number,
    now: Timestamp,
    open: BTreeMap<Number, Open>,
    /// The stories that objects are part of, by uid.
    of_object: HashMap<String, Number>,
    /// By the uids of the controllers of their workloads.
    below: HashMap<String, BTreeSet<Number>>,
    /// The deletions of namespaces, and what became of nodes, by name.
    of_namespace: HashMap<String, Number>,
    of_node: HashMap<String, Number>,
    /// Stories with one record, the oldest first; some of them have others by now.
    single: VecDeque<Number>,
    /// Records that belong to no story, and may still become a part of one.
    recent: VecDeque<Seen>,
    /// The records among them that begin a story, unless a better beginning of it comes soon.
    weak: VecDeque<(Number, Timestamp)>,
    /// Gaps after the oldest of them.
    gaps: VecDeque<Gap>,
    swept: Timestamp,
    /// The first record of each second that is not long ago: records since then may still get a story.
    young: VecDeque<(Number, Timestamp)>,
    changed: BTreeSet<Number>,
    ended: Vec<StoredStory>,
    members: Vec<(Number, Number)>,
}

impl Fold {
    /// A fold that has come to a record of this time, with the stories that go on. The records of the last 33 seconds up to there are then
    /// [recalled](Self::recall).
    ///
    /// # Errors
    ///
    /// When the content of a story is not what this version writes.
    pub fn resume(
        through: Number,
        now: Timestamp,
        open: Vec<StoredStory>,
    ) -> Result<Self, serde_json::Error> {
        let mut fold = Self { through, now, ..Self::default() };
        for stored in open {
            fold.enter(Open::read(stored.content)?);
        }
        Ok(fold)
    }

    /// A fold of what comes after a record, as if nothing had been before.
    pub fn after(through: Number) -> Self {
        Self { through, ..Self::default() }
    }

    /// The last record that it has taken.
    pub fn through(&self) -> Number {
        self.through
    }

    /// How far behind a time it is.
    pub fn lags(&self, now: Timestamp) -> SignedDuration {
        now.duration_since(self.now)
    }

    /// The records up to here have got their stories, if they have one.
    pub fn decided(&self) -> Number {
        self.young.front().map_or(self.through, |(first, _)| Number(first.0.saturating_sub(1)))
    }

    /// How long a record can be without a story and get one later.
    pub const MEMORY: SignedDuration = SignedDuration::from_secs(33);

    /// Takes a record again that belongs to no story, before the place where the fold was resumed.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    pub fn recall(&mut self, record: &Record, look: &mut dyn Look) -> Result<(), Error> {
        if let Record::Gap(gap) = record {
            self.gap(gap);
        }
        let Some(seen) = seen(record, look)? else { return Ok(()) };
        self.notes_time(&seen);
        let Some(root) = seen.root else {
            // A record that has waited long enough has had its decision.
            if seen.is_weak() && self.now.duration_since(seen.at) <= SOON {
                self.weak.push_back((seen.number, seen.at));
            }
            self.recent.push_back(seen);
            return Ok(());
        };
        // A later story of the workload has ended this one, and of one that waits there is a stored one.
        let of = self.of_object.get(&seen.workload().uid);
        if of.is_none_or(|of| *of < seen.number) && !self.open.contains_key(&seen.number) {
            let open = Open::begin(&seen, kind(root, &seen), seen.workload().clone(), look)?;
            if let Some(former) = of.copied().filter(|of| self.open.get(of).is_some_and(Open::is_single)) {
                self.leave(former);
            }
            self.single.push_back(seen.number);
            self.enter(open);
        }
        Ok(())
    }

    /// Takes the next record.
    ///
    /// # Errors
    ///
    /// When the history cannot be read. The record may be taken again by a fold that is resumed.
    pub fn push(&mut self, record: &Record, look: &mut dyn Look) -> Result<(), Error> {
        match record {
            Record::Gap(gap) => self.gap(gap),
            Record::Scrubbed(_) => {}
            Record::Change(_) | Record::Event(_) => {
                if let Some(seen) = seen(record, look)? {
                    self.tick(seen.at, look)?;
                    self.notes_time(&seen);
                    self.take(seen, look)?;
                }
            }
        }
        self.through = self.through.max(record.number());
        Ok(())
    }

    /// Lets time pass up to here: no record that is earlier will come.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    pub fn tick(&mut self, now: Timestamp, look: &mut dyn Look) -> Result<(), Error> {
        self.now = self.now.max(now);
        let now = self.now;
        while let Some((number, _)) =
            self.weak.front().filter(|(_, at)| now.duration_since(*at) > SOON).copied()
        {
            self.weak.pop_front();
            self.begin_weak(number, look)?;
        }
        while self.recent.front().is_some_and(|it| now.duration_since(it.at) > SOON + SOON)
            || self.recent.len() > RECENT
        {
            self.recent.pop_front();
        }
        while self.young.front().is_some_and(|(_, last)| now.duration_since(*last) > SOON + SOON) {
            self.young.pop_front();
        }
        let oldest = self.recent.front().map_or(self.through, |it| it.number);
        while self.gaps.front().is_some_and(|gap| gap.number < oldest) {
            self.gaps.pop_front();
        }
        if now.duration_since(self.swept) >= SignedDuration::from_secs(1) {
            self.swept = now;
            let over: Vec<Number> =
                self.open.iter().filter(|(_, open)| is_over(open, now)).map(|(id, _)| *id).collect();
            over.into_iter().for_each(|id| self.leave(id));
            self.single.retain(|id| self.open.get(id).is_some_and(Open::is_single));
        }
        Ok(())
    }

    /// Whether a story is open, or may begin with a record that waits: time alone decides about both.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty() || !self.weak.is_empty()
    }

    /// The stories and members to store: those that are new or have changed since the last call.
    pub fn changes(&mut self) -> Folded {
        let mut stories = std::mem::take(&mut self.ended);
        for id in std::mem::take(&mut self.changed) {
            stories.extend(self.open.get(&id).filter(|open| open.is_kept()).map(|open| open.stored(true)));
        }
        Folded {
            version: VERSION,
            through: self.through,
            stories,
            members: std::mem::take(&mut self.members),
        }
    }

    fn notes_time(&mut self, seen: &Seen) {
        match self.young.back_mut() {
            Some((_, last)) if seen.at.as_second() == last.as_second() => *last = seen.at.max(*last),
            _ if self.now.duration_since(seen.at) > SOON + SOON => {}
            _ => self.young.push_back((seen.number, seen.at)),
        }
    }

    fn take(&mut self, seen: Seen, look: &mut dyn Look) -> Result<(), Error> {
        if seen.part == Part::Pod && (seen.is_evicted || seen.is_going) && self.evict(&seen, look)? {
            return Ok(());
        }
        if let Some(id) = self.home(&seen) {
            match self.join(id, &seen, look)? {
                Joined::Not => {}
                Joined::Same => return Ok(()),
                Joined::Grown => return self.adopt(id, seen.at - SOON, look),
            }
        }
        if let Some(root) = seen.root {
            return self.begin(kind(root, &seen), seen.workload().clone(), &seen, look);
        }
        if seen.is_weak() {
            self.weak.push_back((seen.number, seen.at));
        }
        self.recent.push_back(seen);
        Ok(())
    }

    /// The story that a record belongs to.
    fn home(&mut self, seen: &Seen) -> Option<Number> {
        let namespace = seen.object.namespace.as_ref();
        if let Some(id) = namespace.and_then(|name| self.of_namespace.get(name).copied())
            && self.is_alive(id, seen.at)
        {
            return Some(id);
        }
        let mut candidates = self.candidates(seen);
        candidates.sort_unstable();
        candidates.dedup();
        candidates.retain(|id| self.is_alive(*id, seen.at));
        let takes = |id: &&Number| self.open.get(id).is_some_and(|open| open.takes(seen));
        let is_left = |id: &&Number| self.open.get(id).is_some_and(|open| open.memory.is_over);
        // A pod that was going belongs to the story in which it was; all else to the latest.
        let left = candidates.iter().filter(is_left).find(takes);
        left.or_else(|| candidates.iter().rev().find(takes)).copied()
    }

    /// The stories that have an object of the record.
    fn candidates(&self, seen: &Seen) -> Vec<Number> {
        let mut found = Vec::new();
        match &seen.part {
            Part::Slice(pods) => found.extend(pods.first().and_then(|uid| self.of_object.get(uid))),
            Part::Autoscaler(kind, name) => {
                let is_it = |it: &ObjectId| {
                    it.gvk.kind == *kind && it.name == *name && it.namespace == seen.object.namespace
                };
                let scaled = self.open.values().filter(|open| is_it(&open.story.object));
                found.extend(scaled.map(|open| open.story.id));
            }
            _ => {}
        }
        let upwards = std::iter::once(&seen.object).chain(&seen.above);
        let uids = upwards.map(|it| &it.uid).chain(&seen.missing);
        found.extend(uids.filter_map(|uid| self.of_object.get(uid)));
        // The status of a controller follows its workload, where it has one at work.
        if let Some(stories) = self.below.get(&seen.object.uid).filter(|stories| stories.len() == 1) {
            found.extend(stories);
        }
        found
    }

    /// Whether a story goes on at this time. One that does not is over.
    fn is_alive(&mut self, id: Number, at: Timestamp) -> bool {
        let is_over = self.open.get(&id).is_none_or(|open| is_over(open, at));
        if is_over {
            self.leave(id);
        }
        !is_over
    }

    /// Makes a record a part of a story, if it is.
    fn join(&mut self, id: Number, seen: &Seen, look: &mut dyn Look) -> Result<Joined, Error> {
        let Some(open) = self.open.get_mut(&id) else { return Ok(Joined::Not) };
        let (is_single, knew) = (open.is_single(), open.knows());
        if !open.learn(seen, look)? {
            return Ok(Joined::Not);
        }
        open.count(seen);
        if is_single {
            self.members.push((id, id));
        }
        self.members.push((seen.number, id));
        self.changed.insert(id);
        if open.has(seen) {
            self.of_object.insert(seen.object.uid.clone(), id);
        }
        Ok(if open.knows() == knew { Joined::Same } else { Joined::Grown })
    }

    /// Makes recent records a part of a story, if they are.
    fn adopt(&mut self, id: Number, since: Timestamp, look: &mut dyn Look) -> Result<(), Error> {
        let mut from = 0;
        while let Some(open) = self.open.get(&id)
            && let Some(at) = (from..self.recent.len()).find(|at| {
                self.recent
                    .get(*at)
                    .is_some_and(|it| it.at >= since && open.takes(it) && self.candidates(it).contains(&id))
            })
            && let Some(seen) = self.recent.remove(at)
        {
            from = match self.join(id, &seen, look)? {
                Joined::Same => at,
                // Others may fit now.
                Joined::Grown => 0,
                Joined::Not => {
                    self.recent.insert(at, seen);
                    at + 1
                }
            };
        }
        Ok(())
    }

    /// Begins a story.
    fn begin(&mut self, kind: Kind, object: ObjectId, seen: &Seen, look: &mut dyn Look) -> Result<(), Error> {
        let mut open = Open::begin(seen, kind, object, look)?;
        open.memory.is_kept |= seen.root.is_none();
        let former = self.of_object.get(&seen.workload().uid).copied();
        if let Some(id) = former.filter(|id| self.is_alive(*id, seen.at)) {
            let is_back = kind == Kind::Rollout && self.is_back(id, seen, look)?;
            if let Some(former) = self.open.get_mut(&id)
                && former.memory.workloads.first() == open.memory.workloads.first()
            {
                former.superseded(seen.number, is_back);
                // A fold that is resumed does not find that again.
                (open.story.ended, open.memory.is_kept) = (Some(id), true);
                self.linger(id);
            }
        }
        for gap in &self.gaps {
            open.misses(gap);
        }
        self.single.push_back(seen.number);
        self.changed.insert(seen.number);
        self.enter(open);
        self.adopt(seen.number, seen.at - SOON, look)
    }

    /// Whether a change of a template leads back to the one before a story.
    fn is_back(&mut self, id: Number, seen: &Seen, look: &mut dyn Look) -> Result<bool, Error> {
        let is_rollout = self.open.get(&id).is_some_and(|open| open.story.kind == Kind::Rollout);
        if !is_rollout {
            return Ok(false);
        }
        let template = |object: Option<serde_json::Value>| object?.pointer("/spec/template").cloned();
        let before = template(look.object_before(id)?);
        Ok(before.is_some() && before == template(look.object(seen.number)?))
    }

    /// A pod that goes from a node that is out of service goes for that.
    fn evict(&mut self, seen: &Seen, look: &mut dyn Look) -> Result<bool, Error> {
        if self.of_node.is_empty() {
            return Ok(false);
        }
        let pod = look.object(seen.number)?.map(|object| body::pod(&object)).filter(|pod| pod.is_evicted);
        let node = pod.and_then(|pod| pod.node);
        let Some(id) = node.and_then(|node| self.of_node.get(&node).copied()) else { return Ok(false) };
        let is_out = |open: &Open| open.story.verdict != Verdict::Complete;
        if !self.is_alive(id, seen.at) || !self.open.get(&id).is_some_and(is_out) {
            return Ok(false);
        }
        // Its replacement belongs to the story, too.
        let workload = seen.workload().uid.clone();
        if let Some(open) = self.open.get_mut(&id)
            && !open.memory.workloads.contains(&workload)
        {
            open.memory.workloads.push(workload.clone());
        }
        self.of_object.insert(workload, id);
        self.join(id, seen, look)?;
        self.adopt(id, seen.at - SOON, look)?;
        Ok(true)
    }

    /// Begins a story with a record that no better beginning has followed.
    fn begin_weak(&mut self, number: Number, look: &mut dyn Look) -> Result<(), Error> {
        let Ok(at) = self.recent.binary_search_by_key(&number, |it| it.number) else { return Ok(()) };
        let Some(seen) = self.recent.get(at).cloned() else { return Ok(()) };
        let workload = seen.workload().clone();
        let at_work = self.of_object.get(&workload.uid).copied().filter(|id| self.is_alive(*id, seen.at));
        let goes_on = |id: Number| self.open.get(&id).is_some_and(|open| !open.is_settled(seen.at));
        if at_work.is_some_and(goes_on) {
            return Ok(());
        }
        let goes = seen.is_going || seen.is_evicted;
        let (kind, object) = match goes {
            true => (Kind::Deleted, &seen.object),
            false => (Kind::Trouble, &workload),
        };
        if !goes {
            let pod = look.object(number)?.map(|object| body::pod(&object));
            if pod.is_none_or(|pod| pod.trouble.is_none()) {
                return Ok(());
            }
        }
        self.recent.remove(at);
        self.begin(kind, object.clone(), &seen, look)
    }

    fn gap(&mut self, gap: &Gap) {
        for (id, open) in &mut self.open {
            if open.misses(gap) {
                self.changed.insert(*id);
            }
        }
        // A story may begin with a record before it.
        self.gaps.push_back(gap.clone());
    }

    fn enter(&mut self, open: Open) {
        let id = open.story.id;
        for uid in open.objects().filter(|uid| !open.memory.is_over || open.is_left_to(uid)) {
            self.of_object.insert(uid.clone(), id);
        }
        for uid in &open.memory.above {
            self.below.entry(uid.clone()).or_default().insert(id);
        }
        let name = open.story.object.name.clone();
        match (open.story.kind, &*open.story.object.gvk.group, &*open.story.object.gvk.kind) {
            (Kind::Node, ..) => drop(self.of_node.insert(name, id)),
            (Kind::Deleted, "", "Namespace") => drop(self.of_namespace.insert(name, id)),
            _ => {}
        }
        self.open.insert(id, open);
        while self.open.len() > OPEN {
            let single = self.single.pop_front();
            match single.or_else(|| self.open.keys().next().copied()) {
                Some(id) if single.is_none() => self.leave(id),
                Some(id) if self.open.get(&id).is_some_and(Open::is_single) => self.leave(id),
                _ => {}
            }
        }
    }

    /// A story is over, but for the pods that are going.
    fn linger(&mut self, id: Number) {
        let Some(open) = self.open.get(&id) else { return };
        for uid in open.objects().filter(|uid| !open.is_left_to(uid)) {
            if self.of_object.get(uid) == Some(&id) {
                self.of_object.remove(uid);
            }
        }
        let rests = open.story.pods.keys().any(|uid| open.is_left_to(uid));
        self.changed.insert(id);
        if !rests {
            self.leave(id);
        }
    }

    /// A story has ended.
    fn leave(&mut self, id: Number) {
        let Some(open) = self.open.remove(&id) else { return };
        self.changed.remove(&id);
        for uid in open.objects() {
            if self.of_object.get(uid) == Some(&id) {
                self.of_object.remove(uid);
            }
        }
        self.of_node.retain(|_, of| *of != id);
        self.of_namespace.retain(|_, of| *of != id);
        for uid in &open.memory.above {
            if let Some(stories) = self.below.get_mut(uid) {
                stories.remove(&id);
                if stories.is_empty() {
                    self.below.remove(uid);
                }
            }
        }
        if open.is_kept() {
            self.ended.push(open.stored(false));
        }
    }
}

/// The answer of a story to a record that it may take.
enum Joined {
    Not,
    Same,
    /// The story knows more pods than before, or their template.
    Grown,
}

/// The kind of story that this root begins.
fn kind(root: Root, seen: &Seen) -> Kind {
    match root {
        Root::Created if seen.object.gvk.kind == "Job" && is_workload(&seen.object) => Kind::Job,
        Root::Created => Kind::Created,
        Root::Deleted => Kind::Deleted,
        Root::Template => Kind::Rollout,
        Root::Replicas => Kind::Scale,
        Root::Service => Kind::Node,
    }
}

fn is_over(open: &Open, at: Timestamp) -> bool {
    let story = &open.story;
    let ends = story.done_at.is_some() || open.memory.is_over || (open.is_single() && !open.waits());
    let rest = if ends { REST } else { LONG };
    at.duration_since(story.last_at) > rest
}

/// A record as the fold sees it; `None` where it concerns no object.
pub(super) fn seen(record: &Record, look: &mut dyn Look) -> Result<Option<Seen>, Error> {
    match record {
        Record::Change(change) => of_change(change, look),
        Record::Event(event) => Seen::of_event(event, look),
        Record::Gap(_) | Record::Scrubbed(_) => Ok(None),
    }
}

fn of_change(change: &ChangeRecord, look: &mut dyn Look) -> Result<Option<Seen>, Error> {
    // The changes between the incarnations are unknown.
    if change.verb == kubediff_history::Verb::Recreated {
        return Ok(None);
    }
    Seen::of_change(change, look).map(Some)
}
