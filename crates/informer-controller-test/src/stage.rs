//! Plays the seeds of a rehearsal on all cores, and shrinks the first failure.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::end_state::EndState;
use crate::history::History;
use crate::outcome::{Failure, Outcome};
use crate::plan::{Disturbance, Plan, Shape};
use crate::run::{Case, Run, play};
use crate::shrink::shrink;
use crate::story;
use crate::verdict::{Trouble, compare, judge};

/// The undisturbed runs whose differences do not count.
const UNDISTURBED: u64 = 4;
/// A run that does nothing for so long, in real time, hangs.
const STUCK: Duration = Duration::from_secs(20);

pub(crate) struct Stage {
    case: Arc<Case>,
    heartbeat: Arc<AtomicU64>,
}

/// The second run of a plan goes on for so long after the last act of the first one.
const MORE: Duration = Duration::from_secs(10);

/// The result of a worker for a seed.
struct Found {
    seed: u64,
    happened: BTreeMap<Disturbance, u64>,
    trouble: Option<Trouble>,
}

/// The facts that are known before the first seed.
struct Basis {
    shape: Shape,
    ends: Vec<EndState>,
}

impl Stage {
    pub(crate) fn new(case: Case) -> Self {
        Self { case: Arc::new(case), heartbeat: Arc::default() }
    }

