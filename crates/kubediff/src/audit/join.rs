//! Joins changes and writes. A change is seen soon after its write, and the event of the write comes at once or half a minute later.
//!
//! A change is of a write to that object in its time, which fits: by what it does, by the version before where the write says one, by its field
//! manager, by the subresource `status`, and by the order of all of them. Where several users may have made it, the nearest one probably has.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use jiff::{SignedDuration, Timestamp};
use kubediff_history::{Number, User, Verb};
use tokio_util::sync::CancellationToken;

use super::event::{Action, Write};
use super::matching::{Possible, possible};

/// A change may be seen so long before its request came, by the clocks of two machines, and so long after its response.
const EARLY: SignedDuration = SignedDuration::from_secs(2);
const LATE: SignedDuration = SignedDuration::from_secs(10);
/// Changes and writes wait for each other so long: API servers send events after 30 s at the latest, if nobody has changed that.
pub(crate) const KEPT: SignedDuration = SignedDuration::from_secs(60);
/// The most changes, and the most writes, that wait at a time, of one object and in all.
const OF_AN_OBJECT: usize = 40;
const MOST: usize = 50_000;
/// The most users of deletions that wait for their objects to go.
const ENDING: usize = 20_000;

/// A change as it was recorded.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) number: Number,
    /// `deployments.apps`.
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) verb: Verb,
    pub(crate) rv_before: Option<String>,
    pub(crate) at: Timestamp,
    /// Whether it stands for several.
    pub(crate) is_merged: bool,
    /// The field managers that made it, where they are known for sure.
    pub(crate) managers: Vec<String>,
    /// Whether it changes something in `status`, and something elsewhere.
    pub(crate) in_status: bool,
    pub(crate) elsewhere: bool,
    /// Whether the object has got a `deletionTimestamp` with it, or had one before.
    pub(crate) begins_to_end: bool,
    pub(crate) was_ending: bool,
}

/// The history, for what events and changes do not say.
pub(crate) trait Look {
    /// The labels of the object of a deletion.
    fn labels(&mut self, of: Number) -> Vec<(String, String)>;

    /// The user who asked for the deletion of an object that is ending.
    fn deleter(&mut self, seen: &Seen) -> Option<User>;
}

/// An object, or all objects of a namespace: resource, namespace and name.
type Key = (String, Option<String>, Option<String>);

/// The changes and writes of an object that wait for each other.
#[derive(Default)]
struct Waits {
    /// How many arrivals are remembered.
    arrivals: usize,
    /// With the user that was told.
    changes: Vec<(Seen, Option<User>)>,
    /// In order.
    writes: Vec<Write>,
}

/// Changes and writes that wait for each other.
#[derive(Default)]
pub(crate) struct Join {
    waits: BTreeMap<Key, Waits>,
    /// In the order of their arrival: when, and of what.
    arrivals: VecDeque<(Timestamp, Key)>,
    /// Objects with an arrival since the last decision.
    news: BTreeSet<Key>,
    /// Resources that were written through `status`: other writes leave that alone.
    with_status: HashSet<String>,
    /// Who asked for the deletion of objects that are ending, by uid, and these in order.
    ending: BTreeMap<String, User>,
    ended: VecDeque<String>,
    /// How many writes were passed over, because too many waited.
    passed_over: u64,
    /// Nothing is decided after that.
    pub(crate) stop: CancellationToken,
}

