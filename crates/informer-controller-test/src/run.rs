//! Plays one run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use informer::crates::tokio_util::task::AbortOnDropHandle;
use serde_json::Value;
use serve::ServerVersion;
use testapi::{Api, ApiOptions};
use tokio::time::{Instant, sleep};

use crate::calm::Calm;
use crate::cluster::Cluster;
use crate::end_state::EndState;
use crate::env::Env;
use crate::history::{Author, History, What};
use crate::plan::{Disturbance, Plan, Shape};
use crate::rule::Rule;
use crate::wire::Wire;
use crate::world::{World, create};

/// The result of a program.
pub(crate) type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;
pub(crate) type Program = Arc<dyn Fn(Env) -> BoxFuture<'static, Ended> + Send + Sync>;
pub(crate) type Script = Arc<dyn Fn(World) -> BoxFuture<'static, ()> + Send + Sync>;

/// The rehearsed program and script.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) program: Program,
    pub(crate) objects: Vec<Value>,
    pub(crate) script: Script,
    pub(crate) rules: Vec<Rule>,
    pub(crate) kinds: Vec<Disturbance>,
    pub(crate) ignored: BTreeSet<String>,
    pub(crate) quiet: Duration,
    pub(crate) patience: Duration,
    pub(crate) garbage_collection: bool,
    pub(crate) workloads: Option<Duration>,
    /// The requests and reconciliations that a minute may have.
    pub(crate) busiest: u64,
}

/// A run that is over.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) history: History,
    pub(crate) end: EndState,
    pub(crate) shape: Shape,
    pub(crate) happened: BTreeMap<Disturbance, u64>,
    /// Something that the bench does not support.
    pub(crate) problem: Option<String>,
    /// A sentence about the acts of a program that does not calm down.
    pub(crate) busy: Option<String>,
    pub(crate) rested: bool,
}

/// A program that ended is started again after this, as a pod is.
const RESTART: Duration = Duration::from_secs(5);

/// A run that is cut off at `until` has no end to judge.
pub(crate) fn play(case: &Case, plan: &Plan, until: Duration, heartbeat: &Arc<AtomicU64>) -> Run {
    let threads = Arc::new(AtomicBool::new(false));
    let used = threads.clone();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    builder.on_thread_start(move || used.store(true, Ordering::Relaxed));
    #[cfg(tokio_unstable)]
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&plan.seed.to_le_bytes()));
    let runtime = match builder.build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(format!("no runtime: {error}")),
    };
    let mut run = runtime.block_on(act(case, plan, until, heartbeat.clone()));
    // A thread of the program may block for ever.
    runtime.shutdown_background();
    if threads.load(Ordering::Relaxed) {
        let words =
            "the program used a thread for blocking work (`spawn_blocking`, `tokio::fs`, a name lookup)";
        run.problem.get_or_insert_with(|| words.to_owned());
    }
    run
}

