//! `cargo xtask kubernetes`: moves everything that follows a release of Kubernetes to another one: the Go modules, the
//! generated tables, and the texts that name the release. Either all of it moves or nothing does.

mod changes;
mod files;
mod words;

use std::process::Command;

use control_plane::Release;
use tooling::{Error, process};

use crate::tree::Tree;
use crate::{messages, protobuf, schema};
use changes::Known;
use files::Files;

/// The module of the control plane, whose `go.mod` names the release.
const CONTROL_PLANE: &str = "control-plane";
/// The modules with clients that we compare ourselves with.
const CLIENTS: [&str; 3] = ["foreign/go", "bench/client-go", "bench/seed"];

pub(crate) fn run(tree: &Tree, version: &str) -> Result<(), Error> {
    let to: Release = version.parse().map_err(control_plane::Error::from)?;
    let from = control_plane::pinned()?;
    if to < from {
        return Err(Error::Found(format!(
            "Kubernetes {to} is older than {from}, where this repository is; to test against the older one, use \
             `cargo xtask test --kubernetes {to}`"
        )));
    }
    if !process::is_installed("kubectl", "help") {
        return Err(Error::missing(
            "kubectl",
            "install it, the schemas are read with it: https://kubernetes.io/docs/tasks/tools",
        ));
    }
    // Fails, before anything is written, if there is no such release.
    let go_mod = control_plane::go_mod(to)?;
    let written = words::FILES.iter().chain(&TABLES).map(|&path| path.to_owned());
    let modules = CLIENTS.iter().chain([&CONTROL_PLANE]);
    let modules = modules.flat_map(|module| ["go.mod", "go.sum"].map(|file| format!("{module}/{file}")));
    let files = Files::read(tree, written.chain(modules))?;
    let known = Known::read(tree)?;
    if let Err(error) = move_all(tree, from, to, &go_mod) {
        files.restore()?;
        println!("Nothing is changed: every file is as it was.");
        return Err(error);
    }
    let changed = files.changed()?;
    if changed.is_empty() {
        println!("Everything is at Kubernetes {to} already.");
        return Ok(());
    }
    println!("\nFrom Kubernetes {from} to {to}. Written:");
    changed.iter().for_each(|path| println!("    {path}"));
    println!("\nFor users:\n{}", Known::read(tree)?.since(&known));
    println!(
        "Next: `cargo xtask test`; what its release notes say of list and watch; docs/KUBERNETES.md; k8s-openapi in\n\
         Cargo.toml and .cargo/config.toml, once it has the release."
    );
    Ok(())
}

/// The generated tables.
const TABLES: [&str; 4] = [messages::TABLE, protobuf::TABLE, schema::TABLE, schema::RESOURCES];

fn move_all(tree: &Tree, from: Release, to: Release, go_mod: &str) -> Result<(), Error> {
    let directory = tree.root().join(CONTROL_PLANE);
    let path = directory.join("go.mod");
    std::fs::write(&path, go_mod).map_err(Error::io(&path))?;
    process::run(Command::new("go").current_dir(&directory).args(["mod", "tidy"]))?;
    for module in CLIENTS {
        client(tree, module, to)?;
    }
    words::replace(tree, from, to)?;
    // testapi's messages are those of the types that the schemas have.
    schema::run(tree)?;
    protobuf::run(tree)?;
    messages::run(tree)
}

/// Moves a module with a client.
fn client(tree: &Tree, module: &str, to: Release) -> Result<(), Error> {
    let directory = tree.root().join(module);
    let text = tree.read(&format!("{module}/go.mod"))?;
    let wanted = kubernetes_modules(&text).into_iter().map(|path| format!("{path}@{}", to.staging()));
    let go = |arguments: &[&str]| {
        let mut go = Command::new("go");
        go.current_dir(&directory).args(arguments);
        go
    };
    process::run(go(&["get"]).args(wanted))?;
    process::run(&mut go(&["mod", "tidy"]))
}

/// The modules of a `go.mod` that have the versions of Kubernetes and are required directly.
fn kubernetes_modules(go_mod: &str) -> Vec<&str> {
    let lines = go_mod.lines().filter(|line| !line.contains("// indirect"));
    let words = lines.filter_map(|line| line.trim().trim_start_matches("require ").split_once(' '));
    let versioned = |version: &str| {
        let minor = version.trim().strip_prefix("v0.").and_then(|rest| rest.split('.').next());
        minor.is_some_and(|minor| minor != "0")
    };
    words
        .filter(|(path, version)| path.starts_with("k8s.io/") && versioned(version))
        .map(|(path, _)| path)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modules_with_the_versions_of_kubernetes_move() {
        let go_mod = "require (\n\tk8s.io/api v0.37.2\n\tk8s.io/klog/v2 v2.140.0\n\tk8s.io/utils v0.0.0-2026\n\
            \tk8s.io/metrics v0.37.2 // indirect\n\tgithub.com/a/b v0.37.2\n)\nrequire k8s.io/kubectl v0.37.2\n";
        assert_eq!(kubernetes_modules(go_mod), ["k8s.io/api", "k8s.io/kubectl"]);
    }

    #[test]
    fn what_cannot_be_a_move_ends_with_a_remedy_and_writes_nothing() {
        let tree = Tree::here();
        for (version, remedy) in
            [("1.37", "such as 1.37.2"), ("latest", "such as 1.37.2"), ("1.9.0", "test --kubernetes 1.9.0")]
        {
            let error = run(&tree, version).unwrap_err().to_string();
            assert!(error.contains(remedy), "{version}: {error}");
        }
    }
}
