//! The kube-rs side of the benchmarks. Arguments and lines on stdin control the program; `bench/PROTOCOL.md` defines
//! both.

#![deny(unsafe_code)]

mod arguments;
mod digest;
mod handler;
mod lookups;
mod memory;
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
    match arguments.view {
        ViewName::Typed => serve::<Pod>(arguments).await,
        ViewName::Dynamic => serve::<DynamicObject>(arguments).await,
        // Keys of types that know their resource at compile time are smaller.
        ViewName::Metadata if arguments.is_of_pods() => serve::<PartialObjectMeta<Pod>>(arguments).await,
        ViewName::Metadata => serve::<PartialObjectMeta<DynamicObject>>(arguments).await,
    }
}

/// Answers each line of stdin with one line, until stdin ends.
async fn serve<K: View>(arguments: Arguments) -> Result<(), Failure> {
    let mut session = Session::<K>::new(arguments).await?;
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

async fn obey<K: View>(session: &mut Session<K>, line: &str) -> Result<Value, Failure> {
    let (command, argument) = line.split_once(' ').unwrap_or((line, ""));
    match command {
        "start" => session.start().await,
        "collect" => Ok(json!({"event": "collected", "heapBytes": memory::give_back()})),
        "digest" => Ok(session.digest()),
        "until" => session.until(serde_json::from_str(argument)?).await,
        "lookups" => session.lookups(serde_json::from_str(argument)?).await,
        "reads" => {
            let wish = serde_json::from_str(argument)?;
            tokio::task::spawn_blocking(move || reads::run(wish)).await?
        }
        // The watch waits for the slowest subscriber: no other one would be notified any more.
        "stuck" => Err("a subscriber of kube-rs that is stuck stops all others".into()),
        "index-late" => Err("kube-rs has no indexes".into()),
        _ => Err(format!("kube-rs has no {command:?}").into()),
    }
}

/// The version of kube in this build.
fn version() -> &'static str {
    let package =
        include_str!("../Cargo.lock").split("[[package]]").find(|it| it.contains("name = \"kube\"\n"));
    let version = package.and_then(|it| it.split("version = \"").nth(1)?.split('"').next());
    version.unwrap_or("of unknown version")
}
