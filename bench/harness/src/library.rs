//! The clients, and the setups in which they run.

use std::path::PathBuf;
use std::process::Command;

use tooling::{Error, process};

use crate::root;

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

    pub(super) fn build(self, debug: bool) -> Result<PathBuf, Error> {
        match self {
            Self::Informer => rust("bench-informer", "bench-informer", debug),
            Self::KubeRs => rust("bench-kube-rs", "bench-kube-rs", debug),
            Self::ClientGo => go("client-go"),
            Self::ControllerRuntime => go("controller-runtime"),
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

/// Builds a program of the workspace. Its release has only the features of dependencies that it asks for itself, as a user's
/// program has. Without optimization it is what the tests of the workspace have built.
pub(super) fn rust(package: &str, name: &str, debug: bool) -> Result<PathBuf, Error> {
    let mut cargo = process::cargo(&root());
    cargo.args(["build", "--quiet"]);
    let target = if debug {
        cargo.args(["--workspace", "--bin", name]);
        "target/debug"
    } else {
        cargo.args(["--release", "--package", package, "--target-dir", "target/bench"]);
        "target/bench/release"
    };
    process::run(&mut cargo)?;
    Ok(root().join(target).join(name))
}

/// Builds a Go program, which is a module of its own.
pub(super) fn go(name: &str) -> Result<PathBuf, Error> {
    let program = root().join("target/bench").join(format!("bench-{name}"));
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