impl Join {
    /// How many writes were passed over since the start, because too many waited.
    pub(crate) fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Whether something waits.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.news.is_empty()
    }

    /// A change was recorded.
    pub(crate) fn change(&mut self, seen: Seen, now: Timestamp) {
        let key = (seen.resource.clone(), seen.namespace.clone(), Some(seen.name.clone()));
        let waits = self.waits.entry(key.clone()).or_default();
        waits.changes.push((seen, None));
        if waits.changes.len() > OF_AN_OBJECT {
            waits.changes.remove(0);
        }
        self.arrived(key, now);
    }

    /// The event of a write has come.
    pub(crate) fn write(&mut self, write: Write, now: Timestamp) {
        // A restart reads the last megabyte of the audit log again, which has old events.
        if now.duration_since(write.to) > KEPT {
            return;
        }
        if write.is_status {
            self.with_status.insert(write.resource.clone());
        }
        let key = (write.resource.clone(), write.namespace.clone(), write.name.clone());
        let waits = self.waits.entry(key.clone()).or_default();
        // API servers repeat what was not acknowledged.
        if waits.writes.iter().any(|it| it.id == write.id) {
            return;
        }
        if waits.writes.len() >= OF_AN_OBJECT {
            waits.writes.remove(0);
            self.passed_over += 1;
        }
        let at = waits.writes.partition_point(|it| (it.to, it.from) <= (write.to, write.from));
        waits.writes.insert(at, write);
        self.arrived(key, now);
    }

    fn arrived(&mut self, key: Key, now: Timestamp) {
        self.arrivals.push_back((now, key.clone()));
        if let Some(waits) = self.waits.get_mut(&key) {
            waits.arrivals += 1;
            waits.changes.retain(|(seen, _)| now.duration_since(seen.at) <= KEPT);
            waits.writes.retain(|write| now.duration_since(write.to) <= KEPT);
        }
        self.news.insert(key);
        while self.arrivals.len() > MOST {
            self.passed_over += 1;
            self.forget_one();
        }
    }

    /// The users that have become known, or others than before.
    pub(crate) fn decide(&mut self, now: Timestamp, look: &mut dyn Look) -> Vec<(Number, User)> {
        let mut found = Vec::new();
        for key in self.concerned() {
            if self.stop.is_cancelled() {
                break;
            }
            let Some(mut waits) = self.waits.remove(&key) else { continue };
            let users = self.users(&key, &waits, look);
            for ((seen, told), user) in waits.changes.iter_mut().zip(users) {
                let Some(user) = user.filter(|user| told.as_ref() != Some(user)) else { continue };
                if seen.begins_to_end {
                    self.asked_for_the_end(&seen.uid, &user);
                }
                found.push((seen.number, user.clone()));
                *told = Some(user);
            }
            self.waits.insert(key, waits);
        }
        while self.arrivals.front().is_some_and(|(at, _)| now.duration_since(*at) > KEPT) {
            self.forget_one();
        }
        found.sort_by_key(|(number, _)| *number);
        found
    }

    /// The objects with news. Once for all news together: a write without a name may be of any object of the namespace, or of the resource.
    fn concerned(&mut self) -> BTreeSet<Key> {
        let mut all = std::mem::take(&mut self.news);
        let many: Vec<Key> = all.iter().filter(|key| key.2.is_none()).cloned().collect();
        for key in many {
            let of_it = |other: &Key| other.0 == key.0 && (key.1.is_none() || other.1 == key.1);
            let others = self.waits.range(key.clone()..).take_while(|(other, _)| of_it(other));
            all.extend(others.filter(|(_, waits)| !waits.changes.is_empty()).map(|(other, _)| other.clone()));
        }
        all
    }

    /// Forgets the oldest arrival, and its object with the last one.
    fn forget_one(&mut self) {
        let Some((_, key)) = self.arrivals.pop_front() else { return };
        let Some(waits) = self.waits.get_mut(&key) else { return };
        waits.arrivals -= 1;
        if waits.arrivals == 0 {
            self.waits.remove(&key);
            self.news.remove(&key);
        }
    }

    fn asked_for_the_end(&mut self, uid: &str, user: &User) {
        if self.ending.insert(uid.to_owned(), user.clone()).is_none() {
            self.ended.push_back(uid.to_owned());
        }
        while self.ended.len() > ENDING {
            if let Some(oldest) = self.ended.pop_front() {
                self.ending.remove(&oldest);
            }
        }
    }

    /// The user of each change.
    fn users(&self, key: &Key, waits: &Waits, look: &mut dyn Look) -> Vec<Option<User>> {
        let (changes, writes) = (&waits.changes, &waits.writes);
        let has_status = self.with_status.contains(&key.0);
        let groups = groups(writes);
        let fit = |change: usize, write: usize| {
            let (Some((seen, _)), Some(it)) = (changes.get(change), writes.get(write)) else { return false };
            may_have_made(it, seen, has_status)
        };
        let table: Vec<bool> =
            (0..changes.len() * writes.len()).map(|at| fit(at / writes.len(), at % writes.len())).collect();
        let fits = |change: usize, write: usize| table.get(change * writes.len() + write) == Some(&true);
        let all = possible(changes.len(), &groups, fits);
        let (mut users, mut ending) = (Vec::new(), None);
        for ((seen, _), possible) in changes.iter().zip(all) {
            let user = match seen.verb {
                Verb::Deleted if seen.was_ending => {
                    let here = ending.take().filter(|(uid, _)| *uid == &seen.uid).map(|(_, user)| user);
                    here.or_else(|| self.ending.get(&seen.uid).cloned()).or_else(|| look.deleter(seen))
                }
                _ => of_writes(seen, &possible, writes).or_else(|| self.of_many(key, seen, look)),
            };
            if seen.begins_to_end {
                ending = user.clone().map(|user| (&seen.uid, user));
            }
            users.push(user);
        }
        users
    }

    /// The user of a change whose object no write names: the server has made up the name, or there were many.
    fn of_many(&self, key: &Key, seen: &Seen, look: &mut dyn Look) -> Option<User> {
        let of_resource = [(key.0.clone(), key.1.clone(), None), (key.0.clone(), None, None)];
        let waits = of_resource.iter().filter_map(|key| self.waits.get(key));
        let mut labels = None;
        let mut takes = |write: &&Write| match &write.action {
            Action::DeleteMany(selector) if may_have_made(write, seen, false) => {
                let labels = labels.get_or_insert_with(|| look.labels(seen.number));
                let labels: Vec<(&str, &str)> =
                    labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                selector.matches(labels.as_slice())
            }
            Action::Create => may_have_made(write, seen, false),
            _ => false,
        };
        let writes: Vec<&Write> =
            waits.flat_map(|waits| &waits.writes).filter(|write| takes(write)).collect();
        let nearest = writes.iter().min_by_key(|write| apart(seen, write))?;
        let is_one = writes.iter().all(|write| write.user.name == nearest.user.name);
        let is_creation = nearest.action == Action::Create && !seen.managers.is_empty();
        Some(User { probable: !(is_one && is_creation), ..nearest.user.clone() })
    }
}