async fn act(case: &Case, plan: &Plan, until: Duration, heartbeat: Arc<AtomicU64>) -> Run {
    let options = options(case, plan);
    let (reads, api) = (options.serve.clone(), Api::new(options));
    let calm = Calm::new(case.busiest);
    let cluster = Cluster::new(
        api,
        reads,
        plan.clone(),
        case.garbage_collection,
        case.ignored.clone(),
        calm,
        heartbeat,
    );
    for object in &case.objects {
        let kind = object["kind"].to_string();
        if let Err(status) = create(&cluster.api, object.clone()) {
            return failed(format!("an object of the start, of kind {kind}, is refused: {status}"));
        }
    }
    cluster.drain(Author::World);
    let first = cluster.state().recorder.changes();
    let mut tasks = Vec::new();
    let mut spawn = |task: BoxFuture<'static, ()>| tasks.push(AbortOnDropHandle::new(tokio::spawn(task)));
    if let Some(delay) = case.workloads {
        let (observed, workloads) = (cluster.clone(), cluster.api.workloads(delay));
        spawn(Box::pin(async move {
            let mut workloads = std::pin::pin!(workloads);
            std::future::poll_fn(|context| {
                observed.drain(Author::World);
                let poll = workloads.as_mut().poll(context);
                observed.drain(Author::Cluster);
                poll
            })
            .await;
        }));
    }
    spawn(Box::pin(keep(cluster.clone(), case.program.clone(), 0, Arc::default())));
    spawn(Box::pin(second(cluster.clone(), case.program.clone())));
    let world = World::new(cluster.clone());
    let steps = world.steps();
    let script = (case.script)(world);
    let rests = async {
        tokio::time::timeout(case.patience, script).await.is_ok()
            && cluster.rest(case.quiet, cluster.now() + case.patience).await
    };
    let rested = tokio::select! {
        biased;
        () = cluster.spoiled() => false,
        () = sleep(until) => false,
        rested = rests => rested,
    };
    cluster.drain(Author::Cluster);
    let state = &mut *cluster.state();
    let history = std::mem::take(&mut state.history);
    if until < Duration::MAX {
        return Run { history, ..Run::default() };
    }
    let active_until = state.last_activity.duration_since(cluster.started);
    let shape = Shape {
        writes: state.active_writes,
        first,
        steps: steps.load(Ordering::Relaxed),
        changes: history.changes().filter(|change| change.at() <= active_until).count() as u64,
        watched: watched(&history),
        read: std::mem::take(&mut state.reads).into_iter().collect(),
    };
    Run {
        end: EndState::of(&history, &state.things, &case.ignored),
        happened: std::mem::take(&mut state.happened),
        problem: state.problem.take(),
        busy: state.busy.take(),
        history,
        shape,
        rested,
    }
}

fn options(case: &Case, plan: &Plan) -> ApiOptions {
    let started = Instant::now();
    let mut options = ApiOptions::default();
    options.seed = plan.seed;
    options.garbage_collection = case.garbage_collection;
    let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(plan.date.unsigned_abs());
    options.clock = Arc::new(move || begin + started.elapsed());
    if plan.has(Disturbance::Stale) {
        // The newest release on which informers ask for lists of any version.
        options.version = ServerVersion { major: 1, minor: 33, git_version: "v1.33.0".to_owned() };
        options.serve.streaming_lists = false;
    }
    options
}

/// Runs one replica of the program, and starts it again whenever it ends.
async fn keep(cluster: Arc<Cluster>, program: Program, replica: u32, restarts: Arc<AtomicU64>) {
    loop {
        let number = u32::try_from(restarts.fetch_add(1, Ordering::Relaxed)).unwrap_or(u32::MAX);
        let process = cluster.start(replica, number);
        let env = Env::new(Wire::new(cluster.clone(), process.clone()));
        let program = program.clone();
        let mut task = AbortOnDropHandle::new(tokio::spawn(async move { program(env).await }));
        let down = tokio::select! {
            biased;
            end = process.ended() => end.down,
            ended = &mut task => {
                let words = match ended {
                    Ok(Ok(())) => "returned".to_owned(),
                    Ok(Err(error)) => format!("returned the error: {error}"),
                    Err(error) if error.is_panic() => "panicked".to_owned(),
                    Err(_) => "was cancelled".to_owned(),
                };
                cluster.kill(&process, RESTART, &words);
                RESTART
            }
        };
        drop(task);
        sleep(down).await;
    }
}

/// Runs a second instance whenever a disturbance asks for it.
async fn second(cluster: Arc<Cluster>, program: Program) {
    let restarts = Arc::new(AtomicU64::new(0));
    loop {
        let lasting = cluster.second().await;
        let running = keep(cluster.clone(), program.clone(), 1, restarts.clone());
        let _ = tokio::time::timeout(lasting, running).await;
        if let Some(process) = cluster.process(1) {
            cluster.kill(&process, Duration::ZERO, "is stopped");
        }
        cluster.closed();
    }
}

/// The resources that the program lists or watches, with how many changes they have.
fn watched(history: &History) -> Vec<(String, u64)> {
    let mut watched = BTreeMap::new();
    for entry in &history.entries {
        if let What::Seen(seen) = &entry.what {
            watched.entry(seen.resource.to_string()).or_insert(0);
        }
    }
    for change in history.changes() {
        if let Some(count) = watched.get_mut(change.resource()) {
            *count += 1;
        }
    }
    watched.into_iter().collect()
}

fn failed(problem: String) -> Run {
    Run { problem: Some(problem), ..Run::default() }
}
