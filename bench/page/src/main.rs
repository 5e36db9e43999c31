//! Questions to the page of kubediff on a long history, which this program writes: how long answers take, and whether lists are right.
//!
//! `cargo xtask bench web` runs it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool talks to its terminal")]

mod client;
mod cluster;
mod questions;
mod shape;
mod write;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::Parser;
use fastrand::Rng;
use serde_json::json;

use client::{Failure, Page};
use cluster::{Cluster, Row};

/// How often the first page of a process is asked for, with nothing of the file in memory.
const COLD: usize = 5;
const OPEN_PAGES: usize = 50;
const REQUESTS_PER_SECOND: u32 = 20;

/// Measures the page of kubediff on a long history
#[derive(Parser)]
struct Options {
    /// The program `kubediff`
    #[arg(long)]
    kubediff: PathBuf,
    /// The history, which is written if it is not there
    #[arg(long)]
    history: PathBuf,
    #[arg(long)]
    objects: usize,
    #[arg(long)]
    changes: usize,
    #[arg(long, default_value_t = 2_000)]
    questions: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), Failure> {
    if !options.history.exists() {
        let unfinished = options.history.with_extension("unfinished");
        let _ = std::fs::remove_file(&unfinished);
        write::write(&unfinished, options.objects, options.changes, options.seed)?;
        std::fs::rename(&unfinished, &options.history)?;
        // The history's lock has the former name.
        let _ = std::fs::remove_file(options.history.with_extension("unfinished-lock"));
    }
    let mut rows: Vec<Row> = Vec::with_capacity(options.objects + options.changes);
    Cluster::play(options.objects, options.changes, options.seed, |change| rows.push(change.row));

    let mut cold = Vec::new();
    for _ in 0..COLD {
        forget(&options.history)?;
        let mut page = Page::open(&options.kubediff, &options.history).await?;
        cold.push(page.ask("/").await?.took);
    }

    let mut page = Page::open(&options.kubediff, &options.history).await?;
    let mut random = Rng::with_seed(options.seed);
    // The caches are filled.
    let story = questions::long_story(&rows);
    questions::ask(&mut page, &rows, story, options.questions / 10, &mut random).await?;
    let times = questions::ask(&mut page, &rows, story, options.questions, &mut random).await?;
    let topics: Vec<_> = times
        .into_iter()
        .map(|(topic, mut times)| {
            let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|part| times.quantile(part).as_secs_f64());
            let count = times.took.len();
            json!({"topic": topic.name(), "count": count, "p50": p50, "p95": p95, "p99": p99, "partial": times.partial})
        })
        .collect();
    let cold: Vec<f64> = cold.iter().map(Duration::as_secs_f64).collect();
    let (open_pages, rate) = open_pages(options).await?;
    let bytes = kubediff_history::Reader::bytes(&options.history);
    println!(
        "{}",
        json!({"topics": topics, "cold": cold, "memory": memory(page.id())?, "openPages": open_pages, "rate": rate, "bytes": bytes})
    );
    Ok(())
}

/// The memory that 50 live pages and 20 timelines a second take, above that of a page that nobody has open; and how many timelines it was
/// a second.
async fn open_pages(options: &Options) -> Result<(u64, f64), Failure> {
    let mut page = Page::open(&options.kubediff, &options.history).await?;
    page.ask("/").await?;
    let before = memory(page.id())?;
    let mut live = Vec::new();
    for _ in 0..OPEN_PAGES {
        live.push(page.live().await?);
    }
    let mut pace = tokio::time::interval(Duration::from_secs(1) / REQUESTS_PER_SECOND);
    let (begin, count) = (Instant::now(), options.questions / 5);
    for _ in 0..count {
        pace.tick().await;
        page.ask("/").await?;
    }
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    if live.iter().any(|(sender, _)| sender.is_closed()) {
        return Err("a live page has ended".into());
    }
    Ok((memory(page.id())?.saturating_sub(before), rate))
}

/// Drops a file from the page cache.
fn forget(file: &Path) -> Result<(), Failure> {
    let mut input = std::ffi::OsString::from("if=");
    input.push(file);
    let status = Command::new("dd").arg(input).args(["iflag=nocache", "count=0", "status=none"]).status()?;
    if status.success() { Ok(()) } else { Err("dd could not drop the file from the page cache".into()) }
}

/// Resident memory of a process, in bytes.
fn memory(pid: u32) -> Result<u64, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB"));
    Ok(kilobytes.ok_or("no VmRSS")?.trim().parse::<u64>()? * 1024)
}
