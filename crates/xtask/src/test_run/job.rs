//! Test binaries that run at the same time.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tooling::{Error, process};

use super::{Binary, TestResult, report};
use crate::artifact::Artifact;
use crate::metadata::Package;
use crate::tree::Tree;

/// The packages whose tests start servers and other programs. One of their binaries runs at a time, or the benchmarks: each takes
/// a GB of memory, and waits more than it computes.
const SERVERS: &[&str] = &["conformance", "control-plane"];

/// A job ends in a third of this time on two cores. One that hangs shall not take its output with it, which says where it hangs.
const LIMIT: Duration = Duration::from_secs(25 * 60);
/// The check of the benchmarks runs many programs one after the other, and builds those in Go first. It takes 8 minutes on two cores; on a slow
/// machine, beside tests, it was not at its end after 25.
const BENCHMARKS: Duration = Duration::from_secs(40 * 60);

/// The last lines of a job that failed are shown at the end of the run, too: its whole output may be far above them.
const LAST_LINES: usize = 30;

/// A test binary, or another program that tests.
pub(super) struct Job {
    pub(super) command: Command,
    /// The arguments of cargo that run this job alone.
    name: String,
    /// `None` for programs whose tests have no names of clauses.
    binary: Option<Binary>,
    has_server: bool,
    limit: Duration,
}

/// The end of a job.
pub(super) struct Ended {
    name: String,
    time: Duration,
    cpu: Option<Duration>,
    pub(super) passed: bool,
    pub(super) results: Vec<TestResult>,
    last_lines: String,
}

impl Job {
    /// `None` for a package without a folder.
    pub(super) fn binary(package: &Package, artifact: Artifact) -> Option<Self> {
        let folder = package.manifest_path.parent()?;
        let mut command = Command::new(&artifact.executable);
        // The directory and the variables are those that cargo gives.
        command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
        command.env("CARGO_MANIFEST_PATH", &package.manifest_path);
        command.env("CARGO_PKG_NAME", &package.name).env("CARGO_PKG_VERSION", &package.version);
        let target = artifact.target.name;
        let which = match artifact.target.kind.first().map(String::as_str) {
            Some(kind @ ("bin" | "test" | "example")) => format!("--{kind} {target}"),
            _ => "--lib".to_owned(),
        };
        let name = format!("test -p {} {which}", package.name);
        let has_server = SERVERS.contains(&&*package.name);
        Some(Self {
            command,
            name,
            binary: Some(Binary { package: package.name.clone(), target }),
            has_server,
            limit: LIMIT,
        })
    }

    pub(super) fn doctests(tree: &Tree) -> Self {
        let mut command = process::cargo(tree.root());
        command.args(["test", "--quiet", "--workspace", "--doc", "--no-fail-fast"]);
        Self {
            command,
            name: "test --workspace --doc".to_owned(),
            binary: None,
            has_server: false,
            limit: LIMIT,
        }
    }

    pub(super) fn loom(command: Command) -> Self {
        Self { command, name: "xtask loom".to_owned(), binary: None, has_server: false, limit: LIMIT }
    }

    pub(super) fn benchmarks(command: Command) -> Self {
        let name = "xtask bench --debug".to_owned();
        Self { command, name, binary: None, has_server: true, limit: BENCHMARKS }
    }

    fn run(mut self) -> Result<Ended, Error> {
        let begin = Instant::now();
        let process::Ended { success: passed, output, cpu } =
            process::capture(&mut self.command, self.limit)?;
        let time = begin.elapsed();
        // In one piece: another job may end at the same time.
        println!("\n--- cargo {} ({:.1} s)\n{}", self.name, time.as_secs_f64(), output.trim());
        let results = self.binary.map(|binary| report::results(&binary, &output)).unwrap_or_default();
        Ok(Ended { name: self.name, time, cpu, passed, results, last_lines: last_lines(&output) })
    }
}

