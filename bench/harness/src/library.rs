//! The clients, and the setups in which they run.

use std::path::PathBuf;
use std::process::Command;

use tooling::{Error, process};

use crate::{Built, root};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Library {
    Informer,
    ClientGo,
    KubeRs,
    ControllerRuntime,
}

/// The libraries that ours is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Peer {
    ClientGo,
    KubeRs,
    ControllerRuntime,
}

/// One client in one setup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) client: Library,
    /// For tables: `typed`, `dynamic` and so on.
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
}

impl Peer {
    pub(crate) fn client(self) -> Library {
        match self {
            Self::ClientGo => Library::ClientGo,
            Self::KubeRs => Library::KubeRs,
            Self::ControllerRuntime => Library::ControllerRuntime,
        }
    }
}

impl Library {
    /// The libraries that keep a copy of a server's objects.
    pub(crate) const CACHES: [Self; 3] = [Self::Informer, Self::ClientGo, Self::KubeRs];
    /// The libraries that run controllers.
    pub(crate) const CONTROLLERS: [Self; 3] = [Self::Informer, Self::ControllerRuntime, Self::KubeRs];
    /// The libraries that have a work queue.
    pub(crate) const QUEUES: [Self; 3] = [Self::Informer, Self::ClientGo, Self::ControllerRuntime];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Informer => "informer",
            Self::ClientGo => "client-go",
            Self::KubeRs => "kube-rs",
            Self::ControllerRuntime => "controller-runtime",
        }
    }

    pub(super) fn build(self, built: &Built<'_>) -> Result<PathBuf, Error> {
        match self {
            Self::Informer => built.rust("bench/informer", "bench-informer"),
            Self::KubeRs => built.rust("bench/kube-rs", "bench-kube-rs"),
            Self::ClientGo => go(built, "client-go"),
            Self::ControllerRuntime => go(built, "controller-runtime"),
        }
    }

    /// This client with a view: `typed`, `dynamic` or `metadata`; ours also has `declared`.
    pub(crate) fn view(self, view: &str) -> Setup {
        Setup { client: self, name: view.to_owned(), arguments: vec!["--view".to_owned(), view.to_owned()] }
    }

    /// This client with a whole controller.
    pub(crate) fn controller(self, work: &str, workers: usize) -> Setup {
        let setup = Setup { client: self, name: format!("{workers} workers"), arguments: Vec::new() };
        setup.with(&["--controller", work, "--workers"]).with(&[workers])
    }
}

/// Builds a Go program, which is a module of its own.
pub(super) fn go(built: &Built<'_>, name: &str) -> Result<PathBuf, Error> {
    let program = built.directory.join(format!("bench-{name}"));
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-buildvcs=false", "-o"]).arg(&program).arg(".");
    process::run(go.current_dir(root().join("bench").join(name)).env("CGO_ENABLED", "0"))?;
    Ok(program)
}

impl Setup {
    /// Whether it gets whole objects, not only metadata.
    pub(crate) fn has_content(&self) -> bool {
        !self.arguments.iter().any(|argument| argument == "metadata")
    }

    /// Adds arguments that the setup's name shows.
    pub(crate) fn named(mut self, addition: &str, arguments: &[&str]) -> Self {
        self.name = format!("{}, {addition}", self.name);
        self.with(arguments)
    }

    /// Adds arguments that the setup's name does not show.
    pub(crate) fn with<A: ToString>(mut self, arguments: &[A]) -> Self {
        self.arguments.extend(arguments.iter().map(ToString::to_string));
        self
    }

    pub(crate) fn dropping_managed_fields(self) -> Self {
        self.named("managedFields dropped", &["--drop-managed-fields"])
    }
}
