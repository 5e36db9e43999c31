//! Why a daemon could not be asked.

use std::io;
use std::time::Duration;

use kube_client::Error;

use super::place::Place;
use crate::cluster::NoCluster;
use crate::exit::Exit;
use crate::query::args::DaemonName;

/// Why a daemon could not be asked.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DaemonError(#[from] Why);

/// The reason.
#[derive(Debug, thiserror::Error)]
pub(super) enum Why {
    #[error(transparent)]
    Cluster(#[from] NoCluster),
    #[error("the output cannot be written")]
    Output(#[source] io::Error),
    #[error("{address} cannot be asked for the daemon")]
    Unreachable { address: String, source: Box<Error> },
    #[error("{address} does not answer the request for {resource} within {} s", .limit.as_secs_f64())]
    Slow { address: String, resource: &'static str, limit: Duration },
    #[error(
        "{address} does not accept your credentials: {message}; `kubectl auth whoami` shows as whom it knows you"
    )]
    Unauthenticated { address: String, message: String },
    #[error(
        "a question to a daemon needs the verbs {verbs} on {resource} in the namespace {namespace}: {message}; a Role there \
         gives them by the rule {rule}"
    )]
    Denied {
        verbs: &'static str,
        resource: &'static str,
        namespace: String,
        message: String,
        rule: &'static str,
    },
    #[error("{address} refuses the request for {resource}: {message}")]
    Refused { address: String, resource: &'static str, message: String },
    #[error(
        "there is neither a pod nor a Deployment nor a StatefulSet {} in the namespace {}, which has {known}; name the one \
         that runs `kubediff serve`",
        name.name, name.namespace
    )]
    NotFound { name: DaemonName, known: String },
    #[error(
        "{}/{} has no pod; `kubectl -n {} describe deployment,statefulset {}` says why",
        .0.namespace, .0.name, .0.namespace, .0.name
    )]
    NoPod(DaemonName),
    #[error("the pod {pod} has no container {wanted}; it has {known}: name one with --container")]
    NoContainer { pod: String, wanted: String, known: String },
    #[error(
        "the container {} of the pod {}/{} does not run: {state}; `kubectl -n {} logs {} -c {} --previous` may say why",
        place.container, place.namespace, place.pod, place.namespace, place.pod, place.container
    )]
    NotRunning { place: Box<Place>, state: String },
    #[error(
        "the container {} of the pod {}/{} has no program kubediff that can be run ({message}); its image is {}: name the \
         container of the daemon with --container, or use an image with kubediff in its PATH",
        place.container, place.namespace, place.pod, place.image
    )]
    NoProgram { place: Box<Place>, message: String },
    #[error("the pod {}/{} could not be asked: {message}", place.namespace, place.pod)]
    NotRun { place: Box<Place>, message: String },
    #[error(
        "{address} has no exec over WebSocket: {message}; a proxy before it may not pass upgrades on. `kubectl exec` into the \
         daemon's pod can ask the same, with --history"
    )]
    NoWebSocket { address: String, message: String },
    #[error(
        "the connection to the pod {}/{} was lost, so that the answer is incomplete: {message}; ask again",
        place.namespace, place.pod
    )]
    Lost { place: Box<Place>, message: String },
    #[error("the connection to the daemon {}/{} has ended: {message}", name.namespace, name.name)]
    Ended { name: DaemonName, message: String },
    #[error(
        "the kubediff in the pod {}/{} does not understand this question: it is of another version than this one, {}; its \
         image is {}. Use the same version on both sides",
        place.namespace, place.pod, env!("CARGO_PKG_VERSION"), place.image
    )]
    Version { place: Box<Place> },
    #[error(
        "a backup is a file beside the history, so --daemon makes none: `kubectl -n {} exec deploy/{} -- kubediff history backup \
         /var/lib/kubediff/backup.db` writes one to the daemon's volume, where a pod that mounts the same claim finds it",
        .0.namespace, .0.name
    )]
    Backup(DaemonName),
    #[error(
        "archives are written where this command runs, so --daemon makes none; name the daemon's database with --history postgres://..."
    )]
    Archive,
}

impl DaemonError {
    /// The error of our output, if it is one.
    pub(crate) fn into_output(self) -> Result<io::Error, Self> {
        match self.0 {
            Why::Output(error) => Ok(error),
            why => Err(Self(why)),
        }
    }

    /// The connection to a daemon has ended.
    pub(crate) fn lost(name: &DaemonName, message: &str) -> Self {
        Self(Why::Ended { name: name.clone(), message: message.to_owned() })
    }

    /// How the program ends with this.
    pub(crate) fn exit(&self) -> Exit {
        match &self.0 {
            Why::Backup(_) | Why::Archive => Exit::Usage,
            Why::Output(_) => Exit::Failure,
            _ => Exit::Cluster,
        }
    }
}
