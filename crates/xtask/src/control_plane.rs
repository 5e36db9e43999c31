//! `cargo xtask control-plane`: the real etcd and kube-apiserver of the tests, built from `control-plane/`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use tooling::{Error, process};

use crate::tree::Tree;

pub(crate) fn build(release: Option<&str>) -> Result<(), Error> {
    println!("{}", binary(release)?.display());
    Ok(())
}

fn binary(release: Option<&str>) -> Result<PathBuf, Error> {
    match release {
        Some(release) => {
            Ok(control_plane::build_release(release.parse().map_err(control_plane::Error::from)?)?)
        }
        None => Ok(control_plane::build()?),
    }
}

/// Replaces this process by the binary (exec), so that the binary itself gets stdin and signals and writes stdout.
pub(crate) fn run(release: Option<&str>, options: &[OsString]) -> Result<(), Error> {
    let mut command = Command::new(binary(release)?);
    command.arg("run").args(options);
    become_command(&mut command)
}

#[cfg(unix)]
fn become_command(command: &mut Command) -> Result<(), Error> {
    use std::os::unix::process::CommandExt;

    let source = command.exec();
    Err(Error::Io { path: command.get_program().into(), source })
}

#[cfg(not(unix))]
fn become_command(command: &mut Command) -> Result<(), Error> {
    process::run(command)
}

/// Builds, and checks the Go sources: format, vet, tests.
pub(crate) fn check(tree: &Tree) -> Result<(), Error> {
    control_plane::build()?;
    let directory = tree.root().join("control-plane");
    let go = |program: &str| {
        let mut command = Command::new(program);
        // With the flags of the binary's build, so that Go's cache serves both.
        command.current_dir(&directory).env("CGO_ENABLED", "0");
        command
    };
    let unformatted = process::output(go("gofmt").args(["-l", "."]))?;
    if !unformatted.is_empty() {
        print!("{unformatted}");
        return Err(Error::Found("these files are not as gofmt writes them".to_owned()));
    }
    process::run(go("go").args(["vet", "-trimpath", "./..."]))?;
    process::run(go("go").args(["test", "-trimpath", "./..."]))
}
