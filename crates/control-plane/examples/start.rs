//! Measures the cost of an API server in a test: testapi beside etcd and kube-apiserver, the programs that envtest starts.
//!
//!     cargo run --release -p control-plane --example start
//!
//! Both are processes of their own here, so that their memory can be told apart: the proportional share (PSS) of all of their
//! processes. A start ends with the first answer to a request for an object. Then one client creates config maps, one after the
//! other. The figures are medians of five rounds. Linux only. The first run builds Kubernetes, which takes minutes and is not
//! measured.

#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use control_plane::ControlPlane;
use serde_json::json;
use testapi::TestApi;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

const ROUNDS: usize = 5;
const OBJECTS: usize = 1_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The figures of one round.
#[derive(Clone, Copy, Default)]
struct Figures {
    /// From before its start until the first answer.
    start: Duration,
    /// Of that, or instead of it, the start within a process that runs already.
    within: Option<Duration>,
    /// Bytes, without an object of ours.
    empty: u64,
    /// Bytes, with the objects.
    full: u64,
    /// For one write.
    write: Duration,
}

fn main() -> Outcome<()> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    control_plane::build()?;
    println!(
        "| | start | within a running process | memory | with {OBJECTS} config maps of 1 KB | one write |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    row("testapi", embedded)?;
    row("etcd and kube-apiserver", real)
}

fn row(name: &str, round: fn() -> Outcome<Figures>) -> Outcome<()> {
    let rounds = (0..ROUNDS).map(|_| round()).collect::<Outcome<Vec<Figures>>>()?;
    let middle = |mut values: Vec<Duration>| {
        values.sort();
        values.get(ROUNDS / 2).copied().unwrap_or_default()
    };
    let time = |of: fn(&Figures) -> Duration| {
        format!("{:.1} ms", middle(rounds.iter().map(of).collect()).as_secs_f64() * 1e3)
    };
    let memory = |of: fn(&Figures) -> u64| {
        let mut values: Vec<u64> = rounds.iter().map(of).collect();
        values.sort_unstable();
        let bytes = values.get(ROUNDS / 2).copied().unwrap_or_default();
        format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
    };
    let within = match rounds.iter().all(|it| it.within.is_some()) {
        true => time(|it| it.within.unwrap_or_default()),
        false => "-".to_owned(),
    };
    let (start, write) = (time(|it| it.start), time(|it| it.write));
    println!(
        "| {name} | {start} | {within} | {} | {} | {write} |",
        memory(|it| it.empty),
        memory(|it| it.full)
    );
    Ok(())
}

/// The other side of [`embedded`]: serves until stdin ends.
fn serve() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let begin = Instant::now();
        let server = TestApi::builder().start().await?;
        println!("{} {}", server.url(), begin.elapsed().as_nanos());
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        server.stop().await;
        Ok(())
    })
}

fn embedded() -> Outcome<Figures> {
    let begin = Instant::now();
    let mut process = Running(
        Command::new(std::env::current_exe()?)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let mut line = String::new();
    BufReader::new(process.0.stdout.as_mut().ok_or("no output")?).read_line(&mut line)?;
    let (url, nanos) = line.trim().split_once(' ').ok_or("no address")?;
    let agent = ureq::Agent::new_with_defaults();
    let figures = measure(begin, process.0.id(), &agent, url, "")?;
    Ok(Figures { within: Some(Duration::from_nanos(nanos.parse()?)), ..figures })
}

/// Ends a process with its value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn real() -> Outcome<Figures> {
    let begin = Instant::now();
    let server = ControlPlane::builder().start()?;
    let ca = Certificate::from_pem(&fs::read(server.ca_file())?)?;
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&[ca]))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let agent: ureq::Agent = ureq::Agent::config_builder().tls_config(tls).build().into();
    measure(begin, server.pid(), &agent, server.server(), server.token())
}

fn measure(begin: Instant, pid: u32, agent: &ureq::Agent, url: &str, token: &str) -> Outcome<Figures> {
    let bearer = format!("Bearer {token}");
    let namespace = format!("{url}/api/v1/namespaces/default");
    // The real server makes this namespace soon after it is ready.
    while agent.get(&namespace).header("authorization", &bearer).call().is_err() {
        if begin.elapsed() > Duration::from_secs(60) {
            return Err(format!("{namespace} is not answered").into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let start = begin.elapsed();
    let empty = memory(pid)?;
    let begin = Instant::now();
    for index in 0..OBJECTS {
        let map =
            json!({ "metadata": { "name": format!("map-{index}") }, "data": { "text": "x".repeat(1_000) } });
        let request = agent.post(format!("{namespace}/configmaps")).header("authorization", &bearer);
        request.header("content-type", "application/json").send(map.to_string())?;
    }
    let write = begin.elapsed() / u32::try_from(OBJECTS)?;
    Ok(Figures { start, within: None, empty, full: memory(pid)?, write })
}

/// The bytes of a process and of all that it has started.
fn memory(pid: u32) -> Outcome<u64> {
    let mut of_it = HashSet::from([pid]);
    let mut grown = true;
    while grown {
        grown = false;
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(other) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // It may have ended.
            let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
            let parent =
                stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            grown |= parent.is_some_and(|parent| of_it.contains(&parent)) && of_it.insert(other);
        }
    }
    let mut kilobytes = 0;
    for pid in of_it {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).ok_or("no PSS")?;
        kilobytes += line.trim().trim_end_matches(" kB").parse::<u64>()?;
    }
    Ok(kilobytes * 1024)
}