/// Whether a write may have made a change, by what both say.
fn may_have_made(write: &Write, seen: &Seen, has_status: bool) -> bool {
    let is_in_time = write.from.duration_since(seen.at) <= EARLY && seen.at.duration_since(write.to) <= LATE;
    let is_deletion = matches!(write.action, Action::Delete | Action::DeleteMany(_));
    let is_kind = match seen.verb {
        Verb::Added | Verb::Recreated => write.action == Action::Create,
        Verb::Updated if seen.begins_to_end => is_deletion,
        Verb::Updated => write.action == Action::Update,
        // Whoever removes the last finalizer updates.
        Verb::Deleted if seen.was_ending => is_deletion || write.action == Action::Update,
        Verb::Deleted => is_deletion,
    };
    let is_update = write.action == Action::Update && seen.verb == Verb::Updated;
    let is_about_it = !is_update
        || seen.is_merged
        || (write.rv.is_none() || write.rv == seen.rv_before)
            && (!write.is_status || seen.in_status)
            && (write.is_status || !has_status || seen.elsewhere);
    let has_manager = is_deletion
        || seen.managers.is_empty()
        || write.manager.is_empty()
        || seen.managers.contains(&write.manager);
    is_in_time && is_kind && is_about_it && has_manager
}

fn apart(seen: &Seen, write: &Write) -> SignedDuration {
    seen.at.duration_since(write.to).abs()
}

/// Writes that were carried out at the same time, one group after the other. They are in the order of their ends.
fn groups(writes: &[Write]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut first = None;
    // From the end: a group begins with the earliest of its beginnings.
    for (at, write) in writes.iter().enumerate().rev() {
        match (groups.last_mut(), first) {
            (Some(group), Some(begin)) if write.to >= begin => {
                group.push(at);
                first = Some(write.from.min(begin));
            }
            _ => {
                groups.push(vec![at]);
                first = Some(write.from);
            }
        }
    }
    groups.reverse();
    groups
}

/// The user of a change that one of these writes has made.
fn of_writes(seen: &Seen, possible: &Possible, writes: &[Write]) -> Option<User> {
    let may: Vec<&Write> = possible.writes.iter().filter_map(|at| writes.get(*at)).collect();
    let nearest = match seen.verb {
        // Whoever asks again asks for what is going on already.
        Verb::Deleted => may.iter().min_by_key(|write| write.to)?,
        _ => may.iter().min_by_key(|write| apart(seen, write))?,
    };
    let is_one = may.iter().all(|write| write.user.name == nearest.user.name);
    Some(User { probable: !possible.is_sure || !is_one, ..nearest.user.clone() })
}

#[cfg(test)]
mod tests;
