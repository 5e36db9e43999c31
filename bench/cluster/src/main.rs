//! `bench-cluster`: the cluster's side of a benchmark. It loads objects into a real server, or is a server itself
//! (testapi), and changes them. It reports checksums of the objects, which the harness compares with those of a cache.
//! It knows nothing of informers.
//!
//! It reads commands from stdin and answers each with one line of JSON, like the other programs of `bench/PROTOCOL.md`:
//!
//!     load {"pods":10000,"seed":1}     pods, and what else a cluster has; a pod bench/sentinel; with "perSet" in
//!                                      ReplicaSets of so many, and with nodes
//!     fill {"objects":20}              so many objects of each of a few more kinds, Secrets of Helm's size among them
//!     change {"count":100,"among":50}  that many patches of the first pods, each with the time in an annotation;
//!                                      with "perSecond" so many a second, of random pods: nine of ten of the first
//!     touch {"resources":["..."]}      one patch of one object of each of these, and the versions that they made
//!     requests                         how many lists and watches the server was asked for until now
//!     sentinel                         one of bench/sentinel, and what its version is then
//!     digest {"resources":["..."]}     count and checksums of what there is
//!     resources                        what can be listed and watched
//!     mix {"objects":50000}            testapi: so many objects of eight kinds, mostly pods, and which kinds they are
//!     churn {"seconds":60,"perSecond":50}  changes of them at an even pace; half of them are heartbeats
//!     owners {"objects":10000}         so many ConfigMaps, each of which a controller gives a Secret with its value
//!     owners-clear                     deletes these Secrets
//!     owners-change {"count":9,"perSecond":100}  changes of different ones, and the delays until their Secrets follow
//!     owners-pace {"seconds":9,"perSecond":100}   changes of random ones, without waiting for Secrets
//!     owners-requests                  how many requests of controllers the server has got until now
//!     owners-storm {"count":9,"rounds":3}        changes of the first ones, so many of each
//!     owners-check                     count and checksums of the ConfigMaps, and how many have one Secret in step
//!     expire                           testapi: ends watches, and forgets what they would resume from
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its caller")]

mod change;
mod digest;
mod load;
mod metrics;
mod mixed;
mod owners;
mod server;
mod shapes;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::server::{Failure, Server};

#[derive(Parser)]
struct Options {
    /// Use a real server
    #[arg(long, required_unless_present = "testapi")]
    kubeconfig: Option<PathBuf>,
    /// Be the server: testapi with TLS; write its kubeconfig to this file
    #[arg(long, value_name = "KUBECONFIG")]
    testapi: Option<PathBuf>,
    /// The seed of what testapi makes up: another one makes another cluster
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The number of concurrent requests
    #[arg(long, default_value_t = 24)]
    parallel: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Arguments {
    pods: usize,
    seed: u64,
    objects: usize,
    count: usize,
    among: usize,
    per_set: usize,
    per_second: f64,
    rounds: usize,
    seconds: f64,
    resources: Vec<String>,
}

impl Default for Arguments {
    fn default() -> Self {
        let pods = vec!["core/v1/pods/Pod".to_owned()];
        let [objects, count, among, per_set, rounds] = [0; 5];
        Self {
            pods: 0,
            seed: 1,
            objects,
            count,
            among,
            per_set,
            per_second: 0.0,
            rounds,
            seconds: 0.0,
            resources: pods,
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-cluster: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), Failure> {
    let server = match (options.testapi, options.kubeconfig) {
        (Some(kubeconfig), _) => Server::testapi(&kubeconfig, options.seed, options.parallel).await?,
        (None, kubeconfig) => Server::real(kubeconfig.unwrap_or_default(), options.parallel).await?,
    };
    println!("{}", json!({ "event": "started", "version": server.version().await? }));
    let (mut loaded, mut owners) = (load::Loaded::default(), owners::Owners::default());
    let mut mixed = mixed::Mixed::default();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let (command, arguments) = line.split_once(' ').unwrap_or((&line, "{}"));
        let arguments: Arguments = serde_json::from_str(arguments)?;
        let answer = match (command, command.split_once("owners")) {
            ("mix", _) => mixed.load(&server, &mut loaded, arguments.seed, arguments.objects).await,
            ("churn", _) => mixed.churn(&server, &loaded, arguments.seconds, arguments.per_second).await,
            (_, Some(("", command))) => of_owners(&server, &mut owners, command, arguments).await,
            _ => answer(&server, &mut loaded, command, arguments).await,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => json!({ "event": "failed", "reason": error.to_string() }),
        };
        println!("{answer}");
    }
    Ok(())
}

async fn answer(
    server: &Server,
    loaded: &mut load::Loaded,
    command: &str,
    arguments: Arguments,
) -> Result<Value, Failure> {
    match command {
        "load" => loaded.pods(server, arguments.seed, arguments.pods, arguments.per_set).await,
        "fill" => load::others(server, arguments.seed, arguments.objects).await,
        "change" if arguments.per_second > 0.0 => {
            let pace = change::Pace { per_second: arguments.per_second, among: arguments.among };
            change::paced(server, loaded, arguments.count, &pace).await
        }
        "touch" => change::one_of_each(server, &arguments.resources).await,
        "requests" => server.requests(|verb, _| matches!(verb, "list" | "watch")).await,
        "change" => change::pods(server, loaded, arguments.count, arguments.among).await,
        "sentinel" => change::sentinel(server).await,
        "digest" => digest::of(server, &arguments.resources).await,
        "resources" => server.resources().await,
        "expire" => server.expire(),
        other => Err(format!("{other:?} is no command").into()),
    }
}

async fn of_owners(
    server: &Server,
    owners: &mut owners::Owners,
    command: &str,
    arguments: Arguments,
) -> Result<Value, Failure> {
    match command {
        "" => owners.load(server, arguments.objects).await,
        "-clear" => owners.clear(server).await,
        "-change" => owners.change(server, arguments.count, arguments.per_second).await,
        "-pace" => owners.pace(server, arguments.seconds, arguments.per_second).await,
        "-requests" => owners.requests(server).await,
        "-storm" => owners.storm(server, arguments.count, arguments.rounds).await,
        "-check" => owners.check(server).await,
        other => Err(format!("owners{other:?} is no command").into()),
    }
}
