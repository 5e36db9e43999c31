//! The state of one run: the server, what happened so far, and what the bench still has in store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use serve::ServeOptions;
use testapi::{Api, Gvr};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::calm::Calm;
use crate::history::{Author, Change, Entry, History, Instance, What};
use crate::plan::{Disturbance, Plan, Planned, Unreadable, When};
use crate::process::{End, Process};
use crate::recorder::Recorder;
use crate::sight::Sight;

/// How long the cluster's garbage collector takes for an object whose owners are gone.
const COLLECTS_AFTER: Duration = Duration::from_secs(1);

/// One run. Everything in it happens on one thread; the locks are held by nobody else.
pub(crate) struct Cluster {
    pub(crate) api: Api,
    pub(crate) reads: ServeOptions,
    pub(crate) plan: Plan,
    /// Kinds whose changes do not count: a leader renews its lease for ever.
    ignored: BTreeSet<String>,
    /// The state that the watches of each replica see.
    pub(crate) sights: [Sight; 2],
    pub(crate) started: Instant,
    state: Mutex<State>,
    /// Wakes the loop that starts processes, and the one that waits for rest.
    changed: Notify,
    /// Incremented whenever something happens, so that a run that hangs is noticed.
    heartbeat: Arc<AtomicU64>,
    thread: ThreadId,
}

pub(crate) struct State {
    pub(crate) history: History,
    pub(crate) recorder: Recorder,
    writes: u64,
    /// The running process of each replica.
    processes: [Option<Arc<Process>>; 2],
    /// For how long the second instance shall run.
    second: Option<Duration>,
    /// Disturbances that have not ended.
    open: usize,
    /// The resources whose reads fail.
    unreadable: BTreeMap<String, Unreadable>,
    /// The program's reads of each resource.
    pub(crate) reads: BTreeMap<String, u64>,
    calm: Calm,
    /// A sentence about the acts of a program that does not calm down.
    pub(crate) busy: Option<String>,
    pub(crate) last_activity: Instant,
    /// The program's writes until then.
    pub(crate) active_writes: u64,
    latencies: Rng,
    pub(crate) happened: BTreeMap<Disturbance, u64>,
    pub(crate) problem: Option<String>,
    /// The external system: names of things with their owners.
    pub(crate) things: BTreeMap<String, String>,
    /// The uids of the objects that exist, if the cluster collects garbage.
    living: Option<BTreeSet<String>>,
}

