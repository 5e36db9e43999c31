//! A session with kubectl: what somebody types who has a cluster.

mod apply;
mod change;
mod create;
mod custom;
mod delete;
mod look;
mod wait;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use conformance::Foreign;
use tempfile::TempDir;
use testapi::TestApi;

/// kubectl and a server for it.
struct Kubectl {
    program: PathBuf,
    /// The kubeconfig, and what kubectl remembers of discovery.
    home: TempDir,
    _server: TestApi,
}

impl Kubectl {
    /// `None` where there is no Go to build it with.
    async fn start(test: &str) -> Option<Self> {
        let program = Foreign::Kubectl.build_or_skip(test)?;
        let server = TestApi::builder().tls().token("secret", "admin").garbage_collection(true);
        let server = server.start().await.expect("a server");
        let home = tempfile::tempdir().expect("a directory");
        std::fs::write(home.path().join("kubeconfig"), server.kubeconfig()).expect("a file");
        Some(Self { program, home, _server: server })
    }

    /// A line as one types it, but without quotes: each space separates.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(self.home.path().join("kubeconfig"));
        command.arg("--cache-dir").arg(self.home.path().join("cache"));
        command.args(line.split_whitespace()).env("HOME", self.home.path());
        command
    }

    /// Runs a line that succeeds, and returns what it prints.
    #[track_caller]
    fn says(&self, line: &str) -> String {
        self.says_of(line, "")
    }

    /// The same with an input.
    #[track_caller]
    fn says_of(&self, line: &str, input: &str) -> String {
        let output = finish(self.command(line), input);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "kubectl {line}: {stdout}{stderr}");
        // Nothing that a user would wonder at.
        assert!(!stderr.contains("Warning"), "kubectl {line}: {stderr}");
        stdout
    }

    /// Runs a line that fails, and returns why.
    #[track_caller]
    fn refuses(&self, line: &str) -> String {
        self.refuses_of(line, "")
    }

    /// The same with an input.
    #[track_caller]
    fn refuses_of(&self, line: &str, input: &str) -> String {
        let output = finish(self.command(line), input);
        assert!(!output.status.success(), "kubectl {line}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Starts a line that goes on, and returns what it prints, line by line.
    fn tells(&self, line: &str) -> Told {
        let mut process = self.command(line).stdout(Stdio::piped()).spawn().expect("a process");
        let stdout = process.stdout.take().expect("a pipe");
        Told { process, stdout: BufReader::new(stdout) }
    }
}

#[track_caller]
fn finish(mut command: Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("a process");
    // Not each line reads what it is given.
    let _ = process.stdin.take().expect("a pipe").write_all(input.as_bytes());
    process.wait_with_output().expect("an output")
}

/// A line that goes on.
struct Told {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

impl Told {
    /// The next line that it prints; empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("text");
        line
    }

    /// Waits for its end, and returns the rest if it has succeeded.
    fn end(mut self) -> String {
        let rest = std::io::read_to_string(&mut self.stdout).expect("text");
        assert!(self.process.wait().expect("it ends").success(), "{rest}");
        rest
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether the words are in the text, in this order.
#[track_caller]
fn has(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        let Some(at) = rest.find(word) else { panic!("no `{word}` (in this order) in:\n{text}") };
        rest = &rest[at + word.len()..];
    }
}

const SHOP: &str = "
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: shop }
data: { color: red, size: small }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  selector: { app: web }
  ports: [{ name: http, port: 80, targetPort: 8080 }]
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
      - name: web
        image: nginx:1.27
        ports: [{ containerPort: 8080 }]
        env: [{ name: COLOR, value: red }]
";
