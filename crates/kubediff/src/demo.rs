//! `kubediff demo`: the same as `watch`, against an API server of our own in which a small shop goes about its day.

mod act;
mod app;
mod objects;
mod plot;
mod stage;

use std::io;

use kube_client::Client;
use testapi::TestApi;

use crate::args::{DemoArgs, WatchArgs, WhatArgs};
use crate::capture::watch::{self, WatchError};
use crate::cluster::{self, ClusterArgs};
use crate::exit::Exit;
use crate::signals::Signals;
use stage::Stage;

pub use act::{Act, Owner, Step, Verb};
pub use plot::Plot;
pub use stage::Refused;

/// The demo could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The API server did not start.
    #[error("the demo's API server did not start")]
    Server(#[from] testapi::StartError),
    /// The kubeconfig could not be written.
    #[error("the demo's kubeconfig cannot be written")]
    Kubeconfig(#[source] io::Error),
    /// The API server refused a request of the shop.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Watching ended.
    #[error(transparent)]
    Watch(#[from] WatchError),
}

impl DemoError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Watch(error) => error.exit(),
            Self::Server(_) | Self::Kubeconfig(_) | Self::Refused(_) => Exit::Failure,
        }
    }
}

/// Plays the story and shows its changes, until it is interrupted.
///
/// # Errors
///
/// When the server does not start or refuses something, or the output cannot be written.
pub async fn run(args: DemoArgs) -> Result<(), DemoError> {
    // From here on no signal ends the process before the files are removed.
    let mut signals = Signals::listen().map_err(WatchError::Signals)?;
    let server = TestApi::builder().seed(args.seed).start().await?;
    let folder =
        tempfile::Builder::new().prefix("kubediff-demo-").tempdir().map_err(DemoError::Kubeconfig)?;
    let [kubeconfig, history] = ["kubeconfig", "history.db"].map(|name| folder.path().join(name));
    std::fs::write(&kubeconfig, server.kubeconfig()).map_err(DemoError::Kubeconfig)?;

    let cluster = ClusterArgs { kubeconfig: Some(kubeconfig.clone()), ..ClusterArgs::default() };
    let config = cluster::find(&cluster).await.map_err(WatchError::from)?.config;
    let client = Client::try_from(config).map_err(|error| WatchError::Client(Box::new(error)))?;

    let mut story = Plot::new(args.seed);
    let stage = Stage::new(client, args.speed, args.show.color);
    let prologue = async {
        for act in story.prologue() {
            stage.perform(&act).await?;
        }
        Ok::<(), Refused>(())
    };
    tokio::select! {
        () = signals.end() => return Ok(()),
        performed = prologue => performed?,
    }
    stage.hint(&kubeconfig, &history);
    let what = WhatArgs { all_namespaces: true, ..WhatArgs::default() };
    let history = Some(history);
    let watch =
        WatchArgs { what, cluster, history, show: args.show, session: args.session, ..WatchArgs::default() };
    tokio::select! {
        watched = watch::run(&watch) => watched?,
        refused = stage.play(story) => return Err(refused.into()),
    }
    server.stop().await;
    Ok(())
}
