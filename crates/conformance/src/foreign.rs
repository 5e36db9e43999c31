//! Independent clients: kubectl, a shared informer of client-go, a reflector and controllers of kube-rs.
#![expect(clippy::print_stderr, reason = "the output of tests must show what was skipped")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

/// This crate is never published, so its place in the repository is known.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A client whose source is in `foreign/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// kubectl, of a known version.
    Kubectl,
    /// `cache.SharedInformer` of client-go, typed.
    ClientGo,
    /// Reads everything in both encodings with the types of client-go, and compares.
    Encodings,
    /// `kube::runtime::reflector`.
    KubeRs,
    /// `kube::runtime::Controller`, as it is and fed by an informer. Beside it are `reflector_before` and `reflector_after`.
    KubeRuntime,
    /// A program of ours with both providers of rustls in it, as other dependencies can bring it about.
    TwoProviders,
}

/// A client that keeps a copy of all config maps and reports its state.
pub struct Replica {
    process: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Foreign {
    /// Builds the program; `None` without Go, unless the environment demands certainty.
    ///
    /// # Panics
    ///
    /// When it cannot be built, or when there is no Go and `CI` is `true`.
    pub fn build_or_skip(self, test: &str) -> Option<PathBuf> {
        // One at a time: two builds of one program would be in each other's way.
        static BUILDING: Mutex<()> = Mutex::new(());
        let _building = BUILDING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if std::env::var_os("INFORMER_NO_CONTROL_PLANE").is_some() {
            eprintln!("{test}: left out, because INFORMER_NO_CONTROL_PLANE is set");
            return None;
        }
        // Programs in Rust are built where the tests were: most of their dependencies are there already.
        let target = Path::new(REPOSITORY).join("target");
        let output = target.join("foreign");
        let (mut build, program) = match self {
            Self::Kubectl => (go("./kubectl", &output), output.join("kubectl")),
            Self::ClientGo => (go("./shared-informer", &output), output.join("shared-informer")),
            Self::Encodings => (go("./encodings", &output), output.join("encodings")),
            Self::KubeRs => {
                (member(&["--bin", "foreign-kube-rs"], &target), target.join("debug/foreign-kube-rs"))
            }
            Self::KubeRuntime => {
                let programs = ["side_by_side", "reflector_before", "reflector_after"];
                let programs = programs.map(|name| ["--bin", name]);
                (member(programs.as_flattened(), &target), target.join("debug/side_by_side"))
            }
            Self::TwoProviders => {
                let mut cargo = cargo(&target);
                cargo.current_dir(Path::new(REPOSITORY).join("foreign/two-providers"));
                (cargo, target.join("debug/foreign-two-providers"))
            }
        };
        std::fs::create_dir_all(&output).expect("a directory");
        match build.output() {
            Ok(built) if built.status.success() => Some(program),
            Ok(built) => panic!("{self:?} cannot be built: {}", String::from_utf8_lossy(&built.stderr)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let certain = std::env::var("CI").is_ok_and(|ci| ci == "true");
                assert!(!certain, "{test}: there is no Go to build {self:?} with");
                eprintln!("{test}: left out, because there is no Go to build {self:?} with");
                None
            }
            Err(error) => panic!("{self:?} cannot be built: {error}"),
        }
    }
}

/// Builds examples of this workspace, and returns their folder.
///
/// # Panics
///
/// When they cannot be built.
pub fn build_examples(names: &[&str]) -> PathBuf {
    let target = Path::new(REPOSITORY).join("target");
    let examples: Vec<&str> = names.iter().flat_map(|name| ["--example", name]).collect();
    let built = member(&examples, &target).output().expect("cargo");
    assert!(built.status.success(), "examples cannot be built: {}", String::from_utf8_lossy(&built.stderr));
    target.join("debug/examples")
}

/// Builds programs of this workspace. With all its packages chosen, dependencies have the features that the tests have.
fn member(programs: &[&str], target: &Path) -> Command {
    let mut cargo = cargo(target);
    cargo.arg("--workspace").args(programs);
    cargo
}

fn cargo(target: &Path) -> Command {
    // Without the variables of the test's package: with them, cargo would build most of the workspace again.
    let mut cargo = tooling::process::cargo(Path::new(REPOSITORY));
    cargo.args(["build", "--quiet", "--locked"]).env("CARGO_TARGET_DIR", target);
    cargo
}

/// Builds a command of the Go module.
fn go(package: &str, output: &Path) -> Command {
    // kubectl reports the version that it was built with; without one, it reports 0.0.
    let module = std::fs::read_to_string(Path::new(REPOSITORY).join("foreign/go/go.mod")).expect("go.mod");
    let version =
        module.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubectl v0.")).unwrap_or("0.0");
    let (minor, _patch) = version.split_once('.').unwrap_or((version, "0"));
    let package_version = "k8s.io/component-base/version";
    let flags = format!(
        "-s -w -X {package_version}.gitVersion=v1.{version} -X {package_version}.gitMajor=1 -X {package_version}.gitMinor={minor}"
    );
    let mut go = Command::new("go");
    // Its directory is absolute: the build runs in another one.
    let output = std::path::absolute(output).expect("a path");
    go.args(["build", "-trimpath", "-buildvcs=false", "-ldflags", &flags, "-o"]).arg(output).arg(package);
    go.current_dir(Path::new(REPOSITORY).join("foreign/go")).env("CGO_ENABLED", "0");
    go
}

impl Replica {
    /// Starts a client with arguments.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start(program: &Path, arguments: &[&str]) -> Self {
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let stdin = process.stdin.take().expect("a pipe");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        Self { process, stdin, lines }
    }

    /// Waits until it knows of an object. Blocks.
    pub fn until(&mut self, key: &str) {
        assert_eq!(self.ask(&format!("until {key}")), "there");
    }

    /// Its state: resourceVersion by namespace and name. Blocks.
    pub fn state(&mut self) -> BTreeMap<String, String> {
        serde_json::from_str(&self.ask("state")).expect("JSON")
    }

    /// The objects of its first list, without resourceVersion, by namespace and name. Waits for them. Blocks.
    pub fn contents(&mut self) -> BTreeMap<String, serde_json::Value> {
        serde_json::from_str(&self.ask("contents")).expect("JSON")
    }

    fn ask(&mut self, command: &str) -> String {
        writeln!(self.stdin, "{command}").expect("a reader");
        self.lines.next().expect("an answer").expect("a line")
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
