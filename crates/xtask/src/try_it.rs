//! `cargo xtask try`: kubediff on a real API server of its own, for whoever has no cluster at hand.

use std::process::Command;

use control_plane::ControlPlane;

use crate::error::Error;
use crate::process;
use crate::tree::Tree;

/// Runs until Ctrl-C, which ends kubediff, and that ends us and the server.
pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    println!("Building kubediff; the first time that takes a few minutes.");
    // Built first, so that the server does not wait for the compiler.
    process::run(cargo(tree).args(["build", "--quiet", "--release", "--package", "kubediff"]))?;
    let server = ControlPlane::builder().controller_manager(true).start()?;
    println!("A Kubernetes API server runs at {}. In another terminal:\n", server.server());
    println!("    export KUBECONFIG={}", server.kubeconfig().display());
    println!("    kubectl create deployment web --image=nginx --replicas=2");
    println!("    kubectl scale deployment web --replicas=3\n");
    // The terminal tells its whole group of Ctrl-C; kubediff is the one that acts on it.
    ctrlc::set_handler(|| {})
        .map_err(|source| Error::Found(format!("Ctrl-C cannot be listened for: {source}")))?;
    let mut kubediff = cargo(tree);
    kubediff.args(["run", "--quiet", "--release", "--package", "kubediff", "--", "watch", "-A"]);
    process::run(kubediff.env("KUBECONFIG", server.kubeconfig()))
}

fn cargo(tree: &Tree) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(tree.root());
    cargo
}
