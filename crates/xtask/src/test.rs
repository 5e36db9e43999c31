//! `cargo xtask test`: all checks that a change must pass, in one command that needs cargo and Go.
//!
//! Steps run one after the other, because two compilers at a time are no faster on few cores. Kubernetes is the
//! exception: its build fills the cores while cargo waits for a single crate. Quick steps come first, and the first
//! failure ends the run.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ::control_plane::Release;
use tooling::{Error, process};

use crate::test_run::{TestRun, real_server};
use crate::tree::Tree;
use crate::{bench, contract, control_plane, deny, dist, image, interleavings, package, public_api, tidy};

/// A step: its heading and its function.
type Step<'a> = (&'static str, Box<dyn Fn() -> Result<(), Error> + 'a>);

pub(crate) fn run(tree: &Tree, fast: bool) -> Result<(), Error> {
    let real_server = real_server(fast)?;
    let mut steps: Vec<Step<'_>> = vec![
        ("format", Box::new(|| format(tree))),
        ("tidy", Box::new(|| tidy::run(tree, false))),
        ("dependencies", Box::new(|| deny::check(tree))),
        ("clippy", Box::new(move || clippy(tree, real_server))),
        ("features", Box::new(|| features(tree))),
        ("docs", Box::new(|| docs(tree))),
    ];
    if real_server {
        steps.push(("control plane", Box::new(|| control_plane::check(tree))));
    }
    steps.push(("tests", Box::new(move || tests(tree, real_server))));
    steps.push(("loom", Box::new(|| interleavings::run(tree))));
    steps.push(("benchmarks", Box::new(move || bench::check(tree, real_server))));
    steps.push(("contract", Box::new(|| contract::report(tree, false))));
    perform(&steps)
}

/// Shows the contract against a real server of another release. No more: tables, samples and the comparison with testapi
/// are those of one release.
pub(crate) fn other_release(tree: &Tree, release: &str) -> Result<(), Error> {
    let release: Release = release.parse().map_err(::control_plane::Error::from)?;
    let steps: [Step<'_>; 2] = [
        ("control plane", Box::new(move || Ok(::control_plane::build_release(release).map(drop)?))),
        ("conformance", Box::new(move || conformance(tree, release))),
    ];
    perform(&steps)
}

/// Runs the checks that take too long for every change.
pub(crate) fn release_check(tree: &Tree) -> Result<(), Error> {
    let steps: [Step<'_>; 7] = [
        ("versions of k8s-openapi", Box::new(|| versions_of_k8s_openapi(tree))),
        ("public surface", Box::new(|| public_api::run(tree, false))),
        ("packages", Box::new(|| package::run(tree))),
        ("downloads", Box::new(|| dist::run(tree, None))),
        ("history", Box::new(|| dist::test(tree))),
        ("image", Box::new(|| image::run(tree))),
        ("advisories", Box::new(|| deny::run(tree))),
    ];
    perform(&steps)
}

/// The generated decoders with the structs of each version of Kubernetes that k8s-openapi has. The tests of the workspace have the
/// latest.
fn versions_of_k8s_openapi(tree: &Tree) -> Result<(), Error> {
    for minor in 33..=37 {
        let mut command = process::cargo(tree.root());
        command.env("K8S_OPENAPI_ENABLED_VERSION", format!("1.{minor}"));
        // The artifacts of the workspace stay as they are.
        command.args(["test", "--package", "informer-k8s-openapi", "--target-dir", "target/versions"]);
        process::run(&mut command)?;
    }
    Ok(())
}

fn conformance(tree: &Tree, release: Release) -> Result<(), Error> {
    let mut command = process::cargo(tree.root());
    command.env(::control_plane::RELEASE, release.to_string());
    process::run(command.args(["test", "--package", "conformance", "--test", "real", "--no-fail-fast"]))
}

fn perform(steps: &[Step<'_>]) -> Result<(), Error> {
    let begin = Instant::now();
    let mut times = Vec::new();
    for (index, (heading, step)) in steps.iter().enumerate() {
        println!("\n=== {}/{} {heading}", index + 1, steps.len());
        let step_begin = Instant::now();
        let result = step();
        times.push((*heading, step_begin.elapsed()));
        if let Err(error) = result {
            print_times(&times);
            println!("xtask test: FAILED at {heading} after {}", seconds(begin.elapsed()));
            return Err(error);
        }
    }
    print_times(&times);
    println!("xtask test: all {} steps passed in {}", steps.len(), seconds(begin.elapsed()));
    Ok(())
}

fn print_times(times: &[(&str, Duration)]) {
    println!();
    for (heading, time) in times {
        println!("{:>9}  {heading}", seconds(*time));
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn format(tree: &Tree) -> Result<(), Error> {
    component("rustfmt", "fmt")?;
    process::run(process::cargo(tree.root()).args(["fmt", "--all", "--check"]))
}

/// Lets the control plane be built at the same time: the step of that name waits for it, and reports a failure.
fn clippy(tree: &Tree, real_server: bool) -> Result<(), Error> {
    component("clippy", "clippy")?;
    if real_server {
        thread::spawn(::control_plane::build);
    }
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(process::cargo(tree.root()).args(arguments))
}

/// The sets of features of `informer` and `testapi` to build: none, and each alone. Clippy builds all features together.
fn features(tree: &Tree) -> Result<(), Error> {
    let informer = ["", "http2", "packed", "save", "openssl"].map(|features| ("informer", features));
    let testapi = ["", "tls", "yaml", "kube,k8s-openapi/latest"].map(|features| ("testapi", features));
    for (package, features) in informer.into_iter().chain(testapi) {
        let arguments = ["clippy", "-p", package, "--no-default-features", "--features", features];
        process::run(process::cargo(tree.root()).args(arguments).args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

fn docs(tree: &Tree) -> Result<(), Error> {
    let mut command = process::cargo(tree.root());
    process::run(command.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps"]))
}

fn tests(tree: &Tree, real_server: bool) -> Result<(), Error> {
    if TestRun::execute(tree, real_server)? { Ok(()) } else { Err(Error::Found("tests failed".to_owned())) }
}

/// Fails if a component of the toolchain, and with it a subcommand of cargo, is not installed.
fn component(name: &str, subcommand: &str) -> Result<(), Error> {
    if process::is_installed(&format!("cargo-{subcommand}"), "--version") {
        return Ok(());
    }
    if !process::is_installed("rustup", "--version") {
        return Err(Error::missing(
            name,
            "install it with the Rust toolchain, or by `rustup component add` with rustup",
        ));
    }
    println!("{name} is missing; rustup adds it");
    process::run(Command::new("rustup").args(["component", "add", name]))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_first_failure_ends_the_run() {
        let seen = RefCell::new(Vec::new());
        let step = |name: &'static str, fails: bool| -> Step<'_> {
            let seen = &seen;
            let action = move || {
                seen.borrow_mut().push(name);
                if fails { Err(Error::Found(name.to_owned())) } else { Ok(()) }
            };
            (name, Box::new(action))
        };
        let steps = [step("one", false), step("two", true), step("three", false)];
        assert_eq!(perform(&steps).unwrap_err().to_string(), "two");
        assert_eq!(*seen.borrow(), ["one", "two"]);
        assert!(perform(&steps[..1]).is_ok());
    }
}