/// Runs all jobs, also after a failure, so that a run shows all failures. Prints the times, the longest last.
pub(super) fn run(jobs: Vec<Job>) -> Result<Vec<Ended>, Error> {
    let (servers, others): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job: &Job| job.has_server);
    let queue = Mutex::new(VecDeque::from(others));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    // One more than there are processors: many tests wait.
    let threads = thread::available_parallelism().map_or(2, usize::from) + 1;
    let ended: Result<Vec<Vec<Ended>>, Error> = thread::scope(|scope| {
        let rest = || std::iter::from_fn(next).map(Job::run).collect::<Result<Vec<_>, _>>();
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(rest)).collect();
        let first = servers.into_iter().map(Job::run).chain(std::iter::from_fn(next).map(Job::run)).collect();
        std::iter::once(first).chain(workers.into_iter().map(joined)).collect()
    });
    let mut ended: Vec<Ended> = ended?.into_iter().flatten().collect();
    ended.sort_by_key(|ended| ended.time);
    println!("\n{:>11} {:>11}", "time", "CPU");
    for Ended { name, time, cpu, .. } in ended.iter().filter(|ended| ended.time >= Duration::from_secs(1)) {
        let cpu = cpu.map_or_else(String::new, |cpu| format!("{:.1} s", cpu.as_secs_f64()));
        println!("{:>9.1} s {cpu:>11}  {name}", time.as_secs_f64());
    }
    for Ended { name, last_lines, .. } in ended.iter().filter(|ended| !ended.passed) {
        println!("failed: cargo {name}\n{last_lines}");
    }
    Ok(ended)
}

/// The frames of backtraces are left out: they would push the message of a panic above the last lines.
fn last_lines(output: &str) -> String {
    let lines = output.trim_end().lines().filter(|line| !is_of_a_frame(line));
    let lines: Vec<String> = lines.map(|line| format!("    {line}")).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

/// Whether a line is `   4: function` or `     at file:line:column` of a backtrace.
fn is_of_a_frame(line: &str) -> bool {
    let text = line.trim_start();
    let number = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    line.starts_with("  ")
        && (text.starts_with("at ") || number.len() < text.len() && number.starts_with(": "))
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(package: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(env!("CARGO_MANIFEST_DIR"));
        let binary = Binary { package: package.to_owned(), target: "it".to_owned() };
        let has_server = SERVERS.contains(&package);
        Job { command, name: package.to_owned(), binary: Some(binary), has_server, limit: LIMIT }
    }

    #[test]
    fn a_failure_ends_no_other_job_and_is_not_lost() {
        let ended = run(vec![
            job("conformance", "echo 'test a ... FAILED'; exit 101"),
            job("informer", "echo 'test b ... ok'"),
            job("control-plane", "echo 'test c ... ok'"),
        ])
        .unwrap();
        let mut seen: Vec<_> =
            ended.iter().map(|ended| (ended.results[0].name.as_str(), ended.passed)).collect();
        seen.sort_unstable();
        assert_eq!(seen, [("a", false), ("b", true), ("c", true)]);
    }

    #[test]
    fn the_end_of_an_output_is_shown_again() {
        let output: String = (1..=LAST_LINES + 2).map(|line| format!("line {line}\n")).collect();
        let shown = last_lines(&output);
        assert!(shown.starts_with("    line 3\n") && shown.ends_with("\n    line 32"), "{shown}");
        assert_eq!(last_lines("all\n\n"), "    all");
        let panic = "thread 'a' panicked at a.rs:1:2:\n  left: 1\n";
        let frames: String =
            (0..LAST_LINES).map(|it| format!("  {it:>2}: a::b\n             at ./a.rs:1:2\n")).collect();
        let shown = last_lines(&format!("{panic}stack backtrace:\n{frames}failures:\n    a::b\n"));
        assert!(
            shown.contains("a.rs:1:2") && shown.contains("  left: 1") && !shown.contains("2: a::b"),
            "{shown}"
        );
    }

    #[test]
    fn a_program_that_cannot_start_is_an_error() {
        let mut missing = job("informer", "");
        missing.command = Command::new("no-such-program-anywhere");
        assert!(run(vec![job("conformance", "exit 0"), missing]).is_err());
    }
}