impl Cluster {
    pub(crate) fn new(
        api: Api,
        reads: ServeOptions,
        plan: Plan,
        collects: bool,
        ignored: BTreeSet<String>,
        calm: Calm,
        heartbeat: Arc<AtomicU64>,
    ) -> Arc<Self> {
        let now = Instant::now();
        let state = State {
            history: History::default(),
            recorder: Recorder::default(),
            writes: 0,
            processes: [None, None],
            second: None,
            open: 0,
            unreadable: BTreeMap::new(),
            reads: BTreeMap::new(),
            calm,
            busy: None,
            last_activity: now,
            active_writes: 0,
            latencies: Rng::with_seed(plan.seed),
            happened: BTreeMap::new(),
            problem: None,
            things: BTreeMap::new(),
            living: collects.then(BTreeSet::new),
        };
        Arc::new(Self {
            api,
            reads,
            plan,
            ignored,
            sights: Default::default(),
            started: now,
            state: Mutex::new(state),
            changed: Notify::new(),
            heartbeat,
            thread: std::thread::current().id(),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.heartbeat.fetch_add(1, Ordering::Relaxed);
        self.state.lock()
    }

    /// The time since the start of the run.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn note(&self, by: Author, what: What) {
        let entry = Entry { at: self.now(), by, what };
        let mut state = self.state();
        let state = &mut *state;
        let is_new = state.busy.is_none() && state.open == 0 && state.calm.is_broken_by(&entry);
        state.history.entries.push(entry);
        if is_new {
            state.busy = Some(state.calm.words(&state.history.entries));
            self.changed.notify_waiters();
        }
    }

    /// Time on the way to the server, or back.
    pub(crate) async fn latency(&self) {
        let millis = self.state().latencies.u64(1..=4);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// Notes something that the bench does not support, and that spoils the run.
    pub(crate) fn problem(&self, problem: impl Into<String>) {
        self.state().problem.get_or_insert_with(|| problem.into());
        self.changed.notify_waiters();
    }

    /// Waits until the run is of no use any more.
    pub(crate) async fn spoiled(&self) {
        loop {
            let changed = self.changed.notified();
            let is_spoiled = {
                let state = self.state();
                state.problem.is_some() || state.busy.is_some()
            };
            if is_spoiled {
                return;
            }
            changed.await;
        }
    }

    /// Checks that the caller is on the run's own thread.
    pub(crate) fn is_here(&self) -> bool {
        let here = std::thread::current().id() == self.thread;
        if !here {
            self.problem("the program sent a request from another thread");
        }
        here
    }

    /// Counts a write of the program. The plan's disturbance of it.
    pub(crate) fn next_write(&self) -> Option<Planned> {
        let mut state = self.state();
        state.writes += 1;
        let when = When::Write(state.writes);
        self.plan.disturbances.iter().find(|planned| planned.when == when).cloned()
    }

    /// Counts a read of a resource. Its answer, if the plan has reads of the resource fail now.
    pub(crate) fn reads(self: &Arc<Self>, resource: &str) -> Option<Unreadable> {
        let number = {
            let mut state = self.state();
            let number = state.reads.entry(resource.to_owned()).or_default();
            *number += 1;
            *number
        };
        let when = When::Read(resource.to_owned(), number);
        for planned in self.plan.disturbances.iter().filter(|planned| planned.when == when) {
            let answer = Unreadable::of(planned);
            self.happened(planned.kind, format!("reads of {resource} fail: {answer}"));
            self.state().unreadable.insert(resource.to_owned(), answer);
            let resource = resource.to_owned();
            self.later(planned.lasting, move |cluster| {
                cluster.state().unreadable.remove(&resource);
                format!("reads of {resource} succeed again")
            });
        }
        self.state().unreadable.get(resource).copied()
    }

    pub(crate) fn happened(&self, kind: Disturbance, words: String) {
        let at = self.now();
        let mut state = self.state();
        *state.happened.entry(kind).or_default() += 1;
        state.is_active();
        state.calm.disturbed(at);
        state.history.entries.push(Entry { at, by: Author::Bench, what: What::Disturbed(words) });
    }

    /// Records the changes of the server since the last call, as those of `by` and their consequences.
    pub(crate) fn drain(self: &Arc<Self>, by: Author) {
        let at = self.now();
        let mut due = Vec::new();
        let mut orphans = Vec::new();
        {
            let mut state = self.state();
            let changes = state.recorder.take(&self.api, at, by);
            if changes.is_empty() {
                return;
            }
            if changes.iter().any(|change| !self.ignored.contains(change.kind())) {
                state.is_active();
            }
            for change in changes {
                let (all, of_resource) = state.recorder.count(&change.resource);
                let whens =
                    [When::Change(None, all), When::Change(Some(change.resource.to_string()), of_resource)];
                due.extend(self.plan.disturbances.iter().filter(|it| whens.contains(&it.when)).cloned());
                if let Some(living) = &mut state.living {
                    match change.after() {
                        Some(_) => living.insert(change.uid().to_owned()),
                        None => living.remove(change.uid()),
                    };
                    if change.creates() && is_orphan(change.object(), living) {
                        orphans.push(change.clone());
                    }
                }
                let by = change.by;
                state.history.entries.push(Entry { at, by, what: What::Changed(change) });
            }
        }
        for orphan in orphans {
            self.collect(orphan);
        }
        for planned in due {
            self.disturb(&planned);
        }
        self.changed.notify_waiters();
    }

    /// Deletes an object that was created for an owner that is gone. The server's own collector acts when owners go.
    fn collect(self: &Arc<Self>, orphan: Change) {
        let cluster = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(COLLECTS_AFTER).await;
            let (object, plural) = (orphan.object(), orphan.resource().split('.').next().unwrap_or_default());
            let resource = Gvr::new(object["apiVersion"].as_str().unwrap_or_default(), plural);
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let (namespace, name) = (text("namespace"), text("name"));
            let now = cluster.api.get(&resource, namespace, name);
            if now.is_ok_and(|now| now["metadata"]["uid"] == object["metadata"]["uid"]) {
                // Finalizers may keep it.
                let _ = cluster.api.delete(&resource, namespace, name);
                cluster.drain(Author::Cluster);
            }
        });
    }

