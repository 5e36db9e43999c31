//! The kube-rs side of the benchmarks. Arguments and lines on stdin control the program; `bench/PROTOCOL.md` defines
//! both.

#![deny(unsafe_code)]

mod arguments;
#[path = "../../shared/delays.rs"]
mod delays;
mod digest;
mod handler;
mod lookups;
mod memory;
mod owners;
mod reads;
mod session;
mod view;

use std::error::Error;
use std::process::exit;

use k8s_openapi::api::core::v1::Pod;
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::arguments::{Arguments, ViewName};
use crate::owners::Owners;
use crate::session::Session;
use crate::view::View;

type Failure = Box<dyn Error + Send + Sync>;

// With several threads the same sync took 25 - 50 % more CPU.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse(std::env::args().skip(1)).unwrap_or_else(|reason| {
        eprintln!("{reason}");
        exit(2);
    });
    if let Some(work) = arguments.controller {
        return serve(Owners::new(&arguments, work).await?).await;
    }
    match arguments.view {
        ViewName::Typed => serve(Session::<Pod>::new(arguments).await?).await,
        ViewName::Dynamic => serve(Session::<DynamicObject>::new(arguments).await?).await,
        // Keys of types that know their resource at compile time are smaller.
        ViewName::Metadata if arguments.is_of_pods() => {
            serve(Session::<PartialObjectMeta<Pod>>::new(arguments).await?).await
        }
        ViewName::Metadata => serve(Session::<PartialObjectMeta<DynamicObject>>::new(arguments).await?).await,
    }
}

/// Answers each line of stdin with one line, until stdin ends.
async fn serve(mut session: impl Obeys) -> Result<(), Failure> {
    println!("{}", json!({"event": "started", "version": format!("kube-rs {}", version())}));
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = commands.next_line().await? {
        let answer = match obey(&mut session, &line).await {
            Ok(answer) => answer,
            Err(failure) => json!({"event": "failed", "reason": failure.to_string()}),
        };
        println!("{answer}");
    }
    Ok(())
}

async fn obey(session: &mut impl Obeys, line: &str) -> Result<Value, Failure> {
    match line.split_once(' ').unwrap_or((line, "{}")) {
        ("collect", _) => Ok(json!({"event": "collected", "heapBytes": memory::give_back()})),
        (command, argument) => session.obey(command, serde_json::from_str(argument)?).await,
    }
}

/// One run of the program.
trait Obeys {
    async fn obey(&mut self, command: &str, argument: Value) -> Result<Value, Failure>;
}

impl Obeys for Owners {
    async fn obey(&mut self, command: &str, argument: Value) -> Result<Value, Failure> {
        Owners::obey(self, command, argument).await
    }
}

impl<K: View> Obeys for Session<K> {
    async fn obey(&mut self, command: &str, argument: Value) -> Result<Value, Failure> {
        match command {
            "start" => self.start().await,
            "digest" => Ok(self.digest()),
            "until" => self.until(serde_json::from_value(argument)?).await,
            "lookups" => self.lookups(serde_json::from_value(argument)?).await,
            "reads" => {
                let wish = serde_json::from_value(argument)?;
                tokio::task::spawn_blocking(move || reads::run(wish)).await?
            }
            // The watch waits for the slowest subscriber: no other one would be notified any more.
            "stuck" => Err("a subscriber of kube-rs that is stuck stops all others".into()),
            "index-late" => Err("kube-rs has no indexes".into()),
            _ => Err(format!("kube-rs has no {command:?}").into()),
        }
    }
}

/// The version of kube in this build.
fn version() -> &'static str {
    let package =
        include_str!("../Cargo.lock").split("[[package]]").find(|it| it.contains("name = \"kube\"\n"));
    let version = package.and_then(|it| it.split("version = \"").nth(1)?.split('"').next());
    version.unwrap_or("of unknown version")
}
