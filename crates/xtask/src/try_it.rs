//! `cargo xtask try`: runs kubediff on a real API server, without a cluster.

use std::process::Command;

use control_plane::ControlPlane;

use tooling::{Error, process};

use crate::tree::Tree;

/// Runs until Ctrl-C ends kubediff; then the server ends too.
pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    println!("Building kubediff; the first time that takes a few minutes.");
    // kubediff is built first, so that the server does not run while the compiler does.
    process::run(cargo(tree).args(["build", "--quiet", "--release", "--package", "kubectl-changes"]))?;
    let server = ControlPlane::builder().controller_manager(true).start()?;
    println!("A Kubernetes API server runs at {}. In another terminal:\n", server.server());
    println!("    export KUBECONFIG={}", server.kubeconfig().display());
    println!("    kubectl create deployment web --image=nginx --replicas=2");
    println!("    kubectl scale deployment web --replicas=3\n");
    // The terminal sends Ctrl-C to the whole process group; only kubediff acts on it.
    ctrlc::set_handler(|| {})
        .map_err(|source| Error::Found(format!("Ctrl-C cannot be listened for: {source}")))?;
    let mut kubediff = cargo(tree);
    kubediff.args(["run", "--quiet", "--release", "--package", "kubectl-changes", "--", "watch", "-A"]);
    process::run(kubediff.env("KUBECONFIG", server.kubeconfig()))
}

fn cargo(tree: &Tree) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(tree.root());
    cargo
}