    pub(crate) fn rehearse(self, seeds: Range<u64>) -> Outcome {
        let mut outcome = Outcome { seeds: 0, disturbances: BTreeMap::new(), failure: None };
        let stage = Arc::new(self);
        let first = stage.clone();
        let basis = match stage.watched(move || first.basis()) {
            Ok(Ok(basis)) => Arc::new(basis),
            Ok(Err(failure)) => return Outcome { failure: Some(failure), ..outcome },
            Err(stuck) => return Outcome { failure: Some(stuck), ..outcome },
        };
        let (results, found) = mpsc::channel();
        let next = Arc::new(Mutex::new(seeds));
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..workers {
            let (stage, basis, next, results) = (stage.clone(), basis.clone(), next.clone(), results.clone());
            std::thread::spawn(move || {
                let draw = || next.lock().next();
                while let Some(seed) = draw() {
                    let found = stage.rehearse_one(seed, &basis);
                    if found.trouble.is_some() {
                        // No further seeds; those that run end.
                        *next.lock() = 0..0;
                    }
                    if results.send(found).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        let mut failed: Option<(u64, Trouble)> = None;
        let mut patience = Patience::new(&stage.heartbeat);
        loop {
            match found.recv_timeout(Duration::from_millis(200)) {
                Ok(found) => {
                    outcome.seeds += 1;
                    for (kind, count) in found.happened {
                        *outcome.disturbances.entry(kind).or_default() += count;
                    }
                    if let Some(trouble) = found.trouble
                        && failed.as_ref().is_none_or(|(seed, _)| found.seed < *seed)
                    {
                        failed = Some((found.seed, trouble));
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) if patience.is_over() => {
                    return Outcome { failure: Some(stuck()), ..outcome };
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
        if let Some((seed, trouble)) = failed {
            let (telling, of) = (stage.clone(), basis);
            let explain = move || {
                let (plan, steps) = (telling.plan(seed, &of), of.shape.steps);
                telling
                    .explain(Some(seed), &plan, steps, trouble, |candidate| telling.troubled(candidate, &of))
            };
            outcome.failure = Some(match stage.watched(explain) {
                Ok(failure) => failure,
                Err(stuck) => stuck,
            });
        }
        outcome
    }

    /// Runs `work` on a thread of its own, and gives up when nothing happens any more.
    fn watched<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Result<R, Failure> {
        let (result, results) = mpsc::channel();
        std::thread::spawn(move || result.send(work()));
        let mut patience = Patience::new(&self.heartbeat);
        loop {
            match results.recv_timeout(Duration::from_millis(200)) {
                Ok(result) => return Ok(result),
                Err(mpsc::RecvTimeoutError::Timeout) if !patience.is_over() => {}
                Err(_) => return Err(stuck()),
            }
        }
    }

    /// The basis of a rehearsal; the failure of a program that fails without disturbances.
    fn basis(&self) -> Result<Basis, Failure> {
        self.undisturbed(&[]).map_err(|faulty| {
            let (plan, first, trouble) = *faulty;
            let refused = first.history.refused().count();
            self.explain(None, &plan, first.shape.steps, trouble, |candidate| {
                let run = self.play(candidate);
                let trouble = judge(&self.case, &run, &[])?;
                // A step that the server refuses may be what the author of the script has overlooked.
                (run.history.refused().count() == refused).then_some((run, trouble))
            })
        })
    }

    /// Runs without disturbances, whose ends the others have to match. All keep the rules, or the first one that does not
    /// is returned.
    fn undisturbed(&self, left_out: &[usize]) -> Result<Basis, Box<(Plan, Run, Trouble)>> {
        let mut ends = Vec::new();
        let mut shape = Shape::default();
        for seed in 0..UNDISTURBED {
            let plan = Plan { left_out: left_out.to_vec(), ..Plan::undisturbed(seed) };
            let run = self.play(&plan);
            let mut trouble = judge(&self.case, &run, &[]);
            if seed == 0 && trouble.is_none() {
                trouble = self.compare_again(&plan, &run.history);
            }
            if let Some(trouble) = trouble {
                return Err(Box::new((plan, run, trouble)));
            }
            if shape.writes <= run.shape.writes {
                shape = run.shape;
            }
            ends.push(run.end);
        }
        Ok(Basis { shape, ends })
    }

    fn plan(&self, seed: u64, basis: &Basis) -> Plan {
        Plan::draw(seed, &self.case.kinds, &basis.shape)
    }

    fn rehearse_one(&self, seed: u64, basis: &Basis) -> Found {
        let plan = self.plan(seed, basis);
        let run = self.play(&plan);
        let trouble =
            judge(&self.case, &run, &basis.ends).or_else(|| self.compare_again(&plan, &run.history));
        Found { seed, happened: run.happened, trouble }
    }

    /// Finds the smallest case of a failure, and writes its story.
    fn explain(
        &self,
        seed: Option<u64>,
        plan: &Plan,
        steps: usize,
        trouble: Trouble,
        troubled: impl Fn(&Plan) -> Option<(Run, Trouble)>,
    ) -> Failure {
        let mut smallest: Option<(Run, Trouble)> = None;
        let mut fails = |candidate: &Plan| {
            let shown = troubled(candidate).filter(|(_, shown)| shown.is_like(&trouble));
            let fails = shown.is_some();
            if fails {
                smallest = shown;
            }
            fails
        };
        let shrunk = match &trouble {
            // These are not about what happens in the run.
            Trouble::Unsupported(_) | Trouble::Differs(_) => plan.clone(),
            _ => shrink(plan, steps, &mut fails),
        };
        let (history, trouble) = match smallest {
            Some((run, trouble)) => (run.history, trouble),
            None => (self.play(plan).history, trouble),
        };
        let mut story = story::tell(plan, &shrunk, steps, &trouble, &history);
        if seed.is_none() {
            story.insert_str(0, "The program fails without disturbances.\n");
        }
        Failure { seed, summary: trouble.to_string(), story, history }
    }

    fn troubled(&self, plan: &Plan, basis: &Basis) -> Option<(Run, Trouble)> {
        let run = self.play(plan);
        let other;
        let ends = match plan.left_out.is_empty() {
            true => &basis.ends,
            false => {
                other = self.undisturbed(&plan.left_out).ok()?.ends;
                &other
            }
        };
        let trouble = judge(&self.case, &run, ends)?;
        Some((run, trouble))
    }

    fn play(&self, plan: &Plan) -> Run {
        play(&self.case, plan, Duration::MAX, &self.heartbeat)
    }

    /// Plays a run once more, and compares. The minutes are spared in which a leader does no more than renew its lease.
    fn compare_again(&self, plan: &Plan, history: &History) -> Option<Trouble> {
        let until = history.last_act() + MORE;
        let again = play(&self.case, plan, until, &self.heartbeat);
        compare(history, &again.history, until)
    }
}

/// Notices that nothing happens.
struct Patience<'a> {
    heartbeat: &'a AtomicU64,
    last: u64,
    since: Instant,
}

impl<'a> Patience<'a> {
    fn new(heartbeat: &'a AtomicU64) -> Self {
        Self { heartbeat, last: 0, since: Instant::now() }
    }

    fn is_over(&mut self) -> bool {
        let now = self.heartbeat.load(Ordering::Relaxed);
        if now != self.last {
            (self.last, self.since) = (now, Instant::now());
        }
        self.since.elapsed() > STUCK
    }
}

fn stuck() -> Failure {
    let seconds = STUCK.as_secs();
    let summary = format!(
        "the bench cannot rehearse this: for {seconds} s of real time nothing happened. The program blocks its thread, waits \
         for another thread, or spins without simulated time passing"
    );
    Failure { seed: None, story: summary.clone(), summary, history: History::default() }
}
