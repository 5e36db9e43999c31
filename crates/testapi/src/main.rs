//! `testapi`: the embedded API server as a program.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its user")]

use std::error::Error;
use std::fs::OpenOptions;
#[cfg(unix)]
use std::fs::Permissions;
use std::io::Write as _;
use std::net::IpAddr;
#[cfg(unix)]
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use testapi::faults::Mix;
use testapi::{ApiOptions, Gvr, TestApi, sample};

/// A Kubernetes API server for tests and demos, in one process and without a cluster.
///
/// It keeps objects in memory and answers like a kube-apiserver, but nothing runs the workloads. kubectl and all other
/// clients work with it. It ends on Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "testapi", version, max_term_width = 100)]
struct Options {
    /// Listen on this port; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Listen on this address; every host that can reach it may do everything
    #[arg(long, default_value = "127.0.0.1")]
    address: IpAddr,

    /// Use TLS with a new certificate authority (the kubeconfig contains it)
    #[arg(long)]
    tls: bool,

    /// Accept only requests with this bearer token
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    /// Pose as Kubernetes 1.MINOR
    #[arg(long, value_name = "MINOR", default_value_t = newest(), value_parser = clap::value_parser!(u32).range(32..=i64::from(newest())))]
    kubernetes: u32,

    /// The seed of everything random: uids, generated names, pods, faults
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Make requests fail at random: a mix (default, network, refusals, all, none) with changes, such as
    /// "network,share=0.5" or "none,cut=3,too-many-requests=1"
    #[arg(long, value_name = "MIX")]
    faults: Option<Mix>,

    /// Start with this many pods of about 9 KB
    #[arg(long, value_name = "PODS", default_value_t = 0)]
    load: usize,

    /// Write a kubeconfig to this file (kubectl --kubeconfig FILE get pods -A); it is overwritten
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Delete the dependents of deleted objects, like the garbage collector
    #[arg(long)]
    garbage_collection: bool,

    /// Serve events.k8s.io/v1, in which controllers record events (kubectl get events.events.k8s.io -A)
    #[arg(long)]
    events: bool,
}

/// The minor version whose resources and schemas the server has.
fn newest() -> u32 {
    ApiOptions::default().version.minor
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("testapi: {error}");
            let mut cause = error.source();
            while let Some(because) = cause {
                eprint!(": {because}");
                cause = because.source();
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), Box<dyn Error>> {
    // Created early, so that no Ctrl-C is lost.
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    let mut builder = TestApi::builder()
        .address(options.address)
        .port(options.port)
        .seed(options.seed)
        .version(options.kubernetes)
        .garbage_collection(options.garbage_collection);
    if options.tls {
        builder = builder.tls();
    }
    if let Some(token) = &options.token {
        builder = builder.token(token, "admin");
    }
    if options.events {
        builder = builder.object(sample::events());
    }
    let server = builder.start().await?;
    load(&server, options.seed, options.load)?;
    if let Some(path) = &options.kubeconfig {
        write_private(path, &server.kubeconfig())
            .map_err(|error| format!("failed to write {}: {error}", path.display()))?;
        println!("kubeconfig: {}", path.display());
    }
    if let Some(mix) = options.faults {
        server.faults().random(options.seed, mix);
        for armed in server.faults().armed() {
            println!("faults: {armed}");
        }
    }
    // This comes last, because a reader of this line continues at once.
    println!("{}", server.url());
    interrupt.as_mut().await?;
    server.stop().await;
    Ok(())
}

/// Writes a file that only its owner can read, because it may contain a token.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    options.mode(0o600);
    let mut file = options.open(path)?;
    // A file that existed before keeps its mode until here.
    #[cfg(unix)]
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// Loads pods and their namespaces, with a thousand pods in each.
fn load(server: &TestApi, seed: u64, count: usize) -> Result<(), serve::Status> {
    if count == 0 {
        return Ok(());
    }
    let namespaces = count.div_ceil(1_000);
    for index in 0..namespaces {
        let name = format!("shop-{index}");
        server.api().create(&Gvr::new("v1", "namespaces"), json!({ "metadata": { "name": name } }))?;
    }
    let started = std::time::Instant::now();
    let pods = (0..count).map(|index| sample::pod_text(seed, index, namespaces));
    server.api().load_text(&Gvr::new("v1", "pods"), pods)?;
    println!("loaded {count} pods in {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}