    /// Begins a disturbance that a change sets off.
    fn disturb(self: &Arc<Self>, planned: &Planned) {
        let lasting = planned.lasting;
        match (planned.kind, &planned.when) {
            (Disturbance::Lag, When::Change(Some(resource), _)) => {
                let words = format!("the watch of {resource} stands still");
                self.happened(planned.kind, words);
                self.sights[0].hold(resource);
                let resource = resource.clone();
                self.later(lasting, move |cluster| {
                    cluster.sights[0].go_on(&resource);
                    format!("the watch of {resource} goes on")
                });
            }
            (Disturbance::Unobserved, When::Change(Some(resource), _)) => {
                self.happened(planned.kind, format!("the watch of {resource} stands still"));
                self.sights[0].hold(resource);
                let resource = resource.clone();
                self.later(lasting, move |cluster| {
                    cluster.sights[0].forget(&resource, cluster.api.revision());
                    cluster.sights[0].go_on(&resource);
                    format!("the watch of {resource} has lost what happened meanwhile")
                });
            }
            (Disturbance::Stale, _) => {
                let revision = self.state().recorder.revision_before(planned.behind);
                let Some(process) = self.process(0) else { return };
                let behind = planned.behind;
                let words = format!("the program crashes; its next lists lack the last {behind} changes");
                self.happened(planned.kind, words);
                self.sights[0].freeze(revision);
                self.kill(&process, Duration::from_secs(1), "crashed");
                self.later(lasting + Duration::from_secs(1), |cluster| {
                    cluster.sights[0].thaw();
                    "the server that the program lists from has caught up".to_owned()
                });
            }
            (Disturbance::SecondInstance, _) => {
                self.happened(planned.kind, "a second instance of the program starts".to_owned());
                self.state().second = Some(lasting);
                self.changed.notify_waiters();
            }
            _ => {}
        }
    }

    fn later(self: &Arc<Self>, wait: Duration, end: impl FnOnce(&Self) -> String + Send + 'static) {
        self.state().open += 1;
        let cluster = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let words = end(&cluster);
            cluster.note(Author::Bench, What::Disturbed(words));
            cluster.closed();
        });
    }

    /// A disturbance has ended.
    pub(crate) fn closed(&self) {
        let mut state = self.state();
        state.open = state.open.saturating_sub(1);
        state.is_active();
        drop(state);
        self.changed.notify_waiters();
    }

    /// Registers a new process of a replica.
    pub(crate) fn start(&self, replica: u32, restarts: u32) -> Arc<Process> {
        let process = Arc::new(Process::new(Instance { replica, restarts }));
        self.note(Author::Program(process.instance), What::Started);
        let mut state = self.state();
        state.is_active();
        if let Some(place) = state.processes.get_mut(replica as usize) {
            *place = Some(process.clone());
        }
        process
    }

    pub(crate) fn process(&self, replica: usize) -> Option<Arc<Process>> {
        self.state().processes.get(replica).cloned().flatten()
    }

    /// Ends a process: none of its requests leaves it any more. It starts again after `down`.
    pub(crate) fn kill(&self, process: &Process, down: Duration, why: &str) {
        if process.is_dead() {
            return;
        }
        self.note(Author::Program(process.instance), What::Ended(why.to_owned()));
        process.end(End { down });
        let mut state = self.state();
        state.is_active();
        if let Some(place) = state.processes.get_mut(process.instance.replica as usize) {
            *place = None;
        }
    }

    /// Waits until a second instance shall run, and returns for how long.
    pub(crate) async fn second(&self) -> Duration {
        loop {
            let changed = self.changed.notified();
            let wanted = self.state().second.take();
            if let Some(lasting) = wanted {
                self.state().open += 1;
                return lasting;
            }
            changed.await;
        }
    }

    /// Waits until nothing has changed for `quiet`. `false` if that is not so at `limit`.
    pub(crate) async fn rest(&self, quiet: Duration, limit: Duration) -> bool {
        loop {
            let (due, is_open) = {
                let state = self.state();
                (state.last_activity + quiet, state.open > 0 || state.processes[0].is_none())
            };
            if self.now() >= limit {
                return false;
            }
            let now = Instant::now();
            if due <= now && !is_open {
                return true;
            }
            tokio::time::sleep_until(due.max(now + Duration::from_millis(100))).await;
        }
    }

    /// Changes the external system.
    pub(crate) fn things<T>(&self, change: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        let mut state = self.state();
        state.is_active();
        change(&mut state.things)
    }
}

impl State {
    fn is_active(&mut self) {
        (self.last_activity, self.active_writes) = (Instant::now(), self.writes);
    }
}

/// Whether an object has owners, none of which exists.
fn is_orphan(object: &Value, living: &BTreeSet<String>) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lives = |owner: &Value| owner["uid"].as_str().is_some_and(|uid| living.contains(uid));
    !owners.is_empty() && !owners.iter().any(lives)
}
