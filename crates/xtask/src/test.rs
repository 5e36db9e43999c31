//! `cargo xtask test`: all checks that a change must pass, in one command that needs cargo and Go.
//!
//! Steps run one after the other, because two compilers at a time are no faster on few cores. Kubernetes is the
//! exception: its build fills the cores while cargo waits for a single crate. Quick steps come first, and the first
//! failure ends the run. In the end there is a table of the time and the CPU time of each step.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ::control_plane::Release;
use tooling::{Error, cpu, process};

use crate::test_run::{self, TestRun, real_server};
use crate::tree::Tree;
use crate::{contract, control_plane, deny, dist, image, package, page, public_api, tidy};

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
    steps.push(("page", Box::new(|| page::run(tree))));
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
    let steps: [Step<'_>; 8] = [
        ("versions of k8s-openapi", Box::new(|| versions_of_k8s_openapi(tree))),
        ("public surface", Box::new(|| public_api::run(tree, false))),
        ("packages", Box::new(|| package::run(tree))),
        ("downloads", Box::new(|| dist::run(tree, None))),
        ("history", Box::new(|| dist::test(tree))),
        ("image", Box::new(|| image::run(tree))),
        ("k9s", Box::new(|| k9s(tree))),
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

/// k9s against the past, in a terminal that `script` makes. Its build takes minutes, and then the cache has it.
fn k9s(tree: &Tree) -> Result<(), Error> {
    if !process::is_installed("script", "--version") {
        return Err(Error::missing("script", "install util-linux, which has it"));
    }
    if !real_server(false)? {
        return Err(Error::missing("a real server", "k9s and the server need Go"));
    }
    let program = ::control_plane::tool("github.com/derailed/k9s", "v0.50.6")?;
    let mut command = process::cargo(tree.root());
    command.env("KUBEDIFF_K9S", program).args(["test", "--package", "kubectl-changes", "--test", "watch"]);
    process::run(command.args(["--", "--exact", "past::terminal::a_terminal_shows_the_pods_of_then"]))
}

fn conformance(tree: &Tree, release: Release) -> Result<(), Error> {
    let mut command = process::cargo(tree.root());
    command.env(::control_plane::RELEASE, release.to_string());
    process::run(command.args(["test", "--package", "conformance", "--test", "real", "--no-fail-fast"]))
}

/// The cost of a step.
struct Took {
    heading: &'static str,
    time: Duration,
    /// That of the programs which ended during the step.
    cpu: Option<Duration>,
}

fn perform(steps: &[Step<'_>]) -> Result<(), Error> {
    let begin = Instant::now();
    let mut took = Vec::new();
    for (index, (heading, step)) in steps.iter().enumerate() {
        println!("\n=== {}/{} {heading}", index + 1, steps.len());
        let (step_begin, cpu_before) = (Instant::now(), cpu::of_ended_children());
        let result = step();
        let cpu = cpu::of_ended_children().zip(cpu_before).map(|(now, before)| now - before);
        took.push(Took { heading, time: step_begin.elapsed(), cpu });
        if let Err(error) = result {
            print_table(&took);
            println!("xtask test: FAILED at {heading} after {}", seconds(begin.elapsed()));
            return Err(error);
        }
    }
    print_table(&took);
    println!("xtask test: all {} steps passed in {}", steps.len(), seconds(begin.elapsed()));
    Ok(())
}

/// The build of Kubernetes, which no step waits for until `control plane`, counts where it ends.
fn print_table(took: &[Took]) {
    println!("\n{:>10} {:>10}", "time", "CPU");
    for Took { heading, time, cpu } in took {
        println!("{:>10} {:>10}  {heading}", seconds(*time), cpu.map(seconds).unwrap_or_default());
    }
    let all: Option<Duration> = took.iter().map(|took| took.cpu).sum();
    println!("{:>10} {:>10}  all steps", "", all.map(seconds).unwrap_or_default());
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn format(tree: &Tree) -> Result<(), Error> {
    component("rustfmt", "fmt")?;
    process::run(process::cargo(tree.root()).args(["fmt", "--all", "--check"]))
}

/// Builds everything, with Clippy in the place of rustc: so each crate is compiled once for its findings and for the tests.
///
/// Lets the control plane be built at the same time: the step of that name waits for it, and reports a failure.
fn clippy(tree: &Tree, real_server: bool) -> Result<(), Error> {
    component("clippy", "clippy")?;
    if real_server {
        thread::spawn(::control_plane::build);
    }
    test_run::build(tree).map(drop)
}

/// The sets of features of `informer` and `testapi` to build: none, and each alone. A history has files without its feature. Clippy builds all features together.
fn features(tree: &Tree) -> Result<(), Error> {
    let informer =
        ["", "http2", "packed", "save", "schema", "openssl"].map(|features| ("informer", features));
    let testapi = ["", "tls", "yaml", "kube,k8s-openapi/latest"].map(|features| ("testapi", features));
    let history = [("kubectl-changes-history", "")];
    for (package, features) in informer.into_iter().chain(testapi).chain(history) {
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
