//! The kube-rs side of the benchmarks. Arguments and lines on stdin control the program; `bench/PROTOCOL.md` defines
//! both.

#![deny(unsafe_code)]

mod arguments;
#[path = "../../shared/delays.rs"]
mod delays;
#[path = "../../shared/digest.rs"]
mod digest;
mod handler;
mod lookups;
#[path = "../../shared/mean.rs"]
mod mean;
#[path = "../../shared/memory.rs"]
mod memory;
mod owners;
#[path = "../../shared/protocol.rs"]
mod protocol;
mod reads;
mod session;
mod view;

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::Value;

use crate::arguments::{Arguments, ViewName};
use crate::owners::Owners;
use crate::protocol::{Answers, Failure};
use crate::session::Session;
use crate::view::View;

// With several threads the same sync took 25 - 50 % more CPU.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    if matches!(arguments.view, ViewName::Typed) && !arguments.is_of_pods() {
        return Err("the typed view is for pods only".into());
    }
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

async fn serve(session: impl Answers) -> Result<(), Failure> {
    protocol::serve(format!("kube-rs {}", version()), session).await
}

impl<K: View> Answers for Session<K> {
    async fn answer(&mut self, command: &str, argument: Value) -> Result<Value, Failure> {
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
            _ => Err(format!("kube-rs has no {command:?}").into()),
        }
    }
}

/// The version of kube in this build.
fn version() -> &'static str {
    let package =
        include_str!("../../../Cargo.lock").split("[[package]]").find(|it| it.contains("name = \"kube\"\n"));
    let version = package.and_then(|it| it.split("version = \"").nth(1)?.split('"').next());
    version.unwrap_or("of unknown version")
}
