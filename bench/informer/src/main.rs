//! This project's side of the benchmarks. Arguments and lines on stdin control the program; `bench/PROTOCOL.md` defines
//! both. It uses the public API only.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its caller")]

mod arguments;
mod controller;
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

use crate::arguments::{Arguments, View};
use crate::controller::Controller;
use crate::owners::Owners;
use crate::protocol::{Answers, Failure};
use crate::session::Session;

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

async fn serve(session: impl Answers) -> Result<(), Failure> {
    protocol::serve(concat!("informer ", env!("CARGO_PKG_VERSION")).to_owned(), session).await
}
