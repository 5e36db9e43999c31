//! Plays a range of seeds on all cores, or one seed with a trace. `cargo xtask simulate` builds and calls this.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool talks to its terminal")]

use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use simulation::{Plan, Trace, Violation, run, shrink};

const USAGE: &str = "usage: simulation --seeds A..B | --seed S [--trace], where A < B";
/// After this many failures the run ends.
const ENOUGH_FAILURES: u64 = 10;
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// A thread takes this many seeds at a time.
const BATCH: u64 = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // A run reports a panic as a violation. The default hook would print it a second time.
    std::panic::set_hook(Box::new(|_| {}));
    match *arguments {
        ["--seeds", range] => match seeds(range) {
            Some(range) => play_all(range),
            None => usage(),
        },
        ["--seed", seed] => seed.parse().map_or_else(|_| usage(), |seed| play_one(seed, false)),
        ["--seed", seed, "--trace"] => seed.parse().map_or_else(|_| usage(), |seed| play_one(seed, true)),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

/// Parses `A..B`. It refuses an empty range, because playing nothing would look like success.
fn seeds(text: &str) -> Option<Range<u64>> {
    let (start, end) = text.split_once("..")?;
    let seeds = start.parse().ok()?..end.parse().ok()?;
    (!seeds.is_empty()).then_some(seeds)
}

fn play_one(seed: u64, with_trace: bool) -> ExitCode {
    let plan = Plan::of_seed(seed);
    let mut trace = if with_trace { Trace::kept() } else { Trace::off() };
    let outcome = run(&plan, &mut trace);
    if with_trace {
        println!("{:#?}", plan.setup);
        print!("{}", trace.text());
    }
    match outcome {
        Ok(passed) => {
            println!("seed {seed}: passed, {} steps", passed.steps);
            ExitCode::SUCCESS
        }
        Err(violation) => {
            tell_failure(&plan, &violation);
            ExitCode::FAILURE
        }
    }
}

/// Prints a failure, and the smallest plan that has it.
fn tell_failure(plan: &Plan, violation: &Violation) {
    println!("seed {} failed. {violation}", plan.seed);
    if let Some((small, violation)) = shrink(plan, |plan| run(plan, &mut Trace::off()).map(|_| ())) {
        let mut trace = Trace::kept();
        let _ = run(&small, &mut trace);
        println!("shrunk from {} to {} steps: {violation}", plan.steps.len(), small.steps.len());
        println!("{small}\n{}", trace.text());
    }
    println!("replay: cargo xtask simulate --seed {} --trace\n", plan.seed);
}

#[derive(Default)]
struct Tally {
    passed: AtomicU64,
    failed: AtomicU64,
    steps: AtomicU64,
    compared: AtomicU64,
    enough: AtomicBool,
    /// Held while a failure is printed.
    telling: Mutex<()>,
}

fn play_all(seeds: Range<u64>) -> ExitCode {
    let started = Instant::now();
    let tally = Tally::default();
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let play = || {
            while !tally.enough.load(Ordering::Relaxed) {
                let start = next.fetch_add(BATCH, Ordering::Relaxed);
                if start >= seeds.end {
                    return;
                }
                tally.play(start..seeds.end.min(start.saturating_add(BATCH)));
            }
        };
        let players: Vec<_> = (0..threads).map(|_| scope.spawn(play)).collect();
        // The players play. This thread prints the progress.
        let mut printed_at = started;
        while players.iter().any(|player| !player.is_finished()) {
            std::thread::park_timeout(Duration::from_millis(100));
            if printed_at.elapsed() >= PROGRESS_EVERY {
                printed_at = Instant::now();
                eprintln!("{}", tally.progress(started));
            }
        }
    });
    println!("{}", tally.progress(started));
    let (passed, failed) = (tally.passed.into_inner(), tally.failed.into_inner());
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Tally {
    fn play(&self, seeds: Range<u64>) {
        for seed in seeds {
            let plan = Plan::of_seed(seed);
            match run(&plan, &mut Trace::off()) {
                Ok(passed) => {
                    self.passed.fetch_add(1, Ordering::Relaxed);
                    self.steps.fetch_add(passed.steps as u64, Ordering::Relaxed);
                    self.compared.fetch_add(u64::from(passed.compared), Ordering::Release);
                }
                Err(violation) => {
                    let _one = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
                    if self.enough.load(Ordering::Relaxed) {
                        return;
                    }
                    if self.failed.fetch_add(1, Ordering::Relaxed) + 1 >= ENOUGH_FAILURES {
                        self.enough.store(true, Ordering::Relaxed);
                    }
                    tell_failure(&plan, &violation);
                }
            }
        }
    }

    fn progress(&self, started: Instant) -> String {
        let seconds = started.elapsed().as_secs_f64();
        // Other threads count meanwhile. `compared` is loaded before `passed`, so it is never the larger one.
        let (steps, compared) = (self.steps.load(Ordering::Relaxed), self.compared.load(Ordering::Acquire));
        let passed = self.passed.load(Ordering::Relaxed);
        let played = passed + self.failed.load(Ordering::Relaxed);
        format!(
            "{played} seeds in {seconds:.1} s, {:.0} seeds/s; {steps} steps; {} not compared as a whole ({:.1} %)",
            played as f64 / seconds,
            passed - compared,
            100.0 * (passed - compared) as f64 / (passed as f64).max(1.0)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::seeds;

    #[test]
    fn an_empty_range_of_seeds_is_refused() {
        assert_eq!(seeds("5..10"), Some(5..10));
        for wrong in ["10..5", "5..5", "5", "..", "a..b"] {
            assert_eq!(seeds(wrong), None, "{wrong}");
        }
    }
}
