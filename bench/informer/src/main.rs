//! This project's side of the benchmarks. Arguments and lines on stdin control the program; `bench/PROTOCOL.md` defines
//! both. It uses the public API only.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its caller")]

mod allocator;
mod arguments;
mod controller;
#[path = "../../shared/delays.rs"]
mod delays;
mod digest;
mod handler;
mod lookups;
mod owners;
mod queues;
mod reads;
mod session;
mod transport;
mod view;

use std::process::ExitCode;

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube_core::DynamicObject;
use kube_core::metadata::PartialObjectMeta;
use serde_json::{Value, json};

use crate::arguments::{Arguments, View};
use crate::controller::Controller;
use crate::owners::Owners;
use crate::session::Session;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One run of the program.
trait Answers {
    async fn answer(&mut self, command: &str, parameters: Value) -> Result<Value, Failure>;
}

// One thread is enough for handlers and waiting: the factory makes a thread for connections.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-informer: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(work) = arguments.controller {
        return serve(Owners::new(arguments, work).await?).await;
    }
    if arguments.reconcile {
        return serve(Controller::new(arguments).await?).await;
    }
    match arguments.view {
        View::Typed => serve(Session::<Pod>::new(arguments).await?).await,
        View::Declared => serve(Session::<view::Declared>::new(arguments).await?).await,
        View::Dynamic => serve(Session::<DynamicObject>::new(arguments).await?).await,
        View::Metadata => serve(Session::<PartialObjectMeta<DynamicObject>>::new(arguments).await?).await,
    }
}

async fn serve(mut session: impl Answers) -> Result<(), Failure> {
    say(&json!({ "event": "started", "version": concat!("informer ", env!("CARGO_PKG_VERSION")) }));
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        let (command, parameters) = line.split_once(' ').unwrap_or((&line, "{}"));
        let answer = session.answer(command, serde_json::from_str(parameters)?).await;
        say(&answer.unwrap_or_else(|error| json!({ "event": "failed", "reason": error.to_string() })));
    }
    Ok(())
}

/// The lines of stdin, read by a thread of its own.
fn lines() -> tokio::sync::mpsc::Receiver<String> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn say(event: &Value) {
    println!("{event}");
}
